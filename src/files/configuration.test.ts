import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { mergePatch, plainTable, rewriteTable, type TreeFiles, tablesAt } from './configuration.ts'
import type { PlainTable } from './toml.ts'

const MERGES: readonly (readonly [string, PlainTable, Parameters<typeof mergePatch>[1], PlainTable])[] = [
  ['a field is set', { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
  ['null unsets', { a: 1, b: 2 }, { a: null }, { b: 2 }],
  ['null for what is not there is nothing', { a: 1 }, { b: null }, { a: 1 }],
  ['tables merge', { t: { a: 1, b: 2 } }, { t: { b: null, c: 3 } }, { t: { a: 1, c: 3 } }],
  ['a table that becomes empty is gone', { t: { a: 1 } }, { t: { a: null } }, {}],
  ['lists replace', { l: [1, 2] }, { l: [3] }, { l: [3] }],
  ['an empty list and an empty text stay', {}, { l: [], s: '' }, { l: [], s: '' }],
  ['a table takes the place of a value', { a: 1 }, { a: { b: 2 } }, { a: { b: 2 } }],
  ['nulls in a new table are nothing', {}, { t: { a: null, b: 1 } }, { t: { b: 1 } }],
]
for (const [name, target, patch, wanted] of MERGES)
  test(name, () => assert.deepEqual(mergePatch(target, patch), wanted))

test('a key called __proto__ is a key like any other', () => {
  const merged = mergePatch({}, JSON.parse('{"env":{"__proto__":"x"}}'))
  assert.equal(JSON.stringify(merged), '{"env":{"__proto__":"x"}}')
  assert.equal(Object.getPrototypeOf(merged['env']), Object.prototype)
})

/** A file as the plain tree that it says, with a count of edits. */
function memoryTree(top: PlainTable) {
  let [now, edits] = [top, 0]
  const patched = (path: readonly (string | number)[], leaf: unknown): void => {
    edits++
    now = JSON.parse(JSON.stringify(replaced(now, path, leaf)))
  }
  const tree: TreeFiles = {
    list: () => ['f'],
    read: () => now,
    set: (_file, path, value) => patched(path, value),
    remove: (_file, path) => patched(path, undefined),
    addTable: (_file, path, value) => patched(path, value),
    addElement: (_file, path, value) => patched([...path, tablesAt(now, ...path.map(String)).length], value),
  }
  return { tree, read: () => now, edits: () => edits }
}

function replaced(value: unknown, [key, ...rest]: readonly (string | number)[], leaf: unknown): unknown {
  if (key === undefined) return leaf
  const entries = new Map<string, unknown>(Object.entries(typeof value === 'object' && value !== null ? value : {}))
  const below = replaced(entries.get(String(key)), rest, leaf)
  if (below === undefined) entries.delete(String(key))
  else entries.set(String(key), below)
  return Object.fromEntries(entries)
}

const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.array(fc.string(), { maxLength: 3 }))
const fields = fc.dictionary(
  fc.string({ minLength: 1, maxLength: 4 }),
  fc.oneof(leaf, fc.dictionary(fc.string({ minLength: 1, maxLength: 3 }), leaf, { minKeys: 1 })),
)

test('a rewritten table is the wanted one, and what is equal is not touched', () => {
  fc.assert(
    fc.property(fields, fields, (from, to) => {
      const [before, wanted] = [plainTable(from), plainTable(to)]
      const file = memoryTree({ top: before })
      rewriteTable(file.tree, 'f', ['top'], before, wanted)
      assert.deepEqual(plainTable(Object(file.read()['top'] ?? {})), wanted)
      const edits = file.edits()
      rewriteTable(file.tree, 'f', ['top'], wanted, wanted)
      assert.equal(file.edits(), edits)
    }),
  )
})
