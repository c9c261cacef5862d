import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { CITY_PHASES, CITY_STATES } from '../../contract/cities.ts'
import { isCityName, nextStep, phasesCompleted, retryDelayMs, type Situation, type Step } from './lifecycle.ts'

const NOW = 1_000_000
const situation = (over: Partial<Situation>): Situation => ({
  wanted: 'running',
  state: 'queued',
  restart: false,
  retryAt: undefined,
  now: NOW,
  ...over,
})

const CASES: readonly (readonly [string, Partial<Situation>, Step])[] = [
  ['a registered city starts', {}, 'start'],
  ['a running city that should run is left alone', { state: 'running' }, 'wait'],
  ['a restart stops it first', { state: 'running', restart: true }, 'stop'],
  ['and then starts it', { state: 'queued', restart: true }, 'start'],
  ['a running city that should not run stops', { state: 'running', wanted: 'stopped' }, 'stop'],
  ['a starting city that should not run stops', { state: 'stopping', wanted: 'stopped' }, 'stop'],
  [
    'a failed city that should not run stops trying',
    { state: 'init_failed', wanted: 'stopped', retryAt: NOW + 1 },
    'stop',
  ],
  ['a retry that is years away was set by a wrong clock', { state: 'init_failed', retryAt: NOW + 6e10 }, 'start'],
  ['a stopped city that should be stopped stays so', { state: 'stopped', wanted: 'stopped' }, 'wait'],
  ['a stopped city that should run starts', { state: 'stopped' }, 'start'],
  ['a running city that was unregistered stops first', { state: 'running', wanted: 'gone' }, 'stop'],
  ['and then departs', { state: 'stopping', wanted: 'gone' }, 'depart'],
  ['one that never ran departs', { state: 'init_failed', wanted: 'gone', retryAt: NOW + 1 }, 'depart'],
  ['a stopped one departs', { state: 'stopped', wanted: 'gone' }, 'depart'],
  ['a failed city waits for its back-off', { state: 'init_failed', retryAt: NOW + 1 }, 'wait'],
  ['and is tried again when it is over', { state: 'init_failed', retryAt: NOW }, 'start'],
]
for (const [name, over, step] of CASES) {
  test(name, () => assert.equal(nextStep(situation(over)), step))
}

test('there is a way out of every situation: nothing waits but what is as it should be, or for its back-off', () => {
  const any = fc.record({
    wanted: fc.constantFrom('running', 'stopped', 'gone'),
    state: fc.constantFrom(...CITY_STATES),
    restart: fc.boolean(),
    retryAt: fc.option(fc.integer({ min: NOW - 5, max: NOW + 5 }), { nil: undefined }),
    now: fc.constant(NOW),
  })
  fc.assert(
    fc.property(any, (one) => {
      if (nextStep(one) !== 'wait') return
      const asWanted = one.state === one.wanted && !(one.state === 'running' && one.restart)
      const backingOff = one.wanted === 'running' && one.retryAt !== undefined && one.retryAt > one.now
      assert.ok(asWanted || backingOff, JSON.stringify(one))
    }),
  )
})

test('the back-off doubles from 10 s to 5 min, and chance takes away at most a fifth', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 7, 100, 5_000].map((attempts) => retryDelayMs(attempts, 0)),
    [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000, 300_000],
  )
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, random) => {
      const full = retryDelayMs(attempts, 0)
      const delay = retryDelayMs(attempts, random)
      assert.ok(delay <= full && delay >= Math.floor(full * 0.8))
    }),
  )
})

test('completed phases are those before the current one', () => {
  assert.deepEqual(
    CITY_PHASES.map((phase) => phasesCompleted(phase)?.length),
    [0, 1, 2, 3, 4],
  )
  for (const state of ['queued', 'running', 'stopped', 'init_failed'] as const)
    assert.equal(phasesCompleted(state), undefined)
})

test('names of cities', () => {
  for (const name of ['a', '0', 'Alpha', 'a.b_c-d', 'a'.repeat(64)]) assert.ok(isCityName(name), name)
  for (const name of [
    '',
    '.',
    '..',
    '-a',
    '_a',
    '.a',
    'a b',
    'a/b',
    'ä',
    'a\n',
    'a:1',
    'a,b',
    '__supervisor__',
    'a'.repeat(65),
  ])
    assert.ok(!isCityName(name), name)
})
