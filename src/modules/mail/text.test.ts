import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOSTILE_PIECES, KEYS } from '../../../test/support/hostile-texts.ts'
import { fc } from '../../../test/support/random.ts'
import { mailText, TOLD_MESSAGES } from './text.ts'

const LETTER = { id: 'm-1', from: 'ada', subject: 'Lunch', body: 'At one?' }

test('what is told of mail is its number, the first of it, and how to read the rest', () => {
  assert.equal(mailText([], 0), '')
  const letters = Array.from({ length: 5 }, () => LETTER)
  const lines = mailText([{ ...LETTER, subject: '' }, ...letters], 6, 5).split('\n')
  assert.deepEqual(lines.slice(0, -1), [
    'You have 6 unread messages, 5 of them new:',
    '- m-1 from ada: At one?',
    '- m-1 from ada [Lunch]: At one?',
    '- m-1 from ada [Lunch]: At one?',
    '2 more are not shown here.',
  ])
  const [, long = ''] = mailText([{ ...LETTER, body: 'é'.repeat(64 * 1024) }], 1).split('\n')
  assert.equal(long, `- m-1 from ada [Lunch]: ${'é'.repeat(120)}…`)
})

test('whatever strangers write: each message is a line, without controls and without a tag', () => {
  const hostile = fc.array(fc.constantFrom(...HOSTILE_PIECES), { maxLength: 12 }).map((pieces) => pieces.join(''))
  const letter = fc.record({ id: fc.constant('m-1'), from: hostile, subject: hostile, body: hostile })
  fc.assert(
    fc.property(fc.array(letter, { minLength: 1, maxLength: TOLD_MESSAGES }), (letters) => {
      const text = mailText(letters, letters.length)
      assert.doesNotMatch(text, KEYS)
      assert.doesNotMatch(text, /[\u2028\u2029\u202e]/)
      assert.doesNotMatch(text, /<\s*\/?\s*(?:system-)?reminder\b/i)
      assert.equal(text.split('\n').length, letters.length + 2)
    }),
  )
})
