/**
 * The cities of this host: which there are, and what is wanted of each. Registering, their stores and the patrol over them
 * have files of their own.
 *
 * C1  Registry row, ledger row and event of a registration or a departure are one transaction (decision 12).
 * C2  A city is in the list, and in the merged stream, from before its 202 until after its terminal event.
 * C3  No name, path or uid belongs to two cities, also while one of them is being made or is leaving.
 */
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { CityInfo, CityState, CityStopResult } from '../../contract/cities.ts'
import { accepted, type Reply } from '../../kernel/call.ts'
import type { Tx } from '../../kernel/database.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import { isDirectory } from '../../kernel/look.ts'
import { cityNotRunning, type Problem, problem } from '../../kernel/problem.ts'
import { type City, type CityRecord, type CitySettings, cityFromRow, cityInfo } from './city.ts'
import type { CityStore } from './city-store.ts'
import type { Lent, Mendable } from './mending.ts'
import { CityPatrol, configTime, type PatrolDeps } from './patrol.ts'
import { CityRegistrar, type CreateInput, type RegistrarDeps } from './registering.ts'
import { type CityRow, type DepartureRow, GRACE_MS } from './registry.ts'
import { CityStores, type CityStoresDeps } from './stores.ts'
import { type CityRun, CityWorker, type StopOptions, type WorkerDeps } from './worker.ts'

const STREAMING: ReadonlySet<CityState> = new Set(['starting_agents', 'running', 'stopping'])

export type CitiesDeps<Run extends CityRun, Mended extends Mendable> = Omit<
  RegistrarDeps,
  'stores' | 'all' | 'joined'
> &
  CityStoresDeps &
  Omit<PatrolDeps<Run>, 'workers'> &
  Pick<WorkerDeps<Run, Mended>, 'random' | 'open' | 'openMended'>

type AsyncReply = Reply<AsyncAcceptedResponse>

export class Cities<Run extends CityRun = CityRun, Mended extends Mendable = Mendable> {
  readonly #deps: CitiesDeps<Run, Mended>
  readonly #stores: CityStores
  readonly #registrar: CityRegistrar
  readonly #patrol: CityPatrol<Run>
  readonly #workers = new Map<string, CityWorker<Run, Mended>>()
  /** The cities by name, made when asked for: health and lists ask on every request. */
  #sorted: readonly City[] | undefined

