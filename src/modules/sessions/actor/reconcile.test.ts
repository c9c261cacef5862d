import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { AGENT, VIEW } from '../../../../test/support/session-city.ts'
import { SESSION_DESIRES, SESSION_STATES } from '../../../contract/sessions/session-model.ts'
import { newSession } from '../launch/new-session.ts'
import type { DeliveryRecord } from '../queue/deliveries.ts'
import type { SessionsView } from '../record/config-view.ts'
import { STATES } from '../record/lifecycle.ts'
import { policyOf } from '../record/policy.ts'
import type { SessionRecord } from '../record/record.ts'
import { type Action, nextAction, type Situation } from './reconcile.ts'

const NOW = 1_000_000_000
const CONFIG: SessionsView = { ...VIEW, agents: [AGENT] }
const POLICY = policyOf(CONFIG)
const AGE = {
  idleTimeoutMs: undefined,
  sleepAfterIdleMs: undefined,
  maxAgeMs: undefined,
  maxAgeJitterMs: 0,
  drainMs: 300_000,
  deferMs: 900_000,
}

function session(change: Partial<SessionRecord> = {}): SessionRecord {
  const made = newSession(
    's-0123456789abcdef',
    { kind: 'agent', template: 'worker', origin: 'manual', cause: 'explicit' },
    { config: CONFIG, now: NOW - 60_000, render: (text) => text },
  )
  return { ...made, ...change }
}

const active = (change: Partial<SessionRecord> = {}) =>
  session({
    state: 'active',
    process: true,
    generation: 1,
    lived_at: NOW - 60_000,
    last_woke_at: NOW - 60_000,
    ...change,
  })

const onScreen = active({
  runtime: 'subprocess',
  launch: {
    directory: '/run',
    io: 'pty',
    delivery: 'tui',
    debounceMs: 0,
    interruptKey: 'escape',
    ready: { family: '', program: 'x', promptPrefix: '> ', delayMs: 0, confirm: false, acceptDialogs: false },
    columns: 80,
    rows: 24,
    oneShot: false,
    logPlaces: {},
  },
})

function delivery(change: Partial<DeliveryRecord> = {}): DeliveryRecord {
  return {
    id: 'dlv-1',
    session_id: 's-0123456789abcdef',
    seq: 1,
    source: 'message',
    intent: 'default',
    state: 'queued',
    sender: undefined,
    request_id: undefined,
    request_open: false,
    with_launch: false,
    eager: false,
    wakes: true,
    attempts: 0,
    generation: undefined,
    end_offset: undefined,
    error_code: undefined,
    error_message: undefined,
    created_at: NOW,
    updated_at: NOW,
    finished_at: undefined,
    expires_at: NOW + 86_400_000,
    ...change,
  }
}

function situation(change: Partial<Situation>): Situation {
  const record = change.session ?? active()
  return {
    session: record,
    process: record.process ? 'alive' : 'none',
    activity: 'idle',
    quietSince: NOW,
    busySince: undefined,
    pending: false,
    attended: false,
    assigned: false,
    queue: [],
    personTypingSince: undefined,
    lineLeftAt: undefined,
    saidAt: undefined,
    interruptedAt: undefined,
    want: { run: 'as-desired' },
    drift: 'none',
    blocked: undefined,
    policy: POLICY,
    age: AGE,
    now: NOW,
    ...change,
  }
}

function summary(action: Action): string {
  if (action.do === 'move' || action.do === 'stop')
    return [action.do, action.turn.signal, action.turn.reason].filter(Boolean).join(' ')
  if (action.do === 'deliver' || action.do === 'settle' || action.do === 'interrupt')
    return `${action.do} ${action.delivery.id}`
  return action.do
}

const NO = { run: 'no', reason: 'suspended', end: 'asleep' } as const
const YES = { run: 'yes', cause: 'named-always' } as const
const busy = { activity: 'in-turn', busySince: NOW - 1_000 } as const

const RESTARTING = active({
  state: 'draining',
  state_since: NOW - 5_000,
  drain_reason: 'restart-requested',
  deadline: NOW + 1,
})
const STALLING = {
  activity: 'in-turn',
  policy: policyOf({ ...CONFIG, session: { progress_stall_timeout: '5m' } }),
} as const

