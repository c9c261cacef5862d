/** Everything a bridge needs of the process that it runs in; tests bring their own. */
import type { Clock } from '../../client/clock.ts'
import type { Log } from './log.ts'

export interface World {
  readonly clock: Clock
  readonly random: () => number
  /** A new unguessable key. */
  readonly newKey: () => string
  readonly log: Log
}

/** The bridge cannot run as it was asked to, and trying again would not help. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
  readonly hint: string | undefined

  constructor(message: string, hint?: string) {
    super(message)
    this.hint = hint
  }
}
