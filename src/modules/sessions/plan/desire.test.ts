import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AGENT, VIEW } from '../../../../test/support/session-city.ts'
import { newSession } from '../launch/new-session.ts'
import type { AgentView, SessionsView } from '../record/config-view.ts'
import type { SessionRecord } from '../record/record.ts'
import { type DesireInput, limitReached, missingDependencies, planSessions } from './desire.ts'

const agent = (identity: string, more: Partial<AgentView> = {}): AgentView => ({
  ...AGENT,
  identity,
  name: identity,
  base_name: identity,
  ...more,
})

let made = 0
function session(config: SessionsView, template: string, change: Partial<SessionRecord> = {}): SessionRecord {
  made++
  const record = newSession(
    `s-${String(made).padStart(16, '0')}`,
    { kind: 'agent', template, origin: change.origin ?? 'manual', cause: 'explicit' },
    { config, now: made, render: (text) => text },
  )
  return { ...record, state: 'active', ...change }
}

function plan(config: Partial<SessionsView>, more: Partial<Omit<DesireInput, 'config'>> = {}) {
  const settings = { ...VIEW, ...config }
  const sessions = more.sessions ?? []
  const { wants, create } = planSessions({
    config: settings,
    sessions,
    demand: () => ({ fresh: 0, held: new Set() }),
    routed: () => 0,
    namepool: () => [],
    citySuspended: false,
    rigSuspended: () => false,
    kept: () => false,
    spokenTo: ({ queued }) => queued > 0,
    ...more,
  })
  const told = sessions.map(({ id }) => {
    const want = wants.get(id)
    if (want?.run === 'yes') return `yes ${want.cause}`
    return want?.run === 'no' ? `no ${want.reason} ${want.end}` : want?.run
  })
  return { told, create: create.map(({ name }) => name) }
}

const named = (identity: string, mode: 'always' | 'on_demand', more = {}) => ({
  identity,
  rig: '',
  template: identity,
  mode,
  agent: identity,
  disabled: false,
  ...more,
})
const WITH_MAYOR = { agents: [agent('mayor')], named_sessions: [named('mayor', 'always')] }

test('a session that is always wanted is made, once', () => {
  assert.deepEqual(plan(WITH_MAYOR).create, ['mayor'])
  const sessions = [session({ ...VIEW, ...WITH_MAYOR }, 'mayor', { named: 'mayor', origin: 'named' })]
  assert.deepEqual(plan(WITH_MAYOR, { sessions }), { told: ['yes named-always'], create: [] })
})

test('one on demand is made when there is work for it', () => {
  const config = { agents: [agent('clerk')], named_sessions: [named('clerk', 'on_demand')] }
  assert.deepEqual(plan(config).create, [])
  assert.deepEqual(plan(config, { demand: () => ({ fresh: 1, held: new Set() }) }).create, ['clerk'])
  assert.deepEqual(plan(config, { demand: () => ({ fresh: 0, held: new Set(['clerk']) }) }).create, ['clerk'])
})

test('work for an agent is for as many of its named sessions as there is work; work for one of them is its own', () => {
  const config = {
    agents: [agent('planner')],
    named_sessions: ['ceo', 'cto', 'cfo'].map((name) => named(name, 'on_demand', { agent: 'planner' })),
  }
  const fresh = (count: number, ...held: string[]) => ({ demand: () => ({ fresh: count, held: new Set(held) }) })
  assert.deepEqual(plan(config, fresh(1)).create, ['ceo'])
  assert.deepEqual(plan(config, fresh(2)).create, ['ceo', 'cto'])
  assert.deepEqual(plan(config, fresh(1, 'ceo')).create, ['ceo', 'cto'], 'who holds some has that to do')
  assert.deepEqual(plan(config, { routed: (name) => (name === 'cfo' ? 1 : 0) }).create, ['cfo'])
  const sessions = [session({ ...VIEW, ...config }, 'planner', { named: 'cfo', origin: 'named', state: 'active' })]
  assert.deepEqual(plan(config, { ...fresh(1), sessions }), { told: ['yes work'], create: [] }, 'who is there takes it')
})

