// Views: what the words of one come to.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isRecord } from '../../client/problems.ts'
import { shippedText } from '../base/package-files.ts'
import { columnName } from './columns.ts'
import { TIME_FIELDS } from './time-fields.ts'
import { allColumns, around, view, viewInside } from './view.ts'

interface Thing {
  readonly id: string
  readonly state: string
  readonly tags?: readonly string[]
  readonly git?: { readonly branch: string; readonly observed_at: string | null }
}
const FULL: Thing = { id: 'a-1', state: 'ok', tags: ['x', 'y'], git: { branch: 'main', observed_at: null } }
const BARE: Thing = { id: 'a-2', state: 'ok' }

const THING = view<Thing>()('id state git.branch LOUD', {
  wide: 'tags SEEN',
  as: { LOUD: ({ id }) => id.toUpperCase(), SEEN: 'git.observed_at' },
})

suite('a view', () => {
  test('has a column for each word, under the last part of its path', () => {
    assert.deepEqual(THING.columns.map(columnName), ['id', 'state', 'branch', 'loud', 'tags', 'seen'])
    assert.deepEqual(
      THING.columns.map(({ value }) => value(FULL)),
      ['a-1', 'ok', 'main', 'A-1', 'x, y', undefined],
    )
    assert.deepEqual(
      THING.columns.map(({ value }) => value(BARE)),
      ['a-2', 'ok', undefined, 'A-2', undefined, undefined],
    )
  })

  test('knows times and states by the names of their fields, also under another name', () => {
    assert.deepEqual(
      THING.columns.map(({ kind }) => kind),
      [undefined, 'state', undefined, undefined, undefined, 'time'],
    )
  })

  test('shows some columns only where there is room, and all of them of one thing', () => {
    const wide = (columns: typeof THING.columns) => columns.filter((column) => column.wide === true).map(columnName)
    assert.deepEqual(wide(THING.columns), ['tags', 'seen'])
    assert.deepEqual(wide(allColumns(THING).columns), [])
  })

  test('names a thing by its first column, or as it is told', () => {
    assert.equal(THING.name(FULL), 'a-1')
    assert.equal(view<Thing>()('id', { name: 'git.branch' }).name(FULL), 'main')
    assert.equal(view<Thing>()('id', { name: 'git.branch' }).name(BARE), '')
    assert.equal(view<Thing>()('id', { name: ({ state }) => state }).name(FULL), 'ok')
  })

  test('stands among others, and inside another answer', () => {
    const more = around(view<Thing>()('tags').columns, view<Thing>()('id'), view<Thing>()('state').columns)
    assert.deepEqual(more.columns.map(columnName), ['tags', 'id', 'state'])
    const inside = viewInside(THING, ({ thing }: { readonly thing: Thing }) => thing)
    assert.equal(inside.name({ thing: FULL }), 'a-1')
    assert.equal(inside.columns[2]?.value({ thing: FULL }), 'main')
  })

  test('of a field that is not there does not compile, and of a name that nothing explains does not load', () => {
    // @ts-expect-error there is no field stat
    view<Thing>()('id stat')
    // @ts-expect-error there is no field git.commit
    view<Thing>()('id', { wide: 'git.commit' })
    assert.throws(() => view<Thing>()('id AGE'), /nothing says what AGE shows/)
  })

  test('a name that is a time is a time in every answer', async () => {
    const others = new Set<string>()
    const look = (schema: unknown): void => {
      if (Array.isArray(schema)) for (const one of schema) look(one)
      if (!isRecord(schema)) return
      for (const [name, field] of Object.entries(isRecord(schema['properties']) ? schema['properties'] : {}))
        if (TIME_FIELDS.includes(name) && !/"date-time"|Time/.test(JSON.stringify(field))) others.add(name)
      for (const one of Object.values(schema)) look(one)
    }
    look(JSON.parse(await shippedText('openapi.json')))
    assert.deepEqual([...others], [])
  })
})
