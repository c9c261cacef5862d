/**
 * The actor of one session: asks what is to be done next, does it, and asks again.
 *
 * A1  One effect at a time per session, each with a deadline; nothing of one session waits for another one, but for a
 *     slot to start in.
 * A2  What is on disk comes first: token and generation before a start, `delivering` before typing; state and events of
 *     what has happened in one write.
 * A3  A wish that ends the session's process cuts the effect that is under way; an end is never cut.
 * A4  `release` ends the actor and leaves the process alone (decision 24).
 * A5  An effect that failed or changed nothing takes a pause, whatever rings meanwhile (pace.ts).
 */

import { deadline } from '../../../kernel/deadline.ts'
import type { AgentProcess, Answer, SettingOutcome } from '../../../runtimes/process/runtime.ts'
import { identityOf } from '../record/identity.ts'
import { hasProcess } from '../record/lifecycle.ts'
import { agePolicyOf } from '../record/policy.ts'
import type { LiveFacts, Screen, Terminal } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Report } from '../record/report.ts'
import { RUNTIME_REMOVED } from '../record/schema.ts'
import { Ending } from './ending.ts'
import { type Interrupted, Interrupts } from './interrupts.ts'
import { Journal } from './journal.ts'
import { liftLimit } from './limits.ts'
import { Pace } from './pace.ts'
import { type Action, type DriftKind, nextAction, type Obstacle, obstacleOf, type Situation } from './reconcile.ts'
import { Saying } from './saying.ts'
import { type ActorDeps, type Scene, SUPERVISOR } from './scene.ts'
import { Starting } from './starting.ts'
import { timesAfter } from './times.ts'
import { Turns } from './turns.ts'
import { Watch } from './watch.ts'

type Effect = Exclude<Action, { do: 'wait' }>
/** What the loop does: effects, and what comes before them. */
type Step = Effect['do'] | 'record-exit' | 'kill' | 'follow-clock'

/** A record that cannot be read is looked at again after this. */
const UNREADABLE_PAUSE_MS = 30_000

export class SessionActor {
  readonly id: string
  readonly #deps: ActorDeps
  readonly #journal: Journal
  readonly #watch: Watch
  readonly #starting: Starting
  readonly #interrupts: Interrupts
  readonly #saying: Saying
  readonly #ending: Ending
  #looping: Promise<void> | undefined
  #poked = false
  #closed = false
  readonly #left = new AbortController()
  #stopping = false
  #effect: { readonly kind: Effect['do']; readonly aborter: AbortController } | undefined
  #cancelTimer: (() => void) | undefined
  readonly #pace: Pace<Step>
  /** By how much the clock was set, or the machine slept, that is not on disk yet. */
  #jump = 0
  #kills: { resolve(): void; reject(error: unknown): void }[] = []
  /** It is to be killed, also where the callers who asked for that have been told that it did not work. */
  #killing = false

  constructor(record: SessionRecord, deps: ActorDeps) {
    this.id = record.id
    this.#deps = deps
    this.#pace = new Pace(deps.clock)
    this.#journal = new Journal(this.id, deps)
    const turns = new Turns(this.id, deps, this.#journal, () => this.#closed)
    this.#watch = new Watch(record, deps, this.#journal, {
      poke: () => this.poke(),
      idle: () => {
        turns.ended()
        deps.rests()
      },
    })
    const scene: Scene = {
      id: this.id,
      deps,
      watch: this.#watch,
      journal: this.#journal,
      turns,
      closed: () => this.#closed,
      left: this.#left.signal,
      cutFor: () => (this.#stopping ? 'city-stop' : this.#killing ? 'kill' : undefined),
    }
    this.#starting = new Starting(scene)
    this.#interrupts = new Interrupts(scene)
    this.#saying = new Saying(scene, this.#interrupts)
    this.#ending = new Ending(scene)
  }

  // --- What others see and ask -------------------------------------------------------------------------------------

  /** The harness says something of itself. */
  reported(report: Report): void {
    this.#watch.reported(report)
  }

