/**
 * What a city wants of its sessions: which are to run, which are to be made, which are to end (sheet 04 §8, "Desired").
 * Pure: configuration, open sessions and demand in; a plan out.
 *
 * P1  Holds beat every cause: suspended city, rig or agent, and a definition that is gone.
 * P2  A caller's own session is never made, and never ended, because of demand.
 */

import type { Want } from '../actor/reconcile.ts'
import {
  type AgentView,
  findAgent,
  isUnbound,
  type NamedView,
  rigOf,
  type SessionsView,
  untrusted,
} from '../record/config-view.ts'
import { countsTowardCaps } from '../record/lifecycle.ts'
import type { SessionRecord } from '../record/record.ts'

export interface Demand {
  /** New work for this agent that nobody has. */
  readonly fresh: number
  /** Named instances that hold work. */
  readonly held: ReadonlySet<string>
}

export interface DesireInput {
  readonly config: SessionsView
  /** Not closed, oldest first. */
  readonly sessions: readonly SessionRecord[]
  readonly demand: (agent: AgentView) => Demand
  /** New work for this very session, by its own name. */
  readonly routed: (named: string) => number
  /** Names that a pool's file gives its instances. */
  readonly namepool: (agent: AgentView) => readonly string[]
  readonly citySuspended: boolean
  readonly rigSuspended: (rig: string) => boolean
  /** Somebody is there, or an answer is waited for. */
  readonly kept: (session: SessionRecord) => boolean
  /** Something waits that it is to be told before it ends. */
  readonly spokenTo: (session: SessionRecord) => boolean
}

/** A session to be made. */
export interface Wanted {
  readonly agent: AgentView
  readonly origin: 'named' | 'ephemeral'
  /** Configured identity. */
  readonly named?: string
  /** Who owns its work: the identity, or the instance's name. */
  readonly name: string
  readonly cause: string
}

export interface Plan {
  readonly wants: ReadonlyMap<string, Want>
  readonly create: readonly Wanted[]
}

const AS_DESIRED: Want = { run: 'as-desired' }

export function planSessions(input: DesireInput): Plan {
  const { config, sessions } = input
  const wants = new Map<string, Want>()
  const create: Wanted[] = []
  for (const session of sessions) {
    const hold = holdOf(session, input)
    wants.set(session.id, hold === undefined ? AS_DESIRED : { run: 'no', reason: hold.reason, end: hold.end })
  }
  for (const named of config.named_sessions) planNamed(named, input, wants, create)
  for (const agent of config.agents) if (!isNamedOnly(config, agent)) planAgent(agent, input, wants, create)
  for (const session of sessions) {
    if (wants.get(session.id) !== AS_DESIRED) continue
    if (session.pinned) wants.set(session.id, { run: 'yes', cause: 'pin' })
    else if (input.kept(session)) wants.set(session.id, { run: 'yes', cause: 'attached' })
  }
  const depth = depths(config)
  // Who depends on others is made after them, so that it finds them on their way.
  return { wants, create: create.sort((a, b) => depth(a.agent.identity) - depth(b.agent.identity)) }
}

/** How far an agent is from one that depends on nobody; the files have no circles. */
export function depths(config: SessionsView): (identity: string) => number {
  const known = new Map<string, number>()
  const depth = (identity: string): number => {
    const found = known.get(identity)
    if (found !== undefined) return found
    known.set(identity, 0)
    const on = findAgent(config, identity)?.dependencies ?? []
    const own = on.length === 0 ? 0 : 1 + Math.max(...on.map(depth))
    known.set(identity, own)
    return own
  }
  return depth
}

/** Why a session may not run, whatever is wanted of it. */
export interface Hold {
  readonly reason: 'suspended' | 'orphaned' | 'missing-config' | 'untrusted-pack'
  readonly end: 'asleep' | 'closed'
  /** For people. */
  readonly says: string
}
type HoldInput = Pick<DesireInput, 'config' | 'citySuspended' | 'rigSuspended'>