const CASES: readonly (readonly [string, Partial<Situation>, string])[] = [
  ['a new session starts', { session: session() }, 'start'],
  ['one that is blocked waits', { session: session(), blocked: 'max-sessions' }, 'wait'],
  ['one that must pause waits', { session: session({ retry_at: NOW + 5 }) }, 'wait'],
  [
    'a pause that a clock which was set back makes an hour long is over',
    { session: session({ retry_at: NOW + 3_600_000 }) },
    'start',
  ],
  [
    'one that never got its turn fails',
    { session: session({ state_since: NOW - 600_000 }), blocked: 'max-sessions' },
    'move start-failed max-sessions',
  ],
  ['what may have a process is looked for first', { session: active(), process: 'unadopted' }, 'adopt'],
  ['an unknown process is not touched', { session: active({ desired: 'closed' }), process: 'unknown' }, 'wait'],
  ['an idle session takes a message', { queue: [delivery()] }, 'deliver dlv-1'],
  ['an unknown activity does not hold a message back', { queue: [delivery()], activity: 'unknown' }, 'deliver dlv-1'],
  [
    'of an agent that is read by its screen, unknown is not idle',
    { session: onScreen, queue: [delivery()], activity: 'unknown' },
    'wait',
  ],
  [
    'after 30 s of that the request succeeds as queued',
    {
      session: onScreen,
      queue: [delivery({ request_open: true, created_at: NOW - 30_000 })],
      activity: 'unknown',
      busySince: NOW - 60_000,
    },
    'report-queued',
  ],
  ['and it is typed once the screen says idle', { session: onScreen, queue: [delivery()] }, 'deliver dlv-1'],
  ['a busy one does not', { queue: [delivery()], ...busy }, 'wait'],
  [
    'a busy one is interrupted for who asks',
    { queue: [delivery({ intent: 'interrupt_now' })], ...busy },
    'interrupt dlv-1',
  ],
  [
    'it is waited for after that',
    { queue: [delivery({ intent: 'interrupt_now' })], ...busy, interruptedAt: NOW - 1_000 },
    'wait',
  ],
  [
    'but not for ever',
    { queue: [delivery({ intent: 'interrupt_now' })], ...busy, interruptedAt: NOW - 15_000 },
    'deliver dlv-1',
  ],
  [
    'but over ACP for the end of the turn, since nothing can be said into one',
    {
      session: active({ runtime: 'acp' }),
      queue: [delivery({ intent: 'interrupt_now' })],
      ...busy,
      interruptedAt: NOW - 15_000,
    },
    'wait',
  ],
  [
    'a turn that began behind the urgent message is not interrupted for it',
    { queue: [delivery({ intent: 'interrupt_now', created_at: NOW - 900 })], ...busy, saidAt: NOW - 800 },
    'wait',
  ],
  [
    'one whose message was on its way is',
    { queue: [delivery({ intent: 'interrupt_now', created_at: NOW - 900 })], ...busy, saidAt: NOW - 1_200 },
    'interrupt dlv-1',
  ],
  [
    'what waits for an urgent message to go first interrupts nothing',
    { queue: [delivery(), delivery({ id: 'dlv-2', seq: 2, intent: 'interrupt_now' })], ...busy },
    'wait',
  ],
  ['a session that is to restart takes no message', { session: RESTARTING, queue: [delivery()] }, 'wait'],
  [
    'what it was typing is settled',
    { session: RESTARTING, queue: [delivery({ state: 'delivering' })] },
    'settle dlv-1',
  ],
  [
    'an urgent message ends the turn that a restart waits for',
    { session: RESTARTING, queue: [delivery({ intent: 'interrupt_now' })], ...busy },
    'interrupt dlv-1',
  ],
  [
    'nothing is typed behind the half line of a person',
    { queue: [delivery()], personTypingSince: NOW - 1_000 },
    'wait',
  ],
  ['nor is an eager nudge', { queue: [delivery({ eager: true })], personTypingSince: NOW - 1_000 }, 'wait'],
  [
    'who may interrupt throws it away',
    { queue: [delivery({ intent: 'interrupt_now' })], personTypingSince: NOW - 1_000 },
    'interrupt dlv-1',
  ],
  [
    'once',
    {
      queue: [delivery({ intent: 'interrupt_now' })],
      personTypingSince: NOW - 1_000,
      interruptedAt: NOW - 500,
    },
    'wait',
  ],
  [
    'after 30 s behind a half line the request succeeds as queued',
    { queue: [delivery({ request_open: true, created_at: NOW - 31_000 })], personTypingSince: NOW - 40_000 },
    'report-queued',
  ],
  [
    'a half line that was left behind is waited for no longer',
    { queue: [delivery()], personTypingSince: NOW - 40_000, lineLeftAt: NOW },
    'deliver dlv-1',
  ],
  [
    'nothing fails for a half line that will count as left behind',
    {
      queue: [delivery({ created_at: NOW - POLICY.deliveryMs })],
      personTypingSince: NOW - POLICY.deliveryMs,
      quietSince: NOW - POLICY.deliveryMs,
      lineLeftAt: NOW + 1,
    },
    'wait',
  ],
  [
    'what a half line that stays is in the way of fails in the end',
    {
      queue: [delivery({ created_at: NOW - POLICY.deliveryMs })],
      personTypingSince: NOW - POLICY.deliveryMs,
      quietSince: NOW - POLICY.deliveryMs,
    },
    'expire-deliveries',
  ],
  [
    'but not while the agent works',
    { queue: [delivery({ created_at: 0 })], personTypingSince: 1, quietSince: 1, ...busy },
    'wait',
  ],
  ['an eager nudge is typed into a turn', { queue: [delivery({ eager: true })], ...busy }, 'deliver dlv-1'],
  ['but not over ACP', { session: active({ runtime: 'acp' }), queue: [delivery({ eager: true })], ...busy }, 'wait'],
  ['a question holds messages back', { queue: [delivery()], pending: true }, 'wait'],
  ['an urgent one dismisses it', { queue: [delivery({ intent: 'interrupt_now' })], pending: true }, 'interrupt dlv-1'],
  ['what was under way is settled', { queue: [delivery({ state: 'delivering' })] }, 'settle dlv-1'],
  [
    'after 30 s of busy the request succeeds as queued',
    {
      queue: [delivery({ request_open: true, created_at: NOW - 30_000 })],
      activity: 'in-turn',
      busySince: NOW - 40_000,
    },
    'report-queued',
  ],
  [
    'a follow-up is reported at once',
    { queue: [delivery({ request_open: true, intent: 'follow_up' })], ...busy },
    'report-queued',
  ],
  [
    'a request that nobody could take in time fails',
    {
      session: session({ state: 'asleep', desired: 'asleep' }),
      queue: [delivery({ request_open: true, created_at: NOW - 240_000 })],
    },
    'expire-deliveries',
  ],
  ['a delivery is not kept for ever', { queue: [delivery({ expires_at: NOW })] }, 'expire-deliveries'],
  ['a suspended one is stopped', { session: active({ desired: 'suspended' }) }, 'stop suspend user-hold'],
  [
    'a suspended one stays so, whoever wants it',
    { session: session({ state: 'suspended', desired: 'suspended' }), want: YES },
    'wait',
  ],
  ['also for a nudge', { session: session({ state: 'suspended', desired: 'suspended' }), queue: [delivery()] }, 'wait'],
  ['a closed one is stopped and closed', { session: active({ desired: 'closed' }) }, 'stop close requested'],
  ['a sleeping one sleeps', { session: session({ state: 'asleep', desired: 'asleep' }) }, 'wait'],
  [
    'what is wanted is woken',
    { session: session({ state: 'asleep', desired: 'asleep' }), want: YES },
    'move wake named-always',
  ],
  [
    'a message wakes',
    { session: session({ state: 'asleep', desired: 'asleep' }), queue: [delivery()] },
    'move wake message',
  ],
  [
    'a queued nudge does not',
    { session: session({ state: 'asleep', desired: 'asleep' }), queue: [delivery({ wakes: false })] },
    'wait',
  ],
  [
    'who was stopped with the city is back with it',
    { session: session({ state: 'asleep', reason: 'city-stop' }) },
    'move wake city-start',
  ],
  [
    'who was held is back when the hold is lifted',
    { session: session({ state: 'asleep', reason: 'suspended' }) },
    'move wake resumed',
  ],
  ['a held agent is drained', { want: NO }, 'move drain suspended'],
  ['not while somebody attends', { want: NO, attended: true }, 'wait'],
  ['drift drains', { drift: 'restart' }, 'move drain config-drift'],
  ['drift waits for consent of who attends', { drift: 'restart', attended: true }, 'wait'],
  ['drift of live commands applies them again', { drift: 'reapply' }, 'reapply'],
  ['idle sessions sleep', { age: { ...AGE, sleepAfterIdleMs: 60_000 }, quietSince: NOW - 60_000 }, 'stop rest idle'],
  [
    'pinned ones do not',
    { session: active({ pinned: true }), age: { ...AGE, sleepAfterIdleMs: 60_000 }, quietSince: NOW - 60_000 },
    'wait',
  ],
  [
    'who has work waits a while',
    { assigned: true, age: { ...AGE, sleepAfterIdleMs: 60_000 }, quietSince: NOW - 60_000 },
    'wait',
  ],
  [
    'and is stopped when that does not help',
    { assigned: true, age: { ...AGE, sleepAfterIdleMs: 60_000 }, quietSince: NOW - 900_000 },
    'stop rest assigned-work-exhausted',
  ],
  ['who works is not idle', { ...busy, age: { ...AGE, sleepAfterIdleMs: 1 }, quietSince: 0 }, 'wait'],
  ['an old one is recycled', { session: active({ max_age_at: NOW }) }, 'stop kill max-session-age'],
  ['not with a question open', { session: active({ max_age_at: NOW }), pending: true }, 'wait'],
  [
    'a draining one that says so is done',
    { session: active({ state: 'draining', drain_acked: true, drain_reason: 'requested' }) },
    'stop rest drained',
  ],
  [
    'one that is silent for a tick too',
    {
      session: active({
        state: 'draining',
        state_since: NOW - 30_000,
        drain_reason: 'no-wake-reason',
        deadline: NOW + 1,
      }),
    },
    'stop rest no-wake-reason',
  ],
  [
    'one that works has its time',
    {
      session: active({
        state: 'draining',
        state_since: NOW - 60_000,
        drain_reason: 'config-drift',
        deadline: NOW + 1,
      }),
      ...busy,
    },
    'wait',
  ],
  [
    'and no more',
    {
      session: active({ state: 'draining', state_since: NOW - 60_000, drain_reason: 'config-drift', deadline: NOW }),
      ...busy,
    },
    'stop kill config-drift',
  ],
  [
    'a drain is taken back when it is wanted again',
    { session: active({ state: 'draining', drain_reason: 'no-wake-reason', deadline: NOW + 1 }), want: YES },
    'move undrain named-always',
  ],
  [
    'who comes to a session that a changed configuration ends keeps it',
    { session: active({ state: 'draining', drain_reason: 'config-drift', deadline: NOW }), attended: true, ...busy },
    'move undrain attached',
  ],
  [
    'who is there and asked for the end gets it',
    { session: active({ state: 'draining', drain_reason: 'requested', drain_acked: true }), attended: true },
    'stop rest drained',
  ],
  [
    'one that is held no longer goes on',
    { session: active({ state: 'draining', state_since: NOW - 5_000, drain_reason: 'suspended', deadline: NOW + 1 }) },
    'move undrain resumed',
  ],
  [
    'one that has finished already sleeps first',
    { session: active({ state: 'draining', drain_reason: 'suspended', drain_acked: true }) },
    'stop rest drained',
  ],
  [
    'a restart that was asked for waits for no tick',
    { session: RESTARTING, quietSince: NOW - 1_000 },
    'stop kill restart-requested',
  ],
  ['but for the end of the turn that asked', { session: RESTARTING, quietSince: NOW - 999 }, 'wait'],
  ['and for a tick where nobody can tell', { session: RESTARTING, quietSince: 0, activity: 'unknown' }, 'wait'],
  [
    'but not one for a changed configuration',
    { session: active({ state: 'draining', drain_reason: 'config-drift', deadline: NOW + 1 }), want: YES, ...busy },
    'wait',
  ],
  [
    'a quarantine runs out',
    { session: session({ state: 'quarantined', quarantined_until: NOW }) },
    'move expire quarantine-expired',
  ],
  ['a silent turn goes on for ever by default', { activity: 'in-turn', busySince: 0, quietSince: 0 }, 'wait'],
  [
    'where the city sets a limit, a silent turn is given up',
    { ...STALLING, busySince: NOW - 300_000, quietSince: NOW - 300_000 },
    'stop kill progress-stall',
  ],
  ['one that shows a sign of life is not', { ...STALLING, busySince: 0, quietSince: NOW - 299_999 }, 'wait'],
  ['nor one that waits for an answer', { ...STALLING, busySince: 0, quietSince: 0, pending: true }, 'wait'],
  ['nor one that somebody attends', { ...STALLING, busySince: 0, quietSince: 0, attended: true }, 'wait'],
  ['and not before', { session: session({ state: 'quarantined', quarantined_until: NOW + 1 }), want: YES }, 'wait'],
]