test('holds beat every cause: suspended city, agent, rig; a definition that is gone', () => {
  const config = { ...VIEW, ...WITH_MAYOR }
  const sessions = [session(config, 'mayor', { named: 'mayor', origin: 'named' })]
  assert.deepEqual(plan(WITH_MAYOR, { sessions, citySuspended: true }).told, ['no suspended asleep'])
  const held = { ...WITH_MAYOR, agents: [agent('mayor', { suspended: true })] }
  assert.deepEqual(plan(held, { sessions }).told, ['no suspended asleep'])
  assert.deepEqual(plan({ agents: [], named_sessions: [] }, { sessions }).told, ['no orphaned asleep'])
  const inRig = {
    agents: [agent('shop/mayor', { dir: 'shop' })],
    rigs: [{ name: 'shop', path: '/shop', suspended_on_start: false }],
  }
  const there = [session({ ...VIEW, ...inRig }, 'shop/mayor', { pinned: true })]
  assert.deepEqual(plan(inRig, { sessions: there, rigSuspended: () => true }).told, ['no suspended asleep'])
  assert.deepEqual(plan({ ...inRig, rigs: [{ name: 'shop', suspended_on_start: false }] }, { sessions: there }).told, [
    'no missing-config asleep',
  ])
})

test('a pool has its floor, its demand, and its limit', () => {
  const pool = (more: Partial<AgentView>) => ({
    agents: [agent('hand', { scales: true, min_active_sessions: 1, ...more })],
  })
  assert.deepEqual(plan(pool({})).create, ['hand-1'])
  const demand = () => ({ fresh: 5, held: new Set<string>() })
  assert.deepEqual(plan(pool({ max_active_sessions: 3 }), { demand }).create, ['hand-1', 'hand-2', 'hand-3'])
  assert.deepEqual(plan(pool({ max_active_sessions: 3 }), { demand, namepool: () => ['ada', 'bob', 'cy'] }).create, [
    'ada',
    'bob',
    'cy',
  ])
  assert.deepEqual(plan({ ...pool({}), workspace: { max_active_sessions: 2 } }, { demand }).create, [
    'hand-1',
    'hand-2',
  ])
})

test('who holds work stays; who is too many is closed, unless somebody talks to it', () => {
  const config = { agents: [agent('hand', { scales: true, min_active_sessions: 1, max_active_sessions: 4 })] }
  const instance = (name: string, more: Partial<SessionRecord> = {}) =>
    session({ ...VIEW, ...config }, 'hand', { origin: 'ephemeral', pool: 'hand', agent: name, ...more })
  const sessions = [instance('hand-1'), instance('hand-2'), instance('hand-3', { queued: 1 })]
  const demand = () => ({ fresh: 0, held: new Set(['hand-2']) })
  assert.deepEqual(plan(config, { sessions, demand }).told, ['no no-wake-reason closed', 'yes work', 'as-desired'])
})

test('a session that a caller made is never ended for want of demand', () => {
  const config = { agents: [agent('hand', { scales: true, min_active_sessions: 0, max_active_sessions: 2 })] }
  const sessions = [session({ ...VIEW, ...config }, 'hand')]
  assert.deepEqual(plan(config, { sessions }), { told: ['as-desired'], create: [] })
})

test('who depends on others is made after them', () => {
  const config = {
    agents: [agent('c', { dependencies: ['b'] }), agent('b', { dependencies: ['a'] }), agent('a')],
    named_sessions: [named('c', 'always'), named('b', 'always'), named('a', 'always')],
  }
  assert.deepEqual(plan(config).create, ['a', 'b', 'c'])
})

test('a start waits for who it depends on, while that is on its way', () => {
  const config = { ...VIEW, agents: [agent('b', { dependencies: ['a'] }), agent('a')] }
  const waits = (state: SessionRecord['state']) =>
    missingDependencies(config.agents[0], [session(config, 'a', { state })], new Map())
  assert.deepEqual(waits('creating'), ['a'])
  assert.deepEqual(waits('active'), [])
  assert.deepEqual(waits('asleep'), [])
  assert.deepEqual(missingDependencies(config.agents[0], [], new Map()), [])
})

test('a limit counts what runs and what was there first', () => {
  const config = { ...VIEW, agents: [agent('a', { max_active_sessions: 1 })] }
  const first = session(config, 'a', { state: 'start-pending' })
  const second = session(config, 'a', { state: 'start-pending' })
  assert.equal(limitReached(config, first, [first, second]), undefined)
  assert.equal(limitReached(config, second, [first, second]), 'the agent a')
  assert.equal(limitReached(config, second, [{ ...first, state: 'asleep' }, second]), undefined)
})
