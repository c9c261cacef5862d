/** Fields of an operation as flags: how each is spelled, and how its text becomes a value. */
import { isRecord } from '../../client/problems.ts'
import { type Completed, type FlagSpec, flagName, type Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { usageError } from '../base/failure.ts'
import { type Fields, jsonOrText, readData } from './fields.ts'
import type { FieldKind, FieldRow } from './table.ts'

export interface FieldFlag extends FlagSpec {
  readonly field: string
  readonly row: FieldRow
}

export interface FieldWords {
  readonly spelling?: string | undefined
  readonly says?: string | undefined
  /** A switch that is set for good, so that it can be set to no as well. */
  readonly isSetting: boolean
  readonly complete?: Completed | undefined
}

/** What the value is called in the help. */
const VALUES: Partial<Readonly<Record<FieldKind, string>>> = {
  int: '<n>',
  time: '<time>',
  duration: '<duration>',
  map: '<key=value>',
  values: '<key=value>',
  json: '<json>',
  object: '<json>',
}
const HOW: Partial<Readonly<Record<FieldKind, string>>> = {
  words: '@FILE or - reads it.',
  json: 'JSON or text, @FILE or -.',
  object: 'JSON, @FILE or -.',
  time: 'A time, or a duration from now: 7d.',
}
/** Fields of these names hold such values in every operation. */
const COMPLETED: Readonly<Record<string, Completed>> = {
  rig: 'rig',
  parent: 'bead',
  needs: 'bead',
  template: 'agent',
  pool: 'agent',
  routed_to: 'agent',
  work_dir: 'file',
}

/** The flag of a field; a switch has a second one that says no. */
export function flagsOfField(field: string, row: FieldRow, words: FieldWords): readonly [FieldFlag, ...FlagSpec[]] {
  const { spelling = '' } = words
  const short = /(?<!\S)-[a-zA-Z]\b/.exec(spelling)?.[0]
  const long = /--[a-z-]+/.exec(spelling)?.[0] ?? `--${wordOf(field)}`
  const value = row.kind === 'bool' ? '' : ` ${VALUES[row.kind] ?? `<${long.slice(2)}>`}`
  const other = long.startsWith('--no-') ? long.replace('--no-', '--') : long.replace('--', '--no-')
  const how = row.kind === 'bool' && words.isSetting ? `${other} says no.` : HOW[row.kind]
  const said = (words.says ?? row.says)?.replace(/^True: (.)/, (_, letter: string) => letter.toUpperCase())
  const description = [said, how].filter(Boolean).join(' ')
  const complete = words.complete ?? COMPLETED[field]
  const flag: FieldFlag = {
    flags: `${short === undefined ? '' : `${short}, `}${long}${value}`,
    field,
    row,
    description,
    ...(row.choices === undefined ? {} : { choices: row.choices }),
    ...(isRepeated(row) ? { repeatable: true } : {}),
    ...(complete === undefined ? {} : { complete }),
  }
  if (row.kind !== 'bool') return [flag]
  return [flag, { flags: other, field, hidden: true }]
}

/** `created_before` → `created-before`, `dependsOnId` → `depends-on-id`. */
export const wordOf = (field: string): string =>
  field
    .replaceAll(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`)
    .replaceAll('_', '-')
    .replace(/^-/, '')

const isRepeated = ({ many, kind }: FieldRow): boolean => many === true || kind === 'map' || kind === 'values'

/** What the flags say; what they do not say is left out. */
export async function fieldsFrom(context: Context, input: Input, flags: readonly FieldFlag[]): Promise<Fields> {
  const fields: [string, unknown][] = []
  for (const flag of flags) {
    const value = await flagValue(context, input, flag)
    if (value !== undefined) fields.push([flag.field, value])
  }
  return Object.fromEntries(fields)
}

async function flagValue(context: Context, input: Input, { flags, row }: FieldFlag): Promise<unknown> {
  const name = flagName(flags)
  const said = `--${wordOf(name)}`
  if (row.kind === 'bool') return input.choice(name)
  if (!isRepeated(row)) {
    const text = input.text(name)
    return text === undefined ? undefined : parseValue(context, said, text, row)
  }
  const texts = input.texts(name)
  if (texts.length === 0) return undefined
  if (row.many === true) return texts
  return Object.fromEntries(texts.map((text) => pairOf(said, text, row.kind === 'values')))
}

/** `said` is how the command line names it. */
export async function parseValue(
  context: Context,
  said: string,
  text: string,
  { kind, at }: FieldRow,
): Promise<unknown> {
  if (kind === 'words') return readData(context.io, text)
  if (kind === 'json') return jsonOrText(await readData(context.io, text))
  if (kind === 'object') return objectOf(said, await readData(context.io, text))
  if (kind === 'int') return parseNumber(said, text)
  // What is asked for lies behind, what is set lies ahead.
  if (kind === 'time') return parseTime(context, said, text, at === 'query' ? -1 : 1)
  return text
}

function pairOf(said: string, pair: string, isJson: boolean): [string, unknown] {
  const equals = pair.indexOf('=')
  if (equals <= 0) throw usageError(`invalid ${said} "${pair}": expected KEY=VALUE`)
  const value = pair.slice(equals + 1)
  return [pair.slice(0, equals), isJson ? jsonOrText(value) : value]
}

function objectOf(said: string, text: string): object {
  const value = jsonOrText(text)
  if (!isRecord(value)) throw usageError(`invalid ${said}: expected a JSON object, @FILE or -`)
  return value
}

function parseNumber(said: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw usageError(`invalid ${said} "${text}": expected a number`)
  return Number(text)
}

/** A day begins where the person is, and so does a time without a zone. */
const DAY = /^\d{4}-\d\d-\d\d$/
// Date.parse takes nearly any word with a number for a date.
const isTime = (text: string): boolean => DAY.test(text) || /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/i.test(text)

async function parseTime(context: Context, said: string, text: string, side: 1 | -1): Promise<string> {
  const { DURATION_PATTERN, parseDurationMs } = await import('../../contract/base/durations.ts')
  if (DURATION_PATTERN.test(text)) return new Date(context.io.clock.now() + side * parseDurationMs(text)).toISOString()
  const time = isTime(text) ? new Date(DAY.test(text) ? `${text}T00:00` : text) : undefined
  if (time !== undefined && !Number.isNaN(time.getTime())) return time.toISOString()
  const shapes = 'a time such as 2026-05-01T10:00:00Z, a day such as 2026-05-01, or a duration such as 7d'
  throw usageError(`invalid ${said} "${text}": expected ${shapes}`)
}
