/** Flags that are fields of a body or of a query, as data: what the help says and what is sent come from one row. */
import { type FlagSpec, fieldName, flagName, type Input, takesValue } from './command.ts'
import type { Context } from './context.ts'
import { readData } from './data.ts'
import { usageError } from './failure.ts'
import type { Fields } from './fields.ts'

/**
 * How the text of a flag becomes a value. `data`: itself, `@FILE` or `-`. `json`: that as JSON where it can be. `pairs`:
 * an object of KEY=VALUE. `past`, `future`: a time, or a duration before or after now. Where nothing is said: true for a
 * flag without a value, a list for a repeatable one, else the text.
 */
type Kind = 'data' | 'json' | 'number' | 'pairs' | 'past' | 'future'

export interface FieldFlag extends FlagSpec {
  readonly as?: Kind
}

/** What the flags say; what they do not say is left out. */
export async function fieldsFrom(context: Context, input: Input, flags: readonly FieldFlag[]): Promise<Fields> {
  const fields: [string, unknown][] = []
  for (const flag of flags) {
    const value = await flagValue(context, input, flag)
    if (value !== undefined) fields.push([fieldName(flag), value])
  }
  return Object.fromEntries(fields)
}

/** `fieldsFrom` these flags, as commands take it. */
export const fieldsOf =
  (flags: readonly FieldFlag[]) =>
  (context: Context, input: Input): Promise<Fields> =>
    fieldsFrom(context, input, flags)

async function flagValue(context: Context, input: Input, flag: FieldFlag): Promise<unknown> {
  const name = flagName(flag.flags)
  if (!takesValue(flag.flags)) return input.on(name) ? true : undefined
  if (flag.repeatable === true) {
    const texts = input.texts(name)
    if (texts.length === 0) return undefined
    return flag.as === 'pairs' ? Object.fromEntries(texts.map((text) => pairOf(name, text))) : texts
  }
  const text = input.text(name)
  return text === undefined ? undefined : parse(context, name, text, flag.as)
}

async function parse(context: Context, name: string, text: string, as: Kind | undefined): Promise<unknown> {
  const said = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  if (as === 'data') return readData(context.io, text, said)
  if (as === 'json') return jsonOrText(await readData(context.io, text, said))
  if (as === 'number') return parseNumber(said, text)
  if (as === 'past' || as === 'future') return parseTime(context, said, text, as)
  return text
}

function pairOf(name: string, pair: string): [string, string] {
  const equals = pair.indexOf('=')
  if (equals <= 0) throw usageError(`invalid --${name} "${pair}": expected KEY=VALUE`)
  return [pair.slice(0, equals), pair.slice(equals + 1)]
}

function parseNumber(said: string, text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw usageError(`invalid ${said} "${text}": expected a number`)
  return Number(text)
}

async function parseTime(context: Context, said: string, text: string, side: 'past' | 'future'): Promise<string> {
  const { DURATION_PATTERN, parseDurationMs } = await import('../../contract/base/durations.ts')
  if (!DURATION_PATTERN.test(text)) {
    if (Number.isNaN(Date.parse(text)))
      throw usageError(
        `invalid ${said} "${text}": expected a time such as 2026-05-01T10:00:00Z, or a duration such as 7d`,
      )
    return text
  }
  const now = context.io.clock.now()
  const distance = parseDurationMs(text)
  return new Date(side === 'past' ? now - distance : now + distance).toISOString()
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
