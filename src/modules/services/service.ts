/**
 * One service of a running city: an actor that asks the rules what is next, does that one thing, and asks again.
 *
 * A1  One thing at a time, and only here: so there are never two processes of a service (decision 166).
 * A2  Who it is (generation, token) is on disk before it is started, and stays there until nothing of it runs: after a
 *     crash it is found again, or ended, before another one is started.
 * A3  What is told of its state is on disk, once for each transition.
 */
import { setMaxListeners } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ServiceReason, ServiceState } from '../../contract/services.ts'
import { delay } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { deadline } from '../../kernel/deadline.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import { type AgentProcess, type Exit, type Identity, LaunchError } from '../../runtimes/process/runtime.ts'
import { Door } from './door.ts'
import { accessHash, adoptSpecOf, fingerprintOf, launchOf, onPort } from './launch.ts'
import { PlaceRefused, prepareState, runDirectory, runsDirectory } from './places.ts'
import type { ServiceSettings, ServicesDeps, Upstream, Visit } from './ports.ts'
import { probe } from './probe.ts'
import {
  type Facts,
  nextStep,
  type ProcessState,
  pauseMs,
  READY_MS,
  type Step,
  type StopWhy,
  type Wanted,
} from './rules.ts'
import * as rows from './store.ts'

const START_MS = 10_000
const ADOPT_MS = 2_000
const ADOPT_PAUSE_MS = 250
/** A host that does not answer for so long goes with its process. */
const GIVE_UP_ADOPTING_MS = 10_000
/** For running requests, before its process is asked to end. */
const DRAIN_MS = 10_000
const STOPPING_DRAIN_MS = 2_000
/** From asking its process to end until it is killed. */
const TERM_MS = 5_000
/** Something of ours failed: the disk, the process table. */
const RETRY_MS = 1_000
const LONGEST_RETRY_SEC = 60
const TRYING_RETRY_SEC = 5
/** One that fails at every start is to be read from its first one. */
const KEPT_RUNS = 20
const KEPT_BYTES = 256 * 1024 * 1024

/** What of an end is told, and how what runs is treated before it. */
interface Going {
  readonly state: ServiceState
  readonly reason: ServiceReason
  readonly drainMs: number
}
const GOING: Readonly<Record<StopWhy, Going>> = {
  restart: { state: 'starting', reason: 'restart', drainMs: DRAIN_MS },
  reconfigured: { state: 'starting', reason: 'reconfigured', drainMs: DRAIN_MS },
  unhealthy: { state: 'degraded', reason: 'unhealthy', drainMs: 0 },
  not_ready: { state: 'degraded', reason: 'not_ready', drainMs: 0 },
  suspended: { state: 'stopping', reason: 'suspended', drainMs: STOPPING_DRAIN_MS },
  untrusted_pack: { state: 'degraded', reason: 'untrusted_pack', drainMs: 0 },
  ended: { state: 'stopping', reason: 'city_stopped', drainMs: STOPPING_DRAIN_MS },
}

export class Service {
  readonly name: string
  readonly #deps: ServicesDeps
  readonly #door: Door
  readonly #after: Promise<void>
  readonly #leaving = new AbortController()
  #settings: ServiceSettings
  #row: rows.ServiceRow
  #state: ServiceState
  #reason: ServiceReason
  #message: string | undefined
  #process: AgentProcess | undefined
  #processState: ProcessState
  #exit: Exit | undefined
  #unsubscribe: () => void = () => {}
  #restart = false
  /** Why its next start is one that requests wait for; else they wait only where it has not failed. */
  #again: Extract<ServiceReason, 'restart' | 'reconfigured' | 'resumed'> | undefined
  #ending: { readonly reason: 'city_stopped' | 'removed'; readonly force: boolean } | undefined
  #startedAt = 0
  #readyAt = 0
  #probedAt = Number.NEGATIVE_INFINITY
  #observedAt: number | undefined
  #failedProbes = 0
  #lastFault: string | undefined
  #nextStartAt: number
  #unknownSince: number | undefined
  #logSize = 0
  #logBase = 0
  #loop: Promise<void> | undefined
  #poke = Promise.withResolvers<void>()
  /** Aborts what can be given up when something changes. */
  #interrupt = new AbortController()
  readonly #watchers = new Set<() => void>()

