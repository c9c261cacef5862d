import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { type Migrations, migrationsOf } from '../../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../../kernel/store.ts'
import { normalConversation, transcriptId } from '../../../messaging/conversation.ts'
import { searchExpression, spaced } from '../../../messaging/search.ts'
import { messaging } from '../family.ts'
import { opened, SAID } from '../testing.ts'
import { listEntries, listTranscripts } from './lists.ts'

const ROOM = { provider: 'IRC', account_id: ' libera ', conversation_id: '#builds', kind: 'Room' }

test('a conversation is normalised, and its id follows from its six fields', () => {
  const conversation = normalConversation(ROOM, 'alpha')
  assert.deepEqual(conversation, {
    scope_id: 'alpha',
    provider: 'irc',
    account_id: 'libera',
    conversation_id: '#builds',
    kind: 'room',
  })
  assert.equal(transcriptId(conversation), 'cv-22fcc9dd55773fc1d74c69d3e5e1211c')
  const others = [
    { ...ROOM, kind: 'dm' },
    { ...ROOM, scope_id: 'b' },
    { ...ROOM, parent_conversation_id: '#x' },
    { ...ROOM, account_id: 'Libera' },
  ]
  const ids = new Set(others.map((other) => transcriptId(normalConversation(other, 'alpha'))))
  assert.equal(ids.add(transcriptId(conversation)).size, 5)
})

test('what can be no conversation is refused by name', () => {
  const wrong: readonly [object, string][] = [
    [{ kind: 'channel' }, 'body.conversation.kind'],
    [{ provider: ' ' }, 'body.conversation.provider'],
    [{ account_id: 'a\0b' }, 'body.conversation.account_id'],
    [{ conversation_id: 'x'.repeat(513) }, 'body.conversation.conversation_id'],
    [{ parent_conversation_id: '\u001b[0m' }, 'body.conversation.parent_conversation_id'],
  ]
  for (const [change, at] of wrong)
    assert.throws(() => normalConversation({ ...ROOM, ...change }, 'alpha'), {
      code: 'invalid-conversation',
      message: new RegExp(`^${at.replaceAll('.', '\\.')} `),
    })
})

test('entries are counted without gaps, each transcript for itself, and a deleted one goes on where it was', async (t) => {
  const { db, transcripts } = opened(t)
  const conversation = normalConversation(ROOM, 'alpha')
  const [id, other] = await db.write((tx) => [
    transcripts.ensure(tx, conversation).id,
    transcripts.ensure(tx, normalConversation({ ...ROOM, conversation_id: '#other' }, 'alpha')).id,
  ])
  assert.ok(id !== undefined && other !== undefined)
  const writes = Array.from({ length: 40 }, (_, n) =>
    db
      .write((tx) => {
        const entry = transcripts.append(tx, n % 2 === 0 ? id : other, { ...SAID, text: `line ${n}` })
        if (n % 10 === 4) throw new Error('refused')
        return entry.sequence
      })
      .catch(() => 0),
  )
  const sequences = await Promise.all(writes)
  assert.deepEqual(
    sequences.filter((_, n) => n % 2 === 0).filter((sequence) => sequence > 0),
    Array.from({ length: 16 }, (_, n) => n + 1),
  )
  assert.deepEqual(
    sequences.filter((_, n) => n % 2 === 1),
    Array.from({ length: 20 }, (_, n) => n + 1),
  )
  assert.equal(transcripts.need(id).next, 17)
})

