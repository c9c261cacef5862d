/** JSON whose numbers come out as they went in: `1.0` stays `1.0`, and twenty digits stay twenty digits. */

declare global {
  interface JSON {
    rawJSON(text: string): { readonly rawJSON: string }
    isRawJSON(value: unknown): boolean
    parse(
      text: string,
      revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown
  }
}

/** A number that is not written as we would write it is `{rawJSON}`, which `JSON.stringify` writes as it was. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/** Where a number may stand that JavaScript would change; dates and texts that look like one cost only time. */
const DELICATE = /[0-9]{16}|[0-9]\.[0-9]*0(?![0-9])|[0-9]\.(?:0{6}|[0-9]{15})|[0-9][eE][-+0-9]|-0(?![0-9])/

/** Throws SyntaxError. */
export function parseExact(text: string): Json {
  if (!DELICATE.test(text)) return JSON.parse(text)
  const value = JSON.parse(text, (_key, one, { source }) =>
    typeof one === 'number' && source !== undefined && String(one) !== source ? JSON.rawJSON(source) : one,
  )
  // What a parser of JSON returns is JSON.
  return value as Json
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

/** The same JSON, whatever the order of keys; two absent values are the same. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (isList(a)) return isList(b) && a.length === b.length && a.every((part, index) => sameJson(part, b[index]))
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && sameJson(a[key], b[key]))
}

/** `object[key]`, also where the key is the name of something that every object has. */
export const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined
