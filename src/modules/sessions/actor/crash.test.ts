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
const verdict = (
  record: SessionRecord,
  change: Partial<Exit> = {},
  more: { screen?: string; resumed?: boolean } = {},
) =>
  classifyExit(
    record,
    { exit: exit(change), screen: more.screen ?? '', resumed: more.resumed ?? false, now: NOW },
    POLICY,
  )

test('an exit with status 0 is no crash', () => {
  const { signal, reason, fields } = verdict(session({}), { code: 0 })
  assert.deepEqual([signal, reason, fields.crashes], ['rest', 'exited', undefined])
})

test('a rate limit on the screen holds for half an hour and counts nothing', () => {
  const { signal, reason, holdMs, fields } = verdict(session({}), {}, { screen: 'You hit a rate limit. Try later.' })
  assert.deepEqual([signal, reason, holdMs, fields.crashes], ['quarantine', 'rate_limit', 1_800_000, undefined])
})

test('an exit with status 0 is no rate limit, whatever was on the screen', () => {
  for (const screen of ['error: 429 Too Many Requests', 'rate limit exceeded\n$ exit', 'tests: 429 passed']) {
    const { signal, reason, holdMs } = verdict(session({}), { code: 0 }, { screen })
    assert.deepEqual([signal, reason, holdMs], ['rest', 'exited', undefined])
  }
})

test('what a crashed program spoke of long before it ended holds nobody for half an hour', () => {
  const screen = `grep: 12 hits for "rate limit"\n${'a line of work\n'.repeat(5)}`
  assert.deepEqual([verdict(session({}), {}, { screen }).reason], ['crashed'])
  assert.deepEqual([verdict(session({}), {}, { screen: '429 files changed' }).reason], ['crashed'])
  const killed = verdict(
    session({}),
    { code: undefined, signal: 'SIGKILL', reason: 'signalled' },
    { screen: 'rate limit' },
  )
  assert.equal(killed.reason, 'crashed')
})

test('the last words of a program that failed count, blank lines aside', () => {
  const screen = `API Error: Too many requests\n\n\n\n\n\nbye\n\n`
  assert.equal(verdict(session({}), {}, { screen }).reason, 'rate_limit')
})

test('a quarantine says why, and until when', () => {
  const limited = verdict(session({}), {}, { screen: 'usage limit reached' })
  assert.equal(
    limited.why,
    'its provider limits it: it ended with status 1, and said so; it is held until 1970-01-01T03:16:40.000Z, or until somebody wakes it',
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
