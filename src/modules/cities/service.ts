/**
 * The cities of this host: registry, directory of names, and the reconciler over their workers.
 *
 * C1  Registry row, ledger row and event of a registration or a departure are one transaction (decision 12).
 * C2  A city is in the list, and in the merged stream, from before its 202 until after its terminal event.
 * C3  No name, path or uid belongs to two cities, also while one of them is being made or is leaving.
 */
import { statSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { CityInfo, CityState, CityStopResult } from '../../contract/cities.ts'
import { FileRefused } from '../../files/read.ts'
import { accepted, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Migrations, StoreWatch, Tx } from '../../kernel/database.ts'
import type { EventDraft, Retention } from '../../kernel/event-log.ts'
import { StartFailure } from '../../kernel/family.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import type { Ids } from '../../kernel/ids.ts'
import type { Logger } from '../../kernel/log.ts'
import { cityNotRunning, invalidField, type Problem, problem } from '../../kernel/problem.ts'
import { probeWrites, type Store, tidy } from '../../kernel/store.ts'
import type { Framing } from '../../kernel/streams/hub.ts'
import { LogStream } from '../../kernel/streams/log-stream.ts'
import type { MergedLog } from '../../kernel/streams/merged-log.ts'
import { type City, type CitySettings, cityFromRow, cityInfo } from './city.ts'
import { type CityStore, cityDatabasePath, openCityStore, readSuspension } from './city-store.ts'
import { isCityName } from './lifecycle.ts'
import { type CityRow, type DepartureRow, GRACE_MS, type Registry, type Scaffold } from './registry.ts'
import {
  codeOf,
  forgetScaffold,
  holdsCity,
  isDirectory,
  noteOf,
  planScaffold,
  refuseHome,
  removeLeftover,
  removeMade,
  resolveDirectory,
  type ScaffoldInput,
  writeScaffold,
} from './scaffold.ts'
import { type CityRun, CityWorker, type PhaseHook, type StopOptions } from './worker.ts'

const PATROL_MS = 10_000
const STREAMING: ReadonlySet<CityState> = new Set(['starting_agents', 'running', 'stopping'])

export interface CitiesDeps<Run extends CityRun> {
  readonly supervisor: Store
  readonly registry: Registry
  readonly merged: MergedLog
  readonly framing: Framing
  readonly clock: Clock
  readonly log: Logger
  readonly ids: Ids
  readonly random: () => number
  /** Home of the user, for relative directories. */
  readonly home: string
  /** Where the supervisor keeps its own state: no city lies in it or around it. */
  readonly stateHome: string
  readonly hostId: string
  readonly retention: Retention
  readonly migrations: Migrations
  readonly watch: StoreWatch
  /** Begins a run of a city. */
  readonly open: (city: City) => Run
  /** The patrol's look at files that a watch may have missed. */
  readonly inspect: (run: Run) => void
  /** Name that a directory's own files give it, if they do. */
  readonly nameFromFiles: (directory: string) => string | undefined
  /** Throws where the host cannot run a city with this provider (spec §4: 422, 503). */
  readonly checkHost: (provider: string | undefined, signal: AbortSignal) => Promise<void>
}

export interface CreateInput {
  readonly dir: string
  readonly name?: string
  readonly provider?: string
  readonly start_command?: string
  readonly bootstrap_profile?: string
}

interface Registration {
  readonly name: string
  readonly path: string
  readonly store: CityStore
  readonly requestId: string
  readonly cursor: string
  readonly claim: IdempotencyClaim | undefined
}

type AsyncReply = Reply<AsyncAcceptedResponse>

export class Cities<Run extends CityRun = CityRun> {
  readonly #deps: CitiesDeps<Run>
  readonly #workers = new Map<string, CityWorker<Run>>()
  /** The cities by name, made when asked for: health and lists ask on every request. */
  #sorted: readonly City[] | undefined
  /** Names and paths that a create or adopt under way has taken, with what it is doing. */
  readonly #claimed = new Set<string>()
  /** Logs of cities that left less than two minutes ago. */
  readonly #departed = new Map<
    string,
    { readonly store: CityStore; readonly path: string; readonly cancel: () => void }
  >()
  #cancelPatrol: (() => void) | undefined
  #lastPatrol: number
  #closed = false

  constructor(deps: CitiesDeps<Run>) {
    this.#deps = deps
    this.#lastPatrol = deps.clock.monotonic()
  }

  /** Takes back unfinished scaffolds, opens every city's log, resumes what a crash interrupted. Starts nothing yet. */
  async boot(): Promise<void> {
    const { registry, clock, log } = this.#deps
    for (const scaffold of registry.unfinishedScaffolds()) {
      // One that cannot be taken back now is tried again by the next create there, and at the next start.
      await this.#takeBackLeftover(scaffold).catch((error: unknown) =>
        log.warn({ path: scaffold.path, err: error }, 'scaffold not taken back'),
      )
    }
    for (const row of registry.cities()) await this.#bootCity(row)
    for (const row of registry.departures(clock.now() - GRACE_MS)) await this.#bootDeparture(row)
  }

  /** Lets every worker act, and starts the patrol. */
  start(): void {
    for (const worker of this.#workers.values()) worker.poke()
    this.#schedulePatrol()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelPatrol?.()
    await Promise.all([...this.#workers.values()].map((worker) => worker.close()))
    const heads = [...this.#workers.values()].map(({ city }) => city)
    await this.#deps.supervisor.db
      .write((tx) => {
        for (const { name, store, knownHead } of heads)
          this.#deps.registry.rememberHead(tx, name, store?.log.head ?? knownHead)
      })
      .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'heads not recorded'))
    for (const { city } of this.#workers.values()) this.#dropStore(city)
    for (const name of [...this.#departed.keys()]) this.#forget(name)
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  list(): readonly CityInfo[] {
    const now = this.#deps.clock.now()
    return this.all().map((city) => cityInfo(city, this.#deps.hostId, now))
  }

  all(): readonly City[] {
    this.#sorted ??= [...this.#workers.values()].map(({ city }) => city).sort((a, b) => (a.name < b.name ? -1 : 1))
    return this.#sorted
  }

  isRunning(name: string): boolean {
    return this.#workers.get(name)?.city.state === 'running'
  }

  /** A running city, with its store; the 404 of everything below it otherwise. */
  running(name: string): Run {
    const worker = this.#workers.get(name)
    const { run, city } = worker ?? {}
    if (run === undefined || city?.state !== 'running' || city.store === undefined) throw cityNotRunning(name)
    return run
  }

  /** Every city that runs, starts or stops. */
  runs(): readonly Run[] {
    return [...this.#workers.values()].flatMap(({ run }) => run ?? [])
  }

  /** What is in force in the files of a city. */
  observe(city: City, settings: CitySettings): void {
    city.settings = settings
    if (city.store?.db.inPlace === true) city.suspended = readSuspension(city.store.db) ?? settings.suspendedOnStart
  }

  /** Milliseconds since the reconciler last looked at every city. */
  get patrolAgeMs(): number {
    return this.#deps.clock.monotonic() - this.#lastPatrol
  }

  /** Texts of stores that do not take writes at the moment. */
  storageFailures(): readonly string[] {
    return this.all().flatMap(({ name, store, state, error }) => {
      if (store !== undefined) return store.db.failure === undefined ? [] : [`${name}: ${store.db.failure}`]
      return state === 'init_failed' ? [`${name}: ${error ?? 'its store cannot be opened'}`] : []
    })
  }

  // --- Registering -------------------------------------------------------------------------------------------------

  async create(input: CreateInput, claim: IdempotencyClaim | undefined, signal: AbortSignal): Promise<AsyncReply> {
    const { provider, start_command: startCommand, bootstrap_profile: bootstrapProfile } = input
    if (provider !== undefined && startCommand !== undefined) {
      throw invalidField('body.start_command', 'cannot be combined with provider', startCommand)
    }
    const path = resolveDirectory(input.dir, this.#deps.home, 'body.dir')
    refuseHome(path, this.#deps.stateHome, 'body.dir')
    const name = nameFor(input.name, path)
    return this.#claiming(name, path, async () => {
      const unfinished = this.#deps.registry.unfinishedScaffold(path)
      if (unfinished !== undefined) await this.#takeBackLeftover(unfinished)
      if (holdsCity(path)) throw alreadyCity(path)
      this.#refuseTaken(name, path)
      refuseFile(path)
      const chosen = startCommand === undefined ? (provider ?? 'shell') : undefined
      await this.#deps.checkHost(chosen, signal)
      return this.#scaffold(path, { name, provider: chosen, startCommand, bootstrapProfile }, claim)
    })
  }

  async adopt(
    input: { readonly path: string; readonly name?: string },
    claim: IdempotencyClaim | undefined,
  ): Promise<Reply<AsyncAcceptedResponse | CityInfo>> {
    const path = resolveDirectory(input.path, this.#deps.home, 'body.path')
    const registered = this.#atPath(path)
    if (registered !== undefined && registered.wanted !== 'gone') return this.#alreadyRegistered(registered, input.name)
    refuseHome(path, this.#deps.stateHome, 'body.path')
    if (!isDirectory(path) || !holdsCity(path)) throw problem('directory-not-found', `no city at ${path}`)
    const name = nameFor(input.name ?? this.#deps.nameFromFiles(path), path)
    return this.#claiming(name, path, async () => {
      this.#refuseTaken(name, path)
      const cursor = this.#deps.merged.head()
      const store = this.#takeDeparted(path) ?? (await this.#openStore(path, name).catch(refusedStore))
      try {
        this.#refuseCopy(store, path)
        return await this.#register({ name, path, store, requestId: this.#deps.ids.requestId(), cursor, claim })
      } catch (error) {
        store.db.close()
        throw error
      }
    })
  }

  // --- Steering ----------------------------------------------------------------------------------------------------

  async startCity(name: string, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    return this.#launch(name, 'city.start', claim)
  }

  async restartCity(name: string, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    return this.#launch(name, 'city.restart', claim)
  }

  async stopCity(name: string, options: StopOptions, signal: AbortSignal): Promise<CityStopResult> {
    const worker = this.#registered(name)
    const { city } = worker
    const alreadyStopped = city.wanted === 'stopped' && city.state === 'stopped'
    if (!alreadyStopped) {
      await this.#deps.supervisor.db.write((tx) => {
        this.#want(tx, city, 'stopped')
        tx.afterCommit(() => {
          city.restart = false
        })
      })
      worker.steer(options)
      await worker.until(({ state, wanted }) => state === 'stopped' || wanted !== 'stopped', signal)
      if (city.wanted === 'running')
        throw problem('conflict-wrong-state', `${name} was started again before it had stopped`)
      if (city.wanted !== 'stopped') throw cityNotRunning(name)
    }
    return {
      status: 'stopped',
      city: name,
      already_stopped: alreadyStopped,
      sessions_stopped: alreadyStopped ? 0 : (worker.run?.agentsEnded ?? 0),
      forced: options.force,
    }
  }

  async unregister(name: string, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    const { supervisor, registry, merged, ids, clock } = this.#deps
    const worker = this.#workers.get(name)
    if (worker === undefined || worker.city.wanted === 'gone') throw notRegistered(name)
    const { city } = worker
    const requestId = ids.requestId()
    const cursor = merged.head()
    const reply = await supervisor.db.write((tx) => {
      // Two at once: the second finds the entry gone, inside the transaction.
      if (!registry.has(tx, name, city.uid)) throw notRegistered(name)
      supervisor.log.append(tx, {
        type: 'city.unregister_requested',
        actor: 'api',
        subject: name,
        city: name,
        payload: { name, path: city.path },
      })
      supervisor.requests.accept(tx, {
        id: requestId,
        operation: 'city.unregister',
        city: name,
        subject: name,
        eventCursor: cursor,
        input: {},
      })
      registry.depart(tx, name, requestId, city.store?.log.head ?? city.knownHead, clock.now())
      tx.afterCommit(() => {
        city.wanted = 'gone'
        city.departure = requestId
      })
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    worker.steer()
    return reply
  }

  /** A write of this city: its suspension as it is now, to be changed by the handler. */
  setSuspended(city: City, suspended: boolean): void {
    city.suspended = suspended
  }

  // --- Patrol ------------------------------------------------------------------------------------------------------

  #schedulePatrol(): void {
    if (this.#closed) return
    this.#cancelPatrol = this.#deps.clock.after(PATROL_MS, () => {
      this.#patrol()
        .catch((error: unknown) => this.#deps.log.error({ err: error }, 'patrol failed'))
        .finally(() => this.#schedulePatrol())
    })
  }

  /** The safety net: lost directories, changed files, retention, logs whose grace is over. */
  async #patrol(): Promise<void> {
    const { clock, supervisor, retention } = this.#deps
    this.#lastPatrol = clock.monotonic()
    for (const worker of this.#workers.values()) this.#inspect(worker)
    await this.#tend(SUPERVISOR_SOURCE, supervisor, retention)
    for (const { store, settings, name } of this.all()) {
      if (store === undefined || !store.db.inPlace) continue
      await this.#tend(name, store, settings?.retention ?? retention)
    }
  }

  async #tend(name: string, store: Store, retention: Retention): Promise<void> {
    try {
      if (store.db.failure !== undefined) await probeWrites(store, this.#deps.clock)
      await tidy(store, retention)
    } catch (error) {
      this.#deps.log.warn({ store: name, err: error }, 'store not tended')
    }
  }

  #inspect(worker: CityWorker<Run>): void {
    const { city, run } = worker
    const lost = city.wanted !== 'gone' && city.store?.db.inPlace === false
    if (lost) this.#dropStore(city)
    if (lost && city.state === 'running') worker.directoryLost()
    else if (city.state === 'init_failed' && configTime(city) !== city.failedWith) worker.retryNow()
    else worker.poke()
    if (city.state === 'running' && run !== undefined) this.#deps.inspect(run)
    // The log of a stopped city is read too; its directory may be back.
    if (city.state === 'stopped' && city.store === undefined && isDirectory(city.path)) {
      this.#ensureStore(city).catch((error: unknown) =>
        this.#deps.log.warn({ city: city.name, err: error }, 'city store not opened'),
      )
    }
  }

  // --- Inside ------------------------------------------------------------------------------------------------------

  async #bootCity(row: CityRow): Promise<void> {
    const city = cityFromRow(row, this.#deps.clock.now())
    try {
      if (isDirectory(city.path)) await this.#ensureStore(city)
    } catch (error) {
      this.#deps.log.warn({ city: city.name, err: error }, 'city store not opened')
    }
    this.#join(city)
  }

  async #bootDeparture(row: DepartureRow): Promise<void> {
    // The name, or the directory under another name, may have come back since; one file is opened once.
    const kept = [...this.#departed.values()].map(({ store }) => store)
    if (this.#workers.has(row.name) || [...this.all(), ...kept].some(({ uid }) => uid === row.uid)) return
    const city = cityFromRow(
      {
        ...row,
        desired: 'stopped',
        previousUid: undefined,
        attempts: 0,
        retryAt: undefined,
        errorCode: undefined,
        error: undefined,
      },
      this.#deps.clock.now(),
    )
    city.wanted = 'gone'
    city.state = 'stopping'
    city.departure = row.finishedAt === undefined ? row.requestId : undefined
    try {
      if (isDirectory(city.path)) await this.#ensureStore(city)
    } catch (error) {
      this.#deps.log.warn({ city: city.name, err: error }, 'store of a leaving city not opened')
    }
    if (row.finishedAt === undefined) {
      this.#join(city)
      return
    }
    this.#putSource(city)
    if (city.store !== undefined) this.#keepForGrace(city, city.store, row.finishedAt + GRACE_MS)
  }

  #join(city: City): CityWorker<Run> {
    this.#putSource(city)
    const { clock, log, supervisor, registry, random, open } = this.#deps
    const worker = new CityWorker<Run>(city, {
      clock,
      log,
      supervisor,
      registry,
      random,
      hooks: [this.#storeHook()],
      open,
      changed: (changed) => this.#changed(changed),
      departed: (left) => this.#left(left),
      configTime,
    })
    this.#workers.set(city.name, worker)
    this.#sorted = undefined
    return worker
  }

  #changed(city: City): void {
    // While it stops its streams still get what the stop itself logs.
    if (!STREAMING.has(city.state)) city.stream?.end()
    this.#deps.log.info({ city: city.name, state: city.state }, 'city state')
  }

  #left(city: City): void {
    this.#workers.delete(city.name)
    this.#sorted = undefined
    city.stream?.end()
    if (city.store === undefined) this.#deps.merged.remove(city.name)
    else this.#keepForGrace(city, city.store, this.#deps.clock.now() + GRACE_MS)
  }

  #keepForGrace({ name, path }: City, store: CityStore, until: number): void {
    this.#forget(name)
    const { clock, merged } = this.#deps
    const cancel = clock.after(Math.max(until - clock.now(), 0), () => {
      this.#forget(name)
      if (!this.#workers.has(name)) merged.remove(name)
    })
    this.#departed.set(name, { store, path, cancel })
  }

  /** Closes the log of a city that left, if there is one of this name. */
  #forget(name: string): void {
    const left = this.#departed.get(name)
    this.#departed.delete(name)
    left?.cancel()
    left?.store.db.close()
  }

  /** The open store of a city that left this directory a moment ago: it must not be opened twice. */
  #takeDeparted(path: string): CityStore | undefined {
    for (const [name, { store, path: left, cancel }] of this.#departed) {
      if (!store.db.isAt(cityDatabasePath(path))) continue
      this.#departed.delete(name)
      cancel()
      this.#deps.merged.remove(name)
      if (left === path) return store
      // It was moved since: the open file would write its side files where it came from.
      store.db.close()
    }
    return undefined
  }

  #storeHook(): PhaseHook {
    return {
      phase: 'loading_config',
      run: async (city) => {
        if (!isDirectory(city.path))
          throw new StartFailure('city_directory_missing', `city directory is missing: ${city.path}`)
        // The last good configuration is in the store.
        await this.#ensureStore(city)
      },
    }
  }

  async #ensureStore(city: City): Promise<CityStore> {
    if (city.store?.db.inPlace === true) return city.store
    this.#dropStore(city)
    const store = await this.#openStore(city.path, city.name)
    if (store.uid !== city.uid) {
      store.db.close()
      throw new StartFailure(
        'city_replaced',
        `the directory holds another city (${store.uid}, not ${city.uid}): unregister "${city.name}" and adopt the directory`,
      )
    }
    city.store = store
    city.stream = new LogStream(store.log, this.#deps.framing, this.#deps.clock)
    if (this.#workers.has(city.name)) this.#putSource(city)
    return store
  }

  #dropStore(city: City): void {
    if (city.store === undefined) return
    city.knownHead = city.store.log.head
    city.stream?.close()
    city.store.db.close()
    city.store = undefined
    city.stream = undefined
    this.#putSource(city)
  }

  #putSource(city: City): void {
    const { name, uid, store, registeredAt, startHead, knownHead, previousUid } = city
    this.#deps.merged.put({ name, uid, log: store?.log, registeredAt, startHead, knownHead, previousUid })
  }

  #openStore(path: string, name: string): Promise<CityStore> {
    return openCityStore(path, name, this.#deps.clock, this.#deps.migrations, this.#deps.watch)
  }

  async #scaffold(path: string, input: ScaffoldInput, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    const { supervisor, registry, merged, ids } = this.#deps
    const requestId = ids.requestId()
    const cursor = merged.head()
    if (holdsCity(path)) throw alreadyCity(path)
    const plan = planScaffold(path, input, requestId)
    const note = noteOf(plan)
    await supervisor.db.write((tx) => registry.beginScaffold(tx, path, note))
    const made: string[] = []
    let store: CityStore | undefined
    try {
      writeScaffold(plan, made)
      store = await this.#openStore(path, input.name)
      return await this.#register({ name: input.name, path, store, requestId, cursor, claim })
    } catch (error) {
      store?.db.close()
      // Where even that fails the journal stays: the next create there, or the next start, tries again.
      await this.#takeBack(path, () => removeMade({ ...note, directory: path }, made)).catch((failure: unknown) =>
        this.#deps.log.warn({ path, err: failure }, 'scaffold not taken back'),
      )
      throw scaffoldProblem(error, path)
    }
  }

  async #takeBack(path: string, remove: () => void): Promise<void> {
    remove()
    await this.#deps.supervisor.db.write((tx) => this.#deps.registry.endScaffold(tx, path))
  }

  #takeBackLeftover({ path, note }: Scaffold): Promise<void> {
    return this.#takeBack(path, () => removeLeftover(path, note))
  }

  async #register({ name, path, store, requestId, cursor, claim }: Registration): Promise<AsyncReply> {
    const { supervisor, registry, clock } = this.#deps
    const payload = { name, path }
    let worker: CityWorker<Run> | undefined
    const reply = await supervisor.db.write((tx) => {
      const registeredAt = supervisor.log.append(tx, {
        type: 'city.created',
        actor: 'api',
        subject: name,
        city: name,
        payload,
      } satisfies EventDraft)
      supervisor.requests.giveBack(tx, store.requests.ended())
      const row = registry.add(tx, { name, uid: store.uid, path, registeredAt, startHead: store.log.head }, clock.now())
      supervisor.requests.accept(tx, {
        id: requestId,
        operation: 'city.create',
        city: name,
        subject: name,
        eventCursor: cursor,
        input: payload,
      })
      tx.afterCommit(() => {
        forgetScaffold(path)
        worker = this.#join(this.#adoptedCity(row, store))
      })
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    worker?.poke()
    return reply
  }

  #adoptedCity(row: CityRow, store: CityStore): City {
    this.#forget(row.name)
    const city = cityFromRow(row, this.#deps.clock.now())
    city.store = store
    city.stream = new LogStream(store.log, this.#deps.framing, this.#deps.clock)
    return city
  }

  async #launch(
    name: string,
    operation: 'city.start' | 'city.restart',
    claim: IdempotencyClaim | undefined,
  ): Promise<AsyncReply> {
    const { supervisor, merged, ids } = this.#deps
    const worker = this.#registered(name)
    const { city } = worker
    const requestId = ids.requestId()
    const cursor = merged.head()
    const reply = await supervisor.db.write((tx) => {
      this.#want(tx, city, 'running')
      this.#refuseSecond(tx, name, operation)
      supervisor.requests.accept(tx, {
        id: requestId,
        operation,
        city: name,
        subject: name,
        eventCursor: cursor,
        input: {},
      })
      tx.afterCommit(() => {
        if (operation === 'city.restart' && city.state === 'running') city.restart = true
      })
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    worker.retryNow()
    return reply
  }

  /** Memory follows the registry in the order of commits; a city that was unregistered in between is gone for good. */
  #want(tx: Tx, city: City, wanted: 'running' | 'stopped'): void {
    const { registry } = this.#deps
    if (!registry.has(tx, city.name, city.uid)) throw cityNotRunning(city.name)
    registry.setDesired(tx, city.name, wanted)
    tx.afterCommit(() => {
      city.wanted = wanted
    })
  }

  #refuseSecond(tx: Tx, name: string, operation: string): void {
    const row = tx.get(
      "SELECT id, event_cursor FROM requests WHERE city = ? AND operation = ? AND status IN ('accepted', 'running')",
      name,
      operation,
    )
    if (row === undefined) return
    throw problem('operation-in-progress', `${operation} of ${name} is already under way`, {
      request_id: String(row.id),
      event_cursor: String(row.event_cursor),
      retryAfterSec: 1,
    })
  }

  #registered(name: string): CityWorker<Run> {
    const worker = this.#workers.get(name)
    if (worker === undefined || worker.city.wanted === 'gone') throw cityNotRunning(name)
    return worker
  }

  #atPath(path: string): City | undefined {
    return this.all().find((city) => city.path === path)
  }

  async #claiming<T>(name: string, path: string, work: () => Promise<T>): Promise<T> {
    const keys = [`name ${name}`, `path ${path}`]
    if (this.#claimed.has(keys[1] ?? ''))
      throw problem('operation-in-progress', `city initialization already in progress at ${path}`, { retryAfterSec: 1 })
    if (this.#claimed.has(keys[0] ?? '')) throw problem('city-name-taken', `a city named ${name} is being created`)
    for (const key of keys) this.#claimed.add(key)
    try {
      return await work()
    } finally {
      for (const key of keys) this.#claimed.delete(key)
    }
  }

  #refuseTaken(name: string, path: string): void {
    const there = this.#atPath(path)
    if (there !== undefined)
      throw problem('operation-in-progress', `city initialization already in progress at ${path}`, { retryAfterSec: 1 })
    const named = this.#workers.get(name)?.city
    if (named === undefined) return
    const leaving = named.wanted === 'gone' ? '; it is being unregistered' : ''
    throw problem('city-name-taken', `a city named ${name} is registered at ${named.path}${leaving}`)
  }

  #refuseCopy(store: CityStore, path: string): void {
    const original = this.all().find(({ uid }) => uid === store.uid)
    if (original === undefined) return
    throw problem(
      'city-name-taken',
      `${path} is a copy of the city ${original.name} at ${original.path}: remove .svc/city.db from the copy to make it a city of its own`,
    )
  }

  #alreadyRegistered(city: City, name: string | undefined): Reply<CityInfo> {
    if (name !== undefined && name !== city.name) {
      throw problem(
        'city-name-taken',
        `${city.path} is registered as ${city.name}; unregister it to give it another name`,
      )
    }
    return { status: 200, body: cityInfo(city, this.#deps.hostId, this.#deps.clock.now()) }
  }
}

