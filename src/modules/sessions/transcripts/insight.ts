/**
 * What a transcript tells of its session beyond what was said: the model, how full its context is, what a turn cost.
 *
 * N1  Nobody waits for it: it is read from the tail of the log after output came, once per session and pause, one session
 *     at a time; what is shown is what was seen last.
 * N2  What is kept is bounded; what is forgotten is read again when somebody asks.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { InsightPort, Known, TurnCost } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Message } from './entries.ts'
import type { Transcript } from './transcript.ts'

const PAUSE_MS = 2_000
const TAIL_ENTRIES = 50
const TURN_ENTRIES = 200
const MAX_KNOWN = 10_000
const MAX_DUE = 1_000
/** The end of a turn is told before it is on disk. */
const TURN_LOOKS_MS = [0, 50, 200, 750] as const

export interface InsightDeps {
  readonly clock: Clock
  readonly log: Logger
  /** Undefined: it is gone, or nothing is structured about what it says. */
  readonly transcript: (sessionId: string) => Promise<Transcript | undefined>
  /** Whether its transcript can tell anything. */
  readonly structured: (session: SessionRecord) => boolean
}

interface Seen {
  readonly known: Known
  readonly observedAt: number
}

export class Insights implements InsightPort {
  readonly #deps: InsightDeps
  readonly #seen = new Map<string, Seen>()
  readonly #due = new Set<string>()
  #reading: Promise<void> = Promise.resolve()

  constructor(deps: InsightDeps) {
    this.#deps = deps
  }

  known(session: SessionRecord): Known {
    const seen = this.#seen.get(session.id)
    if (seen === undefined && session.generation > 0 && this.#deps.structured(session)) this.grew(session.id)
    return seen?.known ?? {}
  }

  grew(id: string): void {
    if (this.#due.has(id) || this.#due.size >= MAX_DUE) return
    this.#due.add(id)
    this.#deps.clock.after(PAUSE_MS, () => {
      this.#reading = this.#reading.then(() => this.#look(id))
    })
  }

  async turn(sessionId: string, deliveryId: string): Promise<TurnCost> {
    for (const ms of TURN_LOOKS_MS) {
      await new Promise<void>((resolve) => this.#deps.clock.after(ms, resolve))
      const cost = await this.#cost(sessionId, deliveryId)
      if (cost !== undefined) return cost
    }
    return {}
  }

  async #look(id: string): Promise<void> {
    this.#due.delete(id)
    const messages = await this.#newest(id, TAIL_ENTRIES)
    this.#seen.delete(id)
    if (messages === undefined) return
    // Room for the newest: the oldest of a map comes first.
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size < MAX_KNOWN) break
      this.#seen.delete(oldest)
    }
    this.#seen.set(id, { known: knownOf(messages), observedAt: this.#deps.clock.now() })
  }

  async #cost(sessionId: string, deliveryId: string): Promise<TurnCost | undefined> {
    const messages = await this.#newest(sessionId, TURN_ENTRIES)
    return messages === undefined ? {} : turnCost(messages, deliveryId)
  }

  /** The last messages, oldest first. */
  async #newest(id: string, limit: number): Promise<readonly Message[] | undefined> {
    try {
      const transcript = await this.#deps.transcript(id)
      if (transcript === undefined) return undefined
      const { items } = await transcript.newest(limit)
      return items.map(({ entry }) => entry.message)
    } catch (error) {
      this.#deps.log.debug({ session: id, err: error }, 'transcript not looked at')
      return undefined
    }
  }
}

/** The last word on each: newer messages say it again, or leave it out. */
export function knownOf(messages: readonly Message[]): Known {
  const model = messages.findLast((message) => message.model !== undefined)?.model
  const usage = messages.findLast((message) => message.usage?.context_window_tokens !== undefined)?.usage
  return {
    ...(model === undefined ? {} : { model }),
    ...(usage?.context_percent === undefined ? {} : { context_pct: usage.context_percent }),
    ...(usage?.context_window_tokens === undefined ? {} : { context_window: usage.context_window_tokens }),
  }
}

/** What the turn cost that the delivery began; undefined: its end has not been told. */
export function turnCost(messages: readonly Message[], deliveryId: string): TurnCost | undefined {
  let end: Message | undefined
  let others = false
  for (const message of messages.toReversed()) {
    if (message.system_event?.kind === 'turn_end') end = message
    if (message.role !== 'user') continue
    if (message.delivery_id === deliveryId) return end === undefined ? undefined : costOf(end)
    others = true
    end = undefined
  }
  // A long turn: its beginning is further up than was read.
  return end === undefined || others ? undefined : costOf(end)
}

function costOf({ usage, model }: Message): TurnCost {
  const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens } = usage ?? {}
  return {
    ...(model === undefined ? {} : { model }),
    ...(input_tokens === undefined ? {} : { input_tokens }),
    ...(output_tokens === undefined ? {} : { output_tokens }),
    ...(cache_read_tokens === undefined ? {} : { cache_read_tokens }),
    ...(cache_creation_tokens === undefined ? {} : { cache_creation_tokens }),
  }
}
