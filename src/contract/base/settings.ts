/** Builders for the schemas of files that people write: kinds of values with the annotations that the checks read. */
import type { Annotation } from './config-shape.ts'
import { array, boolean, integer, number, object, raw, record, type Schema, string } from './schema.ts'

type TextOptions = Annotation & {
  pattern?: string
  default?: string
  description?: string
  minLength?: number
  maxLength?: number
}

export function text(options: TextOptions = {}) {
  const { pattern, default: preset, description, minLength, maxLength, ...annotation } = options
  return string({ ...given({ pattern, default: preset, description, minLength, maxLength }), ...note(annotation) })
}

export function flag(options: Annotation & { default?: boolean } = {}) {
  const { default: preset, ...annotation } = options
  return boolean({ ...given({ default: preset }), ...note(annotation) })
}

export function whole(options: Annotation & { minimum?: number; maximum?: number; default?: number } = {}) {
  const { minimum = 0, maximum, default: preset, ...annotation } = options
  return integer({ minimum, ...given({ maximum, default: preset }), ...note(annotation) })
}

export function amount(options: Annotation = {}) {
  return number({ minimum: 0, ...note(options) })
}

type DurationOptions = Annotation & { default?: string; off?: boolean; minimumMs?: number; minLength?: number }

/** A duration as text. An empty string means the default, so the loader drops it; with `minLength` it is refused. */
export function duration(options: DurationOptions = {}) {
  const { default: preset, off, minimumMs, minLength, ...annotation } = options
  const kind = off === true ? 'duration_or_off' : 'duration'
  return string({ ...given({ default: preset, minimumMs, minLength }), ...note({ ...annotation, kind }) })
}

export function oneOf<const Values extends readonly string[]>(
  values: Values,
  options: Annotation & { default?: Values[number] } = {},
) {
  const { default: preset, ...annotation } = options
  return raw<Values[number]>({
    type: 'string',
    enum: [...values],
    ...given({ default: preset }),
    ...note(annotation),
  })
}

type ListOptions = Annotation & { default?: []; minItems?: number; maxItems?: number }

export function list<Item extends Schema>(item: Item, options: ListOptions = {}) {
  const { default: preset, minItems, maxItems, ...annotation } = options
  return array(item, { ...given({ default: preset, minItems, maxItems }), ...note(annotation) })
}

export function texts(options: ListOptions = {}) {
  return list(string(), options)
}

export function map<Value extends Schema>(value: Value, options: Annotation = {}) {
  return record(value, note(options))
}

export function table<Fields extends Record<string, Schema>>(fields: Fields, options: Annotation = {}) {
  return object(fields, note(options))
}

export function note(annotation: Annotation): { 'x-svc'?: Annotation } {
  return Object.keys(annotation).length === 0 ? {} : { 'x-svc': annotation }
}

function given(options: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
