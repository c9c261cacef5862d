import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { Unproven } from './unproven.ts'

const connections = (count: number) => Array.from({ length: count }, () => new Socket())
const open = (sockets: readonly Socket[]) => sockets.filter(({ destroyed }) => !destroyed).length

test('connections that show no right are bounded: one more ends the oldest', () => {
  const unproven = new Unproven(new ManualClock(), 10)
  const sockets = connections(15)
  for (const socket of sockets) unproven.add(socket)
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [...Array(5).fill(true), ...Array(10).fill(false)],
  )
})

test('who has shown a right is never ended for the others', () => {
  const unproven = new Unproven(new ManualClock(), 10)
  const [owner = new Socket()] = connections(1)
  unproven.add(owner)
  unproven.forget(owner)
  for (const socket of connections(1_000)) unproven.add(socket)
  assert.equal(owner.destroyed, false)
})

test('a connection of another user ends within a second, and a flood of them takes no place of others', async () => {
  const clock = new ManualClock()
  const unproven = new Unproven(clock, 10)
  const mine = connections(10)
  for (const socket of mine) unproven.add(socket)
  const theirs = connections(500)
  for (const socket of theirs) {
    unproven.judged(socket)
    unproven.add(socket)
  }
  assert.equal(open(theirs), 64)
  assert.equal(open(mine), 10)
  await clock.advance(1_000)
  assert.equal(open(theirs), 0)
  assert.equal(open(mine), 10)
})
