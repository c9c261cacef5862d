/** Words of a command line that may be ids of beads. */
import type { Client } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'

/** `al-x1y`, `al-x1y.2`; a word such as `two-step` looks the same. */
const LIKE_AN_ID = /^[a-z][a-z0-9]*-[a-z0-9]{1,8}(?:\.\d+)*$/

export const looksLikeBead = (word: string): boolean => LIKE_AN_ID.test(word)

interface In {
  readonly cityName: string
  readonly options: { readonly signal: AbortSignal }
}

/** The first so many are asked about: a sentence is never longer. */
const MOST_ASKED = 20

/** The words that are ids of beads that there are. */
export async function beadsAmong(client: Client, words: readonly string[], where: In): Promise<readonly string[]> {
  const found: string[] = []
  for (const word of words.filter(looksLikeBead).slice(0, MOST_ASKED))
    if (await isBead(client, word, where)) found.push(word)
  return found
}

async function isBead(client: Client, id: string, { cityName, options: { signal } }: In): Promise<boolean> {
  try {
    await client.call('get-bead', { params: { cityName, id }, signal })
    return true
  } catch (error) {
    if (error instanceof ApiProblem && error.status === 404) return false
    throw error
  }
}