/** P1; undefined: nothing holds it. */
export function holdOf(session: SessionRecord, { config, citySuspended, rigSuspended }: HoldInput): Hold | undefined {
  const held = (reason: Hold['reason'], says: string, end: Hold['end'] = 'asleep'): Hold => ({ reason, says, end })
  if (citySuspended) return held('suspended', 'the city is suspended')
  const pack = untrusted(session.kind === 'provider' ? config.providers[session.provider] : undefined)
  if (pack !== undefined) return held('untrusted-pack', pack)
  if (session.kind === 'provider') return undefined
  const { template, named } = session
  const agent = findAgent(config, template)
  const gone = session.origin === 'ephemeral' ? 'closed' : 'asleep'
  if (agent === undefined) return held('orphaned', `there is no agent ${template} any more`, gone)
  if (named !== undefined && !config.named_sessions.some((one) => one.identity === named && !one.disabled))
    return held('orphaned', `${named} is no configured session any more`)
  const brought = untrusted(agent)
  if (brought !== undefined) return held('untrusted-pack', brought)
  if (agent.suspended) return held('suspended', `the agent ${template} is suspended`)
  if (agent.dir !== '' && rigSuspended(agent.dir)) return held('suspended', `the rig ${agent.dir} is suspended`)
  if (!isUnbound(config, agent)) return undefined
  return held('missing-config', `the rig ${agent.dir} has no directory on this machine`)
}

export function mayRun(agent: AgentView, { config, citySuspended, rigSuspended }: HoldInput): boolean {
  if (citySuspended || agent.suspended || untrusted(agent) !== undefined || isUnbound(config, agent)) return false
  return agent.dir === '' || !rigSuspended(agent.dir)
}

function planNamed(named: NamedView, input: DesireInput, wants: Map<string, Want>, create: Wanted[]): void {
  const agent = named.agent === undefined ? undefined : findAgent(input.config, named.agent)
  if (named.disabled || agent === undefined || !mayRun(agent, input)) return
  const session = input.sessions.find((one) => one.named === named.identity)
  const { fresh, held } = input.demand(agent)
  const isCalled = named.identity !== agent.identity && input.routed(named.identity) > 0
  const busy = held.has(named.identity) || isCalled || (!agent.scales && isNext(named, fresh, held, input))
  const cause = named.mode === 'always' ? 'named-always' : busy ? 'work' : undefined
  if (cause === undefined) return
  if (session === undefined) {
    // The name may be taken by a session that somebody made by hand.
    create.push({ agent, origin: 'named', named: named.identity, name: named.identity, cause })
  } else if (wants.get(session.id) === AS_DESIRED) wants.set(session.id, { run: 'yes', cause })
}

/** Whether work for the agent is this session's to do: who holds some has that, and the rest is for the others in turn. */
function isNext(named: NamedView, fresh: number, held: ReadonlySet<string>, input: DesireInput): boolean {
  if (fresh === 0) return false
  const all = input.config.named_sessions.filter((one) => one.agent === named.agent && !one.disabled)
  const isActive = ({ identity }: NamedView) =>
    input.sessions.some((one) => one.named === identity && one.state === 'active')
  const rank = (one: NamedView) => (held.has(one.identity) ? 0 : one.mode === 'always' || isActive(one) ? 1 : 2)
  const busy = all.filter((one) => held.has(one.identity)).length
  return all.toSorted((a, b) => rank(a) - rank(b)).indexOf(named) < busy + fresh
}

/** An agent whose work its named sessions do. */
const isNamedOnly = (config: SessionsView, agent: AgentView): boolean =>
  !agent.scales && config.named_sessions.some((one) => one.agent === agent.identity)

