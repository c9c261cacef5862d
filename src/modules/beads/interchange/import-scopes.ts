/** Whose ids an import takes, and what becomes of the others (decision 47). */
import { createHash } from 'node:crypto'
import type { WorkConfig } from '../work/city.ts'
import { noRig } from '../work/drafts.ts'

interface Scope {
  readonly rig: string
  readonly prefix: string
}
export interface Scopes {
  /** Whose ids are taken as they are. */
  readonly allowed: readonly Scope[]
  /** Who gets the others. */
  readonly target: Scope
}

export function scopesOf(config: WorkConfig, name: string | undefined): Scopes {
  const city: Scope = { rig: '', prefix: config.prefix }
  const rigs = config.rigs.map(({ name: rig, prefix }): Scope => ({ rig, prefix }))
  if (name === undefined) return { allowed: [city, ...rigs], target: city }
  const rig = rigs.find((one) => one.rig === name)
  if (rig === undefined) throw noRig(name, 'query.rig')
  return { allowed: [rig], target: rig }
}

/** The longest prefix that the id has; prefixes may have hyphens themselves. */
export function scopeOf(id: string, scopes: readonly Scope[]): Scope | undefined {
  const text = id.toLowerCase()
  const fitting = scopes.filter(({ prefix }) => text.startsWith(`${prefix.toLowerCase()}-`))
  return fitting.reduce<Scope | undefined>(
    (best, scope) => (best === undefined || scope.prefix.length > best.prefix.length ? scope : best),
    undefined,
  )
}

const SUFFIX = 8
/** An id of ours for one of theirs, always the same one; children stay below their parents. */
export function remapped(id: string, prefix: string): string {
  if (id.startsWith('external:')) return id
  const dot = id.indexOf('.')
  const root = dot < 0 ? id : id.slice(0, dot)
  const hash = createHash('sha256').update(root).digest().readBigUInt64BE()
  return `${prefix}-${hash.toString(36).padStart(SUFFIX, '0').slice(-SUFFIX)}${id.slice(root.length)}`
}