  /** A person does something at its terminal, or comes, or goes. */
  sawPerson(): void {
    this.#watch.personSeenAt = this.#deps.clock.now()
    if (this.#watch.personTypingSince !== undefined) this.poke()
  }

  /** Why nothing is said to it now; undefined: nothing is in the way. */
  obstacle(session: SessionRecord): Obstacle | undefined {
    return obstacleOf(this.#situation(session))
  }

  facts(): LiveFacts {
    return this.#watch.facts
  }

  get process(): AgentProcess | undefined {
    return this.#watch.process
  }

  /** Why its last start failed. */
  get lastError(): string | undefined {
    return this.#starting.lastError
  }

  get terminal(): Terminal | undefined {
    return this.#watch.terminal
  }

  screen(lines: number): Screen | undefined {
    return this.#watch.terminal?.screen(lines)
  }

  /** Looks at the situation; calls while an effect runs are looked at after it, save that they may cut it (A3). */
  poke(): void {
    if (this.#closed || this.#stopping) return
    this.#poked = true
    this.#cutIfPointless()
    if (this.#looping !== undefined) return
    this.#looping = this.#loop().finally(() => {
      this.#looping = undefined
      if (this.#poked) this.poke()
    })
  }

  /** Ends the process by force; resolves when none of its tree runs and the record says so. */
  kill(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#kills.push({ resolve, reject })
      this.#killing = true
      if (this.#effect?.kind !== 'stop') this.#effect?.aborter.abort(new Error('the session is being killed'))
      this.poke()
    })
  }

  /** Interrupts the turn, and says what was seen of that. Not an effect: it must reach a busy session. */
  interrupt(signal: AbortSignal): Promise<Interrupted> {
    return this.#interrupts.stop(signal)
  }

  /** Answers what it waits for; false: that one is no longer open. */
  answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    return this.#journal.observed('respond', 'it asks that no longer', () =>
      this.#watch.answer(requestId, answer, signal),
    )
  }

  /** Sets something of the agent that runs; undefined where none does. */
  async set(key: string, value: string, signal: AbortSignal): Promise<SettingOutcome | undefined> {
    return this.#watch.process?.set(key, value, signal)
  }

  /** The city stops: nothing new is begun, until its turn to end comes. */
  hold(): void {
    this.#stopping = true
    this.#cancelTimer?.()
    this.#effect?.aborter.abort(new Error('the city stops'))
  }