  constructor(deps: CitiesDeps<Run, Mended>) {
    this.#deps = deps
    this.#stores = new CityStores(deps)
    this.#patrol = new CityPatrol({ ...deps, workers: () => this.#workers.values() })
    this.#registrar = new CityRegistrar({
      ...deps,
      stores: this.#stores,
      all: () => this.all(),
      joined: (row, store) => this.#joinRegistered(row, store),
    })
  }

  /** Takes back unfinished scaffolds, opens every city's log, resumes what a crash interrupted. Starts nothing yet. */
  async boot(): Promise<void> {
    const { registry, clock } = this.#deps
    await this.#registrar.sweep()
    for (const row of registry.cities()) this.#join(await this.#bootWorker(cityFromRow(row, clock.now())))
    for (const row of registry.departures(clock.now() - GRACE_MS)) await this.#bootDeparture(row)
  }

  /** Lets every worker act, and starts the patrol. */
  start(): void {
    for (const worker of this.#workers.values()) worker.poke()
    this.#patrol.start()
  }

  async close(): Promise<void> {
    this.#patrol.close()
    const workers = [...this.#workers.values()]
    await Promise.all(workers.map((worker) => worker.close()))
    await this.#deps.supervisor.db
      .write((tx) => {
        for (const { city } of workers)
          this.#deps.registry.rememberHead(tx, city.name, city.store?.log.head ?? city.knownHead)
      })
      .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'heads not recorded'))
    for (const worker of workers) worker.dropStore()
    this.#stores.close()
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

  /** The way to a city that does not run and can be mended; undefined where there is none now. */
  mend(name: string): (() => Promise<Lent<Mended>>) | undefined {
    const worker = this.#workers.get(name)
    return worker?.isMendable === true ? () => worker.lend() : undefined
  }

  /** Every city that runs, starts or stops. */
  runs(): readonly Run[] {
    return [...this.#workers.values()].flatMap(({ run }) => run ?? [])
  }

  /** Milliseconds since the reconciler last looked at every city. */
  get patrolAgeMs(): number {
    return this.#patrol.ageMs
  }

  /** Texts of stores that do not take writes at the moment. */
  storageFailures(): readonly string[] {
    return this.all().flatMap(({ name, store, state, error }) => {
      if (store !== undefined) return store.db.failure === undefined ? [] : [`${name}: ${store.db.failure}`]
      return state === 'init_failed' ? [`${name}: ${error ?? 'its store cannot be opened'}`] : []
    })
  }

  // --- Registering and steering ------------------------------------------------------------------------------------

  create(input: CreateInput, claim: IdempotencyClaim | undefined, signal: AbortSignal): Promise<AsyncReply> {
    return this.#registrar.create(input, claim, signal)
  }

  adopt(
    input: { readonly path: string; readonly name?: string },
    claim: IdempotencyClaim | undefined,
  ): Promise<Reply<AsyncAcceptedResponse | CityInfo>> {
    return this.#registrar.adopt(input, claim)
  }

  startCity(name: string, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    return this.#launch(name, 'city.start', claim)
  }

  restartCity(name: string, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    return this.#launch(name, 'city.restart', claim)
  }

  async stopCity(name: string, options: StopOptions, signal: AbortSignal): Promise<CityStopResult> {
    const worker = this.#registered(name)
    const { city } = worker
    const alreadyStopped = city.wanted === 'stopped' && city.state === 'stopped'
    if (!alreadyStopped) {
      await this.#deps.supervisor.db.write((tx) => this.#want(tx, worker, 'stopped'))
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
      sessions_stopped: alreadyStopped ? 0 : worker.agentsEnded,
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
      tx.afterCommit(() => worker.leave(requestId))
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    worker.steer()
    return reply
  }

  setSuspended(city: City, suspended: boolean): void {
    this.#workers.get(city.name)?.suspend(suspended)
  }

  /** What is in force in the files of a city. */
  observe(city: City, settings: CitySettings): void {
    this.#workers.get(city.name)?.observe(settings)
  }

  // --- Inside ------------------------------------------------------------------------------------------------------

  async #bootDeparture(row: DepartureRow): Promise<void> {
    // The name, or the directory under another name, may have come back since; one file is opened once.
    const known = [...this.all().map(({ uid }) => uid), ...this.#stores.kept]
    if (this.#workers.has(row.name) || known.includes(row.uid)) return
    const fresh = { previousUid: undefined, attempts: 0, retryAt: undefined, errorCode: undefined, error: undefined }
    const city = cityFromRow({ ...row, ...fresh, desired: 'stopped' }, this.#deps.clock.now())
    city.wanted = 'gone'
    city.state = 'stopping'
    city.departure = row.finishedAt === undefined ? row.requestId : undefined
    const worker = await this.#bootWorker(city)
    if (row.finishedAt === undefined) this.#join(worker)
    else this.#stores.keep(city, row.finishedAt + GRACE_MS)
  }

  /** Its log is there also while it does not run. */
  async #bootWorker(city: CityRecord): Promise<CityWorker<Run, Mended>> {
    const worker = this.#workerOf(city)
    try {
      if (isDirectory(city.path)) await worker.ensureStore()
    } catch (error) {
      this.#deps.log.warn({ city: city.name, err: error }, 'city store not opened')
    }
    return worker
  }

  #joinRegistered(row: CityRow, store: CityStore): () => void {
    this.#stores.forget(row.name)
    const worker = this.#workerOf(cityFromRow(row, this.#deps.clock.now()))
    worker.takeStore(store)
    this.#join(worker)
    return () => worker.poke()
  }

  #workerOf(city: CityRecord): CityWorker<Run, Mended> {
    return new CityWorker<Run, Mended>(city, {
      ...this.#deps,
      stores: this.#stores,
      changed: (changed) => this.#changed(changed),
      departed: (left) => this.#left(left),
      configTime,
    })
  }

  #join(worker: CityWorker<Run, Mended>): void {
    const { city } = worker
    if (city.store === undefined) this.#stores.announce(city)
    this.#workers.set(city.name, worker)
    this.#sorted = undefined
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
    this.#stores.keep(city, this.#deps.clock.now() + GRACE_MS)
  }

  async #launch(
    name: string,
    operation: 'city.start' | 'city.restart',
    claim: IdempotencyClaim | undefined,
  ): Promise<AsyncReply> {
    const { supervisor, merged, ids } = this.#deps
    const worker = this.#registered(name)
    const requestId = ids.requestId()
    const cursor = merged.head()
    const reply = await supervisor.db.write((tx) => {
      this.#want(tx, worker, 'running')
      this.#refuseSecond(tx, name, operation)
      supervisor.requests.accept(tx, {
        id: requestId,
        operation,
        city: name,
        subject: name,
        eventCursor: cursor,
        input: {},
      })
      if (operation === 'city.restart') tx.afterCommit(() => worker.restart())
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    worker.retryNow()
    return reply
  }

  /** Memory follows the registry in the order of commits; a city that was unregistered in between is gone for good. */
  #want(tx: Tx, worker: CityWorker<Run, Mended>, wanted: 'running' | 'stopped'): void {
    const { registry } = this.#deps
    const { name, uid } = worker.city
    if (!registry.has(tx, name, uid)) throw cityNotRunning(name)
    registry.setDesired(tx, name, wanted)
    tx.afterCommit(() => worker.want(wanted))
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

  #registered(name: string): CityWorker<Run, Mended> {
    const worker = this.#workers.get(name)
    if (worker === undefined || worker.city.wanted === 'gone') throw cityNotRunning(name)
    return worker
  }
}

const notRegistered = (name: string): Problem =>
  problem('city-not-found', `city not registered with supervisor: ${name}`)