for (const [name, change, expected] of CASES)
  test(name, () => assert.equal(summary(nextAction(situation(change))), expected))

const arbitrarySituation = fc
  .record({
    state: fc.constantFrom(...SESSION_STATES),
    desired: fc.constantFrom(...SESSION_DESIRES),
    observed: fc.constantFrom('alive', 'unknown', 'unadopted') as fc.Arbitrary<'alive' | 'unknown' | 'unadopted'>,
    activity: fc.constantFrom('idle', 'in-turn', 'unknown') as fc.Arbitrary<'idle' | 'in-turn' | 'unknown'>,
    flags: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean(), fc.boolean()),
    want: fc.constantFrom({ run: 'as-desired' } as const, YES, NO),
    drift: fc.constantFrom('none', 'reapply', 'restart') as fc.Arbitrary<'none' | 'reapply' | 'restart'>,
    intents: fc.array(
      fc.constantFrom('default', 'follow_up', 'interrupt_now') as fc.Arbitrary<DeliveryRecord['intent']>,
      {
        maxLength: 3,
      },
    ),
    times: fc.tuple(fc.integer({ min: -700_000, max: 700_000 }), fc.integer({ min: -700_000, max: 0 })),
  })
  .map(({ state, desired, observed, activity, flags, want, drift, intents, times }) => {
    const process = STATES[state].process !== 'none'
    const [pending, attended, assigned, pinned] = flags
    const record = session({
      state,
      desired,
      process,
      pinned,
      deadline: NOW + times[0],
      retry_at: NOW + times[0],
      quarantined_until: NOW + times[0],
      max_age_at: NOW + times[0],
      state_since: NOW + times[1],
    })
    const queue = intents.map((intent, at) => delivery({ id: `dlv-${at}`, seq: at + 1, intent, request_open: true }))
    return situation({
      session: record,
      process: process ? observed : 'none',
      activity,
      busySince: activity === 'in-turn' ? NOW - 1 : undefined,
      pending: pending && process,
      attended,
      assigned,
      queue,
      want,
      drift,
      quietSince: NOW + times[1],
    })
  })

