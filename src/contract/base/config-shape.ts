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

/** What the keys of a table say to each other. */
export interface TableRules {
  /** One of these is there, and only one. */
  readonly oneOf?: readonly string[]
  /** Where the key is, none of these is. */
  readonly excludes?: Readonly<Record<string, readonly string[]>>
  /** The key is there for the sake of another one. */
  readonly needs?: Readonly<Record<string, string>>
  /** The value of one key says which others there are, and which of them must be. */
  readonly cases?: {
    readonly of: string
    readonly keys: Readonly<Record<string, readonly string[]>>
    readonly required: Readonly<Record<string, readonly string[]>>
  }
}

export type Annotation = {
  readonly drift?: Drift
  /** Text with a form of its own. */
  readonly kind?: 'duration' | 'duration_or_off' | 'timezone' | 'path'
  readonly template?: TemplateKind
  /** Text in the language of formulas and orders. */
  readonly language?: 'template' | 'expression'
  /** `replace`: a later layer's value replaces the whole value instead of merging into it. */
  readonly merge?: 'replace'
  /** Keys that identify an element, for arrays whose elements merge. */
  readonly identity?: readonly string[]
  /** The value, or every value of the map, is shown masked. */
  readonly secret?: true
  readonly rules?: TableRules
  /** What the keys of a map may be. */
  readonly names?: { readonly pattern: string; readonly words: string }
  /** Nothing acts on it, and why: files that have it are warned of. */
  readonly inert?: string
  /** Values that an earlier version took, and what they are now. */
  readonly gone?: Gone
}

/** Refused with the hint; `now` is read in its place where a city comes up on files that were good for an earlier version. */
export type Gone = Readonly<Record<string, { readonly now: string; readonly hint: string }>>

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
  readonly maximum: number | undefined
  readonly minimumMs: number | undefined
  readonly minLength: number | undefined
  readonly maxLength: number | undefined
  readonly minItems: number | undefined
  readonly maxItems: number | undefined
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
  maximum?: number
  minimumMs?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
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
    maximum: raw.maximum,
    minimumMs: raw.minimumMs,
    minLength: raw.minLength,
    maxLength: raw.maxLength,
    minItems: raw.minItems,
    maxItems: raw.maxItems,
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
