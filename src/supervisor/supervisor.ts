/**
 * The supervisor: everything wired together. Starts in this order, and stops in the opposite one: stores → log of
 * cities → HTTP → cities. So the API answers before any city is running, and never before every log is known.
 */
import { join } from 'node:path'
import { SUPERVISOR_SOURCE } from '../contract/base/names.ts'
import { OPERATIONS } from '../contract/index.ts'
import { isPreset, probeTargets } from '../harnesses/all.ts'
import { conformanceOf } from '../http/conformance.ts'
import type { CityGate } from '../http/gates.ts'
import { HttpServer } from '../http/server.ts'
import { cityFraming, supervisorFraming } from '../http/sse.ts'
import { type Clock, delay, isoTime } from '../kernel/clock.ts'
import { createIds, randomHex, ulid } from '../kernel/ids.ts'
import { type Logger, openLog } from '../kernel/log.ts'
import { openListeners } from '../kernel/peers/listeners.ts'
import { openSocketTable, PeerUsers } from '../kernel/peers/peer-users.ts'
import type { SocketTable } from '../kernel/peers/sockets.ts'
import { openStore, readMeta, type Store, type StoreObserver } from '../kernel/store.ts'
import { MergedLog } from '../kernel/streams/merged-log.ts'
import { type City, isStarting } from '../modules/cities/city.ts'
import { Registry } from '../modules/cities/registry.ts'
import { Cities } from '../modules/cities/service.ts'
import { config } from '../modules/config/family.ts'
import { createMetrics, type Metrics } from '../modules/health/metrics.ts'
import { createProbes, type Probe } from '../modules/health/probes.ts'
import { createReadiness } from '../modules/health/readiness.ts'
import { type LoopDelay, watchLoopDelay } from '../modules/health/vitals.ts'
import type { Lookup } from '../modules/packs/remote/fence.ts'
import { services } from '../modules/services/family.ts'
import { Tokens } from '../modules/tokens/tokens.ts'
import { readStat } from '../runtimes/process/process-identity.ts'
import { RunningCity } from './city.ts'
import { removeEndpoint, writeEndpoint } from './endpoint.ts'
import { CITY_SCHEMA, FAMILIES, SUPERVISOR_MIGRATIONS } from './families.ts'
import { openHome, refuseEmptiedStore } from './home.ts'
import { openHost } from './host.ts'
import { MendedCity } from './mending.ts'
import type { Settings } from './settings.ts'
import { execCounts } from './views/execs.ts'
import { checkHost } from './views/host-check.ts'
import { adapterCalling, showsAdapter } from './views/messaging.ts'
import type { Host, Service } from './views/running.ts'
import { type RunsOn, runningOn } from './views/runs-on.ts'
import { serviceWith } from './views/services.ts'
import { agentWith } from './views/sessions.ts'
import { nameFromFiles } from './views/settings.ts'
import { socketsProbe } from './views/sockets-probe.ts'

export interface SupervisorDeps {
  readonly settings: Settings
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly userHome: string
  readonly version: string
  readonly pid: number
  readonly random: () => number
  /** Without one, creating and unregistering answer 501; for tests (spec §4). */
  readonly withInitializer?: boolean
  /** What the host is looked at with: the real probes where absent. For tests. */
  readonly probes?: readonly Probe[]
  /** How hosts of packs are resolved: the system's way where absent. */
  readonly lookup?: Lookup
  /** Sockets of this machine: those of the kernel where absent. For tests. */
  readonly sockets?: SocketTable
}

interface FailedStart {
  readonly name: string
  readonly error: string
}

export interface Supervisor {
  readonly url: string
  /** Who may use it. */
  readonly callers: Service['callers']
  /** The cities that could not start, once each that is to run has been tried, or after a minute. */
  failedStarts(): Promise<readonly FailedStart[]>
  /** Ends streams, lets requests finish, closes the stores; answers with what goes on without it. */
  stop(signal: string): Promise<RunsOn>
}

/** What one stage after the other opens; whatever is in it is given back in the opposite order, however far a start came. */
type Opened = AsyncDisposableStack

