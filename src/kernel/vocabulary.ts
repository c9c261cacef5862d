/** Which words a text index has. */
import type { Database } from './database.ts'

export interface Vocabulary {
  readonly db: Pick<Database, 'rows'>
  /** Its table: `fts5vocab` of the index, by `instance`, which counts nothing. */
  readonly table: string
}

/** All words that begin so, in the letters that the index folds them to; undefined where they are more than `most`. */
export function wordsBeginning(
  { db, table }: Vocabulary,
  beginning: string,
  most: number,
): readonly string[] | undefined {
  const found: string[] = []
  for (let from = beginning; found.length <= most; from = `${found.at(-1)}\u0001`) {
    const word = String(db.rows(`SELECT term FROM ${table} WHERE term >= ? LIMIT 1`, from)[0]?.[0] ?? '')
    if (!word.startsWith(beginning)) return found
    found.push(word)
  }
  return undefined
}
