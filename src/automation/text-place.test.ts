/** Where a character of a text stands in its file. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { IssueList } from '../files/issues.ts'
import { readToml } from '../files/toml.ts'
import { placeInText } from './text-place.ts'

/** Place of `marked` in the value of `key`, found by the value alone. */
function placeOf(file: string, marked: string): string {
  const tree = readToml(file, 'file', 'city', new IssueList())
  const node = tree?.entries.get('key')
  if (node?.kind !== 'scalar') return assert.fail(file)
  const { line, column } = placeInText(file, node.at, String(node.value).indexOf(marked))
  return `${line}:${column}`
}

test('quotes, escapes and line breaks are counted', () => {
  assert.equal(placeOf('key = "ab X"', 'X'), '1:11')
  assert.equal(placeOf("key = 'a\\b X'", 'X'), '1:12')
  assert.equal(placeOf('# one\n\nkey = "\\t\\u00e9\\U0001F600 X"', 'X'), '3:27')
  assert.equal(placeOf('key = """\nfirst\n  X"""', 'X'), '3:3')
  assert.equal(placeOf('key = """first X"""', 'X'), '1:16')
  assert.equal(placeOf("key = '''\r\nfirst\r\n X'''", 'X'), '3:2')
  assert.equal(placeOf('key = """a \\\n     b X"""', 'X'), '2:8')
  assert.equal(placeOf('a = 1\nkey = { b = 1 }\n'.replace('{ b = 1 }', '"X"'), 'X'), '2:8')
})

test('whatever stands before it, the place is that of the mark', () => {
  const piece = fc.constantFrom('a', ' ', '\\n', '\\t', '\\"', '\\\\', '\\u0041', '\\U0001F600', 'é', '😀')
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const before = pieces.join('')
      assert.equal(placeOf(`key = "${before}X"`, 'X'), `1:${8 + before.length}`)
    }),
  )
})
