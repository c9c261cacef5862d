/**
 * Work that waits for a session with nothing to do: it is told, and takes it by itself.
 *
 * O1  Told is only who rests: no turn, no question, no message that waits, nobody at its terminal.
 * O2  Work that is routed is told to one session at a time, and to none that a person has made for a chat; what is assigned
 *     is told to whom it is assigned.
 * O3  The same again only after a while. What is remembered is bounded by the open sessions; a restart of ours forgets,
 *     which only tells it once more.
 */

import type { LiveFacts, OfferedWork, SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Deliveries } from './deliveries.ts'

/** Whoever rests so long has not just stopped between two words. */
const REST_MS = 1_000
const AGAIN_MS = 600_000
/** One that was told of work and has not taken it by then keeps nobody else from it. */
const TURN_MS = 60_000
const TTL_MS = 600_000

interface Told {
  readonly bead: string
  readonly generation: number
  /** On the clock that nobody sets. */
  readonly at: number
}

export interface OffersDeps extends Pick<SessionsDeps, 'clock' | 'store' | 'work' | 'log'> {
  readonly deliveries: Deliveries
  readonly live: (id: string) => LiveFacts | undefined
  readonly need: (tx: Parameters<Deliveries['add']>[0], id: string) => SessionRecord
  readonly takesNudges: (session: SessionRecord) => boolean
  readonly takesMessages: (session: SessionRecord, facts: LiveFacts) => boolean
  /** Somebody is to look again. */
  readonly poke: () => void
}

export class Offers {
  readonly #deps: OffersDeps
  readonly #told = new Map<string, Told>()
  #cancel: (() => void) | undefined

  constructor(deps: OffersDeps) {
    this.#deps = deps
  }

  close(): void {
    this.#cancel?.()
  }

  /** One look at all of them. */
  async look(sessions: readonly SessionRecord[]): Promise<void> {
    const now = this.#deps.clock.now()
    const open = new Set(sessions.map(({ id }) => id))
    for (const id of this.#told.keys()) if (!open.has(id)) this.#told.delete(id)
    let next = Number.POSITIVE_INFINITY
    for (const session of sessions) {
      const since = this.#restsSince(session)
      if (since === undefined) continue
      const work = this.#workFor(session)
      if (work === undefined) continue
      if (now - since < REST_MS) next = Math.min(next, since + REST_MS - now, REST_MS)
      else await this.#tell(session, work)
    }
    this.#cancel?.()
    this.#cancel = next === Number.POSITIVE_INFINITY ? undefined : this.#deps.clock.after(next, this.#deps.poke)
  }

  /** O1 */
  #restsSince(session: SessionRecord): number | undefined {
    const { live, takesNudges, takesMessages } = this.#deps
    if (session.kind !== 'agent' || session.state !== 'active' || session.desired !== 'running') return undefined
    if (session.queued > 0 || session.limited_at !== undefined || !takesNudges(session)) return undefined
    const facts = live(session.id)
    if (facts?.liveness !== 'alive' || facts.pending !== undefined || facts.attached) return undefined
    return takesMessages(session, facts) ? facts.since : undefined
  }

  /** What it is to be told of; of several things the first. */
  #workFor(session: SessionRecord): OfferedWork | undefined {
    const { work, deliveries } = this.#deps
    const held = work.active(session)
    if (held !== undefined) {
      // It came back with its conversation, and nobody has said a word to it.
      const isNew = session.generation > 1 && !deliveries.saidIn(session.id, session.generation)
      return isNew && !this.#wasTold(session, held) ? { id: held, tier: 'in_progress' } : undefined
    }
    const offered = work.offered(session).filter(({ tier }) => tier !== 'routed' || session.origin !== 'manual')
    if (offered.some(({ id }) => this.#wasTold(session, id))) return undefined
    return offered.find(({ id, tier }) => tier !== 'routed' || !this.#isToldElsewhere(session, id))
  }

  /** O3 */
  #wasTold({ id, generation }: SessionRecord, bead: string): boolean {
    const now = this.#deps.clock.monotonic()
    const told = this.#told.get(id)
    return told?.bead === bead && told.generation === generation && now - told.at < AGAIN_MS
  }

  /** O2 */
  #isToldElsewhere(session: SessionRecord, bead: string): boolean {
    const now = this.#deps.clock.monotonic()
    return [...this.#told].some(([id, told]) => id !== session.id && told.bead === bead && now - told.at < TURN_MS)
  }

  async #tell(session: SessionRecord, { id: bead, tier }: OfferedWork): Promise<void> {
    const { store, deliveries, need, log, clock } = this.#deps
    const text =
      tier === 'in_progress'
        ? `You were started anew and still hold ${bead}. See what it says with \`svcctl bead get ${bead}\`, go on with it, and close it or release it.`
        : `Work is ready for you: ${bead}. Take it with \`svcctl bead hook --claim\`: what is to be done, and how to report it, stands in it. Go on until nothing is left for you.`
    this.#told.set(session.id, { bead, generation: session.generation, at: clock.monotonic() })
    try {
      await store.db.write((tx) => {
        const draft = { source: 'nudge', intent: 'default', text, ttlMs: TTL_MS, wakes: false } as const
        deliveries.add(tx, need(tx, session.id), draft, 'supervisor')
      })
    } catch (error) {
      log.warn({ session: session.id, err: error }, 'session not told of its work')
    }
  }
}
