import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import type { Activity } from './runtime.ts'
import { type Foreground, foregroundOf, IdleWatch, readForeground } from './shell-idle.ts'

function watched(foreground: Foreground) {
  const clock = new ManualClock()
  const state = { foreground, checks: 0 }
  const seen: Activity[] = []
  const watch = new IdleWatch({
    clock,
    foreground: () => {
      state.checks++
      return state.foreground
    },
    onActivity: (activity) => seen.push(activity),
  })
  return { clock, state, seen, watch }
}

test('a shell has the terminal when its own group is in front, and nobody has one that is not there', () => {
  assert.equal(foregroundOf({ group: 7, foreground: 7, runnable: false }), 'own')
  assert.equal(foregroundOf({ group: 7, foreground: 7, runnable: true }), 'other', 'it computes')
  assert.equal(foregroundOf({ group: 7, foreground: 93, runnable: false }), 'other')
  assert.equal(foregroundOf({ group: 7, foreground: -1, runnable: false }), 'unknown')
  assert.equal(readForeground(2 ** 30), 'unknown')
})

test('a quiet shell is idle after a quarter of a second and then costs no timer', async () => {
  const { clock, seen, watch } = watched('own')
  await clock.advance(249)
  assert.deepEqual(seen, [])
  await clock.advance(1)
  assert.deepEqual(seen, ['idle'])
  assert.equal(clock.pending, 0)
  watch.close()
})

test('a message makes the shell busy at once, and it is idle again when its command has ended', async () => {
  const { clock, state, seen, watch } = watched('own')
  await clock.advance(250)
  state.foreground = 'other'
  watch.onDelivery()
  assert.equal(watch.activity, 'in-turn')
  await clock.advance(5_000)
  assert.deepEqual(seen, ['idle', 'in-turn'])
  state.foreground = 'own'
  await clock.advance(1_000)
  assert.deepEqual(seen, ['idle', 'in-turn', 'idle'])
  assert.equal(clock.pending, 0)
})

test('a command of an hour is looked at once a second, not ten times', async () => {
  const { clock, state, watch } = watched('other')
  await clock.advance(60_000)
  assert.ok(state.checks < 70, String(state.checks))
  watch.close()
  assert.equal(clock.pending, 0)
})

test('output keeps a shell busy until it has been quiet', async () => {
  const { clock, state, seen, watch } = watched('own')
  for (let i = 0; i < 20; i++) {
    watch.onOutput()
    await clock.advance(100)
  }
  assert.equal(watch.activity, 'in-turn')
  assert.equal(state.checks, 0)
  await clock.advance(150)
  assert.deepEqual(seen, ['in-turn', 'idle'])
})

test('what cannot be observed is unknown, and is asked again only after output', async () => {
  const { clock, state, watch } = watched('unknown')
  await clock.advance(10_000)
  assert.equal(watch.activity, 'unknown')
  assert.equal(state.checks, 1)
  watch.onOutput()
  await clock.advance(250)
  assert.equal(state.checks, 2)
})