test('whatever is searched for is no error, words are all there, and pages follow each other', async (t) => {
  const { db, transcripts } = opened(t)
  const id = await db.write((tx) => transcripts.ensure(tx, normalConversation(ROOM, 'alpha')).id)
  const texts = ['Deploy finished', 'deploy FAILED in café', 'nothing', 'the deployment of “foo-bar” finished', 'a"b']
  await db.write((tx) => {
    const other = transcripts.ensure(tx, normalConversation({ ...ROOM, kind: 'dm' }, 'alpha')).id
    for (const text of texts) {
      transcripts.append(tx, id, { ...SAID, text })
      transcripts.append(tx, other, { ...SAID, text })
    }
  })
  const find = (q: string) => listEntries(db, transcripts.need(id), { q }).items.map(({ sequence }) => sequence)
  assert.deepEqual(find('finished deploy'), [1])
  assert.deepEqual(find('deploy*'), [1, 2, 4])
  assert.deepEqual(find('cafe'), [2])
  assert.deepEqual(find('foo-bar'), [4])
  assert.deepEqual(find('a"b'), [5])
  assert.deepEqual(find('nothing ---'), [3])
  for (const odd of [
    '"',
    '*',
    'AND',
    'NOT a OR',
    'tag : x',
    '^a',
    '(',
    'NEAR(a b)',
    '\0',
    'a\0b',
    '- -',
    '\ud800',
    '{x} : y',
    '😀',
    ' ',
    "';--",
  ])
    assert.ok(Array.isArray(find(odd)), odd)
  assert.equal(searchExpression('* - ""', { db, table: 'transcript_terms' }), undefined)
  const first = listEntries(db, transcripts.need(id), { q: 'deploy*', limit: 2 })
  assert.equal(first.total, 3)
  const rest = listEntries(db, transcripts.need(id), { q: 'deploy*', limit: 2, cursor: first.next_cursor })
  assert.deepEqual(
    [...first.items, ...rest.items].map(({ sequence }) => sequence),
    [1, 2, 4],
  )
  assert.equal(rest.next_cursor, undefined)
  const down = listEntries(db, transcripts.need(id), { order: 'desc', limit: 2, before: 5 })
  assert.deepEqual(
    down.items.map(({ sequence }) => sequence),
    [4, 3],
  )
  assert.equal(down.total, 4)
  assert.equal(listTranscripts(db, { provider: 'Irc', kind: 'dm' }, ({ id }) => id).total, 1)
})

test('a membership lasts as long as its last owner, and tells of every change once', async (t) => {
  const { db, log, transcripts, members } = opened(t)
  const id = await db.write((tx) => {
    const { id } = transcripts.ensure(tx, normalConversation(ROOM, 'alpha'))
    for (let n = 0; n < 3; n++) transcripts.append(tx, id, SAID)
    return id
  })
  const ada = 'session:ses-1' as const
  const policies = await db.write((tx) => [
    members.join(tx, id, ada, { owner: 'binding', actor: 'api' }).policy,
    members.join(tx, id, ada, { owner: 'binding', actor: 'api' }).policy,
    members.join(tx, id, ada, { owner: 'manual', policy: 'since_join', actor: 'api' }).policy,
    members.join(tx, id, ada, { owner: 'group', actor: 'api' }).policy,
  ])
  assert.deepEqual(policies, ['since_join', 'since_join', 'since_join', 'all'])
  const read = await db.write((tx) => [2, 1, 3].map((sequence) => members.ack(tx, id, ada, sequence)))
  assert.deepEqual(read, [2, 2, 3])
  assert.equal(members.find(id, ada)?.joinedSequence, 3)
  assert.deepEqual(members.transcriptsOf(ada), [id])
  await db.write((tx) => {
    assert.equal(members.leave(tx, id, ada, 'group', 'api'), true)
    assert.equal(members.leave(tx, id, ada, 'group', 'api'), false)
    members.leave(tx, id, ada, 'manual', 'api')
  })
  assert.deepEqual(members.of(id)[0]?.owners, ['binding'])
  await db.write((tx) => members.leaveAll(tx, ada, 'api'))
  assert.deepEqual(members.of(id), [])
  const changes = log.scan({ types: ['extmsg.membership_changed'] }, { after: 0, upTo: log.head }, 'asc', 100)
  assert.deepEqual(
    changes.events.map((event) => Object(JSON.parse(event.envelope).payload).change),
    ['joined', 'changed', 'changed', 'changed', 'changed', 'left'],
  )
})

test('words of scripts without blanks are found by their parts, as in mail, and are gone with their entry', async (t) => {
  const { db, transcripts } = opened(t)
  const id = await db.write((tx) => {
    const made = transcripts.ensure(tx, normalConversation(ROOM, 'alpha')).id
    for (const text of ['你好世界', 'hello world', 'テスト is over']) transcripts.append(tx, made, { ...SAID, text })
    return made
  })
  const find = (q: string) => listEntries(db, transcripts.need(id), { q }).items.map(({ text }) => text)
  assert.deepEqual(find('世界'), ['你好世界'])
  assert.deepEqual(find('スト over'), ['テスト is over'])
  await db.write((tx) => tx.run('DELETE FROM transcript_entries WHERE transcript_id = ?', id))
  assert.deepEqual(db.rows('SELECT * FROM transcript_terms'), [])
})

