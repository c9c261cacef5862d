import assert from 'node:assert/strict'
import { test } from 'node:test'
import { choicesOf, numbered, type Question, replyTo } from './choices.ts'

const APPROVAL: Question = {
  request_id: 'r1',
  kind: 'approval',
  prompt: 'Use Bash',
  options: ['Allow once', 'Always allow', 'Reject', 'Never'],
  option_ids: ['allow_once', 'allow_always', 'no', 'never'],
}
const OF_DIGITS: Question = { request_id: 'r2', kind: 'approval', options: ['Yes', 'No'], option_ids: ['2', '1'] }
const OPEN: Question = { request_id: 'r3', kind: 'question', prompt: 'Which colour?', options: ['Blue'] }
const seen = { seesNumbers: true }
const blind = { seesNumbers: false }
const option = (id: string) => ({ action: 'option', option_id: id })

for (const [word, reply] of [
  ['1', option('allow_once')],
  ['4', option('never')],
  ['Allow once', option('allow_once')],
  ['allow once', option('allow_once')],
  ['allow-once', option('allow_once')],
  ['ALWAYS ALLOW', option('allow_always')],
  ['no', option('no')],
  ['approve', { action: 'approve' }],
  ['approve-always', { action: 'approve_always' }],
  ['deny', { action: 'deny' }],
  ['cancel', { action: 'cancel' }],
] as const)
  test(`an approval is answered by "${word}"`, () => {
    assert.deepEqual(replyTo(APPROVAL, word, seen), reply)
    assert.deepEqual(replyTo(APPROVAL, word, blind), reply)
  })

for (const word of ['5', '0', 'maybe', '', 'all'])
  test(`"${word}" is no answer to an approval, and the possible ones are named`, () => {
    const reply = replyTo(APPROVAL, word, seen)
    assert.ok('wrong' in reply)
    assert.match(reply.wrong, /1 Allow once, 2 Always allow, 3 Reject, 4 Never; or approve, allow, .*deny, cancel$/)
  })

test('a number that somebody sees is the number; one of a script that could also be an id is refused', () => {
  assert.deepEqual(replyTo(OF_DIGITS, '1', seen), option('2'))
  assert.ok('wrong' in replyTo(OF_DIGITS, '1', blind))
  assert.deepEqual(replyTo(OF_DIGITS, 'Yes', blind), option('2'))
})

test('a question takes a choice or any words; an approval takes no others', () => {
  assert.deepEqual(replyTo(OPEN, '1', seen), option('Blue'))
  assert.deepEqual(replyTo(OPEN, 'deny', seen), { action: 'approve', text: 'deny' })
  assert.deepEqual(replyTo(OPEN, 'dark red', seen), { action: 'approve', text: 'dark red' })
  assert.ok('wrong' in replyTo(OPEN, '', seen))
})

test('an approval without choices has two', () => {
  const bare: Question = { request_id: 'r', kind: 'approval' }
  assert.equal(numbered(bare), '1 Approve, 2 Deny')
  assert.deepEqual(replyTo(bare, '2', seen), { action: 'deny' })
  assert.deepEqual(choicesOf({ request_id: 'r', kind: 'question' }), [])
})
