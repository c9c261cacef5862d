import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../kernel/clock.ts'
import { judge, overallStatus, type VitalReadings, vitalChecks, watchLoopDelay } from './vitals.ts'

const well: VitalReadings = {
  eventLoopMs: () => 1,
  reconcilerAgeMs: () => 10,
  logLagMs: () => 0,
  storageFault: () => undefined,
}

test('a measure is degraded above its limit, not at it, and unmeasured is no complaint', () => {
  const cases = [
    [undefined, 'ok', undefined],
    [0, 'ok', 0],
    [250, 'ok', 250],
    [250.04, 'degraded', 250],
    [1e9, 'degraded', 1e9],
  ] as const
  for (const [ms, status, value] of cases) {
    const check = judge('event_loop', ms, 250)
    assert.deepEqual([check.status, check.value], [status, value])
    assert.equal(check.detail !== undefined, status === 'degraded')
  }
})

test('each reading can degrade the whole', () => {
  const stuck: readonly [string, Partial<VitalReadings>][] = [
    ['event_loop', { eventLoopMs: () => 251 }],
    ['reconciler', { reconcilerAgeMs: () => 60_001 }],
    ['log_lag', { logLagMs: () => 5001 }],
    ['storage', { storageFault: () => 'city alpha: disk full' }],
  ]
  assert.equal(overallStatus(vitalChecks(well)), 'ok')
  for (const [name, change] of stuck) {
    const checks = vitalChecks({ ...well, ...change })
    assert.deepEqual(
      checks.filter((check) => check.status === 'degraded').map((check) => check.name),
      [name],
    )
    assert.equal(overallStatus(checks), 'degraded')
  }
})

test('a reading that throws is a complaint of its own', () => {
  const checks = vitalChecks({
    ...well,
    storageFault() {
      throw new Error('closed')
    },
  })
  assert.deepEqual(checks.at(-1), { name: 'storage', status: 'degraded', detail: 'cannot be read: closed' })
})

test('the event loop is read by whole windows, so that one reader does not shorten the window of another', () => {
  let ring = () => {}
  let now = 0
  const clock: Clock = {
    now: () => 0,
    monotonic: () => now,
    after(_ms, work) {
      ring = work
      return () => {}
    },
  }
  let p99 = 200e6
  const histogram = {
    count: 0,
    enable: () => true,
    disable: () => true,
    reset: () => (histogram.count = 0),
    percentile: () => p99,
  }
  const watched = watchLoopDelay(clock, histogram)
  assert.equal(watched.read(), undefined)
  histogram.count = 1
  now += 1_001
  assert.equal(watched.read(), 0)
  p99 = 500e6
  assert.equal(watched.read(), 0, 'a reading stands for a second')
  now += 1_001
  assert.equal(watched.read(), 300)
  ring()
  p99 = 201e6
  assert.deepEqual([watched.read(), watched.read(), histogram.count], [300, 300, 0])
  histogram.count = 1
  ring()
  assert.equal(watched.read(), 1)
  watched[Symbol.dispose]()
})

test('the real monitor sees a blocked loop', async () => {
  const clock: Clock = { now: () => 0, monotonic: () => performance.now(), after: () => () => {} }
  using watched = watchLoopDelay(clock)
  const until = performance.now() + 400
  while ((watched.read() ?? 0) < 60 && performance.now() < until + 5000) {
    const block = performance.now() + 400
    while (performance.now() < block);
    await new Promise(setImmediate)
  }
  assert.ok((watched.read() ?? 0) >= 60)
})
