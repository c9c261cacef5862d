/** Secrets in configured things, as the API shows them and takes them back: what is secret, the schema says. */
import { shapeOf } from '../contract/base/config-shape.ts'
import { MASK } from '../contract/base/merge-patch.ts'
import type { Schema } from '../contract/base/schema.ts'
import { invalidField } from '../kernel/problem.ts'
import { isPlainList, type PlainTable, type PlainValue } from './toml.ts'

/** A reference to a variable is no secret: it names where the secret is. */
const isReference = (value: unknown): boolean => /^\$\{?[A-Z_][A-Z0-9_]*\}?$/.test(String(value))

/** `value` with everything masked, at any depth, that its schema calls secret; keys called `env` too where it says nothing. */
export function masked(value: PlainValue, schema: Schema | undefined): PlainValue {
  return walked(value, undefined, schema, '', (secret) => (isReference(secret) ? secret : MASK))
}

/** A copy of a thing with its secrets masked. */
export function maskedCopy<T extends object>(thing: T, schema: Schema): T {
  const copy: T = JSON.parse(JSON.stringify(masked(JSON.parse(JSON.stringify(thing)), schema)))
  return copy
}

/** `wanted` with the stored secret wherever it says the mask: so what was read can be sent back. */
export function unmasked(stored: PlainTable, wanted: PlainTable, schema: Schema): PlainTable {
  const values = walked(wanted, stored, schema, 'body', (secret, before, at) => {
    if (secret !== MASK) return secret
    if (before === undefined) throw invalidField(at, 'the mask stands for a stored value, and there is none', MASK)
    return before
  })
  return typeof values === 'object' && !isPlainList(values) ? values : wanted
}

type OnSecret = (secret: PlainValue, stored: PlainValue | undefined, at: string) => PlainValue

/** A copy in which every secret is what `onSecret` says. */
function walked(
  value: PlainValue,
  stored: PlainValue | undefined,
  schema: Schema | undefined,
  at: string,
  onSecret: OnSecret,
  hidden = false,
): PlainValue {
  const shape = schema === undefined ? undefined : shapeOf(schema)
  const secret = hidden || shape?.annotation.secret === true
  if (typeof value !== 'object') return secret ? onSecret(value, stored, at) : value
  if (isPlainList(value)) {
    const before = stored !== undefined && isPlainList(stored) ? stored : []
    return value.map((item, index) => walked(item, before[index], shape?.item, `${at}[${index}]`, onSecret, secret))
  }
  const before = typeof stored === 'object' && !isPlainList(stored) ? stored : {}
  const entries = Object.entries(value).map(([key, child]) => {
    const known = shape?.properties[key] ?? (shape?.type === 'map' ? shape.item : undefined)
    const below = secret || (known === undefined && key === 'env')
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    return [key, walked(child, old, known, `${at}.${key}`, onSecret, below)] as const
  })
  return Object.fromEntries(entries)
}
