/** What an agent looks like from outside: its definition and what its sessions do (sheet 04 §1.5). */

import type { AgentResponse } from '../../contract/agents.ts'
import { AgentFile } from '../../contract/config-schema.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import { maskedCopy } from '../../files/mask.ts'
import { present } from '../../kernel/present.ts'
import { type AgentFiles, type AgentsView, type AgentView, agentRevision } from './definitions.ts'

/** After this long without output, work in progress is `waiting`. */
const QUIET_MS = 10 * 60_000

export interface Surroundings<View> {
  readonly files: AgentFiles<View>
  readonly config: View
  /** Open sessions of the city. */
  readonly sessions: readonly SessionResponse[]
  /** Work that waits for the agent, as last counted. */
  readonly demand: (identity: string) => number | undefined
  /** False: its program is not installed. */
  readonly installed: (command: string) => boolean | undefined
  readonly now: number
  readonly observedAt: string
}

/** The agent, then its instances by name where it has several sessions. */
export function agentRows<View extends AgentsView>(around: Surroundings<View>, agent: AgentView): AgentResponse[] {
  const own = around.sessions.filter(({ template }) => template === agent.identity)
  // The one that works under the agent's own name is the agent; others are instances of it.
  const itself = own.find((session) => session.agent === agent.identity) ?? only(agent, own)
  const instances = own
    .filter((session) => session !== itself)
    .sort((a, b) => (a.agent < b.agent ? -1 : 1))
    .map((session) => ({
      ...agentRow(around, agent, [session], session),
      name: session.agent,
      pool: agent.identity,
    }))
  return [agentRow(around, agent, own, itself), ...instances]
}

/** Whether a row stands behind a place in the list, which is an agent and an instance of it; empty: the agent itself. */
export function isBehind({ name, pool }: AgentResponse, [agent, instance]: readonly [string, string]): boolean {
  const own = pool ?? name
  return own > agent || (own === agent && (pool === undefined ? '' : name) > instance)
}

/** The place of a row in the list. */
export const placeOf = ({ name, pool }: AgentResponse): readonly [string, string] =>
  pool === undefined ? [name, ''] : [pool, name]

const only = (agent: AgentView, own: readonly SessionResponse[]): SessionResponse | undefined =>
  own.length === 1 && agent.max_active_sessions === 1 ? own[0] : undefined

function agentRow<View extends AgentsView>(
  around: Surroundings<View>,
  agent: AgentView,
  sessions: readonly SessionResponse[],
  session: SessionResponse | undefined,
): AgentResponse {
  const { files, config } = around
  const declared = files.declaration(config, agent.identity)
  const provider = config.providers[agent.provider]?.resolved
  return {
    name: agent.identity,
    ...present({
      description: agent.description,
      provider: agent.provider === '' ? undefined : agent.provider,
      display_name: provider?.display_name,
      rig: agent.dir === '' ? undefined : agent.dir,
    }),
    running: sessions.some(({ running }) => running),
    suspended: agent.suspended,
    state: stateOf(agent, sessions, around.now),
    observed_at: around.observedAt,
    ...availability(around, agent),
    ...(session === undefined ? {} : sessionFacts(session)),
    sessions: sessions.length,
    min_active_sessions: agent.min_active_sessions,
    max_active_sessions: agent.max_active_sessions,
    ...present({ demand: around.demand(agent.identity) }),
    pack_derived: declared?.pack !== undefined,
    ...present({ pack: declared?.pack, file: declared?.file }),
    ...(declared === undefined || declared.line === 0 ? {} : { line: declared.line }),
    revision: agentRevision(files, config, agent.identity),
  }
}

/** The agent with what its own file says. */
export function agentDetail<View extends AgentsView>(around: Surroundings<View>, agent: AgentView): AgentResponse {
  const own = around.sessions.filter(({ template }) => template === agent.identity)
  const row = agentRow(around, agent, own, own.length === 1 ? own[0] : undefined)
  const declared = around.files.declaration(around.config, agent.identity)
  const definition: AgentResponse['definition'] = maskedCopy(declared?.fields ?? {}, AgentFile)
  return { ...row, ...(definition === undefined ? {} : { definition }) }
}

/** An open instance of an agent, by its own name. */
export function agentInstance<View extends AgentsView>(
  around: Surroundings<View>,
  name: string,
): AgentResponse | undefined {
  const { agents } = around.config
  if (agents.some(({ identity }) => identity === name)) return undefined
  const template = around.sessions.find((session) => session.agent === name)?.template
  const agent = agents.find(({ identity }) => identity === template)
  return agent === undefined ? undefined : agentRows(around, agent).find((row) => row.name === name)
}

function sessionFacts(session: SessionResponse): Partial<AgentResponse> {
  const { active_bead, activity, model, context_pct, context_window, last_output, last_active } = session
  return {
    session: {
      id: session.id,
      name: session.session_name,
      state: session.state,
      ...(last_active === undefined ? {} : { last_activity: last_active }),
      attached: session.attached,
      ...(session.last_exit === undefined ? {} : { last_exit: session.last_exit }),
    },
    ...present({ active_bead, activity, model, context_pct, context_window, last_output }),
  }
}

/** `suspended` › `needs_answer` › `quarantined`, `starting`, `stopped` › `working`, `waiting` › `idle`: the first that holds. */
export function stateOf(
  agent: Pick<AgentView, 'suspended'>,
  sessions: readonly Pick<
    SessionResponse,
    'state' | 'running' | 'active_bead' | 'last_active' | 'activity' | 'pending'
  >[],
  now: number,
): AgentResponse['state'] {
  if (agent.suspended) return 'suspended'
  if (sessions.some(({ pending }) => pending !== undefined)) return 'needs_answer'
  const running = sessions.filter((session) => session.running)
  if (running.length === 0) return withoutProcess(sessions)
  if (running.some(({ activity }) => activity === 'in-turn')) return 'working'
  const busy = running.filter(({ active_bead }) => active_bead !== undefined)
  if (busy.length === 0) return 'idle'
  const quiet = busy.every(({ last_active }) => last_active === undefined || now - Date.parse(last_active) >= QUIET_MS)
  return quiet ? 'waiting' : 'working'
}

const STARTING: ReadonlySet<SessionResponse['state']> = new Set(['start-pending', 'creating'])

function withoutProcess(sessions: readonly Pick<SessionResponse, 'state'>[]): AgentResponse['state'] {
  if (sessions.some(({ state }) => state === 'quarantined')) return 'quarantined'
  return sessions.some(({ state }) => STARTING.has(state)) ? 'starting' : 'stopped'
}

type Availability = Pick<AgentResponse, 'available' | 'unavailable_reason'>
const unavailable = (why: string): Availability => ({ available: false, unavailable_reason: why })

function availability<View extends AgentsView>(around: Surroundings<View>, agent: AgentView): Availability {
  if (agent.suspended) return unavailable('suspended')
  if (agent.untrusted_pack !== undefined) return unavailable('untrusted_pack')
  const resolved = around.config.providers[agent.provider]?.resolved
  const command = resolved?.path_check ?? resolved?.command
  // A command of its own is a line for a shell, and a variable is only known at the start.
  if (agent.start_command !== undefined || command === undefined || command.startsWith('$')) return { available: true }
  const installed = around.installed(command)
  if (installed === undefined) return {}
  return installed ? { available: true } : unavailable(`${command} is not installed`)
}
