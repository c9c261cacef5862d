/** The first record of a session, from what was asked for and what is configured. Pure. */
import type { Isolation, RuntimeName, SessionResponse } from '../../../contract/sessions/session-model.ts'
import { type AgentView, findAgent, type SessionsView } from '../record/config-view.ts'
import { runtimeName } from '../record/names.ts'
import { newRecord, type SessionRecord } from '../record/record.ts'
import { workDirOf } from './launch.ts'

/** Where nothing says which. */
export const DEFAULT_RUNTIME: RuntimeName = 'subprocess'

export interface NewSession {
  readonly kind: SessionResponse['kind']
  readonly template: string
  readonly origin: SessionResponse['origin']
  readonly named?: string
  readonly pool?: string
  /** Who owns its work; the session itself where absent. */
  readonly owner?: string
  readonly alias?: string
  readonly title?: string
  /** What it will be told first. */
  readonly message?: string
  readonly runtime?: RuntimeName
  readonly workDir?: string
  readonly projectId?: string
  readonly isolation?: Isolation
  readonly options?: Readonly<Record<string, string>>
  readonly metadata?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  /** The conversation that it begins with. */
  readonly forkOf?: string
  /** Why it is made. */
  readonly cause: string
  /** `asleep`: it is there, and started by what comes. */
  readonly state?: 'start-pending' | 'asleep'
}

export interface NewSessionContext {
  readonly config: SessionsView
  readonly now: number
  readonly render: (template: string, values: Readonly<Record<string, string>>) => string
}

export function newSession(id: string, draft: NewSession, context: NewSessionContext): SessionRecord {
  const { config, now, render } = context
  const agent = draft.kind === 'agent' ? findAgent(config, draft.template) : undefined
  const owner = draft.owner ?? agentName(draft, id)
  const state = draft.state ?? 'start-pending'
  return newRecord({
    id,
    kind: draft.kind,
    template: draft.template,
    origin: draft.origin,
    named: draft.named,
    pool: draft.pool,
    agent: owner,
    title: titleOf(draft),
    alias: draft.alias,
    session_name: sessionName(id, draft, agent, config, render),
    provider: agent?.provider ?? draft.template,
    runtime: draft.runtime ?? agent?.session ?? (config.session.provider || DEFAULT_RUNTIME),
    rig: agent === undefined || agent.dir === '' ? undefined : agent.dir,
    work_dir: draft.workDir ?? safeWorkDir(config, owner, agent, render),
    project_id: draft.projectId,
    isolation: draft.isolation,
    options: draft.options,
    metadata: draft.metadata,
    titled: draft.title !== undefined,
    env: draft.env,
    fork_of: draft.forkOf,
    state,
    desired: state === 'asleep' ? 'asleep' : 'running',
    reason: state === 'start-pending' ? draft.cause : undefined,
    state_since: now,
    created_at: now,
    updated_at: now,
  })
}

const TITLE_CHARACTERS = 80

/** For people: what was said, else what it is called. */
function titleOf({ title, message, alias, owner, template }: NewSession): string {
  const line =
    message
      ?.trim()
      .split(/[\r\n]/)[0]
      ?.trim() ?? ''
  // By code points: half a character is none.
  const said = [...line].slice(0, TITLE_CHARACTERS).join('')
  return [title, said, alias, owner].find((one) => one !== undefined && one !== '') ?? template
}

/** A session of a caller's own works under its agent's name with an id of its own: several may run beside each other. */
function agentName({ kind, template }: NewSession, id: string): string {
  return kind === 'provider' ? id : `${template}-adhoc-${id.slice(2, 12)}`
}

/** The name at the runtime: by the configured template for what is configured, else from the id. */
function sessionName(
  id: string,
  { named, pool, owner }: NewSession,
  agent: AgentView | undefined,
  config: SessionsView,
  render: NewSessionContext['render'],
): string {
  if (agent === undefined || owner === undefined || (named === undefined && pool === undefined)) return id
  const template = agent.session_alias ?? config.workspace.session_template ?? '{{ Agent }}'
  const names = {
    City: runtimeName(config.name),
    Agent: runtimeName(owner),
    Dir: runtimeName(agent.dir),
    Name: runtimeName(agent.base_name),
  }
  try {
    const rendered = render(template, names)
    // A template that leaves the agent out would give several sessions one name.
    return rendered.includes(names.Agent) && /^[A-Za-z0-9_-]{1,120}$/.test(rendered) ? rendered : names.Agent
  } catch {
    return names.Agent
  }
}

/** For people to see; a template that cannot be rendered is the start's to report. */
function safeWorkDir(
  config: SessionsView,
  owner: string,
  agent: AgentView | undefined,
  render: NewSessionContext['render'],
): string | undefined {
  try {
    return workDirOf(config, owner, agent, render)
  } catch {
    return undefined
  }
}
