/** Where sessions meet cities: runtimes, screens, configuration, prompts and work of one city each. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { RuntimeName } from '../contract/session-model.ts'
import type { Agent } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Ids, randomHex } from '../kernel/ids.ts'
import type { Job } from '../kernel/jobs.ts'
import type { Logger } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import type { Environment } from '../kernel/processes.ts'
import { beadInProgress, holdsWork, openAmong } from '../modules/beads/store/held.ts'
import { countDemand } from '../modules/beads/store/ready.ts'
import type { WorkPeople } from '../modules/beads/work/city.ts'
import type { City } from '../modules/cities/city.ts'
import { type CityStore, cityDatabasePath } from '../modules/cities/city-store.ts'
import type { CityActivity } from '../modules/cities/handlers.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'
import { type DriftReport, fingerprintsOf } from '../modules/config/compose/drift.ts'
import type { EffectiveConfig } from '../modules/config/compose/effective.ts'
import type { ConfigService } from '../modules/config/edit/service.ts'
import { renderPrompt } from '../modules/config/prompt/prompt.ts'
import { filterFacts, promptData } from '../modules/config/prompt/prompt-data.ts'
import { renderTemplate } from '../modules/config/prompt/templates.ts'
import { findPreset } from '../modules/providers/presets.ts'
import { readOverride } from '../modules/rigs/overrides.ts'
import type { RigSessions } from '../modules/rigs/rigs.ts'
import type { SessionCity, SessionHandlersDeps } from '../modules/sessions/http/handlers.ts'
import { createSessionReadHandlers } from '../modules/sessions/http/handlers-read.ts'
import { createSessionSayHandlers } from '../modules/sessions/http/handlers-say.ts'
import { createSessionSteerHandlers } from '../modules/sessions/http/handlers-steer.ts'
import { sessionJobs } from '../modules/sessions/plan/jobs.ts'
import { Sessions } from '../modules/sessions/plan/service.ts'
import { accessHash } from '../modules/sessions/record/access.ts'
import type { AgentView, ProviderView } from '../modules/sessions/record/config-view.ts'
import type { SessionsDeps, WorkPort } from '../modules/sessions/record/ports.ts'
import type { Fingerprints, SessionRecord } from '../modules/sessions/record/record.ts'
import { createAcpRuntime } from '../runtimes/acp.ts'
import { killTree, listTokens } from '../runtimes/process/process-tree.ts'
import type { Attachable, LaunchSpec, Runtime } from '../runtimes/process/runtime.ts'
import { openSocketDirectory } from '../runtimes/socket-directory.ts'
import { createSubprocessRuntime } from '../runtimes/subprocess.ts'
import { createTmuxRuntime, endTmuxServer } from '../runtimes/tmux/runtime.ts'
import type { CityWork } from './city-work.ts'
import { observeTerminal } from './terminals.ts'

export interface CitySessionsDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly ids: Ids
  readonly random: () => number
  readonly env: Environment
  readonly home: string
  /** The API asks for a token. */
  readonly auth: boolean
  /** The spec's 404 for a city that is not running. */
  readonly config: (city: string) => ConfigService
  readonly work: Pick<CityWork, 'of'>
  /** Facts that the transcripts of a city know. */
  readonly insight: (city: string) => SessionsDeps['insight']
}

interface OpenSessions {
  readonly sessions: Sessions
  readonly deps: SessionsDeps
  readonly runtimes: readonly Runtime[]
}

function agentOf(city: string, session: SessionRecord, sessions: Sessions): Agent {
  return {
    kind: 'agent',
    city,
    session: session.id,
    name: session.agent,
    api: session.access_api ?? 'work',
    isSelf: (handle) => sessions.isMeant(handle, session.id),
    goesBy: (name) => name === session.agent || name === session.template || sessions.isMeant(name, session.id),
  }
}

type RunningCity = City & { readonly store: CityStore }

/** Harnesses that die of Ctrl-C, or take it for "leave": their turns end with Escape (sheet 04 §4.4). */
const ESCAPED: ReadonlySet<string> = new Set(['codex', 'gemini', 'kimi'])
/** `svcctl` of the package that runs here: `bin` of its package.json, or the script of a checkout. */
const BIN = join(import.meta.dirname, '..', '..')

