/** What the walkers of this folder read from a schema: its kind, its limits, and our annotations. */
import type { Schema } from './schema.ts'

/** What a changed field does to a running session, weakest first. */
export const DRIFTS = ['none', 'start', 'live', 'reapply', 'launch', 'provision'] as const
/**
 * - `none`: no session is concerned; `start`: only sessions started later see it
 * - `live`: the reconciler and the queues use it from the next tick; `reapply`: live commands run again
 * - `launch`: drain and relaunch in the same work directory; `provision`: drain, rebuild the work directory, relaunch
 */
export type Drift = (typeof DRIFTS)[number]

/** Variables that a template field may use: a prompt, a command, a path or query, a session name, a resume command. */
export type TemplateKind = 'command' | 'path' | 'session' | 'resume'

export type Annotation = {
  readonly drift?: Drift
  /** Text with a form of its own. */
  readonly kind?: 'duration' | 'duration_or_off' | 'timezone' | 'path'
  readonly template?: TemplateKind
  /** `replace`: a later layer's value replaces the whole value instead of merging into it. */
  readonly merge?: 'replace'
  /** Keys that identify an element, for arrays whose elements merge. */
  readonly identity?: readonly string[]
  /** The value, or every value of the map, is shown masked. */
  readonly secret?: true
  /** Nothing acts on it, and why: files that have it are warned of. */
  readonly inert?: string
}

/** What the loader, the reference and editors say of a setting that nothing acts on. */
export const noEffect = (inert: string): string => `has no effect: ${inert}`

/** What the walkers need to know of a schema. */
export type Shape = {
  /** A `list` whose `scalars` have more than `array` may be one of those instead. */
  readonly type: 'table' | 'map' | 'list' | 'scalar'
  readonly properties: Readonly<Record<string, Schema>>
  readonly required: readonly string[]
  /** The schema of every value of a map or element of a list. */
  readonly item: Schema | undefined
  readonly scalars: readonly string[]
  readonly values: readonly string[] | undefined
  readonly pattern: RegExp | undefined
  readonly minimum: number | undefined
  readonly minimumMs: number | undefined
  readonly minLength: number | undefined
  readonly preset: unknown
  readonly description: string | undefined
  readonly annotation: Annotation
}

const shapes = new WeakMap<Schema, Shape>()

/** The shape of a schema, computed once. */
export function shapeOf(schema: Schema): Shape {
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const shape = readShape(schema as RawSchema)
  shapes.set(schema, shape)
  return shape
}

// The one cast from a schema to the JSON Schema keywords used above.
type RawSchema = {
  type?: string | string[]
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  required?: string[]
  items?: Schema
  enum?: string[]
  pattern?: string
  minimum?: number
  minimumMs?: number
  minLength?: number
  default?: unknown
  description?: string
  'x-svc'?: Annotation
}

function readShape(raw: RawSchema): Shape {
  const types = typeof raw.type === 'string' ? [raw.type] : (raw.type ?? [])
  const values = typeof raw.additionalProperties === 'object' ? raw.additionalProperties : undefined
  const item = raw.items ?? values
  const type =
    raw.properties !== undefined ? 'table' : values !== undefined ? 'map' : types[0] === 'array' ? 'list' : 'scalar'
  return {
    type,
    properties: raw.properties ?? {},
    required: raw.required ?? [],
    item,
    scalars: types,
    values: raw.enum,
    pattern: raw.pattern === undefined ? undefined : new RegExp(raw.pattern),
    minimum: raw.minimum,
    minimumMs: raw.minimumMs,
    minLength: raw.minLength,
    preset: raw.default,
    description: raw.description,
    annotation: raw['x-svc'] ?? {},
  }
}

/** Whether a field is a list and nothing else. */
export function isList(schema: Schema): boolean {
  const { type, scalars } = shapeOf(schema)
  return type === 'list' && scalars.length === 1
}

/** Whether a field is a map with free keys. */
export function isMap(schema: Schema): boolean {
  return shapeOf(schema).type === 'map'
}
