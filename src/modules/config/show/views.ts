/** Configuration as the API shows it: secrets masked, nothing that is not declared. */

import type { Schema } from '../../../contract/base/schema.ts'
import { cut } from '../../../contract/base/text.ts'
import type {
  ConfigCheckResult,
  ConfigExplanation,
  EffectiveConfigBody,
  RawConfigBody,
} from '../../../contract/config.ts'
import { AgentFile, CityFile, FragmentFile, PackFile, SETTINGS, SiteFile } from '../../../contract/config-schema.ts'
import { IssueList } from '../../../files/issues.ts'
import { masked } from '../../../files/mask.ts'
import { withoutMark } from '../../../files/read.ts'
import { type PlainTable, type PlainValue, plainOf, readToml } from '../../../files/toml.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { present } from '../../../kernel/present.ts'
import { problem } from '../../../kernel/problem.ts'
import { type EffectiveConfig, type EffectiveProvider, untrustedPacks } from '../compose/effective.ts'
import { issueText } from '../edit/answers.ts'
import { type CheckOutcome, errorView } from '../edit/city-config.ts'
import type { ConfigService } from '../edit/service.ts'
import { hashOf, type OwnFileKind, type OwnFiles, ownFileKind } from '../load/own-files.ts'
import { type ExplainedFields, type Explanation, explain, maskValues } from './explain.ts'

type Status = Pick<ConfigService, 'loadedAt' | 'lastError'>

export interface Surroundings {
  readonly suspended: boolean
  readonly apiUrl: string
}

function statusFields(revision: string, { loadedAt, lastError }: Status) {
  return {
    revision,
    loaded_at: isoTime(loadedAt),
    ...(lastError === undefined ? {} : { last_error: errorView(lastError) }),
  }
}

export function effectiveView(
  config: EffectiveConfig,
  status: Status,
  warnings: ConfigService['warnings'],
  { suspended, apiUrl }: Surroundings,
): EffectiveConfigBody {
  const { workspace, patches } = config
  const { lastError } = status
  return {
    view: 'effective',
    ...statusFields(config.revision, status),
    ...untrustedPacks(config),
    ...(lastError === undefined ? {} : { pending_revision: lastError.revision }),
    workspace: present({
      name: config.name,
      prefix: config.prefix,
      declared_name: workspace.name,
      declared_prefix: workspace.prefix,
      provider: workspace.provider,
      suspended,
      session_template: workspace.session_template,
      max_active_sessions: workspace.max_active_sessions,
    }),
    effective_api_url: apiUrl,
    agents: config.agents.map(({ name, dir, identity, provider, max_active_sessions, suspended: own, origin }) => ({
      name,
      dir,
      identity,
      provider,
      is_pool: max_active_sessions !== 1,
      scope: dir === '' ? 'city' : 'rig',
      suspended: own,
      origin,
    })),
    rigs: config.rigs.map(({ name, path, prefix, suspended_on_start }) =>
      present({ name, path, prefix, suspended: suspended_on_start }),
    ),
    providers: Object.fromEntries(
      Object.entries(config.providers).map(([name, provider]) => [name, providerView(provider)]),
    ),
    patches: {
      agent_count: patches.agents.length,
      rig_count: patches.rigs.length,
      provider_count: patches.providers.length,
    },
    settings: Object.fromEntries(
      Object.entries(SETTINGS).map(([key, schema]) => [key, masked(settingOf(config, key), schema)]),
    ),
    warnings: warnings.map((issue) => ({ ...issue })),
  }
}

function settingOf(config: EffectiveConfig, key: string): PlainValue {
  const value: unknown = Object.entries(config).find(([name]) => name === key)?.[1]
  return isPlainTable(value) ? value : {}
}

const isPlainTable = (value: unknown): value is PlainTable =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function providerView({ resolved }: EffectiveProvider) {
  const { display_name, command, acp_command, args, acp_args, prompt_mode, prompt_flag, ready_delay_ms, env } = resolved
  return present({
    display_name,
    command,
    acp_command,
    prompt_mode,
    prompt_flag,
    ready_delay_ms,
    args: args === undefined ? undefined : [...args],
    acp_args: acp_args === undefined ? undefined : [...acp_args],
    env: env === undefined ? undefined : maskValues(env),
  })
}

const SCHEMAS: Readonly<Record<OwnFileKind, Schema | undefined>> = {
  city: CityFile,
  pack: PackFile,
  fragment: FragmentFile,
  agent: AgentFile,
  site: SiteFile,
  lock: undefined,
}

export function rawView(revision: string, status: Status, files: OwnFiles): RawConfigBody {
  return {
    view: 'raw',
    ...statusFields(revision, status),
    files: [...files].map(([path, bytes]) => {
      const kind = ownFileKind(path) ?? 'fragment'
      return { path, kind, revision: fileRevision(bytes), ...valuesOf(path, bytes, SCHEMAS[kind]) }
    }),
  }
}