export async function startSupervisor(deps: SupervisorDeps): Promise<Supervisor> {
  await using opened: Opened = new AsyncDisposableStack()
  const base = await openBase(deps, opened)
  const { log, store } = base
  const { host, cities, readiness } = await openCities(deps, base, opened)
  const tokens = new Tokens({ store, clock: deps.clock, random: randomHex, revoked: host.revoked })
  const users = deps.settings.auth ? undefined : peerUsers(deps.settings, base.sockets)
  const loopDelay: { watch?: LoopDelay } = {}
  const address: { url: string } = { url: '' }
  const service: Service = {
    ...host,
    store,
    merged: base.merged,
    cities,
    readiness,
    withInitializer: deps.withInitializer !== false,
    url: () => address.url,
    startedAt: deps.clock.monotonic(),
    eventLoopMs: () => loopDelay.watch?.read(),
    draining: () => base.late.signal !== undefined,
    callers: callersOf(deps.settings, users),
    tokens,
  }
  const token = deps.settings.auth ? randomHex(32) : undefined
  const http = surfaceOf({ service, cities, users, token, settings: deps.settings, conformance: base.conformance })
  base.late.http = http
  opened.defer(() => http.close())
  address.url = await http.listen(deps.settings.bind, deps.settings.port)
  announce(deps, address.url, token, opened)
  log.info({ url: address.url, pid: deps.pid, version: deps.version }, 'listening')
  cities.start()
  // From here on and not before: what a start costs says nothing of how well it runs, and was the first that anybody saw.
  loopDelay.watch = opened.use(watchLoopDelay(deps.clock))

  const running = opened.move()
  return {
    url: address.url,
    callers: service.callers,
    failedStarts: () => failedStarts(cities, deps.clock),
    async stop(signal) {
      base.late.signal = signal
      removeEndpoint(deps.settings.home)
      const left = runningOn(cities.runs())
      await noteShutdown(store, signal, log)
      await running.disposeAsync()
      return left
    },
  }
}

const TRIED_EVERY_MS = 200
const TRIED_WITHIN_MS = 60_000

async function failedStarts(cities: Cities<RunningCity, MendedCity>, clock: Clock): Promise<readonly FailedStart[]> {
  const isUndecided = ({ state, wanted }: City) =>
    wanted === 'running' && state !== 'running' && state !== 'init_failed' && state !== 'stopped'
  const until = clock.monotonic() + TRIED_WITHIN_MS
  while (cities.all().some(isUndecided) && clock.monotonic() < until) await delay(clock, TRIED_EVERY_MS)
  return cities
    .all()
    .filter(({ state }) => state === 'init_failed')
    .map(({ name, error }) => ({ name, error: error ?? 'see its log' }))
}

/** What comes later, and is asked for by what is made before it. */
interface Late {
  http?: HttpServer
  cities?: Cities<RunningCity, MendedCity>
  /** The signal that it stops for. */
  signal?: string
}

interface Base {
  readonly log: Logger
  readonly metrics: Metrics
  readonly watching: (owner: 'city' | 'supervisor') => StoreObserver
  readonly conformance: ReturnType<typeof conformanceOf>
  readonly sockets: SocketTable | undefined
  readonly store: Store
  readonly hostId: string
  readonly merged: MergedLog
  readonly late: Late
}

/** The log, the store of the supervisor, and the first event of this start. */
async function openBase(deps: SupervisorDeps, opened: Opened): Promise<Base> {
  const { settings, clock } = deps
  const late: Late = {}
  openHome(settings.home, process.getuid?.())
  refuseEmptiedStore(settings.home)
  const { logger: log, close: closeLog } = openLog(join(settings.home, 'supervisor.log'), settings.logLevel)
  const conformance = conformanceOf(deps.env, log)
  opened.defer(() => {
    if (late.signal !== undefined) log.info({ signal: late.signal }, 'stopped')
    closeLog()
  })
  const metrics = metricsOf(() => ({ store, cities: late.cities }))
  const watching = (owner: 'city' | 'supervisor'): StoreObserver => ({
    appended: conformance === undefined ? undefined : (events) => conformance.events(owner, events),
    committed: metrics.committed,
    due: metrics.due,
    hookFailed: (err) => {
      metrics.hookFailed()
      log.error({ err }, 'what follows a commit failed')
    },
  })
  const store = openStore({
    path: join(settings.home, 'supervisor.db'),
    migrations: SUPERVISOR_MIGRATIONS,
    owner: 'the supervisor',
    lockWaitMs: 1_000,
    clock,
    watch: watching('supervisor'),
  })
  opened.defer(() => store.db.close())
  const hostId = await noteStart(store, deps)
  opened.defer(async () => {
    await setMeta(store, 'clean_exit', 'true').catch((error: unknown) =>
      log.warn({ err: error }, 'clean exit not recorded'),
    )
  })
  const merged = new MergedLog(supervisorFraming, clock)
  merged.put({
    name: SUPERVISOR_SOURCE,
    uid: hostId,
    log: store.log,
    registeredAt: 0,
    startHead: 0,
    knownHead: 0,
    previousUid: undefined,
  })
  const sockets = deps.sockets ?? openSocketTable()
  return { log, metrics, watching, conformance, sockets, store, hostId, merged, late }
}

