/**
 * What a transcript tells of its session beyond what was said: the model, and how full its context is.
 *
 * N1  Nobody waits for it: it is read from the tail of the log after output came, once per session and pause, one session
 *     at a time; what is shown is what was seen last.
 * N2  What is kept is bounded; what is forgotten is read again when somebody asks.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { InsightPort, Known } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Message } from './entries.ts'
import type { Transcript } from './transcript.ts'

const PAUSE_MS = 2_000
const TAIL_ENTRIES = 50
const MAX_KNOWN = 10_000
const MAX_DUE = 1_000

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

  async failureOf(sessionId: string, deliveryId: string): Promise<string | undefined> {
    const messages = (await this.#newest(sessionId)) ?? []
    const begin = messages.findLastIndex((message) => message.delivery_id === deliveryId)
    const end = messages.slice(Math.max(begin, 0)).find(({ system_event: event }) => event?.kind === 'turn_end')
    if (end?.stop_reason !== 'error') return undefined
    const said = end.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
    return said === '' ? 'the agent answered with an error' : said
  }

  async #look(id: string): Promise<void> {
    this.#due.delete(id)
    const messages = await this.#newest(id)
    this.#seen.delete(id)
    if (messages === undefined) return
    // Room for the newest: the oldest of a map comes first.
    for (const oldest of this.#seen.keys()) {
      if (this.#seen.size < MAX_KNOWN) break
      this.#seen.delete(oldest)
    }
    this.#seen.set(id, { known: knownOf(messages), observedAt: this.#deps.clock.now() })
  }

  /** The last messages, oldest first. */
  async #newest(id: string): Promise<readonly Message[] | undefined> {
    try {
      const transcript = await this.#deps.transcript(id)
      if (transcript === undefined) return undefined
      const { items } = await transcript.newest(TAIL_ENTRIES)
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
