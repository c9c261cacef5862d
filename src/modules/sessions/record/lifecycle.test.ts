import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SESSION_STATES, type SessionState } from '../../../contract/sessions/session-model.ts'
import { Problem } from '../../../kernel/problem.ts'
import { nextState, SESSION_SIGNALS, type SessionSignal, STATES } from './lifecycle.ts'

const MOVES: readonly (readonly [SessionState, SessionSignal, SessionState])[] = [
  ['start-pending', 'prewake', 'creating'],
  ['creating', 'ready', 'active'],
  ['creating', 'start-failed', 'failed-create'],
  ['creating', 'roll-back', 'asleep'],
  ['active', 'suspend', 'suspended'],
  ['asleep', 'suspend', 'suspended'],
  ['quarantined', 'suspend', 'suspended'],
  ['asleep', 'wake', 'start-pending'],
  ['suspended', 'wake', 'start-pending'],
  ['quarantined', 'wake', 'start-pending'],
  ['failed-create', 'wake', 'start-pending'],
  ['active', 'rest', 'asleep'],
  ['active', 'drain', 'draining'],
  ['draining', 'undrain', 'active'],
  ['draining', 'rest', 'asleep'],
  ['active', 'crash', 'start-pending'],
  ['active', 'kill', 'start-pending'],
  ['active', 'quarantine', 'quarantined'],
  ['quarantined', 'expire', 'asleep'],
  ['start-pending', 'expire', 'failed-create'],
]

for (const [from, signal, to] of MOVES)
  test(`${from} goes to ${to} by ${signal}`, () => {
    assert.equal(nextState({ id: 's-1', state: from }, signal), to)
  })

const REFUSED: readonly (readonly [SessionState, SessionSignal])[] = [
  ['start-pending', 'suspend'],
  ['creating', 'suspend'],
  ['closed', 'wake'],
  ['asleep', 'drain'],
  ['asleep', 'undrain'],
  ['active', 'prewake'],
]

for (const [from, signal] of REFUSED)
  test(`${from} refuses ${signal} and says so`, () => {
    assert.throws(
      () => nextState({ id: 's-1', state: from }, signal),
      (error) => error instanceof Problem && error.code === 'illegal-transition' && error.detail.includes(from),
    )
  })

test('every state but closed can be closed, and closed is left by nothing', () => {
  for (const state of SESSION_STATES) assert.equal(nextState({ id: 's-1', state }, 'close'), 'closed')
  for (const signal of SESSION_SIGNALS) assert.ok((STATES.closed.moves[signal] ?? 'closed') === 'closed')
})

test('what has a deadline has one edge that its expiry takes, and nothing else has', () => {
  for (const state of SESSION_STATES)
    assert.equal(STATES[state].moves.expire !== undefined, STATES[state].deadline !== undefined, state)
})

test('every state can be reached', () => {
  const reached = new Set<SessionState>(['start-pending'])
  for (let before = 0; before !== reached.size; ) {
    before = reached.size
    for (const state of [...reached]) for (const to of Object.values(STATES[state].moves)) reached.add(to)
  }
  assert.deepEqual([...reached].sort(), [...SESSION_STATES].sort())
})
