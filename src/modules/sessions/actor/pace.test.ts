import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { Pace } from './pace.ts'

test('an effect that changed nothing waits longer each time, and at once no more when something differs', async () => {
  const clock = new ManualClock()
  const pace = new Pace<'deliver' | 'stop'>(clock)
  const pauses: number[] = []
  for (let round = 0; round < 8; round++) {
    pace.did('deliver', 'as before', 'as before')
    pauses.push(pace.pauseMs('deliver', 'as before'))
    await clock.advance(pauses.at(-1) ?? 0)
    assert.equal(pace.pauseMs('deliver', 'as before'), 0)
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
  pace.failed('deliver', 'as before')
  assert.equal(pace.pauseMs('deliver', 'a message came'), 0)
  assert.equal(pace.pauseMs('stop', 'as before'), 0)
  pace.did('deliver', 'as before', 'done')
  assert.equal(pace.pauseMs('deliver', 'as before'), 0)
})

test('fifty effects in a row rest for a second, whatever they changed', async () => {
  const clock = new ManualClock()
  const pace = new Pace<'move'>(clock)
  for (let step = 0; step < 50; step++) {
    assert.equal(pace.pauseMs('move', String(step)), 0, `step ${step}`)
    pace.did('move', String(step), String(step + 1))
  }
  assert.equal(pace.pauseMs('move', '50'), 1_000)
  await clock.advance(1_000)
  assert.equal(pace.pauseMs('move', '50'), 0)
})
