/**
 * The actor of one city: moves what is observed towards what is wanted, one step at a time.
 *
 * W1  One worker per city, one step at a time; a step of one city never waits for another city.
 * W2  A change of what is wanted aborts a start that is under way.
 * W3  `running` is true only between the end of a start and the beginning of a stop; typed routes follow it.
 * W4  Every accepted request about the city ends here, with what it asked for visible before its terminal event.
 */

import { CITY_PHASES, type CityPhase, type CityState } from '../../contract/cities.ts'
import type { PayloadOf } from '../../contract/event-types.ts'
import { type Clock, delay, isoTime } from '../../kernel/clock.ts'
import { contained } from '../../kernel/contained.ts'
import type { Row, Tx } from '../../kernel/database.ts'
import { rejection } from '../../kernel/deadline.ts'
import { StartFailure } from '../../kernel/family.ts'
import type { Logger } from '../../kernel/log.ts'
import { look } from '../../kernel/look.ts'
import { cityNotRunning, Problem } from '../../kernel/problem.ts'
import type { UnfinishedRequest } from '../../kernel/requests.ts'
import type { Store } from '../../kernel/store.ts'
import { type City, type CityRecord, type CitySettings, configRejection, directoryComplaint } from './city.ts'
import { type CityStore, cityDatabasePath, readSuspension } from './city-store.ts'
import { nextStep, retryDelayMs, type Step } from './lifecycle.ts'
import { type Lent, type Mendable, Mending } from './mending.ts'
import type { Registry } from './registry.ts'
import { cityAround } from './scaffold.ts'
import type { CityStores } from './stores.ts'

/** A part of a city's start-up or stop that a family brings. Idempotent; throws `StartFailure` or a Problem. */
export interface PhaseHook {
  readonly phase: CityPhase
  run?(city: City, signal: AbortSignal): void | Promise<void>
  /** Called in reverse order when the city stops; what it has not ended by the deadline is cut. */
  stop?(city: City, options: StopOptions, signal: AbortSignal): void | Promise<void>
}

export interface StopOptions {
  readonly force: boolean
}

/** One run of a city, from its first phase to the end of its stop; made by the wiring, led by the worker. */
export interface CityRun {
  readonly hooks: readonly PhaseHook[]
  /** How many agents its stop has ended. */
  readonly agentsEnded: number
  /** The supervisor ends: agents run on, and what was begun is taken up at the next start. */
  leave(): Promise<void>
}

export interface WorkerDeps<Run extends CityRun, Mended extends Mendable = Mendable> {
  /** Opens a city that does not run, to be mended. */
  readonly openMended: (city: City) => Promise<Mended>
  readonly clock: Clock
  readonly log: Logger
  readonly supervisor: Store
  readonly registry: Registry
  readonly stores: Pick<CityStores, 'open' | 'stream' | 'announce'>
  /** Begins a run. */
  readonly open: (city: City) => Run
  readonly random: () => number
  /** The city's state changed. */
  readonly changed: (city: City) => void
  /** The city has left for good. */
  readonly departed: (city: City) => void
  readonly configTime: (city: City) => number | undefined
}

const [FIRST_PHASE] = CITY_PHASES
const START_DEADLINE_MS = 600_000
const STOP_DEADLINE_MS = 30_000
/** Steps that are the worker's own: to record what is so already. */
type Own = 'settle' | 'note'
type StopReason = PayloadOf<'city.stopped'>['reason']
type StartOperation = 'city.create' | 'city.start' | 'city.restart'

export class CityWorker<Run extends CityRun = CityRun, Mended extends Mendable = Mendable> {
  readonly #city: CityRecord
  readonly #deps: WorkerDeps<Run, Mended>
  readonly #waiters: { readonly done: (city: City) => boolean; readonly resolve: () => void }[] = []
  /** The run that goes on, or the last one. */
  #run: Run | undefined
  #agentsEnded = 0
  /** Stops that took too long and go on: the next run begins after them. */
  readonly #unfinished = new Set<Promise<unknown>>()
  #aborter: AbortController | undefined
  #cancelRetry: (() => void) | undefined
  #looping: Promise<void> | undefined
  #poked = false
  #closed = false
  #stopOptions: StopOptions = { force: false }
  #lostDirectory = false
  /** `city.started` is in the log, so `city.stopped` must follow. */
  #announced = false
  /** What being running means is recorded in the registry and the ledger. */
  #settled = false
  /** A failed start that the registry and the ledger do not know of yet. */
  #unnoted: StartFailure | undefined
  readonly #mending: Mending<Mended>
  /** It is about to start, stop or leave: nobody begins to mend it. */
  #isTaken = false

