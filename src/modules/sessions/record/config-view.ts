/** What sessions read of a city's configuration, structurally: the composed configuration fits it. */
import type {
  AgentSettings,
  PermissionRule,
  ProviderSpec,
  Settings,
  Upstream,
} from '../../../contract/config-schema.ts'

type Deep<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : { readonly [Key in keyof Value]: Deep<Value[Key]> }

type Filled =
  | 'suspended'
  | 'attach'
  | 'restart_on_prompt_change'
  | 'min_active_sessions'
  | 'max_active_sessions'
  | 'drain_timeout'
  | 'idle_timeout'
  | 'max_session_age'
  | 'wake_mode'
  | 'provider'

export type AgentView = Deep<Omit<AgentSettings, Filled | 'scope'> & Required<Pick<AgentSettings, Filled>>> & {
  readonly identity: string
  readonly name: string
  readonly base_name: string
  /** Its rig; empty for the city. */
  readonly dir: string
  readonly config_dir: string
  /** It is a template, and its instances have names of their own: several may run, or none at all. */
  readonly scales: boolean
  readonly dependencies: readonly string[]
  readonly global_live: readonly { readonly command: string; readonly config_dir: string }[]
  readonly paths: Readonly<Record<string, string>>
  /** The import that has a say in it and is not trusted: it is not started. */
  readonly untrusted_pack?: string
}

export type ProviderView = Deep<ProviderSpec>

interface RigView {
  readonly name: string
  readonly path?: string
  readonly default_branch?: string | undefined
  readonly suspended_on_start: boolean
  readonly max_active_sessions?: number | undefined
  readonly session_sleep?: Deep<Settings['session_sleep']> | undefined
}

export interface NamedView {
  readonly identity: string
  readonly rig: string
  readonly mode: 'on_demand' | 'always'
  readonly agent?: string
  readonly disabled: boolean
}

export interface SessionsView {
  readonly revision: string
  readonly name: string
  readonly dir: string
  readonly agents: readonly AgentView[]
  readonly rigs: readonly RigView[]
  readonly named_sessions: readonly NamedView[]
  readonly providers: Readonly<Record<string, { readonly resolved: ProviderView; readonly untrusted_pack?: string }>>
  readonly upstreams: Readonly<Record<string, Deep<Upstream>>>
  readonly workspace: Deep<Settings['workspace']>
  readonly session: Deep<Settings['session']>
  readonly worktrees: Deep<Settings['worktrees']>
  readonly retention: Deep<Settings['retention']>
  readonly daemon: Deep<Settings['daemon']>
  readonly session_sleep: Deep<Settings['session_sleep']>
  readonly chat_sessions: Deep<Settings['chat_sessions']>
  /** The city's rules about tools, behind those of an agent. */
  readonly permissions: readonly Deep<PermissionRule>[]
}

export const findAgent = (config: SessionsView, identity: string): AgentView | undefined =>
  config.agents.find((agent) => agent.identity === identity)

export const rigOf = (config: SessionsView, name: string | undefined): RigView | undefined =>
  config.rigs.find((rig) => rig.name === name)

/** Why nothing may be started that an untrusted pack has a say in; undefined: it may. */
export const untrusted = (thing: { readonly untrusted_pack?: string } | undefined): string | undefined =>
  thing?.untrusted_pack === undefined
    ? undefined
    : `the pack ${thing.untrusted_pack} is not trusted: look at what it runs, then trust its commit`

/** No agent of a rig without a directory on this machine can run. */
export const isUnbound = (config: SessionsView, agent: AgentView): boolean =>
  agent.dir !== '' && rigOf(config, agent.dir)?.path === undefined