  /** `after`: when the one before it, of the same name, has ended. */
  constructor(deps: ServicesDeps, settings: ServiceSettings, row: rows.ServiceRow, after: Promise<void>) {
    this.#deps = deps
    this.#after = after
    this.name = settings.name
    this.#settings = settings
    this.#row = row
    this.#door = new Door(settings.name, deps.clock)
    this.#processState = row.token === undefined ? 'none' : 'unknown'
    this.#nextStartAt = deps.clock.monotonic() + pauseLeft(row, deps.clock.now())
    const waits = row.token === undefined && !row.suspended && row.state === 'degraded'
    this.#state = row.suspended ? 'suspended' : waits ? 'degraded' : 'starting'
    this.#reason = this.#state === 'starting' && row.token === undefined ? beginning(row) : row.reason
    this.#message = waits ? row.message : undefined
    if (this.#state === 'starting') this.#door.hold()
    else this.#door.shut(() => this.#refusal())
    setMaxListeners(0, this.#leaving.signal)
  }

  // ---- what the proxy sees --------------------------------------------------------------------------------------------

  get direct(): boolean {
    return this.#settings.direct
  }
  get websockets(): boolean {
    return this.#settings.websockets
  }
  get sandbox(): boolean {
    return this.#settings.sandbox
  }
  get firstByteMs(): number {
    return this.#settings.firstByteMs
  }
  get idleMs(): number {
    return this.#settings.idleMs
  }

  enter(signal: AbortSignal): Visit | Promise<Visit> {
    return this.#door.enter(signal)
  }

  // ---- what people see ------------------------------------------------------------------------------------------------

  get settings(): ServiceSettings {
    return this.#settings
  }
  get row(): rows.ServiceRow {
    return this.#row
  }
  get state(): ServiceState {
    return this.#state
  }
  get reason(): ServiceReason {
    return this.#reason
  }
  get message(): string | undefined {
    return this.#message
  }
  get pid(): number | undefined {
    return this.#exit === undefined ? this.#process?.pid : undefined
  }
  get observedAt(): number | undefined {
    return this.#observedAt
  }
  /** Bytes that it has written, over all its starts. */
  get logSize(): number {
    return this.#logSize
  }
  /** When it is tried again, in milliseconds since the epoch; undefined where it is not to be. */
  get nextStartAt(): number | undefined {
    return this.#processState === 'none' && this.#wanted === 'run' ? this.#row.next_start_at : undefined
  }

  /** Called at whatever is new of it: its state, its output. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher)
    return () => this.#watchers.delete(watcher)
  }

  /** Resolves when it is as it stays for now: neither starting nor ending. */
  async settled(signal: AbortSignal): Promise<void> {
    while (this.#isMoving) {
      signal.throwIfAborted()
      const changed = Promise.withResolvers<void>()
      const off = this.watch(changed.resolve)
      const onAbort = () => changed.reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        await changed.promise
      } finally {
        off()
        signal.removeEventListener('abort', onAbort)
      }
    }
  }

  get #isMoving(): boolean {
    if (this.#restart || this.#state === 'starting' || this.#state === 'stopping') return true
    return (this.#wanted === 'suspend') !== (this.#state === 'suspended')
  }

  // ---- what is wanted of it -------------------------------------------------------------------------------------------

  begin(): void {
    this.#loop ??= this.#run()
  }

  /** Settings that are not of its process count at once. */
  configure(settings: ServiceSettings): void {
    const isOther = fingerprintOf(settings) !== fingerprintOf(this.#settings)
    const isTrusted = this.#settings.untrustedPack !== undefined && settings.untrustedPack === undefined
    this.#settings = settings
    // Whoever has mended its declaration need not wait for the next try.
    if (isOther || isTrusted) {
      this.#again = 'reconfigured'
      this.#nextStartAt = this.#deps.clock.monotonic()
    }
    this.#wake()
  }

  restart(): void {
    this.#restart = true
    this.#wake()
  }

  async suspend(suspended: boolean): Promise<void> {
    if (this.#row.suspended === suspended) return
    await this.#deps.store.db.write((tx) => this.#put(tx, { suspended, ...(suspended ? {} : FORGIVEN) }))
    if (!suspended) {
      this.#again = 'resumed'
      this.#nextStartAt = this.#deps.clock.monotonic()
    }
    this.#wake()
  }

  /** The city stops, or it is declared no more: nothing of it runs when this resolves. */
  async end(reason: 'city_stopped' | 'removed', force: boolean): Promise<void> {
    this.#ending ??= { reason, force }
    this.#wake()
    this.begin()
    await this.#loop
  }

  /** The supervisor ends; its process runs on. */
  async release(): Promise<void> {
    this.#leaving.abort(new Error('the supervisor is shutting down'))
    this.#wake()
    await this.#loop
    this.#unsubscribe()
    this.#process?.release()
    this.#door.shut(() => problem('unavailable', 'the supervisor is shutting down', { retryAfterSec: 1 }))
    this.#door.end()
  }

  // ---- its life -------------------------------------------------------------------------------------------------------

  get #wanted(): Wanted {
    if (this.#ending !== undefined) return 'end'
    if (this.#row.suspended) return 'suspend'
    return this.#settings.untrustedPack === undefined ? 'run' : 'block'
  }

  #facts(): Facts {
    return {
      wanted: this.#wanted,
      leaving: this.#leaving.signal.aborted,
      process: this.#exit === undefined ? this.#processState : 'ended',
      stale: this.#row.fingerprint !== fingerprintOf(this.#settings),
      restart: this.#restart,
      now: this.#deps.clock.monotonic(),
      startedAt: this.#startedAt,
      readyAt: this.#readyAt,
      probedAt: this.#probedAt,
      failedProbes: this.#failedProbes,
      failures: this.#row.failures,
      nextStartAt: this.#nextStartAt,
    }
  }

  async #run(): Promise<void> {
    await this.#after
    this.#logBase = rows.runsOf(this.#deps.store.db, this.name).at(-1)?.base ?? 0
    this.#logSize = Math.max(this.#logBase, await this.#endOfLog().catch(() => 0))
    for (;;) {
      const poke = this.#poke.promise
      const step = nextStep(this.#facts())
      if (step.do === 'leave') return this.#leave()
      try {
        await this.#take(step, poke)
      } catch (error) {
        if (this.#leaving.signal.aborted) continue
        this.#deps.log.warn({ service: this.name, step: step.do, err: error }, 'step of a service failed')
        await delay(this.#deps.clock, RETRY_MS, this.#leaving.signal).catch(() => {})
      }
    }
  }

  async #take(step: Step, poke: Promise<void>): Promise<void> {
    if (step.do === 'wait') return this.#wait(step.until, poke)
    if (step.do === 'adopt') return this.#adopt()
    if (step.do === 'start') return this.#start()
    if (step.do === 'probe') return this.#probe()
    if (step.do === 'heal') return this.#heal()
    if (step.do === 'stop') return this.#stop(step.why)
    return this.#bury()
  }

  #wake(): void {
    this.#poke.resolve()
    this.#poke = Promise.withResolvers()
    this.#interrupt.abort(new Error('something changed'))
    this.#interrupt = new AbortController()
  }

  async #wait(until: number, poke: Promise<void>): Promise<void> {
    if (this.#wanted === 'block' && this.#processState === 'none') await this.#blocked()
    if (this.#wanted === 'suspend' && this.#state !== 'suspended') await this.#suspended()
    const left = until - this.#deps.clock.monotonic()
    const cancel = Number.isFinite(until)
      ? this.#deps.clock.after(Math.max(left, 0), () => this.#poke.resolve())
      : () => {}
    await poke
    // Who was woken by the clock is not to be woken by it again.
    this.#poke = Promise.withResolvers()
    cancel()
  }

  async #blocked(): Promise<void> {
    const { untrustedPack } = this.#settings
    const message = `the pack ${untrustedPack} is not trusted: svcctl pack trust ${untrustedPack}`
    this.#shut('degraded', 'untrusted_pack', message)
    this.#restart = false
    await this.#become('degraded', 'untrusted_pack', message)
  }

  async #suspended(): Promise<void> {
    this.#restart = false
    this.#shut('suspended', 'suspended')
    await this.#become('suspended', 'suspended')
  }

  /** What an earlier run of the supervisor has started (A2). */
  async #adopt(): Promise<void> {
    const { clock, runtime, city } = this.#deps
    const spec = adoptSpecOf(city.path, this.name, this.#identity)
    using limit = deadline(clock, ADOPT_MS, 'its host does not answer', this.#leaving.signal)
    const found = await runtime.adopt(spec, limit.signal)
    if (found.state === 'alive') {
      this.#unknownSince = undefined
      return this.#hold(found.process)
    }
    // It ended while nobody looked, with the machine perhaps: it is started anew, and its requests wait for that.
    if (found.state === 'dead') return this.#kill(0).then(() => this.#gone({}))
    this.#unknownSince ??= clock.monotonic()
    if (clock.monotonic() - this.#unknownSince < GIVE_UP_ADOPTING_MS)
      return delay(clock, ADOPT_PAUSE_MS, this.#leaving.signal)
    await this.#kill(0)
    await this.#failed('process_exited', found.message)
  }

  get #identity(): Identity {
    return { sessionId: `service-${this.name}`, generation: this.#row.generation, token: this.#row.token ?? '' }
  }

  /** From now on it is ours, and to become ready. */
  #hold(process: AgentProcess): void {
    this.#process = process
    this.#processState = 'starting'
    this.#startedAt = this.#deps.clock.monotonic()
    this.#probedAt = Number.NEGATIVE_INFINITY
    this.#failedProbes = 0
    this.#lastFault = undefined
    this.#grown(process.endOffset)
    this.#unsubscribe = process.on((event) => {
      if (event.type === 'output') this.#grown(event.endOffset)
      if (event.type !== 'exit') return
      this.#exit = event.exit
      this.#wake()
    })
    this.#changed()
  }

  #grown(endOffset: number): void {
    this.#logSize = Math.max(this.#logSize, this.#logBase + endOffset)
    this.#changed()
  }

  async #start(): Promise<void> {
    const { clock, city, random, auth } = this.#deps
    const again = this.#restart ? 'restart' : this.#again
    this.#restart = false
    this.#again = undefined
    // Who is tried again after a failure stays degraded until he is ready.
    if (again !== undefined || this.#state !== 'degraded') {
      this.#door.hold()
      await this.#become('starting', again ?? this.#reason)
    }
    const settings = this.#settings
    try {
      const secrets = prepareState(city.path, settings.stateRoot)
      const generation = this.#row.generation + 1
      const upstream = await this.#place(settings, generation)
      const access = auth ? random(32) : undefined
      await this.#prewake(settings, upstream, access)
      const identity = this.#identity
      using limit = deadline(clock, START_MS, `it was not started within ${START_MS / 1000} s`, this.#leaving.signal)
      const launch = launchOf(settings, { identity, upstream, secrets, access }, this.#deps)
      this.#hold(await this.#deps.runtime.start(launch, limit.signal))
    } catch (error) {
      this.#leaving.signal.throwIfAborted()
      if (!(error instanceof LaunchError) && !(error instanceof PlaceRefused)) throw error
      // One that ended before it was seen has ended by itself.
      const exit = error instanceof LaunchError ? error.exit : undefined
      if (error instanceof LaunchError && error.code === 'exited' && exit !== undefined)
        return this.#failed('process_exited', wordsOf(exit))
      return this.#failed('start_failed', error.message)
    }
  }

  async #place({ listen }: ServiceSettings, generation: number): Promise<Upstream> {
    if (listen === 'port') return onPort(await this.#deps.freePort())
    const { socketDirectory, random } = this.#deps
    const socketPath = join(socketDirectory(), `${generation}-${random(4)}.service`)
    return { socketPath }
  }

  /** A2. */
  async #prewake(settings: ServiceSettings, upstream: Upstream, access: string | undefined): Promise<void> {
    const { store, clock, city, random } = this.#deps
    const runs = rows.runsOf(store.db, this.name)
    const base = await this.#endOfLog()
    const generation = this.#row.generation + 1
    const directory = runDirectory(city.path, this.name, generation)
    // What a service of the name has left there that was declared before.
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const dropped = tooOld(runs, base)
    await store.db.write((tx) => {
      for (const { generation: old } of dropped) rows.dropRun(tx, this.name, old)
      rows.addRun(tx, this.name, { generation, base })
      this.#put(tx, {
        generation,
        token: random(16),
        access_hash: access === undefined ? undefined : accessHash(access),
        fingerprint: fingerprintOf(settings),
        upstream,
        started_at: clock.now(),
      })
    })
    this.#logBase = base
    this.#logSize = base
    for (const { generation: old } of dropped)
      await rm(runDirectory(city.path, this.name, old), { recursive: true, force: true }).catch(() => {})
  }

