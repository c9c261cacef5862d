import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ControlItem, ControlParser, MAX_LINE_BYTES } from './control-parser.ts'

const RECORDED = [
  '%begin 1795287876 268 0',
  '%end 1795287876 268 0',
  '%session-changed $0 +control',
  '%begin 1795287876 276 1',
  '%end 1795287876 275 1',
  'x abc',
  '%end 1795287876 276 1',
  '%begin 1795287877 285 1',
  'duplicate session: a1',
  '%error 1795287877 285 1',
  '%sessions-changed',
  '%exit',
  '',
].join('\n')

const EXPECTED: ControlItem[] = [
  { type: 'block', lines: [], failed: false, ours: false },
  { type: 'notification', name: 'session-changed', text: '$0 +control' },
  { type: 'block', lines: ['%end 1795287876 275 1', 'x abc'], failed: false, ours: true },
  { type: 'block', lines: ['duplicate session: a1'], failed: true, ours: true },
  { type: 'notification', name: 'sessions-changed', text: '' },
  { type: 'notification', name: 'exit', text: '' },
]

test('answers and notifications are told apart, also where an answer looks like an end', () => {
  assert.deepEqual(new ControlParser().push(RECORDED), EXPECTED)
})

test('answers that arrive byte by byte are the same answers', () => {
  const parser = new ControlParser()
  assert.deepEqual(
    [...RECORDED].flatMap((byte) => parser.push(byte)),
    EXPECTED,
  )
})

test('a line without an end does not fill the memory', () => {
  const parser = new ControlParser()
  assert.throws(() => parser.push('x'.repeat(MAX_LINE_BYTES + 1)), RangeError)
})