export class CitySessions {
  readonly #deps: CitySessionsDeps
  readonly #open = new Map<string, OpenSessions>()
  readonly #stopped = new Map<string, number>()
  /** Why there is no tmux on this host; looked at once, for all cities. */
  #withoutTmux: Promise<string | undefined> | undefined

  constructor(deps: CitySessionsDeps) {
    this.#deps = deps
  }

  /** Takes over what runs, before anything else is started. */
  get adopting(): PhaseHook {
    return {
      phase: 'adopting_sessions',
      run: async (city) => {
        if (city.store === undefined) return
        const opened = await this.#openSessions(city, city.store)
        this.#open.set(city.name, opened)
        await opened.sessions.adopt()
      },
      stop: async (city, { force }) => {
        const opened = this.#open.get(city.name)
        this.#open.delete(city.name)
        this.#stopped.delete(city.name)
        const forsaken = !existsSync(cityDatabasePath(city.path))
        try {
          // A start that failed, and is to be tried again, is no reason to end anybody; nor is a directory that may come back.
          if (forsaken || (city.state !== 'stopping' && city.wanted === 'running')) opened?.sessions.release()
          else if (opened !== undefined) this.#stopped.set(city.name, await opened.sessions.stop({ force }))
        } finally {
          await Promise.all((opened?.runtimes ?? []).map((runtime) => runtime.close()))
        }
        if (forsaken && city.wanted !== 'running') await this.#endForsaken(city)
      },
    }
  }