test('what was said before the index was made anew is found and deleted as what was said since', async (t) => {
  const directory = temporaryDirectory()
  t.after(() => directory[Symbol.dispose]())
  const path = join(directory.path, 'city.db')
  const open = (migrations: Migrations) => openStore({ path, migrations, owner: 'the test', clock: systemClock }).db
  const all = messaging.parts.schema ?? []
  const first = all.filter(({ name }) => name === 'messaging/1')
  const store = migrationsOf('store', STORE_SCHEMA)
  const before = open([...store, ...first])
  const texts = ['an old word', '你好, wörld テスト\n𠮷野家']
  await before.write((tx) => {
    for (const [index, text] of texts.entries())
      tx.run(
        `INSERT INTO transcript_entries (transcript_id, sequence, kind, provenance, actor_id, actor_name, actor_is_bot, text,
           attachments_json, metadata_json, root, created_at)
         VALUES ('cv-a', ?, 'inbound', 'live', 'u', 'Ada', 0, ?, '[]', '{}', 0, 1)`,
        index + 1,
        text,
      )
  })
  before.close()
  const db = open([...store, ...all])
  assert.deepEqual(
    db.rows('SELECT words FROM transcript_entries ORDER BY sequence').map(([words]) => words),
    [null, spaced(texts[1] ?? '')],
  )
  const found = (words: string) =>
    db.rows('SELECT rowid FROM transcript_search WHERE transcript_search MATCH ?', words).length
  assert.deepEqual(['old wo*', '好', 'ス 野'].map(found), [1, 1, 1])
  await db.write((tx) => tx.run('DELETE FROM transcript_entries'))
  assert.deepEqual(db.rows('SELECT * FROM transcript_terms'), [])
  db.close()
})

test('beginnings that searches leave to the index are words of it', (t) => {
  const { db } = opened(t)
  const sql = String(db.get("SELECT sql FROM sqlite_schema WHERE name = 'transcript_search'")?.sql)
  assert.match(sql, /prefix = '1 2 3'/)
})

test('the total of a search is exact behind what a page shows, from each end and for each page', async (t) => {
  const { db, transcripts } = opened(t)
  const id = await db.write((tx) => {
    const made = transcripts.ensure(tx, normalConversation(ROOM, 'alpha')).id
    for (let n = 1; n <= 2_400; n++) transcripts.append(tx, made, { ...SAID, text: n % 2 === 0 ? 'even' : 'odd' })
    return made
  })
  const transcript = transcripts.need(id)
  for (const order of ['asc', 'desc'] as const)
    for (const q of ['even', 'eve*']) {
      const first = listEntries(db, transcript, { q, order, limit: 10 })
      const next = listEntries(db, transcript, { q, order, limit: 10, cursor: first.next_cursor })
      const sequences = [...first.items, ...next.items].map(({ sequence }) => sequence)
      const expected = Array.from({ length: 20 }, (_, n) => (order === 'asc' ? 2 * (n + 1) : 2_400 - 2 * n))
      assert.deepEqual(sequences, expected)
      assert.deepEqual([first.total, next.total, first.total_capped], [1_200, 1_200, undefined])
    }
  assert.equal(listEntries(db, transcript, { q: 'odd', after: 2_000 }).total, 200)
})

test('entries: a page of large texts ends at 8 MiB, and its cursor goes on', async (t) => {
  const { db, transcripts } = opened(t)
  const id = await db.write((tx) => {
    const { id } = transcripts.ensure(tx, normalConversation(ROOM, 'alpha'))
    for (let n = 0; n < 300; n++) transcripts.append(tx, id, { ...SAID, text: 'x'.repeat(63 * 1024) })
    return id
  })
  const seen: number[] = []
  let cursor: string | undefined
  do {
    const page = listEntries(db, transcripts.need(id), { limit: 1_000, cursor })
    assert.ok(JSON.stringify(page.items).length < 9 * 1024 * 1024)
    seen.push(...page.items.map(({ sequence }) => sequence))
    cursor = page.next_cursor
  } while (cursor !== undefined)
  assert.deepEqual(
    seen,
    Array.from({ length: 300 }, (_, n) => n + 1),
  )
})
