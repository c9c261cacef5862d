/**
 * What sessions leave behind goes after its time: output of processes that have ended, closed sessions, texts of messages
 * that were typed (decision 233).
 *
 * T1  Nothing that a process may still write to, and nothing of what waits, is touched.
 * T2  A sweep is told as one event, with what went; a sweep that found nothing writes nothing.
 * T3  While the clock cannot say how old something is, nothing goes for its age.
 * T4  Its writes are short, and files are removed off the event loop, one run after the other.
 */
import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { RetentionSweptPayload } from '../../../contract/sessions/session-model.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Deliveries } from '../queue/deliveries.ts'
import type { Policy } from '../record/policy.ts'
import type { SessionStore } from '../record/store.ts'
import { listRuns, type Run, runsToRemove } from './runs.ts'

const FIRST_MS = 60_000
const EVERY_MS = 10 * 60_000
const CHANGED_MS = 5_000
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

type Swept = { -readonly [Key in keyof RetentionSweptPayload]: RetentionSweptPayload[Key] }

export class Retention {
  readonly #deps: RetentionDeps
  #kept: Kept | undefined
  #cancel: (() => void) | undefined
  #sweeping = false
  /** What the settings were when they were looked at last. */
  #settings: string | undefined
  #closed = false

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  get kept(): Kept | undefined {
    return this.#kept
  }

  start(afterMs = FIRST_MS): void {
    if (this.#closed) return
    const { clock, log, city } = this.#deps
    this.#settings = this.#settingsNow()
    this.#cancel?.()
    this.#cancel = clock.after(afterMs, () => {
      this.#sweeping = true
      this.sweep()
        .catch((error: unknown) => log.warn({ city: city.name, err: error }, 'retention sweep failed'))
        .finally(() => {
          this.#sweeping = false
          this.start(this.#settings === this.#settingsNow() ? EVERY_MS : CHANGED_MS)
        })
    })
  }

  /** Who has changed a setting sees soon what comes of it, and has a moment to take back what was a slip. */
  reconfigured(): void {
    if (!this.#sweeping && this.#cancel !== undefined && this.#settings !== this.#settingsNow()) this.start(CHANGED_MS)
  }

  #settingsNow(): string {
    return JSON.stringify(this.#deps.policy().retention)
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** One look at everything; what went, undefined where nothing did. */
  async sweep(): Promise<RetentionSweptPayload | undefined> {
    const swept: Swept = { runs: 0, run_bytes: 0, closed_sessions: 0, delivery_texts: 0, text_bytes: 0 }
    const aged = this.#deps.store.log.agesCount()
    if (aged) {
      await this.#forgetClosed(swept)
      await this.#forgetTexts(swept)
    }
    await this.#removeRuns(swept, aged)
    if (Object.values(swept).every((count) => count === 0)) return undefined
    await this.#deps.store.db.write((tx) =>
      this.#deps.store.log.append(tx, {
        type: 'retention.swept',
        actor: 'supervisor',
        subject: this.#deps.city.name,
        payload: swept,
      }),
    )
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
