/** What agents send beside what the SDK checks, read without trust. */

export type Json = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
export const objectOf = (value: unknown): Json => (isObject(value) ? value : {})
export const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
