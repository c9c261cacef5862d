import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VIEW } from '../../../../test/support/session-city.ts'
import type { Exit } from '../../../runtimes/process/runtime.ts'
import { newSession } from '../launch/new-session.ts'
import { policyOf } from '../record/policy.ts'
import type { SessionRecord } from '../record/record.ts'
import { backOffMs, classifyExit, stalledTurn } from './crash.ts'

const NOW = 10_000_000
const POLICY = policyOf({ session: {}, daemon: {} }).crash

const session = (change: Partial<SessionRecord>): SessionRecord => ({
  ...newSession(
    's-0123456789abcdef',
    { kind: 'provider', template: 'shell', origin: 'manual', cause: 'explicit' },
    { config: VIEW, now: 0, render: (text) => text },
  ),
  state: 'active',
  last_woke_at: NOW - 60_000,
  ...change,
})
const exit = (change: Partial<Exit> = {}): Exit => ({
  code: 1,
  signal: undefined,
  reason: 'exited',
  at: NOW,
  ...change,
})
const verdict = (record: SessionRecord, change: Partial<Exit> = {}, more: { resumed?: boolean } = {}) =>
  classifyExit(record, { exit: exit(change), resumed: more.resumed ?? false, now: NOW }, POLICY)

test('an exit with status 0 is no crash', () => {
  const { signal, reason, fields } = verdict(session({}), { code: 0 })
  assert.deepEqual([signal, reason, fields.crashes], ['rest', 'exited', undefined])
})

const HOUR_MS = 3_600_000
const limited = (source: SessionRecord['limit_source'], until = NOW + HOUR_MS) =>
  session({ limited_until: until, limit_source: source })

for (const source of ['protocol', 'report', 'log'] as const)
  test(`an exit during a limit that its ${source} named is held until that ends, and counts nothing`, () => {
    const { signal, reason, holdMs, fields } = verdict(limited(source))
    assert.deepEqual([signal, reason, holdMs, fields.crashes], ['quarantine', 'rate_limit', HOUR_MS, undefined])
  })

test('an exit is no rate limit for words on a screen, for a limit that is over, or with status 0 or a signal', () => {
  assert.equal(verdict(limited('screen')).reason, 'crashed')
  assert.equal(verdict(limited('log', NOW - 1)).reason, 'crashed')
  assert.equal(verdict(limited('log'), { code: 0 }).reason, 'exited')
  assert.equal(verdict(limited('log'), { code: undefined, signal: 'SIGKILL', reason: 'signalled' }).reason, 'crashed')
})

test('a quarantine says why, and until when', () => {
  assert.equal(
    verdict(limited('log')).why,
    'its provider limits it: it ended with status 1; it is held until 1970-01-01T03:46:40.000Z, or until somebody wakes it',
  )
  const crashing = verdict(session({ last_woke_at: NOW - 1_000, rapid_crashes: 4 }))
  assert.match(
    crashing.why ?? '',
    /^it crashed 5 times in a row right after its start; it is held until 1970-01-01T02:51/,
  )
  assert.equal(verdict(session({})).why, undefined)
})

test('a crash is counted and pauses the next start', () => {
  const { signal, fields } = verdict(session({ last_woke_at: NOW - 1_000 }))
  assert.equal(signal, 'crash')
  assert.deepEqual([fields.rapid_crashes, fields.churn, fields.crashes], [1, 0, [NOW]])
  assert.equal(fields.retry_at, NOW + 250)
})

test('the fifth rapid crash in a row quarantines for five minutes', () => {
  const { signal, reason, holdMs } = verdict(session({ last_woke_at: NOW - 1_000, rapid_crashes: 4 }))
  assert.deepEqual([signal, reason, holdMs], ['quarantine', 'quarantine', 300_000])
})

test('the third death of middle age in a row is churn', () => {
  const { signal, reason } = verdict(session({ last_woke_at: NOW - 60_000, churn: 2 }))
  assert.deepEqual([signal, reason], ['quarantine', 'context-churn'])
})

test('a long life clears the counters', () => {
  const { signal, fields } = verdict(session({ last_woke_at: NOW - 600_000, rapid_crashes: 4, churn: 2 }))
  assert.deepEqual([signal, fields.rapid_crashes, fields.churn], ['crash', 0, 0])
})

test('more crashes than the window allows hold until its oldest has left it', () => {
  const crashes = [1, 2, 3, 4, 5].map((n) => NOW - n * 600_000).reverse()
  const { signal, holdMs } = verdict(session({ last_woke_at: NOW - 600_000, crashes }))
  assert.equal(signal, 'quarantine')
  assert.equal(holdMs, 600_000)
})

test('a conversation that cannot be resumed is given up', () => {
  const { fields } = verdict(session({ last_woke_at: NOW - 1_000, conversation_id: 'k' }), {}, { resumed: true })
  assert.ok('conversation_id' in fields && fields.conversation_id === undefined && fields.fresh === true)
})

test('who is killed right after its start, or dies with its host, keeps its conversation', () => {
  for (const reason of ['signalled', 'host_lost'] as const) {
    const record = session({ last_woke_at: NOW - 1_000, conversation_id: 'k' })
    const { fields } = verdict(record, { reason }, { resumed: true })
    assert.deepEqual(['conversation_id' in fields, fields.fresh], [false, undefined])
  }
})

test('pauses between starts grow and end at half a minute', () => {
  assert.deepEqual(
    [1, 2, 3, 8, 50].map((n) => backOffMs(n, POLICY)),
    [250, 500, 1_000, 30_000, 30_000],
  )
})

const BREAKER = { maxRestarts: 2, windowMs: 600_000, resetMs: 1_200_000 }

test('the breaker of a named session opens with its own budget, and says so', () => {
  const crashes = [NOW - 500_000, NOW - 400_000]
  const facts = { exit: exit(), screen: '', resumed: false, now: NOW }
  const policy = { ...POLICY, breaker: BREAKER }
  const named = session({ named: 'mayor', last_woke_at: NOW - 400_000, crashes })
  const { signal, reason, holdMs } = classifyExit(named, facts, policy)
  assert.deepEqual([signal, reason, holdMs], ['quarantine', 'circuit-open', 1_200_000])
  assert.equal(classifyExit({ ...named, named: undefined }, facts, policy).signal, 'crash')
})

test('a turn that stalls is restarted, and held when that does not help', () => {
  assert.deepEqual(stalledTurn(session({}), NOW, POLICY), {
    signal: 'kill',
    reason: 'progress-stall',
    fields: { crashes: [NOW] },
  })
  const crashes = [1, 2, 3, 4, 5].map((n) => NOW - n * 600_000).reverse()
  const { signal, reason, fields } = stalledTurn(session({ crashes }), NOW, POLICY)
  assert.deepEqual([signal, reason, fields?.quarantined_until], ['quarantine', 'progress-stall', NOW + 600_000])
})
