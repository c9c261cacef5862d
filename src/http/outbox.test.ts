import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Outbox } from './outbox.ts'

function outbox() {
  const clock = new ManualClock()
  const left: string[] = []
  const box = new Outbox(clock)
  return {
    clock,
    left,
    box,
    put: (text: string) => box.put({ end: (body) => left.push(String(body)), destroy: () => left.push('cut') }, text),
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('answers of one turn leave together, in order, before a commit that the turn has asked for', async () => {
  const { box, put, left } = outbox()
  box.expect()
  setImmediate(() => left.push('commit'))
  put('a')
  box.expect()
  put('b')
  assert.deepEqual(left, [])
  await turn()
  assert.deepEqual(left, ['a', 'b', 'commit'])
})

test('an answer that is ready between two turns leaves at once', async () => {
  const { box, put, left } = outbox()
  put('alone')
  assert.deepEqual(left, ['alone'])
  box.expect()
  await turn()
  put('after a commit')
  assert.deepEqual(left, ['alone', 'after a commit'])
})

test('the first answer does not wait for slow reads of the same turn', async () => {
  const { box, put, left, clock } = outbox()
  box.expect()
  put('first')
  await clock.advance(0)
  assert.deepEqual(left, ['first'])
  box.expect()
  put('quick')
  const slow = clock.advance(3)
  put('slow')
  assert.deepEqual(left, ['first', 'quick', 'slow'])
  await slow
})

test('an answer that cannot be sent is cut, and the others of its turn still leave', async () => {
  const { box, put, left } = outbox()
  box.expect()
  put('before')
  const broken = () => {
    throw new Error('the head cannot be written')
  }
  box.put({ end: broken, destroy: () => left.push('cut') }, 'x')
  put('after')
  await turn()
  assert.deepEqual(left, ['before', 'cut', 'after'])
})
