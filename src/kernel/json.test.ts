/** JSON text that every reader takes, and frames that every reader splits alike. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { jsonText } from './json.ts'
import { frame } from './streams/frame.ts'

const unicode = fc.string({
  unit: fc.constantFrom('a', '\\', '"', 'u', 'd83d', '\ud83d', '\ude00', '😀', '\n', '\u2028'),
})

test('JSON text never has half of an emoji, and leaves every other text as it is', () => {
  fc.assert(
    fc.property(fc.dictionary(unicode, fc.array(unicode)), (value) => {
      const text = jsonText(value)
      assert.doesNotMatch(text.replaceAll('\\\\', ''), /\\ud[89a-f]/)
      const expected = Object.entries(value).map(([name, texts]) => [
        name.toWellFormed(),
        texts.map((one) => one.toWellFormed()),
      ])
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(Object.fromEntries(expected))))
    }),
  )
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: what Python's splitlines splits at.
const LINE_ENDS = /[\n\r\v\f\u001c-\u001e\u0085\u2028\u2029]/

test('data of a stream is one line for readers that split at U+2028, U+2029 and U+0085 too', () => {
  const title = 'torn\u2028here\u2029and\u0085there'
  const [, , data = '', ...rest] = frame('event', { title }, 7).split(LINE_ENDS)
  assert.deepEqual(rest, ['', ''])
  assert.deepEqual(JSON.parse(data.slice('data: '.length)), { title })
})