const metricsOf = (
  now: () => { readonly store: Store; readonly cities: Cities<RunningCity, MendedCity> | undefined },
): Metrics => {
  const stores = () => openStores(now().store, now().cities)
  return createMetrics({
    citiesByStatus: () => countBy((now().cities?.all() ?? []).map(({ state }) => state)),
    requestsPending: () => stores().reduce((sum, [, { requests }]) => sum + requests.pending, 0),
    execs: () => execCounts(now().cities?.runs() ?? []),
    heads: () => Object.fromEntries(stores().map(([name, { log }]) => [name, log.head])),
  })
}

/** What cities share, and the cities: their logs are known, none of them acts yet. */
async function openCities(deps: SupervisorDeps, base: Base, opened: Opened) {
  const { settings, clock, env, version, userHome, random } = deps
  const { log, metrics, watching, store, hostId, merged, late } = base
  const probes = deps.probes ?? [...createProbes(probeTargets(env), { env }), socketsProbe(env)]
  const readiness = opened.use(createReadiness({ clock, probes }))
  const revoked: Host['revoked'] = (isMeant) => late.http?.endStreamsOf(isMeant)
  const ids = createIds(hostId)
  const listeners = openListeners(base.sockets)
  const given = { revoked, settings, clock, env, log, metrics, version, userHome, random, ids, listeners }
  const host = openHost(given, store, deps.lookup)
  opened.defer(() => host.git.close())
  const cities: Cities<RunningCity, MendedCity> = new Cities<RunningCity, MendedCity>({
    supervisor: store,
    registry: new Registry(store),
    merged,
    framing: cityFraming,
    clock,
    log,
    ids,
    random,
    home: userHome,
    stateHome: settings.home,
    hostId,
    retention: settings.retention,
    migrations: CITY_SCHEMA,
    watch: watching('city'),
    open: (city) => new RunningCity(city, host, FAMILIES, (read) => cities.observe(city, read)),
    openMended: (city) => MendedCity.open(city, host, FAMILIES),
    inspect: (run) => void config.find(run)?.config.lookAgain(),
    nameFromFiles: (directory) => nameFromFiles(host.packs, directory),
    checkHost: (provider, signal) => checkHost(provider, readiness, isPreset, signal),
  })
  late.cities = cities
  opened.defer(() => cities.close())
  opened.defer(() => host.packs.close())
  await cities.boot()
  return { host, cities, readiness }
}

interface SurfaceParts {
  readonly service: Service
  readonly cities: Cities<RunningCity, MendedCity>
  readonly users: PeerUsers | undefined
  readonly token: string | undefined
  readonly settings: Settings
  readonly conformance: Base['conformance']
}

/** The HTTP surface over the handlers of all families. */
function surfaceOf({ service, cities, users, token, settings, conformance }: SurfaceParts): HttpServer {
  const { tokens, clock, log, metrics } = service
  const isStartingAny = () => cities.all().some(isStarting)
  return new HttpServer({
    operations: OPERATIONS,
    handlers: Object.fromEntries(FAMILIES.flatMap((family) => Object.entries(family.handlers(service)))),
    traits: Object.assign({}, ...FAMILIES.map((family) => family.traits)),
    security: {
      allowedHosts: settings.allowedHosts,
      allowedOrigins: settings.allowedOrigins,
      token,
      holderOf: (given) =>
        tokens.holder(given) ??
        agentWith(cities.runs(), given) ??
        serviceWith(cities.runs(), given) ??
        (isStartingAny() ? null : undefined),
      adapterOf: (request) =>
        adapterCalling((name) => (cities.isRunning(name) ? cities.running(name) : undefined), request) ??
        (showsAdapter(request) && isStartingAny() ? null : undefined),
      users,
      readOnly: !settings.allowMutations,
    },
    cities: cityGate(cities),
    services: {
      inCity: (name) => (cities.isRunning(name) ? services.find(cities.running(name))?.services : undefined),
    },
    clock,
    log,
    metrics: metrics.http,
    conformance,
    listeners: service.listeners,
  })
}

