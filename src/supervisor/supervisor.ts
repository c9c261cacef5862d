/**
 * The supervisor: everything wired together. Starts in this order, and stops in the opposite one: stores → log of
 * cities → HTTP → cities. So the API answers before any city is running, and never before every log is known.
 */
import { join } from 'node:path'
import { SUPERVISOR_SOURCE } from '../contract/base/names.ts'
import { OPERATIONS } from '../contract/index.ts'
import { diskFiles } from '../files/files.ts'
import { createDocumentHandlers } from '../http/documents.ts'
import type { Handlers } from '../http/operations.ts'
import { HttpServer } from '../http/server.ts'
import { cityFraming, supervisorFraming } from '../http/sse.ts'
import { type Clock, isoTime } from '../kernel/clock.ts'
import type { Migrations, StoreWatch } from '../kernel/database.ts'
import { createIds, randomHex, ulid } from '../kernel/ids.ts'
import { type Logger, openLog } from '../kernel/log.ts'
import { openSocketTable, PeerUsers } from '../kernel/peers/peer-users.ts'
import type { SocketTable } from '../kernel/peers/sockets.ts'
import { REACTIONS_SCHEMA } from '../kernel/reactions.ts'
import { openStore, readMeta, STORE_SCHEMA, type Store } from '../kernel/store.ts'
import { MergedLog } from '../kernel/streams/merged-log.ts'
import { BEADS_SCHEMA } from '../modules/beads/store/schema.ts'
import { isStarting } from '../modules/cities/city.ts'
import { CITY_MIGRATIONS } from '../modules/cities/city-store.ts'
import { createCityHandlers } from '../modules/cities/handlers.ts'
import { REGISTRY_SCHEMA, Registry } from '../modules/cities/registry.ts'
import { Cities } from '../modules/cities/service.ts'
import { CONFIG_SCHEMA } from '../modules/config/edit/transaction.ts'
import { createConfigHandlers, reloadJob } from '../modules/config/handlers.ts'
import { CONVOYS_SCHEMA } from '../modules/convoys/schema.ts'
import { createEventHandlers } from '../modules/events/handlers.ts'
import { createHealthHandlers } from '../modules/health/handlers.ts'
import { createMetrics } from '../modules/health/metrics.ts'
import { createProbes, type Probe } from '../modules/health/probes.ts'
import { createReadiness } from '../modules/health/readiness.ts'
import { watchLoopDelay } from '../modules/health/vitals.ts'
import type { Lookup } from '../modules/packs/fence.ts'
import { isPreset, probeTargets } from '../modules/providers/presets.ts'
import { createRequestHandlers } from '../modules/requests/handlers.ts'
import { SESSIONS_SCHEMA } from '../modules/sessions/record/schema.ts'
import { createTokenHandlers } from '../modules/tokens/handlers.ts'
import { TOKENS_SCHEMA, Tokens } from '../modules/tokens/tokens.ts'
import { readStat } from '../runtimes/process/process-identity.ts'
import { createCityAgentHandlers } from './city-agents.ts'
import { BUILTIN_PACKS, CityConfigs } from './city-config.ts'
import { CityJobs } from './city-jobs.ts'
import { CityObjects } from './city-objects.ts'
import { CityPacks } from './city-packs.ts'
import { CityReactions } from './city-reactions.ts'
import { CitySessions } from './city-sessions.ts'
import { CityTranscripts } from './city-transcripts.ts'
import { CityWork } from './city-work.ts'
import { removeEndpoint, writeEndpoint } from './endpoint.ts'
import { openHome } from './home.ts'
import { checkHost } from './host.ts'
import { openRigClones } from './rig-clones.ts'
import type { Settings } from './settings.ts'

