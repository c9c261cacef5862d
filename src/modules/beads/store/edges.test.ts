import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { Problem } from '../../../kernel/problem.ts'
import { cycleOf, cycleProblem, findCycle, MAX_WALKED } from './edges.ts'

const blocks = (depends_on_id: string) => ({ depends_on_id, type: 'blocks' })
/** `<prefix>1` depends on `<prefix>0`, and so on, without the beads: only edges are looked at. */
const chain = (city: WorkStore, prefix: string, length: number) =>
  city.store.db.write((tx) =>
    tx.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) SELECT ? || i, ? || (i - 1), 'blocks', 0 FROM n`,
      length,
      prefix,
      prefix,
    ),
  )

/** What comes of it, and how many statements that took. */
function look(city: WorkStore, issue: string, target: string) {
  let statements = 0
  const { db } = city.store
  const counted = {
    get(...asked: Parameters<typeof db.get>) {
      statements++
      return db.get(...asked)
    },
    all(...asked: Parameters<typeof db.all>) {
      statements++
      return db.all(...asked)
    },
  }
  try {
    return { cycle: cycleOf(counted, issue, blocks(target)), statements }
  } catch (error) {
    assert.ok(error instanceof Problem)
    return { refused: error.detail, statements }
  }
}

test('a dependency between long chains, or a cycle of 100,000, is told in a few statements', async () => {
  using city = openWorkStore()
  await chain(city, 'al-a', 50_000)
  await chain(city, 'al-b', 50_000)
  const joining = look(city, 'al-a0', 'al-b50000')
  assert.match(joining.refused ?? '', /al-a0 -> al-b50000 closes a cycle cannot be told: .* more than 10000 beads/)
  assert.ok(joining.statements <= 6, `${joining.statements} statements`)
  await chain(city, 'al-c', 100_000)
  const circle = look(city, 'al-c0', 'al-c100000')
  assert.match(circle.refused ?? '', /cannot be told/)
  assert.ok(circle.statements <= 6, `${circle.statements} statements`)
  assert.equal(look(city, 'al-new', 'al-c100000').cycle, undefined, 'nothing is behind a new one')
  assert.equal(look(city, 'al-a0', 'al-new').cycle, undefined)
})

test('as far as a write looks, a cycle is found exactly, from whichever end it is nearer', async () => {
  using city = openWorkStore()
  await chain(city, 'al-a', MAX_WALKED - 1)
  const { cycle, statements } = look(city, 'al-a0', `al-a${MAX_WALKED - 1}`)
  assert.equal(cycle?.length, MAX_WALKED + 1)
  assert.deepEqual([cycle?.[0], cycle?.[1], cycle?.at(-1)], ['al-a0', `al-a${MAX_WALKED - 1}`, 'al-a0'])
  assert.ok(statements <= 7, `${statements} statements`)
  assert.deepEqual(look(city, 'al-a3', 'al-a5').cycle, ['al-a3', 'al-a5', 'al-a4', 'al-a3'])
  assert.equal(look(city, 'al-a5', 'al-a3').cycle, undefined, 'the same way round')
})

test('a refused cycle of thousands is named by its ends, and listed up to a bound', () => {
  const path = Array.from({ length: 5_001 }, (_, n) => `al-${n % 5_000}`)
  const { message, options } = cycleProblem(path)
  assert.ok(message.length < 300, message)
  assert.match(message, /^dependency cycle: al-0 -> al-1 -> .* -> … 4991 more … -> al-0$/)
  assert.ok(JSON.stringify(options).length < 20_000)
  assert.equal(cycleProblem(['al-a', 'al-b', 'al-a']).message, 'dependency cycle: al-a -> al-b -> al-a')
})

test('a batch whose new beads nothing old depends on does not walk what lies below them', async () => {
  using city = openWorkStore()
  await chain(city, 'al-a', 30_000)
  await city.store.db.write((tx) =>
    tx.run(`INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) VALUES ('al-x', 'al-a30000', 'blocks', 0),
      ('al-x', 'al-y', 'blocks', 0)`),
  )
  const { db } = city.store
  assert.equal(findCycle(db, 'blocking', ['al-x', 'al-y'], true), undefined)
  assert.throws(() => findCycle(db, 'blocking', ['al-x', 'al-y'], false), /the batch closes a cycle cannot be told/)
  await city.store.db.write((tx) =>
    tx.run(`INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) VALUES ('al-y', 'al-x', 'blocks', 0)`),
  )
  assert.deepEqual(findCycle(db, 'blocking', ['al-x', 'al-y'], true), ['al-x', 'al-y', 'al-x'])
})