/** Clients of this machine find it from here on, until it is given back. */
function announce({ settings, pid, clock }: SupervisorDeps, url: string, token: string | undefined, opened: Opened) {
  const processStart = readStat(pid)?.startTime
  const endpoint = {
    url,
    pid,
    ...(processStart === undefined ? {} : { process_start: processStart }),
    started_at: isoTime(clock.now()),
    ...(token === undefined ? {} : { token }),
  }
  writeEndpoint(settings.home, endpoint, randomHex)
  opened.defer(() => removeEndpoint(settings.home))
}

const callersOf = ({ auth }: Settings, users: PeerUsers | undefined): Service['callers'] => {
  if (auth) return 'token'
  return users === undefined ? 'machine' : 'owner'
}

/** Undefined where the system does not show whose a connection is. */
function peerUsers({ allowedUids }: Settings, table: SocketTable | undefined): PeerUsers | undefined {
  const uid = process.getuid?.()
  return table === undefined || uid === undefined ? undefined : new PeerUsers({ table, uid, allowed: allowedUids })
}

/** Finds the city of a request anew at each look: who has waited gets it as it is now. */
function cityGate(cities: Cities<RunningCity, MendedCity>): CityGate {
  const families = new Map(FAMILIES.flatMap((family) => family.operations.map(({ id }) => [id, family] as const)))
  return {
    resolve: (name) => (cities.isRunning(name) ? ({ id }) => families.get(id)?.seen(cities.running(name)) : undefined),
    mend: (name) => {
      const lend = cities.mend(name)
      if (lend === undefined) return undefined
      return async () => {
        const { run, giveBack } = await lend()
        return { city: ({ id }) => families.get(id)?.seen(run), giveBack }
      }
    },
  }
}

/** The first event of every start, in the same transaction as what it says about the one before. */
async function noteStart(store: Store, { clock, version, pid }: SupervisorDeps): Promise<string> {
  const hostId = readMeta(store, 'host_id') ?? `${ulid(clock.now()).toLowerCase()}${randomHex(3)}`
  const clean = readMeta(store, 'clean_exit')
  const previousExit = clean === undefined ? 'unknown' : clean === 'true' ? 'clean' : 'crash'
  await store.db.write((tx) => {
    tx.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('host_id', ?), ('clean_exit', 'false')", hostId)
    store.log.append(tx, {
      type: 'supervisor.started',
      actor: 'supervisor',
      subject: 'supervisor',
      city: SUPERVISOR_SOURCE,
      payload: { previous_exit: previousExit, version, pid },
    })
  })
  return hostId
}

async function noteShutdown(store: Store, signal: string, log: Logger): Promise<void> {
  await store.db
    .write((tx) => {
      store.log.append(tx, {
        type: 'supervisor.shutdown_requested',
        actor: 'supervisor',
        subject: 'supervisor',
        city: SUPERVISOR_SOURCE,
        payload: { source: 'signal', signal, mode: 'preserve_sessions' },
      })
    })
    .catch((error: unknown) => log.warn({ err: error }, 'shutdown not recorded'))
}

async function setMeta(store: Store, key: string, value: string): Promise<void> {
  await store.db.write((tx) => {
    tx.run('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)', key, value)
  })
}

/** By the names of their logs. */
const openStores = (
  supervisor: Store,
  cities: Pick<Cities, 'all'> | undefined,
): readonly (readonly [string, Store])[] => [
  [SUPERVISOR_SOURCE, supervisor],
  ...(cities?.all() ?? []).flatMap(({ name, store }) => (store === undefined ? [] : [[name, store] as const])),
]

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
