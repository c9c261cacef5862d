/**
 * What sessions leave behind goes after its time: output of processes that have ended, closed sessions, texts of messages
 * that were typed (decision 233).
 *
 * T1  Nothing that a process may still write to, and nothing of what waits, is touched.
 * T2  While the clock cannot say how old something is, nothing goes for its age.
 * T3  Its writes are short, and files are removed off the event loop, one run after the other.
 */
import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Deliveries } from '../queue/deliveries.ts'
import type { Policy } from '../record/policy.ts'
import type { SessionStore } from '../record/store.ts'
import { listRuns, type Run, runsToRemove } from './runs.ts'

/** In one write. */
const BATCH = 50
/** In one sweep; the rest goes with the next ones. */
const MAX_BATCHES = 20

export interface RetentionDeps {
  readonly city: { readonly name: string }
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  readonly log: Logger
  readonly sessions: SessionStore
  readonly deliveries: Deliveries
  readonly policy: () => Policy
  /** Directory with the runs of all sessions. */
  readonly root: string
  readonly forget: (tx: Tx, id: string) => void
}

/** What there was when it was looked at last. */
export interface Kept {
  readonly runs: number
  readonly runBytes: number
  readonly at: number
}

/** What went, by the names that the event has. */
type Swept = Record<'runs' | 'run_bytes' | 'closed_sessions' | 'delivery_texts' | 'text_bytes', number>

export class Retention {
  readonly #deps: RetentionDeps
  #kept: Kept | undefined
  #closed = false

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  get kept(): Kept | undefined {
    return this.#kept
  }

  /** What the settings say at the moment. */
  get settings(): unknown {
    return this.#deps.policy().retention
  }

  close(): void {
    this.#closed = true
  }

  /** One look at everything; what went. */
  async sweep(): Promise<Swept> {
    const swept: Swept = { runs: 0, run_bytes: 0, closed_sessions: 0, delivery_texts: 0, text_bytes: 0 }
    const aged = this.#deps.store.log.agesCount()
    if (aged) {
      await this.#forgetClosed(swept)
      await this.#forgetTexts(swept)
    }
    await this.#removeRuns(swept, aged)
    return swept
  }

  async #forgetClosed(swept: Swept): Promise<void> {
    const { clock, policy, sessions, store, forget } = this.#deps
    const { closedMs } = policy().retention
    if (closedMs === undefined) return
    for (let batch = 0; batch < MAX_BATCHES && !this.#closed; batch++) {
      const ids = sessions.closedBefore(clock.now() - closedMs, BATCH)
      if (ids.length === 0) return
      await store.db.write((tx) => {
        for (const id of ids) forget(tx, id)
      })
      swept.closed_sessions += ids.length
    }
  }

  async #forgetTexts(swept: Swept): Promise<void> {
    const { clock, policy, deliveries, store } = this.#deps
    const { textsMs } = policy().retention
    if (textsMs === undefined) return
    for (let batch = 0; batch < MAX_BATCHES && !this.#closed; batch++) {
      const { count, bytes } = await store.db.write((tx) => deliveries.forgetTexts(tx, clock.now() - textsMs, BATCH))
      if (count === 0) return
      swept.delivery_texts += count
      swept.text_bytes += bytes
    }
  }

  async #removeRuns(swept: Swept, aged: boolean): Promise<void> {
    const { clock, policy, root } = this.#deps
    const { runsAgeMs, runsBytes } = policy().retention
    const runs = await listRuns(root, (session, generation) => this.#isLive(session, generation))
    const olderThan = aged && runsAgeMs !== undefined ? clock.now() - runsAgeMs : undefined
    for (const run of runsToRemove(runs, { olderThan, bytes: runsBytes })) {
      // T1: it may have been started meanwhile.
      if (this.#closed || this.#isLive(run.session, run.generation)) continue
      if (!(await this.#remove(run))) continue
      swept.runs++
      swept.run_bytes += run.bytes
    }
    const runBytes = runs.reduce((sum, { bytes }) => sum + bytes, 0) - swept.run_bytes
    this.#kept = { runs: runs.length - swept.runs, runBytes, at: clock.now() }
  }

  /** The run that a session is in, or is about to begin, while something of it runs or may. */
  #isLive(id: string, generation: number): boolean {
    const session = this.#deps.sessions.byId(id)
    if (session === undefined) return false
    return generation > session.generation || (session.process && generation === session.generation)
  }

  async #remove({ directory, session }: Run): Promise<boolean> {
    try {
      await rm(directory, { recursive: true, force: true })
      // Only where it was the last one.
      await rmdir(dirname(directory)).catch(() => {})
      return true
    } catch (error) {
      this.#deps.log.warn({ session, directory, err: error }, 'run not removed')
      return false
    }
  }
}