function nameFor(given: string | undefined, path: string): string {
  const name = given ?? basename(path)
  if (isCityName(name)) return name
  const location = given === undefined ? 'body.dir' : 'body.name'
  throw invalidField(
    location,
    `"${name.slice(0, 80)}" cannot be the name of a city: use letters, digits, dot, underscore and hyphen, or give "name"`,
    name.slice(0, 80),
  )
}

/** What stands where the store belongs is for the caller to move away. */
function refusedStore(error: unknown): never {
  if (error instanceof FileRefused)
    throw invalidField('body.path', `its .svc/city.db cannot be opened: ${error.message}`)
  throw error
}

function refuseFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat !== undefined && !stat.isDirectory()) throw invalidField('body.dir', 'is not a directory', path)
}

const alreadyCity = (path: string): Problem =>
  problem('city-already-initialized', `city already initialized at ${path}`)

function scaffoldProblem(error: unknown, path: string): unknown {
  const code = codeOf(error)
  // Somebody has made what was planned, between the plan and us.
  if (code === 'EEXIST')
    return holdsCity(path) ? alreadyCity(path) : invalidField('body.dir', 'was changed meanwhile: look again', path)
  if (code === 'ENOSPC' || code === 'EROFS' || code === 'EDQUOT')
    return problem('unavailable', `cannot write to ${path}: ${code}`, { cause: error, retryAfterSec: 5 })
  // ENOENT: its parent is there and lets nobody make anything, as in /proc.
  if (['EACCES', 'EPERM', 'ENOTDIR', 'ENAMETOOLONG', 'ENOENT'].includes(code ?? ''))
    return invalidField('body.dir', `cannot be written: ${code}`, path)
  return error
}

function configTime(city: City): number | undefined {
  return statSync(join(city.path, 'city.toml'), { throwIfNoEntry: false })?.mtimeMs
}

const notRegistered = (name: string): Problem =>
  problem('city-not-found', `city not registered with supervisor: ${name}`)
