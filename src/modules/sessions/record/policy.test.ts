import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AGENT, VIEW } from '../../../../test/support/session-city.ts'
import { shapeOf } from '../../../contract/base/config-shape.ts'
import { SETTINGS } from '../../../contract/config-schema.ts'
import { newSession } from '../launch/new-session.ts'
import type { SessionsView } from './config-view.ts'
import { agePolicyOf, type CrashPolicy, type Policy, policyOf } from './policy.ts'

const MINUTE = 60_000

type Daemon = keyof SessionsView['daemon'] & string
type Session = keyof SessionsView['session'] & string

/** Key, what it is by default, what is written, what that makes of it. */
const DAEMON: readonly (readonly [Daemon, keyof CrashPolicy, number, string | number, number])[] = [
  ['rapid_crash_window', 'rapidMs', 30_000, '10s', 10_000],
  ['rapid_crash_limit', 'rapidLimit', 5, 2, 2],
  ['churn_window', 'churnMs', 5 * MINUTE, '1m', MINUTE],
  ['churn_limit', 'churnLimit', 3, 7, 7],
  ['quarantine_hold', 'holdMs', 5 * MINUTE, '1h', 60 * MINUTE],
  ['rate_limit_hold', 'rateLimitHoldMs', 30 * MINUTE, '2h', 120 * MINUTE],
  ['max_restarts', 'maxRestarts', 5, 0, 0],
  ['restart_window', 'restartWindowMs', 60 * MINUTE, '10m', 10 * MINUTE],
  ['restart_backoff', 'backOffMs', 250, '1s', 1_000],
  ['restart_backoff_max', 'maxBackOffMs', 30_000, '5m', 5 * MINUTE],
  ['stale_key_window', 'staleKeyMs', 2_000, '5s', 5_000],
]

const SESSION: readonly (readonly [Session, keyof Policy, number, string | number, number])[] = [
  ['startup_timeout', 'startupTimeoutMs', MINUTE, '5s', 5_000],
  ['start_pending_timeout', 'startPendingMs', 10 * MINUTE, '30s', 30_000],
  ['setup_timeout', 'setupTimeoutMs', 10 * MINUTE, '1m', MINUTE],
  ['line_ready_timeout', 'lineReadyMs', 1_000, '3s', 3_000],
  ['nudge_lock_timeout', 'busyMs', 30_000, '1s', 1_000],
  ['interrupt_timeout', 'interruptMs', 15_000, '2s', 2_000],
  ['delivery_timeout', 'deliveryMs', 4 * MINUTE, '20s', 20_000],
  ['delivery_ttl', 'deliveryTtlMs', 24 * 60 * MINUTE, '1h', 60 * MINUTE],
  ['debounce_ms', 'debounceMs', 500, 100, 100],
]

for (const [key, field, preset, written, expected] of DAEMON)
  test(`[daemon] ${key} is ${written}: it is heeded`, () => {
    assert.equal(policyOf({ session: {}, daemon: {} }).crash[field], preset)
    assert.equal(policyOf({ session: {}, daemon: { [key]: written } }).crash[field], expected)
    assert.equal(shapeOf(SETTINGS.daemon.properties[key]).annotation.drift, 'live')
  })

for (const [key, field, preset, written, expected] of SESSION)
  test(`[session] ${key} is ${written}: it is heeded`, () => {
    assert.equal(policyOf({ session: {}, daemon: {} })[field], preset)
    assert.equal(policyOf({ session: { [key]: written }, daemon: {} })[field], expected)
  })

test('what cannot be observed is told after half an hour, or when the city says so', () => {
  assert.equal(policyOf({ session: {}, daemon: {} }).unknownMs, 30 * MINUTE)
  assert.equal(policyOf({ session: {}, daemon: { unknown_state_timeout: '1m' } }).unknownMs, MINUTE)
})

test('stalls and the circuit breaker are off until somebody switches them on', () => {
  const { stall, crash } = policyOf({ session: {}, daemon: {} })
  assert.deepEqual([stall, crash.breaker], [{ turnMs: undefined, holderMs: undefined }, undefined])
})

test('a breaker that is only switched on has the budget of the city, and stays open for two windows', () => {
  const daemon = { session_circuit_breaker: true, max_restarts: 4, restart_window: '10m' }
  const { breaker } = policyOf({ session: {}, daemon }).crash
  assert.deepEqual(breaker, { maxRestarts: 4, windowMs: 10 * MINUTE, resetMs: 20 * MINUTE })
})

test('another configuration is another policy, the same one is the same', () => {
  const session = {}
  const first = policyOf({ session, daemon: {} })
  assert.notEqual(first.crash.churnLimit, policyOf({ session, daemon: { churn_limit: 9 } }).crash.churnLimit)
  const daemon = {}
  assert.equal(policyOf({ session, daemon }), policyOf({ session, daemon }))
})

test('a named session on demand sleeps after the time that the city sets for those', () => {
  const named = (session: SessionsView['session']) => {
    const config = { ...VIEW, session, agents: [AGENT] }
    const record = newSession(
      's-0123456789abcdef',
      { kind: 'agent', template: 'worker', origin: 'named', named: 'mayor', cause: 'message' },
      { config, now: 0, render: (text) => text },
    )
    return agePolicyOf(config, AGENT, record).sleepAfterIdleMs
  }
  assert.deepEqual(
    [named({}), named({ on_demand_sleep: '1m' }), named({ on_demand_sleep: 'off' })],
    [5 * MINUTE, MINUTE, undefined],
  )
})
