import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { importLines } from './import.ts'

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
  const report = await importLines(city, bodyOf(lines), {}, { clock, signal, actor: 'token:ci' })
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
      { clock, signal: new AbortController().signal, actor: 'api' },
    )
    assert.deepEqual([report.updated, report.failed], [3, 1], JSON.stringify(report.errors))
    assert.match(report.errors?.[0]?.detail ?? '', /cannot be told/)
  }
})
