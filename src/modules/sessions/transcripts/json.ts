/** Reading JSON that others wrote: every look is checked, nothing throws. */
export type Json = Readonly<Record<string, unknown>>

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function parseLine(line: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isJson(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
export const objectOf = (value: unknown): Json => (isJson(value) ? value : {})
export const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isJson) : [])
export const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined

/** RFC 3339 with milliseconds; undefined for what is no time. */
export function timeOf(value: unknown): string | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}
