import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { waitForClient } from './patience.ts'

/** How long a client is waited for that has this much left at each look, in seconds; undefined: for all of ten minutes. */
async function patience(left: (look: number) => number | undefined): Promise<number | undefined> {
  const clock = new ManualClock()
  let looks = 0
  let endedAt: number | undefined
  waitForClient(new Socket(), clock, {
    givenUp: () => {
      endedAt = clock.monotonic() / 1000
    },
    unsent: () => left(++looks),
  })
  await clock.advance(600_000)
  return endedAt
}

test('slow reader: who takes something between two looks is waited for, however little', async () => {
  assert.equal(await patience((look) => 4_000_000 - look * 1_000), undefined)
})

test('slow reader: who takes nothing is given up after 30 s, at the beginning and later', async () => {
  assert.equal(await patience(() => 4_000_000), 30)
  assert.equal(await patience((look) => Math.max(4_000_000 - look * 1_000, 3_995_000)), 90)
})

test('slow reader: where the system does not tell what was taken, 30 s are the limit', async () => {
  assert.equal(await patience(() => undefined), 30)
})

test('slow reader: a wait that is over gives nobody up', async () => {
  const clock = new ManualClock()
  const over = waitForClient(new Socket(), clock, { givenUp: () => assert.fail('given up'), unsent: () => 1 })
  await clock.advance(15_000)
  over()
  await clock.advance(600_000)
  assert.equal(clock.pending, 0)
})
