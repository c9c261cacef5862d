/**
 * Turns that are told when they end: over a protocol that says so, one `worker.operation` per message carries what the
 * whole turn took and cost.
 *
 * U1  A turn is open in the row of its delivery, from the write that ends the delivery to the one that tells its end: one
 *     event per message, whatever ends in between.
 * U2  What a turn cost is looked up off to the side, within a bound; its process waits for nothing.
 */
import { UNKNOWN_MODEL, type UsageTurn } from '../../../contract/sessions/usage.ts'
import type { Tx } from '../../../kernel/database.ts'
import { isReminder, type OpenTurn } from '../queue/deliveries.ts'
import type { TurnCost } from '../record/ports.ts'
import type { Journal } from './journal.ts'
import { type ActorDeps, textOf } from './scene.ts'

export class Turns {
  readonly #id: string
  readonly #deps: ActorDeps
  readonly #journal: Journal
  readonly #closed: () => boolean
  #looking = false
  #again = false

  /** `closed`: the supervisor ends; the next one tells the turns that are open. */
  constructor(id: string, deps: ActorDeps, journal: Journal, closed: () => boolean) {
    this.#id = id
    this.#deps = deps
    this.#journal = journal
    this.#closed = closed
  }

  /** The process is idle: whatever turn was open has ended. */
  ended(): void {
    this.#again = true
    if (!this.#looking) void this.#look()
  }

  async #look(): Promise<void> {
    this.#looking = true
    while (this.#again && !this.#closed()) {
      this.#again = false
      await this.#tell()
    }
    this.#looking = false
  }

  async #tell(): Promise<void> {
    const { deliveries, usage, insight, log } = this.#deps
    try {
      for (const turn of deliveries.openTurns(this.#id)) {
        const cost = costOf(await usage.turn(this.#id, turn.id))
        const failure = await insight.failureOf(this.#id, turn.id)
        await this.#journal.write((tx) => closeTurn(tx, this.#deps, this.#journal, turn, { cost, failure }))
      }
    } catch (error) {
      if (!this.#closed()) log.warn({ session: this.#id, error: textOf(error) }, 'end of a turn not recorded')
    }
  }
}

function costOf(turn: UsageTurn | undefined): TurnCost {
  if (turn === undefined) return {}
  return {
    ...(turn.model === UNKNOWN_MODEL ? {} : { model: turn.model }),
    input_tokens: turn.input,
    output_tokens: turn.output,
    cache_read_tokens: turn.cache_read,
    cache_creation_tokens: turn.cache_write,
  }
}

interface TurnEnd {
  readonly cost: TurnCost
  /** Why it came to nothing, where it did. */
  readonly failure: string | undefined
}

/** Their process is gone: they end with it, at the cost that nobody knows. */
export function abandonTurns(tx: Tx, sessionId: string, deps: ActorDeps, journal: Journal): void {
  for (const turn of deps.deliveries.openTurns(sessionId))
    closeTurn(tx, deps, journal, turn, { cost: {}, failure: undefined })
}

function closeTurn(tx: Tx, deps: ActorDeps, journal: Journal, turn: OpenTurn, { failure, cost }: TurnEnd): void {
  if (!deps.deliveries.closeTurn(tx, turn.id, failure)) return
  const session = deps.sessions.need(tx, turn.session_id)
  journal.operation(tx, session, isReminder(turn.source) ? 'nudge' : 'message', turn.started_at, failure, {
    delivered: true,
    ...cost,
  })
}
