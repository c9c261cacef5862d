/**
 * The reconciler of a city's sessions: plans what is wanted and lets the actors act on it (architecture §3, "One actor").
 *
 * T1  Driven by events; the tick is only the safety net. Rounds that are asked for meanwhile become one.
 * T2  A round does no work that can hang: everything that can is looked at off the round, with a deadline of its own.
 * T3  A session is made in the write that finds it missing: two rounds never make it twice.
 */

import { parseDurationMs } from '../../../contract/base/durations.ts'
import { readRegular } from '../../../files/read.ts'
import { runBriefly } from '../../../kernel/processes.ts'
import { inheritedEnvironment } from '../launch/inherited.ts'
import { pathValues } from '../launch/launch.ts'
import { type AgentView, untrusted } from '../record/config-view.ts'
import type { Policy } from '../record/policy.ts'
import type { SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { SessionStore } from '../record/store.ts'
import { type DesireInput, type Plan, planSessions, type Wanted } from './desire.ts'

const SCALE_TIMEOUT_MS = 180_000
const HOOK_TIMEOUT_MS = 30_000
const MAX_NAMES = 10_000

export interface PatrolDeps extends SessionsDeps {
  readonly sessions: SessionStore
  readonly policy: () => Policy
  readonly kept: (session: SessionRecord) => boolean
  readonly spokenTo: (session: SessionRecord) => boolean
  /** Makes a session that the plan misses; nothing happens where it is there meanwhile. */
  readonly create: (wanted: Wanted) => Promise<void>
  /** The plan has changed: actors look again. */
  readonly planned: (plan: Plan) => void
  /** Tells those who rest of work that waits for them. */
  readonly offer: () => Promise<void>
  /** Slow looks: attached terminals, leases, waits. Bounded by the signal. */
  readonly look: (signal: AbortSignal) => Promise<void>
}

export class Patrol {
  readonly #deps: PatrolDeps
  readonly #scale = new Map<string, number>()
  readonly #scaling = new Set<string>()
  readonly #pools = new Map<string, readonly string[]>()
  readonly #aborter = new AbortController()
  #poolsOf = ''
  #cancelTick: (() => void) | undefined
  #tickMs = 0
  #cancelRound: (() => void) | undefined
  #round: Promise<void> | undefined
  #again = false
  #looking = false
  #roundAt: number

  constructor(deps: PatrolDeps) {
    this.#deps = deps
    this.#roundAt = deps.clock.monotonic()
  }

  /** Milliseconds since the last round: what `/health` looks at. */
  get ageMs(): number {
    return this.#deps.clock.monotonic() - this.#roundAt
  }

  async start(): Promise<void> {
    for (const agent of this.#deps.config().agents) this.#onBoot(agent)
    await this.#run()
    this.#lookAround()
    this.#armTick()
  }

  /** Other agents, another interval: what only the tick looks at is not left until a tick of the old one. */
  reconfigured(): void {
    if (this.#stopped) return
    this.poke()
    if (this.#tickMs === this.#deps.policy().patrolMs) return
    this.#cancelTick?.()
    this.#lookAround()
    this.#armTick()
  }

  async stop(): Promise<void> {
    this.#aborter.abort(new Error('the city stops'))
    this.#cancelTick?.()
    this.#cancelRound?.()
    await this.#round
  }

  /** Something that the plan is made of has changed. */
  poke(): void {
    if (this.#stopped || this.#cancelRound !== undefined) return
    const debounce = this.#deps.config().daemon.tick_debounce
    this.#cancelRound = this.#deps.clock.after(debounce === undefined ? 0 : parseDurationMs(debounce), () => {
      this.#cancelRound = undefined
      void this.#run()
    })
  }

  get #stopped(): boolean {
    return this.#aborter.signal.aborted
  }

  #armTick(): void {
    if (this.#stopped) return
    this.#tickMs = this.#deps.policy().patrolMs
    this.#cancelTick = this.#deps.clock.after(this.#tickMs, () => {
      void this.#run()
      this.#lookAround()
      this.#armTick()
    })
  }

  #run(): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    this.#again = true
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  async #rounds(): Promise<void> {
    while (this.#again && !this.#stopped) {
      this.#again = false
      try {
        await this.#once()
      } catch (error) {
        if (!this.#stopped) this.#deps.log.error({ city: this.#deps.city.name, err: error }, 'round of sessions failed')
      }
      this.#roundAt = this.#deps.clock.monotonic()
    }
  }

  async #once(): Promise<void> {
    const sessions = this.#deps.sessions.open()
    const plan = planSessions(this.#input(sessions))
    this.#deps.planned(plan)
    for (const wanted of plan.create) {
      if (this.#stopped) return
      await this.#deps
        .create(wanted)
        .catch((error: unknown) => this.#deps.log.warn({ session: wanted.name, err: error }, 'wanted session not made'))
    }
    await this.#deps.offer()
  }

  #input(sessions: readonly SessionRecord[]): DesireInput {
    const { config, work, suspended, kept, spokenTo } = this.#deps
    const settings = config()
    return {
      config: settings,
      sessions,
      demand: (agent) => ({
        fresh: work.demand(agent.identity) + (this.#scale.get(agent.identity) ?? 0),
        held: this.#heldBy(agent, sessions),
      }),
      routed: (named) => work.demand(named),
      namepool: (agent) => this.#names(agent, settings.revision),
      citySuspended: suspended.city(),
      rigSuspended: suspended.rig,
      kept,
      spokenTo,
    }
  }

  #heldBy({ identity }: AgentView, sessions: readonly SessionRecord[]): ReadonlySet<string> {
    const { work, config } = this.#deps
    const own = sessions.filter((one) => one.template === identity && work.assigned(one)).map(({ agent }) => agent)
    const named = config()
      .named_sessions.filter((one) => one.agent === identity && work.assignedTo(one.identity))
      .map((one) => one.identity)
    return new Set([...own, ...named])
  }

  #names(agent: AgentView, revision: string): readonly string[] {
    const file = agent.paths['namepool']
    if (file === undefined) return []
    if (this.#poolsOf !== revision) this.#pools.clear()
    this.#poolsOf = revision
    const known = this.#pools.get(file)
    if (known !== undefined) return known
    const names = readNames(file)
    this.#pools.set(file, names)
    return names
  }

  // --- What can take long (T2) -------------------------------------------------------------------------------------

  #lookAround(): void {
    this.#scaleAll()
    if (this.#looking) return
    this.#looking = true
    this.#deps
      .look(this.#aborter.signal)
      .catch((error: unknown) => {
        if (!this.#stopped) this.#deps.log.warn({ city: this.#deps.city.name, err: error }, 'look at sessions failed')
      })
      .finally(() => {
        this.#looking = false
      })
  }

  #scaleAll(): void {
    const { config, policy } = this.#deps
    for (const agent of config().agents) {
      if (this.#scaling.size >= policy().probesAtOnce) return
      if (
        agent.scale_check === undefined ||
        agent.suspended ||
        untrusted(agent) !== undefined ||
        this.#scaling.has(agent.identity)
      )
        continue
      this.#scaling.add(agent.identity)
      void this.#scaleOne(agent, agent.scale_check).finally(() => this.#scaling.delete(agent.identity))
    }
  }

  /** The command prints how much new work there is; one that fails asks for nothing beyond the floor. */
  async #scaleOne(agent: AgentView, template: string): Promise<void> {
    const said = await this.#command(agent, template, SCALE_TIMEOUT_MS)
    const count = /^\s*(\d{1,6})\s*$/.exec(said ?? '')?.[1]
    const before = this.#scale.get(agent.identity) ?? 0
    const now = count === undefined ? 0 : Number(count)
    if (count === undefined && said !== undefined)
      this.#deps.log.warn({ agent: agent.identity, said: said.slice(0, 200) }, 'scale check printed no number')
    this.#scale.set(agent.identity, now)
    if (now !== before) this.poke()
  }

  #onBoot(agent: AgentView): void {
    if (agent.on_boot === undefined || agent.on_boot === '' || untrusted(agent) !== undefined) return
    void this.#command(agent, agent.on_boot, HOOK_TIMEOUT_MS)
  }

  async #command(agent: AgentView, template: string, timeoutMs: number): Promise<string | undefined> {
    const { config, render, env, home, log, clock } = this.#deps
    const settings = config()
    const values = {
      ...pathValues(settings, agent.identity, agent),
      Session: '',
      WorkDir: settings.dir,
      ConfigDir: agent.config_dir,
    }
    try {
      const command = render(template, values)
      const provider = this.#deps.provider(agent.provider)?.spec ?? {}
      const own = {
        ...inheritedEnvironment(env, settings.session, provider),
        ...agent.env,
        SVC_HOME: home,
        SVC_CITY: settings.name,
        SVC_AGENT: agent.identity,
      }
      const result = await runBriefly('/bin/sh', ['-c', command], {
        env: own,
        cwd: settings.dir,
        timeoutMs,
        signal: this.#aborter.signal,
        clock,
      })
      if (result.outcome === 'exited' && result.code === 0) return result.stdout
      if (result.outcome !== 'aborted')
        log.warn({ agent: agent.identity, outcome: result.outcome, code: result.code }, 'command of an agent failed')
    } catch (error) {
      log.warn({ agent: agent.identity, err: error }, 'command of an agent not run')
    }
    return undefined
  }
}

/** One name per line; what cannot be a name is left out. */
function readNames(file: string): readonly string[] {
  try {
    const lines = readRegular(file)?.toString('utf8').split('\n') ?? []
    const names = lines.map((line) => line.trim()).filter((line) => /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(line))
    return [...new Set(names)].slice(0, MAX_NAMES)
  } catch {
    return []
  }
}
