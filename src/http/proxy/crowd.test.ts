import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Crowd } from './crowd.ts'

test('who has left is none of them, whoever came or left before', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name, place: -1 }))
  assert.ok(a && b && c && d)
  const crowd = new Crowd<typeof a>()
  const names = () =>
    crowd.all
      .map(({ name }) => name)
      .sort()
      .join('')
  for (const one of [a, b, c]) crowd.add(one)
  crowd.remove(a)
  assert.equal(names(), 'bc')
  crowd.add(d)
  crowd.remove(c)
  crowd.remove(c)
  crowd.remove(a)
  assert.deepEqual([names(), crowd.size], ['bd', 2])
  crowd.remove(b)
  crowd.remove(d)
  assert.deepEqual([names(), crowd.size], ['', 0])
})
