/** How rows of the store are read. */
import type { Database, Tx } from '../../../kernel/database.ts'

/** Reads in a write see what it has changed; elsewhere what is on disk. */
export type Reader = Pick<Database, 'get' | 'all'> | Tx

export const textOf = (value: unknown): string | undefined =>
  value === null || value === undefined ? undefined : String(value)

export const numberOf = (value: unknown): number | undefined =>
  value === null || value === undefined ? undefined : Number(value)

/** One of the words that a column may hold. */
export function wordOf<const Words extends readonly string[]>(
  words: Words,
  value: unknown,
  what: string,
): Words[number] {
  const found = words.find((word) => word === value)
  if (found === undefined) throw new Error(`the store holds ${what} that is none: ${String(value)}`)
  return found
}
