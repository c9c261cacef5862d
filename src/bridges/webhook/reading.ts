/** JSON of others, looked into without trusting it. */

export type Json = Readonly<Record<string, unknown>>

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is at a path of names; undefined where it leads nowhere. */
export function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((found, name) => (isJson(found) ? found[name] : undefined), value)
}

/** The text, or number, at a path; empty where there is none. */
export function text(value: unknown, ...names: readonly string[]): string {
  const found = at(value, ...names)
  return typeof found === 'string' ? found : typeof found === 'number' ? `${found}` : ''
}

export function list(value: unknown, ...names: readonly string[]): readonly unknown[] {
  const found = at(value, ...names)
  return Array.isArray(found) ? found : []
}

export const firstLine = (words: string): string => words.trim().split('\n')[0] ?? ''
