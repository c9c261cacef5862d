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
import { type Clock, isoTime } from '../kernel/clock.ts'
import { createIds, randomHex, ulid } from '../kernel/ids.ts'
import { type Logger, openLog } from '../kernel/log.ts'
import { openSocketTable, PeerUsers } from '../kernel/peers/peer-users.ts'
import type { SocketTable } from '../kernel/peers/sockets.ts'
import { openStore, readMeta, type Store, type StoreObserver } from '../kernel/store.ts'
import { MergedLog } from '../kernel/streams/merged-log.ts'
import { isStarting } from '../modules/cities/city.ts'
import { Registry } from '../modules/cities/registry.ts'
import { Cities } from '../modules/cities/service.ts'
import { config } from '../modules/config/family.ts'
import { createMetrics } from '../modules/health/metrics.ts'
import { createProbes, type Probe } from '../modules/health/probes.ts'
import { createReadiness } from '../modules/health/readiness.ts'
import { watchLoopDelay } from '../modules/health/vitals.ts'
import type { Lookup } from '../modules/packs/remote/fence.ts'
import { services } from '../modules/services/family.ts'
import { Tokens } from '../modules/tokens/tokens.ts'
import { readStat } from '../runtimes/process/process-identity.ts'
import { RunningCity } from './city.ts'
import { removeEndpoint, writeEndpoint } from './endpoint.ts'
import { CITY_SCHEMA, FAMILIES, SUPERVISOR_MIGRATIONS } from './families.ts'
import { openHome, refuseEmptiedStore } from './home.ts'
import { openHost } from './host.ts'
import type { Settings } from './settings.ts'
import { execCounts } from './views/execs.ts'
import { checkHost } from './views/host-check.ts'
import { adapterCalling, showsAdapter } from './views/messaging.ts'
import type { Host, Service } from './views/running.ts'
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

export interface Supervisor {
  readonly url: string
  /** Ends streams, lets requests finish, closes the stores; agents go on (decision 24). */
  stop(signal: string): Promise<void>
}

