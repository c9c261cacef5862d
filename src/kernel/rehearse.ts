/** A write that is only tried: everything is checked and done as in a real one, and then undone. */
import type { Database, Tx } from './database.ts'

class Rehearsed<T> extends Error {
  readonly outcome: T

  constructor(outcome: T) {
    super('rehearsed')
    this.outcome = outcome
  }
}

/** What the write would come to; throws as it would. Nothing of it stays, and what was to follow its commit does not. */
export async function rehearse<T>(db: Pick<Database, 'write'>, work: (tx: Tx) => T): Promise<T> {
  let rehearsed: Rehearsed<T> | undefined
  try {
    await db.write((tx) => {
      rehearsed = new Rehearsed(work(tx))
      throw rehearsed
    })
  } catch (error) {
    if (rehearsed === undefined || error !== rehearsed) throw error
    return rehearsed.outcome
  }
  throw new Error('a write that threw was taken for one that did not')
}