  async #endOfLog(): Promise<number> {
    const { city, output, store } = this.#deps
    const last = rows.runsOf(store.db, this.name).at(-1)
    if (last === undefined) return 0
    return last.base + (await output(runDirectory(city.path, this.name, last.generation)).endOffset())
  }

  async #probe(): Promise<void> {
    const { clock, listeners } = this.#deps
    const { upstream } = this.#row
    const process = this.#process
    if (upstream === undefined || process === undefined) throw new Error('there is nothing to look at')
    let why: string | undefined
    try {
      const signal = AbortSignal.any([this.#interrupt.signal, this.#leaving.signal])
      const { healthPath } = this.#settings
      why = await probe({ upstream, healthPath, listeners }, clock, signal)
    } catch {
      // Something else comes first.
      return
    }
    this.#probedAt = clock.monotonic()
    this.#observedAt = clock.now()
    if (why === undefined) return this.#healthy(upstream)
    this.#failedProbes++
    this.#lastFault = why
  }

  async #healthy(upstream: Upstream): Promise<void> {
    const { clock } = this.#deps
    if (this.#failedProbes > 0 && this.#processState === 'ready') this.#readyAt = clock.monotonic()
    this.#failedProbes = 0
    if (this.#processState === 'ready') return
    this.#processState = 'ready'
    this.#readyAt = clock.monotonic()
    await this.#become('ready', 'healthy')
    this.#door.open(upstream)
    this.#changed()
  }

  async #heal(): Promise<void> {
    await this.#deps.store.db.write((tx) => this.#put(tx, FORGIVEN))
  }

  async #stop(why: StopWhy): Promise<void> {
    const going = GOING[why]
    const isRestart = why === 'restart' || why === 'reconfigured'
    const reason = why === 'ended' ? (this.#ending?.reason ?? going.reason) : going.reason
    const message = faultText(why, this.#lastFault ?? 'it does not answer')
    if (isRestart) {
      this.#restart = false
      this.#again = undefined
      this.#door.hold()
    } else this.#shut(going.state, reason, message)
    await this.#become(going.state, reason, message)
    await this.#drain(this.#ending?.force === true ? 0 : going.drainMs)
    if (this.#leaving.signal.aborted) return
    this.#door.end()
    await this.#kill(this.#ending?.force === true ? 0 : TERM_MS)
    if (why === 'unhealthy' || why === 'not_ready') return this.#failed(why, message)
    await this.#gone(isRestart ? FORGIVEN : {})
    if (isRestart) this.#nextStartAt = this.#deps.clock.monotonic()
  }

  async #drain(ms: number): Promise<void> {
    if (ms === 0) return
    using limit = deadline(this.#deps.clock, ms, 'they had their time', this.#leaving.signal)
    await this.#door.drained(limit.signal)
  }

  /** Resolves when nothing of it runs; throws where that cannot be said. */
  async #kill(graceMs: number): Promise<void> {
    this.#unsubscribe()
    await this.#process?.stop(graceMs)
    const { generation, token } = this.#identity
    await this.#deps.endAll(runDirectory(this.#deps.city.path, this.name, generation), token)
  }

  /** It has ended by itself. */
  async #bury(): Promise<void> {
    const words = this.#exit === undefined ? undefined : wordsOf(this.#exit)
    const { generation, token } = this.#identity
    this.#shut('degraded', 'process_exited', words)
    this.#door.end()
    await this.#deps.endAll(runDirectory(this.#deps.city.path, this.name, generation), token)
    if (this.#wanted !== 'run') return this.#gone({})
    await this.#failed('process_exited', words)
  }

  /** Nothing of it runs, and it is tried again after a pause. */
  async #failed(reason: ServiceReason, message: string | undefined): Promise<void> {
    const { clock, chance } = this.#deps
    const failures = this.#row.failures + 1
    const pause = pauseMs(failures, chance())
    this.#nextStartAt = clock.monotonic() + pause
    this.#shut('degraded', reason, message)
    await this.#gone({ failures, next_start_at: clock.now() + pause })
    await this.#become('degraded', reason, message)
  }

  async #gone(change: Partial<rows.ServiceRow>): Promise<void> {
    const { upstream, access_hash: access } = this.#row
    await this.#deps.store.db.write((tx) =>
      this.#put(tx, {
        token: undefined,
        access_hash: undefined,
        upstream: undefined,
        started_at: undefined,
        ...change,
      }),
    )
    this.#unsubscribe()
    this.#process = undefined
    this.#exit = undefined
    this.#processState = 'none'
    this.#unknownSince = undefined
    if (upstream !== undefined && 'socketPath' in upstream) rmSync(upstream.socketPath, { force: true })
    if (access !== undefined) this.#deps.accessEnded(this.name)
    this.#changed()
  }

  async #leave(): Promise<void> {
    if (this.#leaving.signal.aborted) return
    const reason = this.#ending?.reason ?? 'city_stopped'
    const isStopped = !this.#row.suspended || reason === 'removed'
    if (isStopped) this.#shut('stopped', reason)
    this.#door.end()
    try {
      if (isStopped) await this.#become('stopped', reason)
      if (reason !== 'removed') return
      const { store, city } = this.#deps
      await store.db.write((tx) => rows.remove(tx, this.name))
      await rm(runsDirectory(city.path, this.name), { recursive: true, force: true })
    } catch (error) {
      this.#deps.log.warn({ service: this.name, err: error }, 'end of a service not recorded')
    }
  }

  // ---- what is told ---------------------------------------------------------------------------------------------------

  #is(state: ServiceState, reason: ServiceReason, message: string | undefined): void {
    this.#state = state
    this.#reason = reason
    this.#message = message
  }

  /** Who waits, and who comes, is told how it is now. */
  #shut(state: ServiceState, reason: ServiceReason, message?: string): void {
    this.#is(state, reason, message)
    this.#door.shut(() => this.#refusal())
  }

  /** A3. What was told already is not told again. */
  async #become(state: ServiceState, reason: ServiceReason, message?: string): Promise<void> {
    this.#is(state, reason, message)
    const { state: from } = this.#row
    if (from !== state) {
      const { store, clock } = this.#deps
      await store.db.write((tx) => {
        this.#put(tx, { state, reason, message, changed_at: clock.now() })
        store.log.append(tx, {
          type: 'service.state_changed',
          actor: 'services',
          subject: this.name,
          payload: { service: this.name, from, to: state, reason, ...(message === undefined ? {} : { message }) },
        })
      })
    }
    this.#changed()
  }

  /** In memory once it is committed. */
  #put(tx: Tx, change: Partial<rows.ServiceRow>): void {
    const row = { ...this.#row, ...change }
    rows.put(tx, row)
    tx.afterCommit(() => {
      this.#row = { ...this.#row, ...change }
    })
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher()
  }

  #refusal(): Problem {
    const { clock } = this.#deps
    const why = this.#state === this.#reason ? '' : `: ${this.#reason}`
    const words = `service ${this.name} is ${this.#state}${why}`
    if (this.#state !== 'degraded' || this.#wanted !== 'run')
      return problem('unavailable', words, { retryAfterSec: LONGEST_RETRY_SEC })
    // How long a try takes that is under way, nobody knows.
    if (this.#processState !== 'none') return problem('unavailable', words, { retryAfterSec: TRYING_RETRY_SEC })
    const left = Math.ceil((this.#nextStartAt - clock.monotonic()) / 1000)
    return problem('unavailable', words, { retryAfterSec: Math.min(Math.max(left, 1), LONGEST_RETRY_SEC) })
  }
}

const beginning = ({ generation }: rows.ServiceRow): ServiceReason =>
  generation === 0 ? 'first_start' : 'city_started'

function faultText(why: StopWhy, fault: string): string | undefined {
  if (why === 'not_ready') return `it was not ready within ${READY_MS / 1000} s: ${fault}`
  return why === 'unhealthy' ? fault : undefined
}

const FORGIVEN = { failures: 0, next_start_at: undefined } as const

/** A pause that began before a restart of ours goes on, however the clock was set meanwhile. */
function pauseLeft({ next_start_at: at, failures }: rows.ServiceRow, now: number): number {
  return at === undefined || failures === 0 ? 0 : Math.min(Math.max(at - now, 0), pauseMs(failures, 1))
}

function wordsOf({ code, signal, reason, message }: Exit): string {
  if (reason === 'host_lost') return message ?? 'its host died'
  if (signal !== undefined) return `it was ended by ${signal}`
  return code === undefined ? (message ?? 'it has ended') : `it exited with status ${code}`
}

/** Outputs that are not kept any longer, of those before the next start. */
const tooOld = (runs: readonly rows.RunRow[], end: number): readonly rows.RunRow[] =>
  runs.filter(({ base }, index) => {
    const after = runs.length - index - 1
    return after >= KEPT_RUNS - 1 || (after > 0 && end - base > KEPT_BYTES)
  })
