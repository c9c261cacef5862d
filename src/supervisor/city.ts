/**
 * A running city: one object from the first phase of its start to the end of its stop. Families are opened in it phase by
 * phase; what one needs of another, the views take from here.
 */
import { existsSync } from 'node:fs'
import type { Joined, Stopping } from '../kernel/family.ts'
import { allJobs, Jobs } from '../kernel/jobs.ts'
import type { NeedSource } from '../kernel/needs.ts'
import { cityNotRunning } from '../kernel/problem.ts'
import { Reactions } from '../kernel/reactions.ts'
import type { LogStream } from '../kernel/streams/log-stream.ts'
import type { City } from '../modules/cities/city.ts'
import { type CityStore, cityDatabasePath } from '../modules/cities/city-store.ts'
import type { CityRun, PhaseHook } from '../modules/cities/worker.ts'
import { leaveSocketDirectory } from '../runtimes/socket-directory.ts'
import { startRetention } from './views/retention.ts'
import type { Host, Running } from './views/running.ts'
import { endForsaken } from './views/sessions.ts'

/** A family, as far as cities are concerned. */
type CityFamily = Omit<Joined<never, Running>, 'handlers'>

export class RunningCity implements Running, CityRun {
  readonly name: string
  readonly path: string
  /** What is known of the city, as it is at the moment. */
  readonly record: City
  readonly host: Host
  readonly observe: Running['observe']
  readonly hooks: readonly PhaseHook[]
  agentsEnded = 0
  readonly #families: readonly CityFamily[]
  readonly #opening = new Map<unknown, Promise<void>>()
  #jobs: Jobs | undefined
  #reactions: Reactions | undefined
  #stopRetention: (() => Promise<void>) | undefined
  #leaving = false

  constructor(record: City, host: Host, families: readonly CityFamily[], observe: Running['observe']) {
    this.name = record.name
    this.path = record.path
    this.record = record
    this.host = host
    this.observe = observe
    this.#families = families
    // Stopped in the opposite order: agents end before what they and their callers rely on.
    this.hooks = [
      // The last of a stop, when nothing of the city is left that could have a socket there.
      { phase: 'loading_config', stop: () => this.#leaveSockets() },
      ...families.flatMap((family) => this.#openingOf(family)),
      { phase: 'starting_agents', run: () => this.#startJobs(), stop: () => this.#stopJobs() },
      { phase: 'starting_agents', run: () => this.#startReactions(), stop: () => this.#reactions?.stop() },
      { phase: 'adopting_sessions', stop: () => this.#endForsaken() },
      ...families.flatMap((family) => this.#phasesOf(family)),
      {
        phase: 'starting_agents',
        run: () => this.#startRetention(),
        stop: () => this.#stopRetention?.(),
      },
    ]
  }

  /** Those of all families that are open. */
  needs(): readonly NeedSource[] {
    return this.#families.flatMap((family) => family.needs(this))
  }

  /** There while its directory is. */
  get store(): CityStore {
    const { store } = this.record
    if (store === undefined) throw cityNotRunning(this.name)
    return store
  }

  get stream(): LogStream {
    const { stream } = this.record
    if (stream === undefined) throw cityNotRunning(this.name)
    return stream
  }

  /** Accepts a request about the city and answers its 202; the job starts with the commit. */
  readonly launch: Jobs['launch'] = (input) => this.#accepting.launch(input)

  /** The same with an answer that says more. */
  readonly launchAnswering: Jobs['launchAnswering'] = (input) => this.#accepting.launchAnswering(input)

  /** The supervisor ends. Jobs are cut first: they would take what ends for an outcome. */
  async leave(): Promise<void> {
    this.#leaving = true
    await this.#stopJobs()
    for (const hook of [...this.hooks].reverse()) {
      try {
        await hook.stop?.(this.record, { force: false }, AbortSignal.abort())
      } catch (error) {
        this.host.log.error({ city: this.name, phase: hook.phase, err: error }, 'stop of a phase failed')
      }
    }
  }

  #leaveSockets(): void {
    const { env, settings, clock } = this.host
    leaveSocketDirectory(this.path, { env, home: settings.home }, clock.now())
  }

  get #accepting(): Jobs {
    if (this.#jobs === undefined) throw cityNotRunning(this.name)
    return this.#jobs
  }

  #openingOf(family: CityFamily): readonly PhaseHook[] {
    const { opensIn } = family
    if (opensIn === undefined) return []
    return [
      {
        phase: opensIn,
        run: (_, signal) => {
          const opening = family.open(this, signal)
          this.#opening.set(family, opening)
          return opening
        },
        stop: async () => {
          // One that is overtaken while it opens is closed as well.
          await this.#opening.get(family)?.catch(() => {})
          await family.close(this)
        },
      },
    ]
  }

  #phasesOf(family: CityFamily): readonly PhaseHook[] {
    return [
      ...family.phases.map((phase): PhaseHook => ({ phase, run: (_, signal) => family.enter(this, phase, signal) })),
      { phase: 'starting_agents', stop: (_, { force }) => family.stop(this, this.#stopping(force)) },
    ]
  }

  #stopping(force: boolean): Stopping {
    const { state, wanted } = this.record
    // A start that failed, and is to be tried again, is no reason to end anybody; nor is a directory that may come back.
    const comesBack = state !== 'stopping' && wanted === 'running'
    return {
      force,
      preserve: this.#leaving || comesBack || this.#isForsaken,
      ended: (agents) => {
        this.agentsEnded += agents
      },
    }
  }

  get #isForsaken(): boolean {
    return !existsSync(cityDatabasePath(this.path))
  }

  /** Its directory is gone, and the record of its agents with it; where it is given up, they end too. */
  async #endForsaken(): Promise<void> {
    if (!this.#leaving && this.#isForsaken && this.record.wanted !== 'running') await endForsaken(this)
  }

  /** Takes up what a crash left. */
  async #startJobs(): Promise<void> {
    const { clock, log, ids } = this.host
    const jobs = allJobs(this.#families.flatMap((family) => family.jobs(this)))
    this.#jobs = new Jobs({ city: this.name, ids, store: this.store, clock, log, jobs })
    await this.#jobs.resume()
  }

  async #stopJobs(): Promise<void> {
    const jobs = this.#jobs
    this.#jobs = undefined
    if (this.#leaving) await jobs?.close()
    else await jobs?.stop('city_stopped', 'the city stopped before the request was done')
  }

  #startRetention(): void {
    this.#stopRetention = startRetention(
      this,
      this.#families.flatMap((family) => family.retention(this)),
    )
  }

  async #startReactions(): Promise<void> {
    const { clock, log, metrics } = this.host
    const { db, log: events } = this.store
    const reactions = this.#families.flatMap((family) => family.reactions(this))
    this.#reactions = new Reactions({
      db,
      log: events,
      clock,
      logger: log,
      reactions,
      skipped: metrics.reactionSkipped,
    })
    await this.#reactions.start()
  }
}
