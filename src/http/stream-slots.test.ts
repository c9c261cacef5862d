import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../kernel/problem.ts'
import { StreamSlots } from './stream-slots.ts'

const refusal = (work: () => void) => {
  try {
    work()
  } catch (error) {
    if (error instanceof Problem) return error.detail
  }
  return undefined
}

test('one other machine cannot take every stream, and gets one again when one of its own ends', () => {
  const slots = new StreamSlots(10, 3)
  const [first] = Array.from({ length: 3 }, () => slots.take('192.0.2.1'))
  assert.equal(
    refusal(() => slots.take('192.0.2.1')),
    'too_many: 3 streams of 192.0.2.1 are open',
  )
  slots.take('192.0.2.2')
  first?.()
  slots.take('192.0.2.1')
  assert.equal(slots.taken, 4)
})

test('clients of this machine share all streams', () => {
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
    const slots = new StreamSlots(10, 3)
    for (let n = 0; n < 10; n++) slots.take(address)
    assert.equal(
      refusal(() => slots.take(address)),
      'too_many: 10 streams are open',
    )
  }
})
