/** What a change of configuration means for running sessions, from the class that the schema declares for each field. */
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DRIFTS, type Drift, shapeOf } from '../../../contract/base/config-shape.ts'
import type { Schema } from '../../../contract/base/schema.ts'
import { AGENT_FIELDS, Provider, SETTINGS } from '../../../contract/config-schema.ts'
import type { EffectiveAgent, EffectiveConfig } from './effective.ts'

export type DriftReport = {
  /** The strongest class among the changed fields. */
  readonly drift: Drift
  /** Changed fields: of the agent by name, of its provider as `provider.x`, of the workspace as `workspace.x`. */
  readonly fields: readonly string[]
}

/** Hashes of what an agent's sessions were started with; a session keeps them to compare after a reload or restart. */
export type Fingerprints = { readonly reapply: string; readonly launch: string; readonly provision: string }

/** How `after` differs from `before` for the agent's sessions; undefined when either has no such agent. */
export function agentDrift(before: EffectiveConfig, after: EffectiveConfig, identity: string): DriftReport | undefined {
  const old = fieldsOf(before, identity)
  const now = fieldsOf(after, identity)
  if (old === undefined || now === undefined) return undefined
  const changed = [...new Set([...old.keys(), ...now.keys()])].filter(
    (key) => !isDeepStrictEqual(old.get(key)?.value, now.get(key)?.value),
  )
  const ranks = changed.map((key) => DRIFTS.indexOf((now.get(key) ?? old.get(key))?.drift ?? 'none'))
  return { drift: DRIFTS[Math.max(0, ...ranks)] ?? 'none', fields: changed.sort() }
}

/** What is known of one configuration for this: itself, and a hash of each agent's prompt. */
export type DriftInput = {
  readonly config: EffectiveConfig
  readonly facts: { readonly prompts: ReadonlyMap<string, string> }
}

/** Every agent of both configurations whose sessions are concerned, by identity: what the reconciler of sessions reads. */
export function driftOf(before: DriftInput, after: DriftInput): ReadonlyMap<string, DriftReport> {
  const reports = after.config.agents.flatMap((agent) => {
    const { identity } = agent
    const report = agentDrift(before.config, after.config, identity)
    if (report === undefined) return []
    const reworded = before.facts.prompts.get(identity) !== after.facts.prompts.get(identity)
    const whole = reworded ? withPrompt(report, agent.restart_on_prompt_change) : report
    return whole.fields.length === 0 ? [] : [[identity, whole] as const]
  })
  return new Map(reports)
}

function withPrompt({ drift, fields }: DriftReport, restart: boolean): DriftReport {
  const own: Drift = restart ? 'launch' : 'start'
  const drifts: readonly Drift[] = [drift, own]
  return { drift: DRIFTS.findLast((one) => drifts.includes(one)) ?? own, fields: [...fields, 'prompt'].sort() }
}

/** The fingerprints of an agent as configured; its prompt's hash is the renderer's business. */
export function fingerprintsOf(config: EffectiveConfig, agent: EffectiveAgent): Fingerprints {
  const fields = fieldsOf(config, agent.identity) ?? new Map<string, Field>()
  const hash = (drift: Drift): string => {
    const values = [...fields].filter(([, field]) => field.drift === drift).sort(([a], [b]) => (a < b ? -1 : 1))
    return createHash('sha256')
      .update(JSON.stringify(values.map(([key, field]) => [key, canonical(field.value)])))
      .digest('hex')
  }
  return { reapply: hash('reapply'), launch: hash('launch'), provision: hash('provision') }
}

type Field = { readonly drift: Drift; readonly value: unknown }

function fieldsOf(config: EffectiveConfig, identity: string): Map<string, Field> | undefined {
  const agent = config.agents.find((each) => each.identity === identity)
  if (agent === undefined) return undefined
  const fields = new Map<string, Field>()
  collect(fields, '', agent, AGENT_FIELDS)
  collect(fields, 'provider.', config.providers[agent.provider]?.resolved ?? {}, Provider.properties)
  collect(fields, 'workspace.', config.workspace, WORKSPACE)
  fields.set('fragments', { drift: 'launch', value: agent.fragments })
  fields.set('global_live', { drift: 'reapply', value: agent.global_live })
  return fields
}

// What reaches an agent through its own fields already (provider, limits) is not counted twice.
const { env, session_template } = SETTINGS.workspace.properties
const WORKSPACE = { env, session_template }

function collect(
  into: Map<string, Field>,
  prefix: string,
  values: object,
  schemas: Readonly<Record<string, Schema>>,
): void {
  const byName = new Map(Object.entries(values))
  for (const [key, schema] of Object.entries(schemas)) {
    const { drift } = shapeOf(schema).annotation
    if (drift !== undefined && byName.has(key)) into.set(prefix + key, { drift, value: byName.get(key) })
  }
}

// Maps mean the same in any order of keys; lists do not.
function canonical(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(canonical)
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, child]) => [key, canonical(child)])
}
