/** Fields of a body given on the command line: one by one, or as JSON; the server says whether they make sense. */
import { isRecord } from '../../client/problems.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { usageError } from '../base/failure.ts'
import type { Io } from '../base/io.ts'
import { readNamedText } from '../base/named-files.ts'

export const setFlags: readonly FlagSpec[] = [
  {
    flags: '--set <field=value>',
    description: 'A field; dots lead into tables (env.MODE=fast). A value is JSON where it can be, else text.',
    repeatable: true,
  },
  { flags: '--data <json>', description: 'Fields as a JSON object, @FILE or -; --set goes on top.' },
]
export const unsetFlag: FlagSpec = { flags: '--unset <field>', description: 'A field to unset.', repeatable: true }
export const ifMatchFlag: FlagSpec = {
  flags: '--if-match <revision>',
  description: 'Only where the item still has this revision; exit code 5 otherwise.',
}

export type Fields = { readonly [field: string]: unknown }

/** What `--data`, `--set` and `--unset` (null) come to, over `base`. */
export async function readFields(context: Context, input: Input, base: Fields = {}): Promise<Fields> {
  const fields = new Map<string, unknown>(Object.entries({ ...base, ...(await readJson(context, input.text('data'))) }))
  for (const pair of input.texts('set')) {
    const equals = pair.indexOf('=')
    if (equals <= 0) throw usageError(`invalid --set "${pair}": expected FIELD=VALUE`)
    assign(fields, pair.slice(0, equals), jsonOrText(pair.slice(equals + 1)))
  }
  for (const field of input.texts('unset')) assign(fields, field, null)
  return Object.fromEntries(fields)
}

/** The one place where fields become a typed body or query: the server checks every one of them. */
export function bodyOf<T>(fields: Fields): T {
  const body: T = JSON.parse(JSON.stringify(fields))
  return body
}

/** `If-Match`, where `--if-match` was given. */
export function preconditionOf(input: Input): Record<string, string> {
  const revision = input.text('ifMatch')
  return revision === undefined ? {} : { 'if-match': /^(\*|(W\/)?")/.test(revision) ? revision : `"${revision}"` }
}

/** Data given on the command line: itself, `@FILE`, or `-` for stdin. */
export async function readData(io: Io, source: string): Promise<string> {
  if (source === '-' || source === '@-') return io.stdin.readAll()
  if (!source.startsWith('@')) return source
  return readNamedText(io, source.slice(1))
}

/** Words of a sentence, or `-` for stdin. */
export const readWords = async (io: Io, words: readonly string[]): Promise<string> =>
  words.length === 1 && words[0] === '-' ? io.stdin.readAll() : words.join(' ')

async function readJson(context: Context, source: string | undefined): Promise<Fields> {
  if (source === undefined) return {}
  const value = parsed(await readData(context.io, source))
  if (!isRecord(value)) throw usageError('invalid --data: expected a JSON object, @FILE or -')
  return value
}

function assign(fields: Map<string, unknown>, path: string, value: unknown): void {
  const [first = '', ...rest] = path.split('.')
  if (rest.length === 0) {
    fields.set(first, value)
    return
  }
  const below = fields.get(first)
  const inner = new Map<string, unknown>(Object.entries(isRecord(below) ? below : {}))
  assign(inner, rest.join('.'), value)
  fields.set(first, Object.fromEntries(inner))
}

export const jsonOrText = (text: string): unknown => parsed(text) ?? (text === 'null' ? null : text)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
