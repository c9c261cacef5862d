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
  return walked(value, undefined, schema, '', {
    onSecret: (secret) => (isReference(secret) ? secret : MASK),
    onArgs: maskedArgs,
  })
}

/** A copy of a thing with its secrets masked. */
export function maskedCopy<T extends object>(thing: T, schema: Schema): T {
  const copy: T = JSON.parse(JSON.stringify(masked(JSON.parse(JSON.stringify(thing)), schema)))
  return copy
}

/** `wanted` with the stored secret wherever it says the mask: so what was read can be sent back. */
export function unmasked(stored: PlainTable, wanted: PlainTable, schema: Schema | undefined): PlainTable {
  const values = walked(wanted, stored, schema, 'body', {
    onSecret: (secret, before, at) => {
      if (secret !== MASK) return secret
      if (before === undefined) throw invalidField(at, 'the mask stands for a stored value, and there is none', MASK)
      return before
    },
    onArgs: (args, before = []) => {
      const shown = maskedArgs(before)
      return args.map((arg, index) => (arg === shown[index] ? (before[index] ?? arg) : arg))
    },
  })
  return typeof values === 'object' && !isPlainList(values) ? values : wanted
}

interface Handling {
  readonly onSecret: OnSecret
  readonly onArgs: (args: readonly string[], stored: readonly string[] | undefined) => readonly string[]
}

type OnSecret = (secret: PlainValue, stored: PlainValue | undefined, at: string) => PlainValue

/** Names of flags, variables and headers whose value is a secret. */
const SECRET_NAME =
  /token|secret|passw|passphrase|credential|private|auth|cookie|api[-_]?key|(?:^|[-_])(?:key|pass|pat)(?:$|[-_])/i
/** Keys whose lists are command lines. */
const COMMAND_LINES: ReadonlySet<string> = new Set(['args', 'acp_args', 'args_append', 'flag_args', 'command_args'])

/** The login in a URL, wherever one stands. */
const withoutLogin = (text: string): string => text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, `$1${MASK}@`)

/** A command line without the values of flags, variables and headers that are secrets by their names. */
export function maskedArgs(args: readonly string[]): readonly string[] {
  return args.map((arg, index) => {
    const before = args[index - 1] ?? ''
    if (/^--?[\w-]+$/.test(before) && SECRET_NAME.test(before) && !arg.startsWith('-')) return hidden(arg)
    const [, name, sign = '', value] = /^([\w.-]+)(=|:\s*)(.+)$/s.exec(arg) ?? []
    if (name !== undefined && value !== undefined && SECRET_NAME.test(name)) return `${name}${sign}${hidden(value)}`
    return withoutLogin(arg)
  })
}

/** A number is a limit, such as that of `--max-tokens`. */
const hidden = (value: string): string => (isReference(value) || /^\d+$/.test(value) ? value : MASK)

const isTexts = (value: PlainValue): value is readonly string[] =>
  typeof value === 'object' && isPlainList(value) && value.every((item) => typeof item === 'string')

/** A copy in which every secret is what `onSecret` says. */
function walked(
  value: PlainValue,
  stored: PlainValue | undefined,
  schema: Schema | undefined,
  at: string,
  handling: Handling,
  isHidden = false,
): PlainValue {
  const { onSecret, onArgs } = handling
  const shape = schema === undefined ? undefined : shapeOf(schema)
  const secret = isHidden || shape?.annotation.secret === true
  if (typeof value !== 'object') return secret ? onSecret(value, stored, at) : value
  if (isPlainList(value)) {
    const before = stored !== undefined && isPlainList(stored) ? stored : []
    return value.map((item, index) => walked(item, before[index], shape?.item, `${at}[${index}]`, handling, secret))
  }
  const before = typeof stored === 'object' && !isPlainList(stored) ? stored : {}
  const entries = Object.entries(value).map(([key, child]) => {
    if (COMMAND_LINES.has(key) && isTexts(child)) {
      const line = Object.hasOwn(before, key) ? before[key] : undefined
      return [key, onArgs(child, line !== undefined && isTexts(line) ? line : undefined)] as const
    }
    const known = shape?.properties[key] ?? (shape?.type === 'map' ? shape.item : undefined)
    const below = secret || (known === undefined && key === 'env')
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    return [key, walked(child, old, known, `${at}.${key}`, handling, below)] as const
  })
  return Object.fromEntries(entries)
}