  constructor(city: CityRecord, deps: WorkerDeps<Run, Mended>) {
    this.#city = city
    this.#deps = deps
    this.#mending = new Mending({
      open: () => deps.openMended(this.city),
      mended: () => this.#mended(),
      failed: (error) => deps.log.error({ city: city.name, err: error }, 'city not closed after it was mended'),
    })
  }

  get city(): City {
    return this.#city
  }

  get run(): Run | undefined {
    return this.#run
  }

  /** How many agents the last stop ended. */
  get agentsEnded(): number {
    return this.#agentsEnded
  }

  /** Whether it can be mended now: it does not run, and is not about to. */
  get isMendable(): boolean {
    const { state, wanted, store } = this.#city
    const rests = state === 'init_failed' || state === 'stopped'
    return rests && wanted !== 'gone' && !this.#isTaken && !this.#closed && store?.db.inPlace === true
  }

  /** The city, opened to be mended; throws its 404 where it cannot be. */
  async lend(): Promise<Lent<Mended>> {
    if (!this.isMendable) throw cityNotRunning(this.#city.name)
    return this.#mending.lend()
  }

  // --- What is changed from outside --------------------------------------------------------------------------------

  /** What the registry wants has changed; a restart that was asked for before a stop is off. */
  want(wanted: 'running' | 'stopped'): void {
    this.#city.wanted = wanted
    if (wanted === 'stopped') this.#city.restart = false
  }

  /** Where it runs, it stops first and starts again. */
  restart(): void {
    if (this.#city.state === 'running') this.#city.restart = true
  }

  /** It was unregistered by this request. */
  leave(requestId: string): void {
    this.#city.wanted = 'gone'
    this.#city.departure = requestId
  }

  suspend(suspended: boolean): void {
    this.#city.suspended = suspended
  }

  /** What is in force in the files of the city. */
  observe(settings: CitySettings): void {
    const { store } = this.#city
    this.#city.settings = settings
    if (store?.db.inPlace === true) this.#city.suspended = readSuspension(store.db) ?? settings.suspendedOnStart
  }

  /** The store, opened where it is not, or is that of a directory that was taken away. */
  async ensureStore(): Promise<CityStore> {
    const city = this.#city
    if (city.store?.db.inPlace === true) return city.store
    this.dropStore()
    refuseLostStore(city)
    const store = await this.#deps.stores.open(city.path, city.name)
    if (store.uid !== city.uid) {
      store.db.close()
      throw new StartFailure(
        'city_replaced',
        `the directory holds another city (${store.uid}, not ${city.uid}): unregister "${city.name}" and adopt the directory`,
      )
    }
    this.takeStore(store)
    return store
  }

  takeStore(store: CityStore): void {
    this.#city.store = store
    this.#city.stream = this.#deps.stores.stream(store)
    this.#deps.stores.announce(this.#city)
  }

  dropStore(): void {
    const city = this.#city
    if (city.store === undefined) return
    city.knownHead = city.store.log.head
    city.stream?.close()
    city.store.db.close()
    city.store = undefined
    city.stream = undefined
    this.#deps.stores.announce(city)
  }

  // --- What it does ------------------------------------------------------------------------------------------------

  /** Looks at the situation now; calls while a step runs are looked at after it. */
  poke(): void {
    this.#poked = true
    if (this.#looping !== undefined || this.#closed) return
    this.#looping = this.#loop().finally(() => {
      this.#looping = undefined
      if (this.#poked && !this.#closed) this.poke()
    })
  }

  /** What is wanted changed: aborts a start that is under way (W2). */
  steer(options: StopOptions = { force: false }): void {
    this.#stopOptions = options
    this.#aborter?.abort(new StartFailure('preempted', 'another request came in between'))
    this.poke()
  }

  /** The directory is gone: stop without writing to it, then fail and retry until it is back. */
  directoryLost(): void {
    this.#lostDirectory = true
    this.steer()
  }

  /** Tries now whatever the back-off says. */
  retryNow(): void {
    this.#city.retryAt = undefined
    this.poke()
  }

  /** Resolves when `done` holds; rejects with the signal's reason. */
  until(done: (city: City) => boolean, signal: AbortSignal): Promise<void> {
    if (done(this.city)) return Promise.resolve()
    if (signal.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const waiter = { done, resolve }
      this.#waiters.push(waiter)
      signal.addEventListener(
        'abort',
        () => {
          const at = this.#waiters.indexOf(waiter)
          if (at >= 0) this.#waiters.splice(at, 1)
          reject(signal.reason)
        },
        { once: true },
      )
    })
  }

  /** The supervisor ends: sessions are preserved (decision 24), nothing is written. */
  async close(): Promise<void> {
    this.#closed = true
    this.#cancelRetry?.()
    this.#aborter?.abort(new StartFailure('preempted', 'the supervisor is shutting down'))
    await this.#mending.end(true)
    await this.#looping
    await this.#run?.leave()
  }

  async #loop(): Promise<void> {
    while (this.#poked && !this.#closed) {
      this.#poked = false
      let step: Step | Own | undefined
      try {
        step = this.#next()
        if (step === 'wait') continue
        await this.#take(step)
      } catch (error) {
        // The supervisor's own store refused: what was to be recorded is tried again, nothing is forgotten.
        this.#deps.log.error({ city: this.city.name, step, err: error }, 'city step failed')
        await this.#pause()
      }
      if (!this.#closed && this.city.state !== 'stopped') this.#poked = true
      if (this.#left) return
    }
    this.#armRetry()
  }

  get #left(): boolean {
    return this.city.wanted === 'gone' && this.city.departure === undefined
  }

  #next(): Step | Own {
    const city = this.#city
    if (this.#left) return 'wait'
    if (this.#unnoted !== undefined) return 'note'
    if (city.state === 'running') {
      if (this.#lostDirectory) return 'stop'
      if (city.wanted === 'running' && !city.restart && (!this.#settled || this.#pendingStarts().length > 0))
        return 'settle'
    }
    // A start that a stop overtook before it began, or before a crash: it ends too (W4).
    if (city.wanted === 'stopped' && city.state === 'stopped' && this.#pendingStarts().length > 0) return 'stop'
    return nextStep({
      wanted: city.wanted,
      state: city.state,
      restart: city.restart,
      retryAt: city.retryAt,
      now: this.#deps.clock.now(),
    })
  }

  async #take(step: Step | Own): Promise<void> {
    this.#isTaken = true
    try {
      if (step === 'start') return await this.#start()
      if (step === 'stop') return await this.#stop()
      if (step === 'settle') return await this.#settle()
      if (step === 'note') return await this.#noteFailure()
      if (step === 'depart') return await this.#depart()
    } finally {
      this.#isTaken = false
    }
  }

  #mended(): void {
    const { state, wanted } = this.#city
    if (state === 'init_failed' && wanted === 'running') this.retryNow()
  }

  async #pause(): Promise<void> {
    const aborter = new AbortController()
    this.#aborter = aborter
    await delay(this.#deps.clock, 1_000, aborter.signal).catch(() => {})
  }

  #armRetry(): void {
    this.#cancelRetry?.()
    this.#cancelRetry = undefined
    const { retryAt, wanted, state } = this.city
    if (this.#closed || retryAt === undefined || wanted !== 'running' || state === 'running') return
    this.#cancelRetry = this.#deps.clock.after(Math.max(retryAt - this.#deps.clock.now(), 0), () => this.poke())
  }

  #enter(state: CityState): void {
    this.#city.state = state
    this.#city.since = this.#deps.clock.now()
    // A step goes on whatever those who hear of it do: a failing step must reach the end of its requests (W4).
    contained(
      () => this.#deps.changed(this.city),
      (error) => this.#deps.log.error({ city: this.city.name, err: error }, 'change of a city not passed on'),
    )
    for (const waiter of [...this.#waiters]) {
      if (!waiter.done(this.city)) continue
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
      waiter.resolve()
    }
  }

  async #start(): Promise<void> {
    const aborter = new AbortController()
    this.#aborter = aborter
    this.#city.restart = false
    this.#city.retryAt = undefined
    this.#lostDirectory = false
    if (!(await this.#isQuiet(aborter.signal))) return
    const cancelDeadline = this.#deps.clock.after(START_DEADLINE_MS, () =>
      aborter.abort(
        new StartFailure('startup_timeout', `the city did not start within ${START_DEADLINE_MS / 60_000} minutes`),
      ),
    )
    try {
      await Promise.race([Promise.all(this.#unfinished), rejection(aborter.signal)])
      this.#run = this.#deps.open(this.city)
      for (const phase of CITY_PHASES) await this.#runPhase(phase, aborter.signal)
      aborter.signal.throwIfAborted()
      await this.#announce()
      aborter.signal.throwIfAborted()
    } catch (error) {
      return await this.#startFailed(error)
    } finally {
      cancelDeadline()
      this.#aborter = undefined
    }
    this.#started()
  }

  /** Waits for whoever mends the city; false: something else than a start is wanted by now. */
  async #isQuiet(signal: AbortSignal): Promise<boolean> {
    try {
      await Promise.race([this.#mending.quiet(), rejection(signal)])
      return true
    } catch {
      return false
    }
  }

  async #runPhase(phase: CityPhase, signal: AbortSignal): Promise<void> {
    this.#enter(phase)
    if (phase === FIRST_PHASE) await Promise.race([this.#openStore(), rejection(signal)])
    for (const hook of this.#hooks) {
      if (hook.phase !== phase) continue
      signal.throwIfAborted()
      await Promise.race([hook.run?.(this.city, signal), rejection(signal)])
    }
  }

  /** Before everything else: the last good configuration is in the store. */
  async #openStore(): Promise<void> {
    const lost = directoryFailure(this.#city.path)
    if (lost !== undefined) throw lost
    await this.ensureStore()
  }

  get #hooks(): readonly PhaseHook[] {
    // A city that never ran here may have left something behind all the same.
    this.#run ??= this.#deps.open(this.city)
    return this.#run.hooks
  }

  async #announce(): Promise<void> {
    const city = this.#city
    const store = city.store
    // Its directory was gone when it stopped, so its log could not say so then.
    if (this.#announced) await this.#appendStopped('directory_missing')
    await store?.db.write((tx) => {
      store.log.append(tx, {
        type: 'city.started',
        actor: 'supervisor',
        subject: city.name,
        payload: { name: city.name, path: city.path },
      })
    })
    this.#announced = true
  }

  #started(): void {
    const city = this.#city
    city.attempts = 0
    city.error = undefined
    city.issues = undefined
    city.runningSince = this.#deps.clock.now()
    this.#enter('running')
  }

  /** Running came before this: who sees the terminal event can use the city at once. */
  async #settle(): Promise<void> {
    const city = this.#city
    await this.#deps.supervisor.db.write((tx) => {
      this.#deps.registry.started(tx, city.name, city.store?.log.head ?? city.knownHead)
      for (const request of this.#pendingStarts()) this.#deps.supervisor.requests.finish(tx, succeeded(request, city))
    })
    this.#settled = true
  }

  async #startFailed(error: unknown): Promise<void> {
    const city = this.#city
    const failure = toFailure(error)
    const configTime = this.#deps.configTime(city)
    // Not a failure of the city: what is wanted changed, and the next step says what becomes of its requests.
    if (this.#closed || failure.code === 'preempted') {
      if (!this.#closed) await this.#stopHooks()
      if (!this.#closed && this.#announced) await this.#appendStopped(this.#stopReason())
      return this.#enter(city.wanted === 'running' ? 'queued' : 'stopping')
    }
    await this.#stopHooks()
    const now = this.#deps.clock.now()
    city.attempts++
    city.retryAt = now + retryDelayMs(city.attempts, this.#deps.random())
    city.error = failure.message
    city.issues = failure.issues
    city.failedWith = configTime
    this.#enter('init_failed')
    this.#deps.log.warn(
      { city: city.name, code: failure.code, error: failure.message, attempt: city.attempts },
      'city start failed',
    )
    this.#unnoted = failure
    await this.#noteFailure()
  }

  /** The failure and the end of the requests that it fails are one write; where that is refused it is tried again. */
  async #noteFailure(): Promise<void> {
    const city = this.#city
    const failure = this.#unnoted
    if (failure === undefined) return
    await this.#deps.supervisor.db.write((tx) => {
      this.#deps.registry.startFailed(tx, city.name, {
        attempts: city.attempts,
        retryAt: city.retryAt,
        errorCode: failure.code,
        error: failure.message,
      })
      this.#failRequests(tx, failure, true)
    })
    this.#unnoted = undefined
    const store = city.store
    // The city's own log may be what failed; then its list item is the only witness.
    await store?.db
      .write((tx) => {
        store.log.append(tx, {
          type: 'city.start_failed',
          actor: 'supervisor',
          subject: city.name,
          payload: {
            name: city.name,
            error_code: failure.code,
            error_message: failure.message,
            attempt: city.attempts,
            ...(city.retryAt === undefined ? {} : { retry_at: isoTime(city.retryAt) }),
          },
        })
      })
      .catch((error: unknown) =>
        this.#deps.log.warn({ city: city.name, err: error }, 'start failure not in the log of the city'),
      )
  }

  async #stop(): Promise<void> {
    const city = this.#city
    const lost = this.#lostDirectory
    this.#lostDirectory = false
    city.runningSince = undefined
    // Tombstone first: routes answer 404 from here on.
    this.#enter('stopping')
    this.#settled = false
    await this.#mending.end(false)
    await this.#stopHooks()
    if (this.#announced && !lost) await this.#appendStopped(this.#stopReason())
    if (lost) return await this.#startFailed(directoryFailure(city.path) ?? storeFailure(city.path))
    if (city.wanted === 'stopped') {
      city.attempts = 0
      city.retryAt = undefined
      const overtaken = new StartFailure('stopped', 'the city was stopped before it was running')
      if (this.#pendingStarts().length > 0)
        await this.#deps.supervisor.db.write((tx) => this.#failRequests(tx, overtaken, false))
      this.#enter('stopped')
      return
    }
    if (city.wanted === 'running') this.#enter('queued')
  }

  #stopReason(): StopReason {
    if (this.city.wanted === 'gone') return 'unregister'
    return this.city.restart ? 'restart' : 'stop'
  }

  async #appendStopped(reason: StopReason): Promise<void> {
    this.#announced = false
    const city = this.#city
    const store = city.store
    await store?.db
      .write((tx) => {
        store.log.append(tx, {
          type: 'city.stopped',
          actor: 'supervisor',
          subject: city.name,
          payload: { name: city.name, path: city.path, reason },
        })
      })
      .catch((error: unknown) =>
        this.#deps.log.warn({ city: city.name, err: error }, 'stop not in the log of the city'),
      )
  }

  /** Ends what the phases started, in reverse order; a hook that does not end in time is left behind and reported. */
  async #stopHooks(): Promise<boolean> {
    const aborter = new AbortController()
    const cancel = this.#deps.clock.after(STOP_DEADLINE_MS, () => aborter.abort(new Error('the stop took too long')))
    let clean = true
    for (const hook of this.#hooksToStop()) {
      try {
        await Promise.race([this.#stopHook(hook, aborter.signal), rejection(aborter.signal)])
      } catch (error) {
        clean = false
        this.#deps.log.error({ city: this.city.name, phase: hook.phase, err: error }, 'stop of a phase failed')
      }
    }
    cancel()
    this.#agentsEnded = this.#run?.agentsEnded ?? 0
    this.#run = undefined
    return clean
  }

  /** Where a run cannot even be opened, nothing of it is there to be stopped. */
  #hooksToStop(): readonly PhaseHook[] {
    try {
      return [...this.#hooks].reverse()
    } catch (error) {
      this.#deps.log.error({ city: this.city.name, err: error }, 'run of a city cannot be opened')
      return []
    }
  }

  async #stopHook(hook: PhaseHook, signal: AbortSignal): Promise<void> {
    const stopping = Promise.resolve(hook.stop?.(this.city, this.#stopOptions, signal))
    const ended = stopping.catch(() => {}).finally(() => this.#unfinished.delete(ended))
    this.#unfinished.add(ended)
    await stopping
  }

  async #depart(): Promise<void> {
    const city = this.#city
    const requestId = city.departure ?? ''
    this.#enter('stopping')
    await this.#mending.end(false)
    const clean = await this.#stopHooks()
    const overtaken = new StartFailure('unregistered', 'the city was unregistered before it was running')
    const { registry, supervisor, clock } = this.#deps
    const ended = this.#endedRequests()
    await supervisor.db.write((tx) => {
      this.#failRequests(tx, overtaken, false)
      // Their outcome is still asked for by id (decision 12); the city's own ledger leaves with it.
      supervisor.requests.keepOn(tx, ended)
      registry.departed(tx, requestId, city.store?.log.head ?? city.knownHead, clock.now())
      const envelope = { actor: 'supervisor', subject: city.name, city: city.name } as const
      supervisor.requests.finish(
        tx,
        clean
          ? {
              type: 'request.result.city.unregister',
              ...envelope,
              payload: { request_id: requestId, name: city.name, path: city.path },
            }
          : {
              type: 'request.failed',
              ...envelope,
              payload: {
                request_id: requestId,
                operation: 'city.unregister',
                error_code: 'city_unregister_failed',
                error_message: 'the controller of the city did not stop cleanly',
              },
            },
      )
    })
    city.departure = undefined
    this.#deps.departed(city)
    this.#enter('stopped')
  }

  #endedRequests(): readonly Row[] {
    try {
      return this.city.store?.requests.ended() ?? []
    } catch (error) {
      this.#deps.log.warn({ city: this.city.name, err: error }, 'requests of a leaving city cannot be read')
      return []
    }
  }

  /** Accepted requests that want this city running. */
  #pendingStarts(): readonly (UnfinishedRequest & { readonly operation: StartOperation })[] {
    return this.#deps.supervisor.requests.unfinished(this.city.name).filter(isStart)
  }

  /** Ends what wants this city running. */
  #failRequests(tx: Tx, failure: StartFailure, retrying: boolean): void {
    const city = this.#city
    for (const { id, operation } of this.#pendingStarts()) {
      this.#deps.supervisor.requests.finish(tx, {
        type: 'request.failed',
        actor: 'supervisor',
        subject: city.name,
        city: city.name,
        payload: {
          request_id: id,
          operation,
          error_code: failure.code,
          error_message: failure.message,
          retrying,
          ...(retrying && city.retryAt !== undefined ? { retry_at: isoTime(city.retryAt) } : {}),
        },
      })
    }
  }
}

