import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { normalConversation } from '../../../messaging/conversation.ts'
import { opened, SAID } from '../testing.ts'
import { Attachments, harmlessName } from './attachments.ts'
import { TranscriptRetention } from './retention.ts'

const DAY = 24 * 3_600_000
const ROOM = normalConversation({ provider: 'irc', account_id: 'a', conversation_id: '#x', kind: 'room' }, 'alpha')

async function* pieces(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

function withFiles(t: TestContext, keptMs = 180 * DAY) {
  const clock = new ManualClock()
  const store = opened(t, clock)
  const root = mkdtempSync(join(tmpdir(), 'svc-attachments-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const attachments = new Attachments({ db: store.db, clock, root })
  const log = { warn: (details: object) => assert.fail(JSON.stringify(details)) }
  const retention = new TranscriptRetention({
    db: store.db,
    clock,
    log,
    attachments,
    agesCount: () => true,
    keptMs: () => keptMs,
  })
  t.after(() => retention.close())
  const upload = async (text: string, filename?: string) => {
    const saved = await attachments.save(pieces(...text))
    try {
      return await store.db.write((tx) => attachments.insert(tx, saved, filename, 'text/plain'))
    } finally {
      saved.release()
    }
  }
  return { ...store, clock, root, attachments, retention, upload }
}

test('names that lead elsewhere, hide or turn themselves around are only names', () => {
  const cases: readonly [string | undefined, string][] = [
    ['../../etc/passwd', 'passwd'],
    ['..\\..\\win.ini', 'win.ini'],
    ['/abs/olute.txt', 'olute.txt'],
    ['..', 'attachment'],
    ['.bashrc', 'bashrc'],
    ['a\0b\u001b[31m.txt', 'ab[31m.txt'],
    ['gpj.\u202eexe', 'gpj.exe'],
    ['', 'attachment'],
    [undefined, 'attachment'],
    [' \n ', 'attachment'],
    ['"quoted"; filename=x', '"quoted"; filename=x'],
    ['x'.repeat(400), 'x'.repeat(255)],
  ]
  for (const [given, expected] of cases) assert.equal(harmlessName(given), expected)
})

test('bytes are kept under their hash, once however often they come, and nothing of an upload that breaks off', async (t) => {
  const { root, attachments, upload } = withFiles(t)
  const [first, second] = await Promise.all([upload('hello', 'a.txt'), upload('hello', 'b.txt')])
  assert.notEqual(first.id, second.id)
  assert.equal(first.sha256, createHash('sha256').update('hello').digest('hex'))
  assert.equal(readFileSync(attachments.pathOf(first), 'utf8'), 'hello')
  assert.equal((await attachments.read(second)).toString(), 'hello')
  async function* broken(): AsyncGenerator<Buffer> {
    yield Buffer.from('half')
    throw new Error('gone')
  }
  await assert.rejects(attachments.save(broken()), /gone/)
  assert.deepEqual(readdirSync(join(root, 'incoming')), [])
  assert.equal((await upload('')).size, 0)
})

test('what no entry has goes after a day, its file with the last name of it; what one has, with that entry', async (t) => {
  const { db, clock, transcripts, attachments, retention, upload } = withFiles(t)
  const [used, unused, other] = [await upload('one'), await upload('one'), await upload('two')]
  const { id } = await db.write((tx) => {
    const row = transcripts.ensure(tx, ROOM)
    transcripts.append(tx, row.id, { ...SAID, attachments: [{ id: used.id }] })
    return row
  })
  assert.deepEqual(attachments.usedIn(used.id), [id])
  assert.equal(transcripts.entry(id, 1)?.attachments[0]?.filename, 'attachment')
  // Coming in while it is looked at: its file is there, and its row not yet.
  const coming = await attachments.save(pieces('three'))
  clock.step(DAY + 1)
  await retention.sweep()
  assert.deepEqual(
    [used, unused, other].map((row) => attachments.find(row.id) !== undefined),
    [true, false, false],
  )
  assert.ok(existsSync(attachments.pathOf(used)) && existsSync(attachments.pathOf(coming)))
  assert.ok(!existsSync(attachments.pathOf(other)))
  coming.release()
  await db.write((tx) => transcripts.delete(tx, transcripts.need(id, tx)))
  await retention.sweep()
  assert.equal(attachments.find(used.id), undefined)
  assert.ok(!existsSync(attachments.pathOf(used)) && !existsSync(attachments.pathOf(coming)))
})

test('entries go after their time, in order, and a deleted transcript leaves its sequence behind', async (t) => {
  const { db, clock, transcripts, retention } = withFiles(t, 10 * DAY)
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  const say = (many: number) =>
    db.write((tx) => {
      for (let n = 0; n < many; n++)
        transcripts.append(tx, id, { ...SAID, dedupe: `m-${transcripts.need(id, tx).next}` })
    })
  const rows = () => Number(db.get('SELECT count(*) AS n FROM transcript_entries')?.n)
  const found = () =>
    Number(db.get("SELECT count(*) AS n FROM transcript_search WHERE transcript_search MATCH 'hello'")?.n)
  await say(450)
  clock.step(6 * DAY)
  await say(30)
  clock.step(5 * DAY)
  await retention.sweep()
  assert.deepEqual([transcripts.need(id).earliest, transcripts.need(id).next, rows(), found()], [451, 481, 30, 30])
  assert.equal(transcripts.entry(id, 450), undefined)
  assert.equal(await db.write((tx) => transcripts.delete(tx, transcripts.need(id, tx))), 30)
  // Before its rows are gone somebody speaks there again, and the provider repeats itself.
  await db.write((tx) => {
    assert.equal(transcripts.ensure(tx, ROOM).id, id)
    assert.equal(transcripts.byDedupe(tx, id, 'm-470'), undefined)
    assert.equal(transcripts.append(tx, id, { ...SAID, dedupe: 'm-470' }).sequence, 481)
  })
  await retention.sweep()
  assert.deepEqual([transcripts.need(id).earliest, rows(), found()], [481, 1, 1])
})

test('what no message has is bounded; what is refused leaves no file', async (t) => {
  const { db, transcripts, attachments, upload, root } = withFiles(t)
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  const large = { sha256: 'f'.repeat(64), size: 1024 ** 3 - 100 * 1024 }
  const first = await db.write((tx) => attachments.insert(tx, large, 'large', 'text/plain'))
  const known = await upload('small')
  const files = readdirSync(root, { recursive: true })
  // Half of what each small one counts is left.
  await assert.rejects(upload('one more'), { code: 'payload-too-large' })
  assert.deepEqual(readdirSync(root, { recursive: true }).length, files.length)
  assert.equal(existsSync(attachments.pathOf(known)), true)
  await db.write((tx) => transcripts.append(tx, id, { ...SAID, attachments: [{ id: first.id }] }))
  await upload('one more')
  const half = { ...large, size: 1024 ** 3 / 2 }
  const again = await db.write((tx) => attachments.insert(tx, half, 'half', 'text/plain'))
  assert.notEqual(again.id, first.id)
})

test('what was uploaded a day ago takes no room from what comes', async (t) => {
  const { db, attachments, upload, clock } = withFiles(t)
  const whole = { sha256: 'f'.repeat(64), size: 1024 ** 3 }
  await db.write((tx) => attachments.insert(tx, whole, 'large', 'text/plain'))
  await assert.rejects(upload('more'), { code: 'payload-too-large' })
  await clock.advance(DAY + 1)
  await upload('more')
})
