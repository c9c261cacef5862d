import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verdictOf } from './verdict.ts'

test('0 passes, 1 to 125 fail, anything else says nothing about the work', () => {
  assert.deepEqual(
    [0, 1, 2, 125, 126, 127, 128, 255].map((exit_code) => verdictOf({ kind: 'exited', exit_code })),
    ['pass', 'fail', 'fail', 'fail', 'none', 'none', 'none', 'none'],
  )
  for (const kind of ['signal', 'timed_out', 'interrupted', 'not_started', 'exited'])
    assert.equal(verdictOf({ kind }), 'none', kind)
})