test('whatever the situation, the next move is one that the table has', () => {
  fc.assert(
    fc.property(arbitrarySituation, (one) => {
      const action = nextAction(one)
      if (action.do !== 'move' && action.do !== 'stop') return
      assert.ok(
        STATES[one.session.state].moves[action.turn.signal] !== undefined,
        JSON.stringify([one.session.state, action]),
      )
    }),
    { numRuns: 5_000 },
  )
})

test('whatever the situation, an unknown process is neither ended nor replaced', () => {
  fc.assert(
    fc.property(arbitrarySituation, (one) => {
      const { do: done } = nextAction({ ...one, process: one.process === 'none' ? 'none' : 'unknown' })
      if (one.process !== 'none') assert.ok(!['stop', 'start', 'move', 'deliver'].includes(done), done)
    }),
    { numRuns: 2_000 },
  )
})

test('whatever the situation, waiting ends in the future', () => {
  fc.assert(
    fc.property(arbitrarySituation, (one) => {
      const action = nextAction(one)
      if (action.do === 'wait' && action.until !== undefined) assert.ok(action.until > one.now)
    }),
    { numRuns: 2_000 },
  )
})

test('whatever the situation, nobody is interrupted unless a message asks for it', () => {
  fc.assert(
    fc.property(arbitrarySituation, (one) => {
      if (nextAction(one).do !== 'interrupt') return
      assert.ok(one.queue.some(({ intent }) => intent === 'interrupt_now'))
    }),
    { numRuns: 2_000 },
  )
})
