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
  const [first] = Array.from({ length: 3 }, () => slots.take('192.0.2.1', undefined))
  assert.equal(
    refusal(() => slots.take('192.0.2.1', undefined)),
    'too_many: 3 streams of 192.0.2.1 are open',
  )
  slots.take('192.0.2.2', undefined)
  first?.()
  slots.take('192.0.2.1', undefined)
  assert.equal(slots.taken, 4)
})

test('clients of this machine share all streams', () => {
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
    const slots = new StreamSlots(10, 3)
    for (let n = 0; n < 10; n++) slots.take(address, undefined)
    assert.equal(
      refusal(() => slots.take(address, undefined)),
      'too_many: 10 streams are open',
    )
  }
})

test('one caller has a tenth of all streams, and all callers together leave some to the owner', () => {
  const slots = new StreamSlots(100)
  for (let i = 0; i < 10; i++) slots.take('127.0.0.1', 'token:ann')
  assert.throws(() => slots.take('127.0.0.1', 'token:ann'), /10 streams of token:ann are open/)
  for (let token = 0; token < 8; token++) for (let i = 0; i < 10; i++) slots.take('127.0.0.1', `token:${token}`)
  assert.throws(() => slots.take('127.0.0.1', 'token:last'), /other callers/)
  for (let i = 0; i < 10; i++) slots.take('127.0.0.1', undefined)
  assert.throws(() => slots.take('127.0.0.1', undefined), /100 streams are open/)
})

test('a stream that ends gives its place back to its caller', () => {
  const slots = new StreamSlots(10)
  const leave = slots.take('127.0.0.1', 'token:ann')
  assert.throws(() => slots.take('127.0.0.1', 'token:ann'))
  leave()
  slots.take('127.0.0.1', 'token:ann')
  assert.equal(slots.taken, 1)
})