function isStart(request: UnfinishedRequest): request is UnfinishedRequest & { readonly operation: StartOperation } {
  return (
    request.operation === 'city.create' || request.operation === 'city.start' || request.operation === 'city.restart'
  )
}

function succeeded(request: UnfinishedRequest & { readonly operation: StartOperation }, city: City) {
  const payload = { request_id: request.id, name: city.name, path: city.path, ...configRejection(city) }
  const envelope = { actor: 'supervisor', subject: city.name, city: city.name, payload } as const
  if (request.operation === 'city.create') {
    const inside = cityAround(city.path)
    const created = { ...payload, ...(inside === undefined ? {} : { inside }) }
    return { type: 'request.result.city.create', ...envelope, payload: created } as const
  }
  if (request.operation === 'city.start') return { type: 'request.result.city.start', ...envelope } as const
  return { type: 'request.result.city.restart', ...envelope } as const
}

function directoryFailure(path: string): StartFailure | undefined {
  const complaint = directoryComplaint(path)
  return complaint === undefined ? undefined : new StartFailure('city_directory_missing', complaint)
}

const storeFailure = (path: string): StartFailure =>
  new StartFailure('city_store_lost', `${cityDatabasePath(path)} was removed or replaced while the city ran`)

/** A city that is registered has a store with something in it: another one would be its history begun anew. */
function refuseLostStore({ name, path }: City): void {
  const file = cityDatabasePath(path)
  const found = look(file)
  if (found.is === 'unknown')
    throw new StartFailure('city_directory_missing', `${file} cannot be looked at (${found.code})`)
  if (found.is !== 'missing' && found.stats.size > 0) return
  throw new StartFailure(
    'city_store_lost',
    `${file} is ${found.is === 'missing' ? 'missing' : 'empty'}, though the city was in use: put a backup of it in its place, or unregister "${name}" and adopt the directory to begin anew`,
  )
}

function toFailure(error: unknown): StartFailure {
  if (error instanceof StartFailure) return error
  if (error instanceof Problem) return new StartFailure('city_init_failed', error.detail)
  return new StartFailure('internal_error', error instanceof Error ? error.message : String(error))
}
