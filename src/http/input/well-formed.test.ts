import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseHalfPairs } from './well-formed.ts'

const read = (source: string) => refuseHalfPairs(source, JSON.parse(source))

for (const source of [
  '"\\ud800"',
  '"a\\uDFFFb"',
  '["\\uD83D", "\\uDE00"]',
  '{"a": {"\\udc00": 1}}',
  '"\\ude00\\ud83d"',
]) {
  test(`${source} is refused: it could not be stored as it is`, () => {
    assert.throws(() => read(source), SyntaxError)
  })
}

for (const source of ['"\\ud83d\\ude00"', '"😀"', '"\\\\ud800"', '"\\ufffd"', '{"\\uD83D\\uDE00": [null, 1]}']) {
  test(`${source} is text`, () => {
    assert.doesNotThrow(() => read(source))
  })
}

test('JSON deeper than the stack is looked through', () => {
  const deep = `${'['.repeat(200_000)}"\\ud800"${']'.repeat(200_000)}`
  assert.throws(() => read(deep), SyntaxError)
})