  /** The city stops: ends the process and lets the session sleep. */
  async shutDown(graceMs: number): Promise<void> {
    this.hold()
    await this.#looping
    const session = this.#deps.sessions.byId(this.id)
    if (session === undefined) return
    try {
      if (session.process && this.#watch.process === undefined) await this.#perform({ do: 'adopt' }, session)
      await this.#ending.rest(graceMs)
    } catch (error) {
      this.#deps.log.error({ session: this.id, err: error }, 'session not ended with its city')
    }
  }

  /** The supervisor ends; the process does not (A4). */
  release(): void {
    this.#close()
    this.#watch.release()
  }

  /** No more looks: its record is gone, or says that it is over. */
  async end(): Promise<void> {
    this.#effect?.aborter.abort(new Error('the session is gone'))
    this.#close()
    await this.#looping
    this.#watch.release()
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.#looping !== undefined) await this.#looping
  }

  #close(): void {
    this.#closed = true
    this.#left.abort(new Error('the supervisor is shutting down'))
    this.#cancelTimer?.()
    for (const { reject } of this.#kills.splice(0)) reject(new Error('the supervisor is shutting down'))
  }

  // --- The loop ----------------------------------------------------------------------------------------------------

  async #loop(): Promise<void> {
    // Not in the commit that rang.
    await undefined
    while (this.#poked && !this.#closed && !this.#stopping) {
      this.#poked = false
      if (!(await this.#look())) return
    }
  }

  /** False where the session is gone, or its record cannot be read: one row must not end the process of all cities. */
  async #look(): Promise<boolean> {
    try {
      const session = this.#deps.sessions.byId(this.id)
      if (session === undefined) return false
      if (await this.#step(session)) this.#poked = true
      return true
    } catch (error) {
      if (this.#closed) return false
      this.#deps.log.error({ session: this.id, err: error }, 'the record of a session could not be read')
      this.#wakeIn(UNREADABLE_PAUSE_MS)
      return false
    }
  }

  /** False: there is nothing to do until something changes or the timer fires. */
  async #step(session: SessionRecord): Promise<boolean> {
    this.#jump += this.#watch.review()
    const situation = this.#situation(session)
    const { step, work, waitUntil } = this.#nextStep(situation)
    if (step === undefined || work === undefined) {
      this.#pace.rested()
      this.#wakeAt(waitUntil)
      return false
    }
    const before = this.#mark(situation)
    const pauseMs = this.#pace.pauseMs(step, before)
    if (pauseMs > 0) {
      this.#pace.rested()
      this.#wakeIn(pauseMs)
      return false
    }
    try {
      await work()
      this.#pace.did(step, before, this.#markNow())
    } catch (error) {
      if (this.#closed) return false
      this.#pace.failed(step, this.#markNow())
      this.#deps.log.error({ session: this.id, err: error }, 'step of a session failed')
    }
    return true
  }

  #nextStep(situation: Situation): {
    readonly step?: Step
    readonly work?: () => Promise<void>
    readonly waitUntil?: number | undefined
  } {
    const { session } = situation
    const watch = this.#watch
    const { exit } = watch
    if (exit !== undefined)
      return { step: 'record-exit', work: () => this.#ending.exited(session, exit, this.#starting.resumed) }
    if (this.#killing) return { step: 'kill', work: () => this.#kill(session) }
    if (this.#jump !== 0) return { step: 'follow-clock', work: () => this.#followClock() }
    const unseen = watch.presence === 'unknown' ? this.#starting.lookAt : undefined
    if (unseen !== undefined && this.#deps.clock.now() >= unseen)
      return { step: 'adopt', work: () => this.#perform({ do: 'adopt' }, session) }
    const action = nextAction(situation)
    if (action.do !== 'wait') return { step: action.do, work: () => this.#perform(action, session) }
    const times = [action.until, unseen, watch.lookAt].filter((at) => at !== undefined)
    return { waitUntil: times.length === 0 ? undefined : Math.min(...times) }
  }

  /** All that an effect can change, to be compared. */
  #mark({ now, policy, age, quietSince, session, queue, ...facts }: Situation): string {
    const waiting = queue.map((one) => [one.id, one.seq, one.state, one.attempts, one.request_open])
    const { revision, updated_at } = session
    const { lookAt } = this.#starting
    const { exit, lineStays } = this.#watch
    return JSON.stringify([
      facts,
      revision,
      updated_at,
      waiting,
      exit,
      lineStays,
      lookAt,
      this.#kills.length,
      this.#jump,
    ])
  }

  #markNow(): string {
    const session = this.#deps.sessions.byId(this.id)
    return session === undefined ? '' : this.#mark(this.#situation(session))
  }

  /** What is on disk is as old as it was, and lasts as long as it would have. */
  async #followClock(): Promise<void> {
    const { clock, deliveries, sessions } = this.#deps
    const jump = this.#jump
    await this.#journal.write((tx) => {
      const times = timesAfter(sessions.need(tx, this.id), clock.now(), jump)
      if (times !== undefined) sessions.change(tx, this.id, times, SUPERVISOR)
      deliveries.followClock(tx, this.id, jump)
    })
    this.#jump -= jump
  }

  /** The callers hear of the first try; it goes on until nothing of it runs. */
  async #kill(session: SessionRecord): Promise<void> {
    const callers = this.#kills.splice(0)
    try {
      await this.#ending.kill(session)
      this.#killing = this.#kills.length > 0
      for (const { resolve } of callers) resolve()
    } catch (error) {
      for (const { reject } of callers) reject(error)
      throw error
    }
  }

  #situation(session: SessionRecord): Situation {
    const { deliveries, policy, config, clock, work, attended, want, blocked } = this.#deps
    const { presence, evidence, quietSince, busySince, personTypingSince, saidAt, interruptedAt } = this.#watch
    const lineLeftAt = this.#watch.lineLeftAt
    const settings = config()
    const agent = settings.agents.find(({ identity }) => identity === session.template)
    const alive = presence === 'alive'
    return {
      session,
      process: presence,
      activity: evidence.activity,
      quietSince,
      busySince,
      pending: evidence.pending !== undefined,
      attended: attended(this.id),
      assigned: alive && work.assigned(session),
      queue: deliveries.front(session),
      personTypingSince,
      lineLeftAt,
      saidAt,
      interruptedAt,
      want: want(this.id),
      drift: this.#driftOf(session),
      blocked: session.state === 'start-pending' ? blocked(session) : undefined,
      policy: policy(),
      age: agePolicyOf(settings, agent, session),
      now: clock.now(),
    }
  }

  /** One that was just tried in vain does not keep messages waiting. */
  #driftOf(session: SessionRecord): DriftKind {
    if (this.#watch.presence !== 'alive' || session.state !== 'active') return 'none'
    const drift = this.#deps.drift(session)
    return drift === 'reapply' && this.#pace.holds('reapply') ? 'none' : drift
  }

  async #perform(action: Effect, session: SessionRecord): Promise<void> {
    const aborter = new AbortController()
    this.#effect = { kind: action.do, aborter }
    try {
      await this.#act(action, session, aborter.signal)
    } finally {
      this.#effect = undefined
    }
  }

