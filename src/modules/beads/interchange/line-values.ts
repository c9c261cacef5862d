/** Values of lines, checked; what is wrong is said with its place. Pure. */
import { cut } from '../../../contract/base/text.ts'
import { isList, isObject, type Json, type JsonObject, own } from './exact-json.ts'

/** Why a line cannot be a bead. */
export class LineFault extends Error {
  override readonly name = 'LineFault'
}

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:?\d\d)$/
const EARLIEST = Date.parse('0000-01-01T00:00:00Z')
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999)
/** What Go writes for a time that was never set. */
const NEVER = -62_135_596_800_000

export const wellFormed = (text: string): string => (text.isWellFormed() ? text : text.toWellFormed())

export function quote(value: Json | undefined): string {
  return cut(JSON.stringify(value) ?? 'nothing', 100)
}

const place = (at: string | undefined, key: string) => (at === undefined ? key : `${at}.${key}`)

/** Undefined where there is none, or null. */
export function textAt(
  object: JsonObject,
  key: string,
  maxLength = Number.POSITIVE_INFINITY,
  at?: string,
): string | undefined {
  const value = own(object, key)
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw new LineFault(`${place(at, key)}: must be text`)
  if (value.length > maxLength) throw new LineFault(`${place(at, key)}: is longer than ${maxLength} characters`)
  return wellFormed(value)
}

export function timeAt(object: JsonObject, key: string, at?: string): number | undefined {
  const text = textAt(object, key, 64, at)
  if (text === undefined || text === '') return undefined
  const ms = TIME.test(text) ? Date.parse(text.toUpperCase().replace(' ', 'T').replace(',', '.')) : Number.NaN
  if (!(ms >= EARLIEST && ms <= LATEST)) throw new LineFault(`${place(at, key)}: ${quote(text)} is no RFC 3339 time`)
  return ms === NEVER ? undefined : ms
}

export function flagAt(object: JsonObject, key: string): boolean {
  const value = own(object, key) ?? false
  if (typeof value !== 'boolean') throw new LineFault(`${key}: must be true or false`)
  return value
}

export function textsAt(object: JsonObject, key: string): readonly string[] {
  const value = own(object, key) ?? []
  const isText = (one: Json): one is string => typeof one === 'string'
  if (!isList(value) || !value.every(isText)) throw new LineFault(`${key}: must be a list of texts`)
  return value.map(wellFormed)
}

export function objectsAt(object: JsonObject, key: string): readonly JsonObject[] {
  const value = own(object, key) ?? []
  const isPlain = (one: Json): one is JsonObject => isObject(one)
  if (!isList(value) || !value.every(isPlain)) throw new LineFault(`${key}: must be a list of objects`)
  return value
}

/** A number, however it is written. */
export function numberOf(value: Json | undefined): Json | undefined {
  return isObject(value) && typeof value.rawJSON === 'string' && JSON.isRawJSON(value) ? Number(value.rawJSON) : value
}