export async function startSupervisor(deps: SupervisorDeps): Promise<Supervisor> {
  const { settings, clock, env, version } = deps
  openHome(settings.home, process.getuid?.())
  refuseEmptiedStore(settings.home)
  const { logger: log, close: closeLog } = openLog(join(settings.home, 'supervisor.log'), settings.logLevel)
  const conformance = conformanceOf(env, log)
  const metrics = createMetrics({
    citiesByStatus: () => countBy(cities.all().map(({ state }) => state)),
    requestsPending: () => openStores(store, cities).reduce((sum, [, { requests }]) => sum + requests.pending, 0),
    execs: () => execCounts(cities.runs()),
    heads: () => Object.fromEntries(openStores(store, cities).map(([name, { log }]) => [name, log.head])),
  })
  const watching = (owner: 'city' | 'supervisor'): StoreObserver => ({
    appended: conformance === undefined ? undefined : (events) => conformance.events(owner, events),
    committed: metrics.committed,
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
  const hostId = await noteStart(store, deps)
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
  const probes = deps.probes ?? [...createProbes(probeTargets(env), { env }), socketsProbe(env)]
  const readiness = createReadiness({ clock, probes })
  const revoked: Host['revoked'] = (isMeant) => http.endStreamsOf(isMeant)
  const host = openHost(
    {
      revoked,
      settings,
      clock,
      env,
      log,
      metrics,
      version,
      userHome: deps.userHome,
      random: deps.random,
      ids: createIds(hostId),
    },
    store,
    deps.lookup,
  )
  const { ids } = host
  const cities = new Cities<RunningCity>({
    supervisor: store,
    registry: new Registry(store),
    merged,
    framing: cityFraming,
    clock,
    log,
    ids,
    random: deps.random,
    home: deps.userHome,
    stateHome: settings.home,
    hostId,
    retention: settings.retention,
    migrations: CITY_SCHEMA,
    watch: watching('city'),
    open: (city) => new RunningCity(city, host, FAMILIES, (settings) => cities.observe(city, settings)),
    inspect: (run) => void config.find(run)?.config.lookAgain(),
    nameFromFiles: (directory) => nameFromFiles(host.packs, directory),
    checkHost: (provider, signal) => checkHost(provider, readiness, isPreset, signal),
  })
  await cities.boot()

  const startedAt = clock.monotonic()
  let draining = false
  const users = settings.auth ? undefined : peerUsers(settings, deps.sockets)
  const tokens = new Tokens({ store, clock, random: randomHex, revoked })
  const service: Service = {
    ...host,
    store,
    merged,
    cities,
    readiness,
    withInitializer: deps.withInitializer !== false,
    url: () => url,
    startedAt,
    eventLoopMs: () => loopDelay.read(),
    draining: () => draining,
    callers: settings.auth ? 'token' : users === undefined ? 'machine' : 'owner',
    tokens,
  }
  const handlers = Object.fromEntries(FAMILIES.flatMap((family) => Object.entries(family.handlers(service))))
  const token = settings.auth ? randomHex(32) : undefined
  const http = new HttpServer({
    operations: OPERATIONS,
    handlers,
    traits: Object.assign({}, ...FAMILIES.map((family) => family.traits)),
    security: {
      allowedHosts: settings.allowedHosts,
      allowedOrigins: settings.allowedOrigins,
      token,
      holderOf: (given) =>
        tokens.holder(given) ??
        agentWith(cities.runs(), given) ??
        serviceWith(cities.runs(), given) ??
        (cities.all().some(isStarting) ? null : undefined),
      adapterOf: (request) =>
        adapterCalling((name) => (cities.isRunning(name) ? cities.running(name) : undefined), request) ??
        (showsAdapter(request) && cities.all().some(isStarting) ? null : undefined),
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
  })

  const url = await http.listen(settings.bind, settings.port).catch(async (error: unknown) => {
    await cities.close()
    store.db.close()
    closeLog()
    throw error
  })
  const processStart = readStat(deps.pid)?.startTime
  const endpoint = {
    url,
    pid: deps.pid,
    ...(processStart === undefined ? {} : { process_start: processStart }),
    started_at: isoTime(clock.now()),
    ...(token === undefined ? {} : { token }),
  }
  writeEndpoint(settings.home, endpoint, randomHex)
  log.info({ url, pid: deps.pid, version }, 'listening')
  cities.start()
  // From here on and not before: what a start costs says nothing of how well it runs, and was the first that anybody saw.
  const loopDelay = watchLoopDelay(clock)

  return {
    url,
    async stop(signal) {
      draining = true
      removeEndpoint(settings.home)
      await noteShutdown(store, signal, log)
      await http.close()
      host.packs.close()
      await cities.close()
      host.git.close()
      await readiness[Symbol.asyncDispose]()
      loopDelay[Symbol.dispose]()
      await setMeta(store, 'clean_exit', 'true').catch((error: unknown) =>
        log.warn({ err: error }, 'clean exit not recorded'),
      )
      store.db.close()
      log.info({ signal }, 'stopped')
      closeLog()
    },
  }
}

/** Undefined where the system does not show whose a connection is. */
function peerUsers({ allowedUids }: Settings, table = openSocketTable()): PeerUsers | undefined {
  const uid = process.getuid?.()
  return table === undefined || uid === undefined ? undefined : new PeerUsers({ table, uid, allowed: allowedUids })
}

/** Finds the city of a request anew at each look: who has waited gets it as it is now. */
function cityGate(cities: Cities<RunningCity>): CityGate {
  const families = new Map(FAMILIES.flatMap((family) => family.operations.map(({ id }) => [id, family] as const)))
  return {
    resolve: (name) => (cities.isRunning(name) ? ({ id }) => families.get(id)?.seen(cities.running(name)) : undefined),
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
const openStores = (supervisor: Store, cities: Pick<Cities, 'all'>): readonly (readonly [string, Store])[] => [
  [SUPERVISOR_SOURCE, supervisor],
  ...cities.all().flatMap(({ name, store }) => (store === undefined ? [] : [[name, store] as const])),
]

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
