import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { cityContaining } from './discovery.ts'
import { printable } from './failure.ts'
import { jsonLine, oneLine, relativeTime } from './output.ts'

suite('lines', () => {
  test('whatever is in an object, its line is one line, and reads back as the object', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\n', '\r\n', '\u0085', '\u2028', '\u2029', '\u0000', '\ud800'),
    )
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text))), (value) => {
        const object: unknown = JSON.parse(JSON.stringify(value))
        const line = jsonLine(object)
        assert.deepEqual(JSON.parse(line), object)
        assert.doesNotMatch(line, /[\n\r\u0085\u2028\u2029]/)
        assert.equal(oneLine(JSON.stringify(object, null, 2)), line)
      }),
    )
  })

  test('what is printed for people drives no terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => assert.doesNotMatch(printable(text), /[\p{Cc}--[\t\n]]/v)),
    )
  })

  test('times are told from now', () => {
    const now = Date.parse('2026-05-01T10:00:00Z')
    const told = (ms: number) => relativeTime(new Date(now + ms).toISOString(), now)
    assert.deepEqual([0, -999, -1_000, -59_999, -60_000, -7_200_000, -200_000_000, 5_000].map(told), [
      'now',
      'now',
      '1s ago',
      '59s ago',
      '1m ago',
      '2h ago',
      '2d ago',
      'in 5s',
    ])
    assert.equal(relativeTime('soon', now), 'soon')
  })
})

suite('the city of a directory', () => {
  const segment = fc.constantFrom('a', 'b', 'ab', 'c')
  const path = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`)

  test('is the innermost one at or above it, by whole names', () => {
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 6 }), path, (roots, directory) => {
        const found = cityContaining(
          roots.map((root) => ({ name: root, path: root })),
          [directory],
        )?.path
        const above = (root: string) => root === '/' || directory === root || directory.startsWith(`${root}/`)
        const longest = roots.filter(above).toSorted((a, b) => b.length - a.length)[0]
        assert.equal(found, longest)
      }),
    )
  })
})
