import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import {
  type Facts,
  HEALED_MS,
  MOST_FAILED_PROBES,
  nextStep,
  PROBE_EVERY_MS,
  pauseMs,
  READY_MS,
  type Step,
} from './rules.ts'

const NOW = 1_000_000
const IDLE: Facts = {
  wanted: 'run',
  leaving: false,
  process: 'none',
  stale: false,
  restart: false,
  now: NOW,
  startedAt: 0,
  readyAt: 0,
  probedAt: 0,
  failedProbes: 0,
  failures: 0,
  nextStartAt: 0,
}
const STARTING: Facts = { ...IDLE, process: 'starting', startedAt: NOW, probedAt: Number.NEGATIVE_INFINITY }
const READY: Facts = { ...IDLE, process: 'ready', startedAt: NOW - 5_000, readyAt: NOW - 4_000, probedAt: NOW }
const NEVER = Number.POSITIVE_INFINITY
const wait = (until: number): Step => ({ do: 'wait', until })

const CASES: readonly (readonly [string, Facts, Step])[] = [
  ['one that is to run is started', IDLE, { do: 'start' }],
  ['after a failure it waits for its time', { ...IDLE, failures: 1, nextStartAt: NOW + 700 }, wait(NOW + 700)],
  ['unless somebody wants it now', { ...IDLE, nextStartAt: NOW + 700, restart: true }, { do: 'start' }],
  ['one that is suspended waits for people', { ...IDLE, wanted: 'suspend' }, wait(NEVER)],
  ['and so does one that nobody trusts', { ...IDLE, wanted: 'block', restart: true }, wait(NEVER)],
  ['one that is declared no more has left', { ...IDLE, wanted: 'end' }, { do: 'leave' }],
  ['what an earlier supervisor started is looked for first', { ...IDLE, process: 'unknown' }, { do: 'adopt' }],
  ['also where it is to end', { ...IDLE, process: 'unknown', wanted: 'end' }, { do: 'adopt' }],
  ['what has ended is buried first', { ...READY, process: 'ended', restart: true }, { do: 'bury' }],
  ['a supervisor that leaves does nothing to it', { ...READY, leaving: true, wanted: 'end' }, { do: 'leave' }],

  ['what was just started is looked at', STARTING, { do: 'probe' }],
  ['and soon again', { ...STARTING, probedAt: NOW - 20 }, wait(NOW + 30)],
  ['not so often after a while', { ...STARTING, startedAt: NOW - 3_000, probedAt: NOW - 20 }, wait(NOW + 480)],
  ['one that is not ready in time', { ...STARTING, startedAt: NOW - READY_MS }, { do: 'stop', why: 'not_ready' }],

  ['a ready one is looked at now and then', READY, wait(NOW + PROBE_EVERY_MS)],
  ['at its time', { ...READY, probedAt: NOW - PROBE_EVERY_MS }, { do: 'probe' }],
  ['two failures are none', { ...READY, failedProbes: MOST_FAILED_PROBES - 1 }, wait(NOW + PROBE_EVERY_MS)],
  ['three are', { ...READY, failedProbes: MOST_FAILED_PROBES }, { do: 'stop', why: 'unhealthy' }],
  ['healthy for a minute, it is forgiven', { ...READY, failures: 4, readyAt: NOW - HEALED_MS }, { do: 'heal' }],
  ['not before', { ...READY, failures: 4, readyAt: NOW - HEALED_MS + 10 }, wait(NOW + 10)],
  [
    'nor while it fails',
    { ...READY, failures: 4, readyAt: NOW - HEALED_MS, failedProbes: 1 },
    wait(NOW + PROBE_EVERY_MS),
  ],

  ['a restart ends it first', { ...READY, restart: true }, { do: 'stop', why: 'restart' }],
  ['so does another declaration', { ...STARTING, stale: true }, { do: 'stop', why: 'reconfigured' }],
  ['and suspension', { ...STARTING, wanted: 'suspend' }, { do: 'stop', why: 'suspended' }],
  ['and a trust that was taken back', { ...READY, wanted: 'block' }, { do: 'stop', why: 'untrusted_pack' }],
  ['and the end of its city', { ...READY, wanted: 'end', stale: true }, { do: 'stop', why: 'ended' }],
]

describe('what is next for a service', () => {
  for (const [name, facts, step] of CASES) test(name, () => assert.deepEqual(nextStep(facts), step))

  test('nothing is ever started beside a process that may run', () => {
    const facts = fc.record({
      wanted: fc.constantFrom('run', 'suspend', 'block', 'end'),
      leaving: fc.boolean(),
      process: fc.constantFrom('none', 'unknown', 'starting', 'ready', 'ended'),
      stale: fc.boolean(),
      restart: fc.boolean(),
      now: fc.constant(NOW),
      startedAt: fc.integer({ min: NOW - 100_000, max: NOW }),
      readyAt: fc.integer({ min: NOW - 100_000, max: NOW }),
      probedAt: fc.integer({ min: NOW - 100_000, max: NOW }),
      failedProbes: fc.integer({ min: 0, max: 5 }),
      failures: fc.integer({ min: 0, max: 20 }),
      nextStartAt: fc.integer({ min: NOW - 100_000, max: NOW + 100_000 }),
    } as const)
    fc.assert(
      fc.property(facts, (some) => {
        const step = nextStep(some)
        if (step.do === 'start') assert.equal(some.process === 'none' && some.wanted === 'run' && !some.leaving, true)
        // Whatever waits, waits for a time that comes, or for people.
        if (step.do === 'wait') assert.ok(step.until > NOW)
      }),
    )
  })
})

describe('pauses between tries', () => {
  test('they double from a second to a minute, and no further', () => {
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map((failures) => pauseMs(failures, 0.5)),
      [1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000],
    )
  })

  test('chance keeps services apart, within a fifth and never beyond a minute', () => {
    assert.deepEqual([pauseMs(1, 0), pauseMs(1, 1), pauseMs(9, 0), pauseMs(9, 1)], [800, 1_200, 48_000, 60_000])
  })
})