function valuesOf(
  path: string,
  bytes: Buffer,
  schema: Schema | undefined,
): { values: Record<string, unknown> } | { error: string } {
  const issues = new IssueList()
  const table = readToml(bytes.toString('utf8'), path, 'city', issues)
  const [first] = issues.errors
  if (table === undefined || first !== undefined)
    return { error: first === undefined ? 'it cannot be read' : issueText(first) }
  return { values: { ...Object(masked(plainOf(table), schema)) } }
}

/** The mark that Windows editors put before a text does not count: no answer shows it. */
export const fileRevision = (bytes: Buffer | string): string =>
  cut(hashOf(withoutMark(typeof bytes === 'string' ? bytes : bytes.toString('utf8'))), 32)

export interface ExplainFilter {
  readonly agent?: string
  readonly rig?: string
  readonly provider?: string
}

function originOf(name: string, chain: readonly string[]): 'builtin' | 'builtin+city' | 'city' {
  if (chain[0] === `builtin:${name}`) return 'builtin'
  return chain.some((link) => link.startsWith('builtin:')) ? 'builtin+city' : 'city'
}

/** `builtins` explains the presets, for providers that the city does not declare. */
export function explanationView(
  config: EffectiveConfig,
  builtins: Explanation,
  filter: ExplainFilter,
): ConfigExplanation {
  const all = explain(config)
  const declared = all.providers.map(({ name, chain, fields }) => ({
    name,
    chain: [...chain],
    fields: fieldsView(fields),
    origin: originOf(name, chain),
  }))
  const others = builtins.providers
    .filter(({ name }) => !declared.some((provider) => provider.name === name))
    .map(({ name, chain, fields }) => ({
      name,
      chain: chain.slice(1),
      fields: builtinFields(fields),
      origin: 'builtin' as const,
    }))
  const filtered = filter.agent !== undefined || filter.rig !== undefined || filter.provider !== undefined
  return {
    revision: all.revision,
    settings: filtered ? {} : fieldsView(all.settings),
    agents: chosen(all.agents, filter.agent, filtered, ({ identity }) => identity, 'agent').map(
      ({ identity, origin, fields }) => ({ identity, origin, fields: fieldsView(fields) }),
    ),
    rigs: chosen(all.rigs, filter.rig, filtered, ({ name }) => name, 'rig').map(({ name, fields }) => ({
      name,
      fields: fieldsView(fields),
    })),
    named_sessions: filtered
      ? []
      : all.named_sessions.map(({ identity, fields }) => ({ identity, fields: fieldsView(fields) })),
    providers: chosen([...declared, ...others], filter.provider, filtered, ({ name }) => name, 'provider'),
    services: filtered ? [] : all.services.map(({ name, fields }) => ({ name, fields: fieldsView(fields) })),
  }
}

function chosen<T>(
  items: readonly T[],
  wanted: string | undefined,
  filtered: boolean,
  nameOf: (item: T) => string,
  kind: string,
): T[] {
  if (!filtered) return [...items]
  if (wanted === undefined) return []
  const found = items.filter((item) => nameOf(item) === wanted)
  if (found.length === 0) throw problem('config-item-not-found', `there is no ${kind} ${wanted}`)
  return found
}

function fieldsView(fields: ExplainedFields): ConfigExplanation['settings'] {
  const entries = Object.entries(fields).map(([key, { value, file, line, column, layer, items }]) => {
    const parts = items?.map((item) => ({
      value: item.value,
      file: item.file,
      line: item.line,
      column: item.column,
      layer: item.layer,
    }))
    return [key, { value, file, line, column, layer, ...(parts === undefined ? {} : { items: parts }) }] as const
  })
  return Object.fromEntries(entries)
}

// They are read from a city made for the purpose: its `base` lines stand in no file of this one.
const builtinFields = (fields: ExplainedFields): ConfigExplanation['settings'] =>
  fieldsView(
    Object.fromEntries(Object.entries(fields).filter(([, { layer }]) => layer === 'builtin' || layer === 'default')),
  )

export function checkView({ valid, revision, issues, warnings }: CheckOutcome): ConfigCheckResult {
  return {
    valid,
    ...(valid && revision !== undefined ? { revision } : {}),
    errors: issues.map(issueText),
    warnings: warnings.map(issueText),
    issues: [
      ...issues.map((issue) => ({ severity: 'error' as const, code: 'invalid_config' as const, ...issue })),
      ...warnings.map((issue) => ({ severity: 'warning' as const, code: 'config_warning' as const, ...issue })),
    ],
  }
}
