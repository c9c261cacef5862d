import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import { formatComposite, parseComposite, parseSeq } from './cursor.ts'

const isInvalid = { code: 'invalid-cursor', status: 400 }
const name = fc.oneof(fc.constant('__supervisor__'), fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,20}$/))
const positions = fc.uniqueArray(fc.tuple(name, fc.nat(Number.MAX_SAFE_INTEGER)), {
  selector: ([first]) => first,
  minLength: 1,
  maxLength: 8,
})

test('a composite cursor reads back as what it was made of, whatever the order, and is made the same way again', () => {
  fc.assert(
    fc.property(positions, (entries) => {
      const text = formatComposite(entries)
      assert.deepEqual(new Map(parseComposite(text)), new Map(entries))
      assert.equal(formatComposite(entries.toReversed()), text)
      assert.equal(formatComposite(parseComposite(text) ?? []), text)
    }),
  )
})

test('no cursor at all is the start of everything', () => {
  assert.equal(formatComposite([]), '0')
  assert.equal(parseComposite('0'), undefined)
})

for (const text of [
  '',
  ' ',
  'a',
  'a:',
  ':1',
  'a:1,',
  ',a:1',
  'a:1,,b:2',
  'a:-1',
  'a:1.5',
  'a:1e3',
  'a:01',
  'a: 1',
  'a:1,a:2',
  'a b:1',
  '_a:1',
  '.a:1',
  'a:99999999999999999999',
  'a:9007199254740993',
  '00',
  '1',
  'a:1\n',
  'ä:1',
  '__supervisor__',
  '__other__:1',
  'a:0x1',
  'a:١',
]) {
  test(`${JSON.stringify(text)} is no composite cursor`, () => {
    assert.throws(() => parseComposite(text), isInvalid)
  })
}

test('any text is a cursor or is refused with 400, in bounded time', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: codePoint }), fc.stringMatching(/^[a-c:,0-9]{0,30}$/)), (text) => {
      try {
        const parsed = parseComposite(text)
        assert.equal(formatComposite(parsed ?? []).split(',').length, text.split(',').length)
      } catch (error) {
        assert.equal(Object(error).code, 'invalid-cursor')
      }
    }),
  )
  assert.throws(() => parseComposite('a:1,'.repeat(1_000_000)), isInvalid)
})

test('a sequence number has one spelling', () => {
  fc.assert(fc.property(fc.nat(Number.MAX_SAFE_INTEGER), (seq) => assert.equal(parseSeq(String(seq)), seq)))
  for (const text of ['', '-1', '+1', '01', '1.0', '1e3', ' 1', '9007199254740992', 'NaN', '0x10'])
    assert.throws(() => parseSeq(text), isInvalid, text)
})
