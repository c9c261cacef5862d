/** Values of variables as text, which the command line and templates have: read by the type that is declared. */
import { cut } from '../base/text.ts'

/** JSON as variables, outputs and items are. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }

export const VAR_TYPES = ['string', 'int', 'bool', 'json', 'command'] as const
export type VarType = (typeof VAR_TYPES)[number]

/** The value that `text` is for this type; throws `RangeError` with a sentence. */
export function parseVarText(type: VarType, text: string): JsonValue {
  if (type === 'string' || type === 'command') return text
  if (type === 'int') return wholeNumber(text)
  if (type === 'json') return json(text)
  if (text === 'true') return true
  if (text === 'false') return false
  throw new RangeError(`\`${shortened(text)}\` is neither \`true\` nor \`false\``)
}

function wholeNumber(text: string): number {
  const value = /^[+-]?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new RangeError(`\`${shortened(text)}\` is not a whole number`)
}

function json(text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch {
    throw new RangeError(`\`${shortened(text)}\` is not JSON: a text stands in quotes`)
  }
}

const shortened = (text: string): string => (text.length > 60 ? `${cut(text, 60)}…` : text)
