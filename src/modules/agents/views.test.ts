import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stateOf } from './views.ts'

const NOW = Date.parse('2026-01-01T12:00:00Z')
const at = (minutesAgo: number) => new Date(NOW - minutesAgo * 60_000).toISOString()
type Sessions = Parameters<typeof stateOf>[1]

const CASES: readonly (readonly [string, boolean, Sessions, ReturnType<typeof stateOf>])[] = [
  ['no session', false, [], 'stopped'],
  ['a suspended agent, whatever runs', true, [{ state: 'active', running: true, active_bead: 'a-1' }], 'suspended'],
  ['a session in quarantine', false, [{ state: 'quarantined', running: false }], 'quarantined'],
  [
    'one in quarantine and one that runs',
    false,
    [
      { state: 'quarantined', running: false },
      { state: 'active', running: true },
    ],
    'idle',
  ],
  ['a running session without work', false, [{ state: 'active', running: true }], 'idle'],
  [
    'work and fresh output',
    false,
    [{ state: 'active', running: true, active_bead: 'a-1', last_active: at(1) }],
    'working',
  ],
  ['work that was never heard of', false, [{ state: 'active', running: true, active_bead: 'a-1' }], 'waiting'],
  [
    'work and ten minutes of quiet',
    false,
    [{ state: 'active', running: true, active_bead: 'a-1', last_active: at(10) }],
    'waiting',
  ],
  [
    'one that waits and one that works',
    false,
    [
      { state: 'active', running: true, active_bead: 'a-1', last_active: at(60) },
      { state: 'active', running: true, active_bead: 'a-2', last_active: at(2) },
    ],
    'working',
  ],
  ['one that asks a person', false, [{ state: 'active', running: true, pending: 'r1' }], 'needs_answer'],
  ['one in a turn without a bead', false, [{ state: 'active', running: true, activity: 'in-turn' }], 'working'],
  ['one whose start is tried again', false, [{ state: 'start-pending', running: false }], 'starting'],
  ['a session that sleeps', false, [{ state: 'asleep', running: false }], 'stopped'],
]

for (const [situation, suspended, sessions, state] of CASES) {
  test(`an agent with ${situation} is shown as ${state}`, () => {
    assert.equal(stateOf({ suspended }, sessions, NOW), state)
  })
}
