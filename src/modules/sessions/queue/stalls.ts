/**
 * Who holds work and does nothing: nudged once, then the work is open again (`[session] claim_holder_stall_timeout`).
 *
 * C1  Nothing is taken from who shows a sign of life, asks a question, is watched or cannot be observed.
 * C2  A nudge comes first, and a whole timeout of silence behind it; where it is typed, behind that. Who has worked for
 *     longer than that since is nudged again before anything is taken.
 * C3  What is remembered is bounded by the open sessions that hold work; a restart of ours forgets, which only delays.
 */

import type { LiveFacts, SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Deliveries } from './deliveries.ts'

const STALLED_HOLDER = 'claim_holder_stalled'

/** One bead in the hands of one session. */
export interface Holding {
  readonly bead: string
  /** Since when we know of it. */
  readonly since: number
  /** When it was nudged, and by which delivery, where it takes any. */
  readonly nudgedAt: number | undefined
  readonly nudge?: string | undefined
}

/** What is due for a holder that last showed a sign of life at `sign`. Pure. */
export function holderDue(
  { since, nudgedAt }: Holding,
  sign: number,
  now: number,
  timeoutMs: number,
): 'nothing' | 'nudge' | 'release' {
  if (now - Math.max(sign, since) < timeoutMs) return 'nothing'
  if (nudgedAt === undefined || sign - nudgedAt >= timeoutMs) return 'nudge'
  return now - nudgedAt >= timeoutMs ? 'release' : 'nothing'
}

export interface HoldersDeps extends Pick<SessionsDeps, 'clock' | 'store' | 'work' | 'log'> {
  readonly deliveries: Deliveries
  readonly live: (id: string) => LiveFacts | undefined
  readonly need: (tx: Parameters<Deliveries['add']>[0], id: string) => SessionRecord
  /** Nothing but callers' messages is typed into some (decision 51). */
  readonly takesNudges: (session: SessionRecord) => boolean
}

export class Holders {
  readonly #deps: HoldersDeps
  #known: ReadonlyMap<string, Holding> = new Map()

  constructor(deps: HoldersDeps) {
    this.#deps = deps
  }

  /** One look at all of them; undefined: it is switched off. */
  async look(sessions: readonly SessionRecord[], timeoutMs: number | undefined): Promise<void> {
    const before = this.#known
    const known = new Map<string, Holding>()
    this.#known = known
    if (timeoutMs === undefined) return
    const now = this.#deps.clock.now()
    for (const session of sessions) {
      const bead = session.process ? this.#deps.work.active(session) : undefined
      if (bead === undefined) continue
      const seen = before.get(session.id)
      const holding = seen?.bead === bead ? seen : { bead, since: now, nudgedAt: undefined }
      known.set(session.id, await this.#deal(session, holding, timeoutMs))
    }
  }

  /** How it stands with it afterwards. */
  async #deal(session: SessionRecord, holding: Holding, timeoutMs: number): Promise<Holding> {
    const { clock, live, log } = this.#deps
    const facts = live(session.id)
    const now = clock.now()
    // C1
    if (session.state !== 'active' || facts?.liveness !== 'alive' || facts.pending !== undefined || facts.attached)
      return holding
    const sign = Math.max(facts.lastActive ?? 0, session.heartbeat_at ?? 0)
    const due = holderDue({ ...holding, nudgedAt: this.#heardAt(holding) }, sign, now, timeoutMs)
    if (due === 'nothing') return holding
    log.warn({ session: session.id, bead: holding.bead, due }, 'holder of work shows no sign of life')
    try {
      if (due === 'nudge')
        return { ...holding, nudgedAt: now, nudge: await this.#nudge(session, holding.bead, timeoutMs) }
      await this.#release(session)
      return { ...holding, nudgedAt: now, nudge: undefined }
    } catch (error) {
      log.error({ session: session.id, err: error }, 'stalled holder not dealt with')
      return holding
    }
  }

  /** A nudge that was typed late is no work, and gets its whole timeout too. */
  #heardAt({ nudgedAt, nudge }: Holding): number | undefined {
    if (nudgedAt === undefined || nudge === undefined) return nudgedAt
    return Math.max(nudgedAt, this.#deps.deliveries.typedAt(nudge) ?? nudgedAt)
  }

  /** Of which delivery; undefined: it takes none. */
  async #nudge(session: SessionRecord, bead: string, ttlMs: number): Promise<string | undefined> {
    const { store, deliveries, need, takesNudges } = this.#deps
    if (!takesNudges(session)) return undefined
    const text = `You hold ${bead} and have shown no sign of work for a while. Go on with it, or close or release it; otherwise it is given back for somebody else.`
    return store.db.write((tx) => {
      const draft = { source: 'nudge', intent: 'default', text, ttlMs, wakes: false } as const
      return deliveries.add(tx, need(tx, session.id), draft, 'supervisor').id
    })
  }

  async #release(session: SessionRecord): Promise<void> {
    const { store, work } = this.#deps
    await store.db.write((tx) => {
      work.release(tx, session, STALLED_HOLDER)
    })
  }
}
