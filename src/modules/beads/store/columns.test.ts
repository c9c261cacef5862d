import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore } from '../../../../test/support/work-store.ts'
import { COLUMN_NAMES, COLUMNS } from './columns.ts'

/** Those that are worked out, and those that are no columns of a bead but what it is found by. */
const OTHERS = ['n', 'id', 'revision', 'blockers', 'workable', 'deferred', 'metadata', 'labels']

test('the table of beads has the columns that the record of columns says, as it says', () => {
  using city = openWorkStore()
  const stored = city.store.db.all('PRAGMA table_info(beads)').flatMap(({ name, type, notnull, dflt_value: given }) => {
    const sql = [type, ...(notnull === 1 ? ['NOT NULL'] : []), ...(given === null ? [] : [`DEFAULT ${given}`])]
    return OTHERS.includes(String(name)) ? [] : [[String(name), sql.join(' ')] as const]
  })
  assert.deepEqual(
    Object.fromEntries(stored),
    Object.fromEntries(COLUMN_NAMES.map((name) => [name, COLUMNS[name].sql] as const)),
  )
})

test('an event says by its own name what a bead shows in a field, and calls metadata what shows there only', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const head = city.store.log.head
  const change = { routed_to: 'pool', session_id: 's-1', work_branch: 'b' }
  await city.store.db.write((tx) => city.beads.change(tx, 'al-1', change, 'test'))
  assert.deepEqual(city.events(head), [['bead.updated', 'al-1', ['routed_to', 'session_id', 'metadata']]])
})
