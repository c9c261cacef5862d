import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { shippedText } from '../base/package-files.ts'
import { chosenColumns, sortItems, valueAt } from './arrange.ts'
import type { Column } from './columns.ts'
import { knownFields } from './known-fields.ts'

interface Item {
  readonly id: string
  readonly priority?: number
  readonly metadata?: Readonly<Record<string, string>>
}
const items: readonly Item[] = [
  { id: 'al-10', priority: 2 },
  { id: 'al-9', metadata: { team: 'red', 'a.b': 'dotted' } },
  { id: 'al-1', priority: 0 },
]
const columns: readonly Column<Item>[] = [
  { header: 'ID', value: ({ id }) => id },
  { header: 'LENGTH', value: ({ id }) => id.length },
  { header: 'REVISION', value: () => 1, wide: true },
]
const shown = { items, columns, known: [] }
const ids = (sort: string) => sortItems(sort, shown).map(({ id }) => id)

suite('--sort', () => {
  test('numbers count up, ids as people count, what has no value comes last either way', () => {
    assert.deepEqual(ids('id'), ['al-1', 'al-9', 'al-10'])
    assert.deepEqual(ids('-id'), ['al-10', 'al-9', 'al-1'])
    assert.deepEqual(ids('priority'), ['al-1', 'al-10', 'al-9'])
    assert.deepEqual(ids('-priority'), ['al-10', 'al-1', 'al-9'])
    assert.deepEqual(ids('length,-id'), ['al-9', 'al-1', 'al-10'])
  })

  test('a field that nobody has is named, with those that there are', () => {
    assert.throws(() => ids('titel'), {
      message: 'there is no field "titel" here',
      hint: 'fields: id, length, metadata, priority, revision',
    })
    assert.throws(() => ids('id,,x'), /a name is empty/)
  })
})

suite('--columns', () => {
  const headers = (chosen: string) => chosenColumns(chosen, shown).map(({ header }) => header)

  test('are columns by name, fields by path, or those that are shown anyway and more', () => {
    assert.deepEqual(headers('metadata.team,id'), ['METADATA.TEAM', 'ID'])
    assert.deepEqual(headers('+priority,revision'), ['ID', 'LENGTH', 'PRIORITY', 'REVISION'])
  })

  test('lead into objects, also past dots in names', () => {
    assert.equal(valueAt(items[1], 'metadata.team'), 'red')
    assert.equal(valueAt(items[1], 'metadata.a.b'), 'dotted')
    assert.equal(valueAt(items[1], 'metadata.none'), undefined)
  })

  test('that no item has but the contract knows are empty, and no error', async () => {
    const known = knownFields(['list-beads'], await shippedText('openapi.json'))
    for (const field of ['id', 'title', 'assignee', 'metadata.*', 'lease_expires_at'])
      assert.ok(known.includes(field), `${field}: ${known.join(', ')}`)
    assert.equal(chosenColumns('assignee,metadata.team', { items: [], columns, known }).length, 2)
    assert.throws(() => chosenColumns('titel', { items: [], columns, known }), /no field "titel"/)
  })
})