/** What every city's store is made of; families append theirs. */
export const CITY_SCHEMA: Migrations = [
  ...CITY_MIGRATIONS,
  CONFIG_SCHEMA,
  BEADS_SCHEMA,
  CONVOYS_SCHEMA,
  REACTIONS_SCHEMA,
  SESSIONS_SCHEMA,
]
export const SUPERVISOR_MIGRATIONS: Migrations = [`${STORE_SCHEMA}${REGISTRY_SCHEMA}`, TOKENS_SCHEMA]

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
  const { logger: log, close: closeLog } = openLog(join(settings.home, 'supervisor.log'), settings.logLevel)
  const metrics = createMetrics({
    citiesByStatus: () => countBy(cities.all().map(({ state }) => state)),
    requestsPending: () => openStores(store, cities).reduce((sum, [, { requests }]) => sum + requests.pending, 0),
    heads: () => Object.fromEntries(openStores(store, cities).map(([name, { log }]) => [name, log.head])),
  })
  const watch: StoreWatch = {
    committed: metrics.committed,
    hookFailed: (err) => {
      metrics.hookFailed()
      log.error({ err }, 'what follows a commit failed')
    },
  }
  const store = openStore({
    path: join(settings.home, 'supervisor.db'),
    migrations: SUPERVISOR_MIGRATIONS,
    owner: 'the supervisor',
    lockWaitMs: 1_000,
    clock,
    watch,
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
  const readiness = createReadiness({ clock, probes: deps.probes ?? createProbes(probeTargets(env), { env }) })
  const ids = createIds(hostId)
  const packs = new CityPacks({
    home: settings.home,
    allowedHosts: settings.allowedPackHosts,
    builtins: BUILTIN_PACKS,
    env,
    clock,
    log,
    lookup: deps.lookup,
  })
  const configs = new CityConfigs({
    clock,
    log,
    retention: settings.retention,
    resolvePack: (files, dir) => packs.resolver(files, dir),
    restarts: (name, drift) => sessions.restarted(name, drift),
  })
  const objects = new CityObjects({
    clock,
    env,
    clones: openRigClones(deps),
    config: (name) => configs.of(name),
    sessions: (name) => sessions.ofRigs(name),
    openBeads: (name, rig) => work.openBeadsOfRig(name, rig),
  })
  const work = new CityWork({
    clock,
    log,
    config: (name) => configs.of(name),
    people: (name) => sessions.people(name),
    sessionEnded: (name, id) => sessions.ended(name, id),
    sessionLives: (name, id) => sessions.lives(name, id),
  })
  const sessions = new CitySessions({
    clock,
    log,
    ids,
    random: deps.random,
    env,
    home: settings.home,
    auth: settings.auth,
    config: (name) => configs.of(name),
    work,
    insight: (name) => transcripts.insights(name),
  })
  const transcripts: CityTranscripts = new CityTranscripts({
    clock,
    log,
    userHome: deps.userHome,
    sessions: (name) => sessions.of(name),
    agents: (name) => configs.of(name).current().agents,
  })
  const jobs = new CityJobs({
    clock,
    log,
    ids,
    jobsOf: (city) => [
      reloadJob(configs.of(city.name), city.name),
      ...packs.jobs(city),
      ...objects.jobs(city),
      ...sessions.jobs(city),
    ],
  })
  configs.onChange((city, { config }) => packs.follow(city, config))
  configs.onChange((_city, { config }) => objects.follow(config))
  configs.onChange(({ name }, { soft }) => sessions.reconfigured(name, soft))
  const reactions = new CityReactions({
    clock,
    log,
    reactionsOf: ({ name }) => work.reactions(name),
    skipped: metrics.reactionSkipped,
  })
  const cities = new Cities({
    supervisor: store,
    registry: new Registry(store),
    merged,
    framing: cityFraming,
    clock,
    log,
    ids,
    random: deps.random,
    home: deps.userHome,
    hostId,
    retention: settings.retention,
    migrations: CITY_SCHEMA,
    watch,
    openConfig: async (city, cityStore) => {
      await packs.verify(city)
      try {
        return await configs.open(city, cityStore)
      } catch (error) {
        // A checkout on a new machine: its packs are not there yet, and nobody can ask a city that is not running for them.
        if (!(await packs.prepareStart(city))) throw error
        return configs.open(city, cityStore)
      }
    },
    closeConfig: (city) => configs.close(city),
    inspectConfig: (city) => configs.inspect(city),
    nameFromFiles: (directory) => configs.name(directory),
    checkHost: (provider, signal) => checkHost(provider, readiness, isPreset, signal),
    // Stopped in the opposite order: agents end before what they and their callers rely on.
    hooks: [packs.hook, work.hook, objects.hook, jobs.hook, reactions.hook, sessions.adopting, sessions.starting],
    sessionsStopped: (name) => sessions.stoppedIn(name),
  })
  await cities.boot()

  const loopDelay = watchLoopDelay(clock)
  const startedAt = clock.monotonic()
  let draining = false
  const users = settings.auth ? undefined : peerUsers(settings, deps.sockets)
  const tokens = new Tokens({ store, clock, random: randomHex })
  const handlers: Handlers = {
    ...createCityHandlers({
      cities,
      supervisor: store,
      clock,
      version,
      work: (name) => work.counts(name),
      activity: (name) => sessions.activity(name),
      initializer: deps.withInitializer === false ? undefined : cities,
    }),
    ...createEventHandlers({ merged, clock, city: (name) => cities.running(name) }),
    ...createRequestHandlers({
      ledgers: () => [
        { name: SUPERVISOR_SOURCE, requests: store.requests },
        ...cities.all().map((city) => ({ name: city.name, requests: city.store?.requests })),
      ],
    }),
    ...createHealthHandlers({
      clock,
      version,
      startedAtMonotonic: startedAt,
      readiness,
      metrics,
      vitals: {
        eventLoopMs: () => loopDelay.read(),
        reconcilerAgeMs: () => Math.max(cities.patrolAgeMs, sessions.patrolAgeMs),
        logLagMs: () => Math.max(store.db.waitingMs, ...cities.all().map((city) => city.store?.db.waitingMs ?? 0)),
        storageFault: () => storageFault(store, cities),
      },
      cities: { counts: () => countCities(cities) },
      draining: () => draining,
      callers: settings.auth ? 'token' : users === undefined ? 'machine' : 'owner',
    }),
    ...createConfigHandlers({
      clock,
      city: (name) => cities.running(name),
      config: (name) => configs.of(name),
      jobs,
      loadOptions: (dir) => configs.loadOptions(diskFiles(), dir),
      apiUrl: () => url,
    }),
    ...packs.handlers(
      { config: (name) => configs.of(name), head: (name) => cities.running(name).store.log.head },
      (city, request) => jobs.launch(city, request),
    ),
    ...objects.handlers(
      (name) => cities.running(name),
      (name, request) => jobs.launch(name, request),
    ),
    ...work.handlers((name) => cities.running(name)),
    ...sessions.handlers(
      (name) => cities.running(name),
      (name, request) => jobs.launchAnswering(name, request),
    ),
    ...transcripts.handlers((name) => cities.running(name)),
    ...createCityAgentHandlers(
      { clock, env, config: (name) => configs.of(name), sessions: (name) => sessions.of(name) },
      (name) => cities.running(name),
    ),
    ...createTokenHandlers(tokens),
    ...createDocumentHandlers(),
  }
  const token = settings.auth ? randomHex(32) : undefined
  const http = new HttpServer({
    operations: OPERATIONS,
    handlers,
    security: {
      allowedHosts: settings.allowedHosts,
      allowedOrigins: settings.allowedOrigins,
      token,
      holderOf: (given) =>
        tokens.holder(given) ?? sessions.holder(given) ?? (cities.all().some(isStarting) ? null : undefined),
      users,
      readOnly: !settings.allowMutations,
    },
    cities,
    clock,
    log,
    metrics: metrics.http,
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

  return {
    url,
    async stop(signal) {
      draining = true
      removeEndpoint(settings.home)
      await noteShutdown(store, signal, log)
      await http.close()
      packs.close()
      await jobs.closeAll()
      await sessions.release()
      await reactions.closeAll()
      objects.close()
      work.close()
      await configs.closeAll()
      await cities.close()
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

function storageFault(store: Store, cities: Cities): string | undefined {
  const own = store.db.failure === undefined ? [] : [`supervisor: ${store.db.failure}`]
  const faults = [...own, ...cities.storageFailures()]
  return faults.length === 0 ? undefined : faults.join('; ')
}

function countCities(cities: Cities) {
  const states = cities.all().map(({ state }) => state)
  return {
    total: states.length,
    running: states.filter((state) => state === 'running').length,
    failed: states.filter((state) => state === 'init_failed').length,
  }
}

/** By the names of their logs. */
const openStores = (supervisor: Store, cities: Cities): readonly (readonly [string, Store])[] => [
  [SUPERVISOR_SOURCE, supervisor],
  ...cities.all().flatMap(({ name, store }) => (store === undefined ? [] : [[name, store] as const])),
]

function countBy(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