function planAgent(agent: AgentView, input: DesireInput, wants: Map<string, Want>, create: Wanted[]): void {
  const instances = input.sessions.filter((one) => one.pool === agent.identity && one.origin === 'ephemeral')
  if (!mayRun(agent, input)) return
  const { fresh, held } = input.demand(agent)
  const holding = instances.filter((one) => held.has(one.agent))
  const room = agent.scales ? capOf(agent, input) : Math.min(1, capOf(agent, input))
  const target = Math.min(Math.max(holding.length + fresh, agent.min_active_sessions), room)
  // Who holds work goes first, then who runs already, then the oldest.
  const rank = (one: SessionRecord) =>
    holding.includes(one) ? 0 : one.state === 'active' ? 1 : countsTowardCaps(one.state) ? 2 : 3
  const ordered = [...instances].sort((a, b) => rank(a) - rank(b) || a.created_at - b.created_at)
  for (const [index, one] of ordered.entries()) {
    if (wants.get(one.id) !== AS_DESIRED) continue
    if (index < target) wants.set(one.id, { run: 'yes', cause: holding.includes(one) ? 'work' : 'scale-demand' })
    else if (!input.kept(one) && !one.pinned && !input.spokenTo(one))
      wants.set(one.id, { run: 'no', reason: 'no-wake-reason', end: 'closed' })
  }
  const names = freeNames(agent, instances, input.namepool(agent))
  for (let missing = target - instances.length; missing > 0; missing--) {
    const name = names.next().value
    if (name === undefined) break
    create.push({ agent, origin: 'ephemeral', name, cause: fresh > 0 ? 'scale-demand' : 'min-active' })
  }
}

/** Names of instances that nobody has: of the pool's file, else `<agent>-1`, `<agent>-2`, …; a lone agent has its own. */
function* freeNames(
  agent: AgentView,
  instances: readonly SessionRecord[],
  pool: readonly string[],
): Generator<string, undefined> {
  const taken = new Set(instances.map((one) => one.agent))
  const prefix = agent.dir === '' ? '' : `${agent.dir}/`
  const named = pool.length > 0 ? pool.map((name) => `${prefix}${name}`) : agent.scales ? undefined : [agent.identity]
  for (const name of named ?? []) if (!taken.has(name)) yield name
  for (let n = 1; named === undefined; n++) if (!taken.has(`${agent.identity}-${n}`)) yield `${agent.identity}-${n}`
  return undefined
}

/** The smallest limit of agent, rig and city; no limit is a limit of 1,000. */
function capOf(agent: AgentView, { config }: DesireInput): number {
  return Math.min(...limitsOf(config, agent).map(({ limit }) => limit), 1_000)
}

interface Limit {
  readonly of: string
  readonly limit: number
  readonly applies: (session: SessionRecord) => boolean
}

function limitsOf(config: SessionsView, agent: AgentView | undefined): readonly Limit[] {
  const limits: Limit[] = []
  const add = (of: string, limit: number | undefined, applies: Limit['applies']) => {
    if (limit !== undefined && limit >= 0) limits.push({ of, limit, applies })
  }
  add('the city', config.workspace.max_active_sessions, () => true)
  if (agent === undefined) return limits
  add(`the agent ${agent.identity}`, agent.max_active_sessions, (one) => one.template === agent.identity)
  if (agent.dir !== '')
    add(`the rig ${agent.dir}`, rigOf(config, agent.dir)?.max_active_sessions, (one) => one.rig === agent.dir)
  return limits
}

/** Which limit keeps one more session from starting; undefined: none. Earlier ones go first. */
export function limitReached(
  config: SessionsView,
  session: Pick<SessionRecord, 'id' | 'template' | 'created_at'>,
  open: readonly SessionRecord[],
): string | undefined {
  const before = (one: SessionRecord) =>
    one.id !== session.id &&
    countsTowardCaps(one.state) &&
    (one.state !== 'start-pending' || one.created_at < session.created_at)
  const counting = open.filter(before)
  return limitsOf(config, findAgent(config, session.template)).find(
    ({ limit, applies }) => counting.filter(applies).length >= limit,
  )?.of
}

/** Agents that this one waits for: they are wanted and do not run yet. */
export function missingDependencies(
  agent: AgentView | undefined,
  open: readonly SessionRecord[],
  wants: ReadonlyMap<string, Want>,
): readonly string[] {
  return (agent?.dependencies ?? []).filter((identity) => {
    const sessions = open.filter((one) => one.template === identity)
    if (sessions.some(({ state }) => state === 'active')) return false
    return sessions.some(
      (one) =>
        one.state === 'start-pending' ||
        one.state === 'creating' ||
        (wants.get(one.id)?.run === 'yes' && one.state !== 'suspended'),
    )
  })
}
