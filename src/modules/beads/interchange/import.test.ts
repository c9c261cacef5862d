import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { type Agent, type Caller, OWNER } from '../../../kernel/caller.ts'
import { importLines } from './import.ts'

const CI: Caller = { kind: 'token', name: 'ci', role: 'admin', city: undefined }
const FAR = 5_000
const LINES = 30

/** `al-x0` and so on: very much depends on each of them, and each is to depend on a bead with very much below it. */
async function openDeepCity(): Promise<{ readonly city: WorkStore; readonly lines: readonly string[] }> {
  const city = openWorkStore()
  const ids = Array.from({ length: LINES }, (_, n) => `al-x${n}`)
  for (const id of ids) await city.bead(id)
  await city.store.db.write((tx) => {
    for (const prefix of ['al-a', 'al-b'])
      tx.run(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${FAR})
          INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) SELECT ? || i, ? || (i - 1), 'blocks', 0 FROM n`,
        prefix,
        prefix,
      )
    for (const id of ids)
      tx.run("INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) VALUES ('al-a0', ?, 'blocks', 0)", id)
  })
  const lines = ids.map((id) =>
    JSON.stringify({
      id,
      title: id,
      status: 'open',
      updated_at: '2030-01-01T00:00:00Z',
      dependencies: [{ issue_id: id, depends_on_id: `al-b${FAR}`, type: 'blocks' }],
    }),
  )
  return { city, lines }
}

async function* bodyOf(lines: readonly string[]) {
  for (const [at, text] of lines.entries()) yield { line: at + 1, text }
}

test('lines that each need a long look for a cycle are taken in a few at a time, in the name of who imports', async () => {
  const { city, lines } = await openDeepCity()
  using _ = city
  const { clock } = city
  const signal = new AbortController().signal
  const commits: number[] = []
  city.store.log.onCommit((events) => commits.push(new Set(events.map(({ subject }) => subject)).size))
  const head = city.store.log.head
  const report = await importLines(city, bodyOf(lines), {}, { clock, signal, caller: CI })
  assert.deepEqual([report.updated, report.failed], [LINES, 0], JSON.stringify(report.errors))
  assert.ok(Math.max(...commits) <= 3, `lines in one write: ${commits.join(', ')}`)
  const { events } = city.store.log.scan({}, { after: head, upTo: city.store.log.head }, 'asc', 1_000)
  assert.deepEqual([...new Set(events.map(({ actor }) => actor))], ['token:ci'])
})

test('a line that needs too many long looks is refused, the others are taken', async () => {
  const { city, lines } = await openDeepCity()
  using _ = city
  const { clock } = city
  const dependencies = Array.from({ length: 50 }, (_, n) => ({
    issue_id: 'al-x0',
    depends_on_id: `al-b${FAR - n}`,
    type: 'blocks',
  }))
  const greedy = JSON.stringify({ id: 'al-x0', title: 'x', updated_at: '2030-01-01T00:00:00Z', dependencies })
  for (const dry_run of [true, false]) {
    const report = await importLines(
      city,
      bodyOf([greedy, ...lines.slice(1, 4)]),
      { dry_run },
      { clock, signal: new AbortController().signal, caller: OWNER },
    )
    assert.deepEqual([report.updated, report.failed], [3, 1], JSON.stringify(report.errors))
    assert.match(report.errors?.[0]?.detail ?? '', /cannot be told/)
  }
})

const ALICE: Agent = {
  kind: 'agent',
  city: 'shop',
  session: 's-1',
  name: 'calc/alice',
  api: 'work',
  isSelf: (handle) => handle === 's-1',
  goesBy: (name) => ['calc/alice', 's-1'].includes(name),
}

test('import: an agent neither comments nor claims in the name of somebody else', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const imports = (caller: Caller, line: object, options = {}) =>
    importLines(city, bodyOf([JSON.stringify({ title: 't', updated_at: '2031-01-01T00:00:00Z', ...line })]), options, {
      clock: city.clock,
      signal: new AbortController().signal,
      caller,
    })
  const comment = (author: string) => ({
    comments: [{ id: `c-${author}-0123456789`, author, text: 'approved, ship it' }],
  })
  const forged = [
    { id: 'al-1', ...comment('human') },
    { id: 'al-2', ...comment('human') },
    { id: 'al-1', status: 'in_progress', assignee: 'calc/bob' },
    { id: 'al-2', status: 'in_progress', assignee: 'calc/bob' },
    { id: 'al-1', metadata: { 'svc.session_id': 's-2' } },
  ]
  for (const line of forged)
    for (const dry_run of [true, false]) {
      const report = await imports(ALICE, line, { dry_run })
      assert.deepEqual([report.created + report.updated, report.failed], [0, 1], JSON.stringify(line))
      assert.match(
        report.errors[0]?.detail ?? '',
        /token is that of calc\/alice, who cannot speak as (human|calc\/bob|s-2)/,
      )
    }
  const own = [
    { id: 'al-1', ...comment('calc/alice') },
    { id: 'al-3', status: 'in_progress', assignee: 'calc/alice', metadata: { 'svc.session_id': 's-1' } },
    { id: 'al-4', status: 'open', assignee: 'calc/bob' },
    { id: 'al-5', status: 'closed', assignee: 'calc/bob', metadata: { 'svc.session_id': 's-9' } },
  ]
  for (const line of own) assert.equal((await imports(ALICE, line)).failed, 0, JSON.stringify(line))
  for (const line of forged) assert.equal((await imports(OWNER, line)).failed, 0, JSON.stringify(line))
  // What is here already, an agent brings back as it is.
  assert.equal(
    (await imports(ALICE, { id: 'al-2', title: 'renamed', ...comment('human'), updated_at: '2032-01-01T00:00:00Z' }))
      .failed,
    0,
  )
})