  #act(action: Effect, session: SessionRecord, signal: AbortSignal): Promise<void> {
    switch (action.do) {
      case 'adopt':
        return isOfRemovedRuntime(session)
          ? this.#ending.kill(session, { reason: RUNTIME_REMOVED, actor: 'supervisor' })
          : this.#starting.adopt(session, signal)
      case 'start':
        return this.#starting.start(signal)
      case 'move':
        return this.#journal.write((tx) => this.#journal.move(tx, action.turn))
      case 'stop':
        return this.#ending.stop(session, action.graceMs, action.turn)
      case 'deliver':
        return this.#saying.deliver(session, action.delivery, signal)
      case 'settle':
        return this.#saying.settle(session, action.delivery, signal)
      case 'interrupt':
        return this.#saying.interrupt(signal)
      case 'expire-deliveries':
        return this.#saying.expire(action)
      case 'lift-limit':
        return this.#journal.write((tx) => liftLimit(tx, this.#deps.sessions.need(tx, this.id), 'time', this.#deps))
      case 'report-queued':
        return this.#journal.write((tx) => {
          for (const { id } of action.deliveries) this.#deps.deliveries.reportQueued(tx, id, action.waitsFor)
        })
      case 'reapply':
        return this.#reapply(session, signal)
    }
  }

  /** Live commands again, after their configuration changed. */
  async #reapply(session: SessionRecord, signal: AbortSignal): Promise<void> {
    const { clock, policy, launcher, sessions } = this.#deps
    const identity = identityOf(session)
    if (identity === undefined) return
    using limit = deadline(clock, policy().startupTimeoutMs, 'it took too long', signal)
    const now = await launcher.reapply(session, identity, limit.signal)
    await this.#journal.write((tx) => {
      if (now === undefined || session.fingerprints === undefined) return
      const fingerprints = { ...session.fingerprints, reapply: now.reapply }
      sessions.change(tx, this.id, { fingerprints }, SUPERVISOR)
    })
  }

  /** A start or a typing that nobody wants any more is cut at once. */
  #cutIfPointless(): void {
    const effect = this.#effect
    if (effect === undefined || (effect.kind !== 'start' && effect.kind !== 'deliver')) return
    const session = this.#deps.sessions.byId(this.id)
    if (session?.desired === 'running') return
    effect.aborter.abort(new Error('the session is to end'))
  }

  #wakeAt(at: number | undefined): void {
    if (at !== undefined) this.#wakeIn(Math.max(at - this.#deps.clock.now(), 0))
    else this.#cancelTimer?.()
  }

  #wakeIn(ms: number): void {
    this.#cancelTimer?.()
    if (!this.#closed) this.#cancelTimer = this.#deps.clock.after(ms, () => this.poke())
  }
}

/** Nobody answers for its process any more: it is ended by its token, and the session started anew. */
const isOfRemovedRuntime = ({ reason, state }: SessionRecord): boolean =>
  reason === RUNTIME_REMOVED && hasProcess(state)