  /** Its directory is gone, and the record of its agents with it; now it is given up, and they with it. */
  async #endForsaken({ path }: City): Promise<void> {
    const { clock, env, home } = this.#deps
    const sockets = openSocketDirectory(path, { env, home })
    await endTmuxServer({ socket: join(sockets.path, 'tmux'), env })
    const left = listTokens().filter(({ city_path: of }) => of === path)
    await Promise.all(left.map(({ token }) => killTree({ token }, clock)))
  }

  /** Starts what is wanted. */
  get starting(): PhaseHook {
    return {
      phase: 'starting_agents',
      run: async (city) => {
        await this.#open.get(city.name)?.sessions.start()
      },
    }
  }

  of(name: string): Sessions {
    return this.#need(name).sessions
  }

  jobs({ name }: City): readonly Job[] {
    const opened = this.#open.get(name)
    return opened === undefined ? [] : sessionJobs(opened.sessions)
  }

  handlers(running: (name: string) => RunningCity, launch: SessionHandlersDeps['launch']) {
    const city = (name: string): SessionCity => {
      const { path, store } = running(name)
      const { sessions, deps } = this.#need(name)
      return { name, path, store, sessions, deps }
    }
    const shared: SessionHandlersDeps = { city, clock: this.#deps.clock, launch }
    return {
      ...createSessionReadHandlers(shared),
      ...createSessionSayHandlers(shared),
      ...createSessionSteerHandlers(shared),
    }
  }

  /** The configuration changed; `soft`: what runs takes it as its own. */
  reconfigured(name: string, soft: boolean): void {
    this.#open.get(name)?.sessions.reconfigured(soft)
  }

  /** Ids of the sessions that a change of configuration restarts. */
  restarted(name: string, drift: ReadonlyMap<string, DriftReport>): readonly string[] {
    const launched = [...drift].filter(([, { drift: kind }]) => kind === 'launch' || kind === 'provision')
    return this.#open.get(name)?.sessions.restartable(new Set(launched.map(([identity]) => identity))) ?? []
  }

  /** What the agents of a running city do. */
  activity(name: string): CityActivity {
    const { sessions, deps } = this.#need(name)
    const { agents, rigs } = deps.config()
    const { open } = sessions
    // A conversation with a program is no agent's.
    const of = (which: (session: SessionRecord) => boolean) =>
      new Set(open.filter((one) => one.kind === 'agent' && which(one)).map(({ template }) => template)).size
    const isRunning = ({ id }: SessionRecord) => sessions.live(id)?.liveness === 'alive'
    return {
      running: open.filter(isRunning).length,
      agents: {
        running: of(isRunning),
        suspended: agents.filter(({ suspended }) => suspended).length,
        quarantined: of(({ state }) => state === 'quarantined'),
      },
      rigs: { suspended: rigs.filter((rig) => deps.suspended.rig(rig.name)).length },
    }
  }

  /** Sessions of a city for its rigs; a city that is not open yet has none. */
  ofRigs(name: string): RigSessions {
    const sessions = () => this.#open.get(name)?.sessions
    const running = (rig: string) => (sessions()?.store.open() ?? []).filter((one) => one.rig === rig && one.process)
    return {
      running: (rig) => {
        const found = running(rig)
        const times = found.map((one) => sessions()?.live(one.id)?.lastActive ?? one.last_active ?? one.state_since)
        return { count: found.length, lastActivity: times.length === 0 ? undefined : Math.max(...times) }
      },
      restart: async (rig) => {
        const ended = await Promise.all(
          running(rig).map(async ({ id }) => ({ id, done: (await sessions()?.kill(id)) === true })),
        )
        return ended.filter(({ done }) => !done).map(({ id }) => id)
      },
    }
  }

  /** Names of sessions for work: every handle of a session means whoever owns its work. */
  people(name: string): WorkPeople {
    const find = (handle: string): SessionRecord | undefined => {
      const store = this.#open.get(name)?.sessions.store
      return store?.byId(handle) ?? store?.byNamed(handle) ?? store?.openByName(handle) ?? store?.openByAlias(handle)
    }
    return {
      canonical: (handle) => find(handle)?.agent ?? handle,
      identities: (handle) => {
        const found = find(handle)
        return found === undefined ? [handle] : namesOf(found)
      },
      routes: (handle) => {
        const found = find(handle)
        if (found === undefined) return [handle]
        return found.kind === 'agent' ? [...new Set([found.agent, found.template])] : [found.agent]
      },
    }
  }

  /** How many agents the last stop of the city ended. */
  stoppedIn(name: string): number {
    return this.#stopped.get(name) ?? 0
  }

  /** Whose token it is, of the agents that may run. */
  holder(token: string): Agent | undefined {
    const hash = accessHash(token)
    for (const [city, { sessions }] of this.#open) {
      const session = sessions.store.withAccess(hash)
      if (session !== undefined) return agentOf(city, session, sessions)
    }
    return undefined
  }

  /** True where a session of that id is known and has ended, or is to end. */
  ended(name: string, id: string): boolean {
    const session = this.#open.get(name)?.sessions.store.byId(id)
    return session !== undefined && (session.desired !== 'running' || session.state === 'draining')
  }

  /** False where it is known that nothing runs under this id; before sessions are taken over nobody knows (decision 63). */
  lives(name: string, id: string): boolean {
    const opened = this.#open.get(name)
    if (opened === undefined) return true
    return opened.sessions.store.byId(id)?.process === true && opened.sessions.live(id)?.liveness !== 'dead'
  }

  /** Milliseconds since the slowest of the reconcilers looked at its sessions. */
  get patrolAgeMs(): number {
    return Math.max(0, ...[...this.#open.values()].map(({ sessions }) => sessions.patrolAgeMs))
  }

  /** The supervisor ends: agents run on (decision 24). */
  async release(): Promise<void> {
    const opened = [...this.#open.values()]
    this.#open.clear()
    for (const { sessions } of opened) sessions.release()
    await Promise.all(opened.flatMap(({ runtimes }) => runtimes.map((runtime) => runtime.close())))
  }

  #need(name: string): OpenSessions {
    const opened = this.#open.get(name)
    if (opened === undefined) throw problem('city-not-found', `city not found or not running: ${name}`)
    return opened
  }

  async #openSessions(city: City, store: CityStore): Promise<OpenSessions> {
    const { clock, log, ids, env, home, auth, random, insight } = this.#deps
    const { name, path } = city
    const config = this.#deps.config(name)
    const subprocess = createSubprocessRuntime({ clock, env, home })
    const acp = createAcpRuntime({ clock, env, home })
    const sockets = openSocketDirectory(path, { env, home })
    if (sockets.instead !== undefined) log.warn({ city: name, why: sockets.instead }, 'sockets of agents moved')
    const tmux = createTmuxRuntime({ clock, log, socket: join(sockets.path, 'tmux'), env })
    this.#withoutTmux ??= tmux.unavailable()
    const defaultRuntime: RuntimeName = (await this.#withoutTmux) === undefined ? 'tmux' : 'subprocess'
    const runtimes = new Map<RuntimeName, Runtime>([
      ['tmux', tmux],
      ['subprocess', subprocess],
      ['acp', acp],
    ])
    const facts = () => filterFacts(config.current())
    const deps: SessionsDeps = {
      city: { name, path },
      store,
      clock,
      log,
      ids,
      random: randomHex,
      chance: random,
      env,
      home,
      bin: BIN,
      auth,
      config: () => config.current(),
      provider: (provider) => providerOf(config, provider),
      interruptKey: (family): LaunchSpec['interruptKey'] => (ESCAPED.has(family) ? 'escape' : 'ctrl-c'),
      prompt: (agent, workDir) => promptOf(config, agent, workDir),
      fingerprints: (agent) => fingerprintsIn(config, agent),
      render: (template, values) => renderTemplate(template, values, new Map(), facts()),
      runtimes,
      defaultRuntime,
      attachable: (runtime): Attachable | undefined => (runtime === 'tmux' ? tmux : undefined),
      terminal: (process, session, launch) => observeTerminal(process, session, launch, clock),
      work: this.#workOf(name, store),
      suspended: {
        city: () => city.suspended,
        rig: (rig) =>
          readOverride(store.db, rig) ??
          config.current().rigs.find((one) => one.name === rig)?.suspended_on_start ??
          false,
      },
      orphans: {
        list: async () =>
          listTokens()
            .filter(({ city_path: of }) => of === path)
            .map(({ session_id: sessionId, token }) => ({ sessionId, token })),
        kill: async (token) => {
          const left = await killTree({ token }, clock)
          if (left.length > 0) throw new Error(`processes ${left.join(', ')} could not be ended`)
        },
      },
      insight: insight(name),
    }
    return { sessions: new Sessions(deps), deps, runtimes: [tmux, subprocess, acp] }
  }

  #workOf(name: string, store: CityStore): WorkPort {
    const { db } = store
    const claims = () => this.#deps.work.of(name).claims
    return {
      assigned: (session) => holdsWork(db, namesOf(session)),
      assignedTo: (owner) => holdsWork(db, [owner]),
      active: ({ id }) => beadInProgress(db, id),
      demand: (agent) => countDemand(db, agent, this.#deps.clock.now()),
      renew: async (sessions) => {
        const held = sessions.filter(({ id }) => beadInProgress(db, id) !== undefined)
        if (held.length === 0) return
        await db.write((tx) => {
          for (const { id } of held) claims().renewForSession(tx, id)
        })
      },
      release: (tx, { id }, reason) => claims().releaseForSession(tx, id, reason),
      beads: (ids) => openAmong(db, ids),
    }
  }
}

const NO_FINGERPRINTS: Fingerprints = { reapply: '', launch: '', provision: '', prompt: '' }
/** They are asked for at every look at a session, and change with the configuration only. */
const fingerprints = new WeakMap<EffectiveConfig, Map<string, Fingerprints>>()

function fingerprintsIn(config: ConfigService, agent: AgentView): Fingerprints {
  const current = config.current()
  const known = fingerprints.get(current) ?? new Map<string, Fingerprints>()
  fingerprints.set(current, known)
  const cached = known.get(agent.identity)
  if (cached !== undefined) return cached
  const found = current.agents.find(({ identity }) => identity === agent.identity)
  if (found === undefined) return NO_FINGERPRINTS
  const made = { ...fingerprintsOf(current, found), prompt: promptOf(config, agent, '').sha256 }
  known.set(agent.identity, made)
  return made
}

const namesOf = ({ id, agent, alias, session_name: name }: SessionRecord): readonly string[] => [
  ...new Set([agent, id, name, ...(alias === undefined ? [] : [alias])]),
]

/** The provider as composed, else the built-in one; with the preset that it comes from, which knows its screen. */
function providerOf(config: ConfigService, name: string): { spec: ProviderView; family: string } | undefined {
  const { providers } = config.current()
  const declared = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (declared === undefined) {
    const preset = findPreset(name)
    return preset === undefined ? undefined : { spec: preset, family: name }
  }
  const builtin = declared.chain.findLast((link) => link.startsWith('builtin:'))
  return { spec: declared.resolved, family: builtin?.slice('builtin:'.length) ?? name }
}

/** Prompts hang on files that may have changed: what is hashed is what a start would say. */
function promptOf(config: ConfigService, agent: AgentView, workDir: string) {
  const current = config.current()
  const found = current.agents.find(({ identity }) => identity === agent.identity)
  if (found === undefined) return { text: '', sha256: '' }
  const data = promptData(current, found)
  const values = workDir === '' ? data : { ...data, WorkDir: workDir }
  return renderPrompt(current, found, values, filterFacts(current), config.files)
}
