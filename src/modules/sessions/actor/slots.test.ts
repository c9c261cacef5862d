import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Slots } from './slots.ts'

const SIGNAL = new AbortController().signal

test('between the beginnings of sessions that start together others have their turn', async () => {
  const slots = new Slots(() => 6)
  const seen: string[] = []
  let isOver = false
  const others = () => {
    seen.push('others')
    if (!isOver) setImmediate(others)
  }
  setImmediate(others)
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      await slots.take(SIGNAL)
      seen.push('start')
    }),
  )
  isOver = true
  const between = seen.join(' ').split('start').slice(1, -1)
  assert.equal(between.length, 5)
  for (const turns of between) assert.match(turns, /others/, seen.join(' '))
})

test('a start that is not wanted any more when its turn comes gives its slot to the next', async () => {
  const slots = new Slots(() => 1)
  const given = new AbortController()
  const first = slots.take(given.signal)
  const second = slots.take(SIGNAL)
  given.abort(new Error('stopped'))
  await assert.rejects(first, /stopped/)
  const giveBack = await second
  giveBack()
  await slots.take(SIGNAL)
})
