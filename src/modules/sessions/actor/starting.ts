/**
 * Starting one session, and taking over what an earlier supervisor had started.
 *
 * G1  Generation and token are on disk before anything is run (S1); a start that failed leaves nothing running.
 * G2  One start has one end: `active`, or what a failed start means for this session.
 */
import type { Tx } from '../../../kernel/database.ts'
import { deadline, rejection } from '../../../kernel/deadline.ts'
import {
  type AgentProcess,
  type Exit,
  type Identity,
  LaunchError,
  type LaunchSpec,
} from '../../../runtimes/process/runtime.ts'
import { type Prepared, StartError } from '../launch/launcher.ts'
import type { DeliveryRecord } from '../queue/deliveries.ts'
import { accessHash } from '../record/access.ts'
import { identityOf, KEY_LOST, keyOf, tellLost } from '../record/identity.ts'
import { failedStart } from '../record/lifecycle.ts'
import { agePolicyOf } from '../record/policy.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import { backOffMs, crashesWith, wireExit } from './crash.ts'
import { lastOutputOf } from './ending.ts'
import { UNCERTAIN } from './journal.ts'
import { endOf, type Turn } from './reconcile.ts'
import { LOOK_MS, type Scene, SUPERVISOR, textOf } from './scene.ts'

const FIRST_LOOK_MS = 500
const MAX_PAUSE_MS = 30_000
/** Silence behind the first words of a line-oriented program. */
const QUIET_MS = 100
const UNDO_MS = 20_000

/** How the run of a failed start ended, and what it wrote last. */
interface LastRun {
  readonly exit: Exit | undefined
  readonly output: string
}

export class Starting {
  /** Why the last start failed. */
  lastError: string | undefined
  /** The conversation was resumed by its key. */
  resumed = false
  /** When to look again for what could not be observed. */
  lookAt = 0
  readonly #scene: Scene
  #looks = 0
  #unknownSince: number | undefined
  #reportedUnknown = false
  /** The end of a launch that was cut: nothing of it runs any more. */
  #late: Promise<void> = Promise.resolve()

  constructor(scene: Scene) {
    this.#scene = scene
  }

  /** In the order of asking; nobody waits for a slot that is not wanted any more. */
  async start(signal: AbortSignal): Promise<void> {
    if (!(await this.#placed(signal))) return
    const release = await this.#scene.deps.slots.take(signal).catch(() => undefined)
    if (release === undefined) return
    try {
      await this.#start(signal)
    } finally {
      release()
    }
  }

  /** Its worktree comes first: it may take long, and nobody else waits for it. False: there is none to start in. */
  async #placed(signal: AbortSignal): Promise<boolean> {
    const { id, deps, closed } = this.#scene
    const session = deps.sessions.byId(id)
    if (session?.state !== 'start-pending' || session.desired !== 'running') return false
    const startedAt = deps.clock.now()
    const progress = (reason: string | undefined) =>
      this.#scene.journal.write((tx) => {
        const now = deps.sessions.need(tx, id)
        if (now.state === 'start-pending') deps.sessions.change(tx, id, { reason }, SUPERVISOR)
      })
    let told = false
    try {
      await deps.launcher.place(session, AbortSignal.any([signal, this.#scene.left]), (reason) => {
        told = true
        return progress(reason)
      })
      if (told) await progress(session.reason)
      return true
    } catch (error) {
      if (closed() || deps.sessions.byId(id) === undefined) return false
      await this.#failed({ sessionId: id, generation: session.generation, token: '' }, startedAt, error)
      return false
    }
  }

  async #start(signal: AbortSignal): Promise<void> {
    const { id, deps, watch } = this.#scene
    const session = deps.sessions.byId(id)
    if (session?.state !== 'start-pending' || session.desired !== 'running') return
    const startedAt = deps.clock.now()
    const identity = { sessionId: id, generation: session.generation + 1, token: deps.random(16) }
    const access = deps.auth ? deps.random(32) : undefined
    let prepared: Prepared | undefined
    try {
      const first = this.#withLaunch(session)
      const made = this.#prepare(session, identity, access, first)
      prepared = made
      await this.#prewake(made, identity, access)
      await deps.launcher.ground(made, AbortSignal.any([signal, this.#scene.left]))
      using limit = deadline(deps.clock, deps.policy().startupTimeoutMs, TOO_SLOW, signal)
      const process = await this.#launch(made, limit.signal, () => this.#commit(made, identity, access, first))
      watch.attach(process, deps.sessions.byId(id) ?? session)
      await this.#becomeReady(made, limit.signal, signal)
      await this.#ready(made, startedAt)
    } catch (error) {
      if (this.#scene.closed()) return
      this.resumed = prepared?.plan.resumed === true
      const ended = prepared === undefined ? undefined : endOfBounded(prepared, error)
      if (prepared === undefined || ended === undefined) return this.#failed(identity, startedAt, error)
      await this.#ready(prepared, startedAt)
      watch.exit = ended
    }
  }

  #prepare(
    session: SessionRecord,
    identity: Identity,
    access: string | undefined,
    first: DeliveryRecord | undefined,
  ): Prepared {
    const { deliveries, launcher } = this.#scene.deps
    return launcher.prepare(session, identity, {
      access,
      message: first === undefined ? undefined : deliveries.text(first.id),
    })
  }

  /** The message of the creation, while it is the first that waits. */
  #withLaunch(session: SessionRecord): DeliveryRecord | undefined {
    const head = session.queued === 0 ? undefined : this.#scene.deps.deliveries.head(session.id)
    return head?.with_launch === true && head.state === 'queued' ? head : undefined
  }

  /** G1. */
  #prewake({ plan, fingerprints }: Prepared, identity: Identity, access: string | undefined): Promise<void> {
    const { id, deps, journal } = this.#scene
    const { sessions } = deps
    return journal.write((tx) => {
      const before = sessions.need(tx, id)
      const first = this.#withLaunch(before)
      const session = sessions.move(tx, id, 'prewake', {
        ...SUPERVISOR,
        deadlineMs: deps.policy().startupTimeoutMs + 60_000,
        fields: {
          generation: identity.generation,
          token: identity.token,
          access_hash: access === undefined ? undefined : accessHash(access),
          access_api: access === undefined ? undefined : plan.api,
          process: true,
          pid: undefined,
          launch: plan.facts,
          work_dir: plan.spec.workDir,
          attempts: before.attempts + 1,
          retry_at: undefined,
          // A new one has a name once a harness was told it.
          conversation_id: plan.resumed ? plan.conversationId : undefined,
          fresh: false,
          continuation_epoch: before.continuation_epoch + (plan.resumed || before.generation === 0 ? 0 : 1),
          ...(fingerprints === undefined ? {} : { fingerprints }),
        },
      })
      if (plan.typedPrompt !== undefined) this.#queuePrompt(tx, session, first, plan.typedPrompt)
      deps.starts(tx, sessions.need(tx, id), { isNew: !plan.resumed })
    })
  }

  /**
   * Right before it runs, and no earlier: what comes before a start may take minutes, or be cut, and then it was told
   * nothing. A message that was cancelled meanwhile is left out.
   */
  async #commit(
    { plan }: Prepared,
    identity: Identity,
    access: string | undefined,
    first: DeliveryRecord | undefined,
  ): Promise<LaunchSpec> {
    const { id, deps, journal } = this.#scene
    const { deliveries, sessions } = deps
    const isTold = await journal.write((tx) => {
      if (plan.conversationId !== sessions.need(tx, id).conversation_id)
        sessions.change(tx, id, { conversation_id: plan.conversationId }, SUPERVISOR)
      return !plan.promptInLaunch || first === undefined || deliveries.begin(tx, first.id, identity.generation)
    })
    if (isTold) return plan.spec
    const session = deps.sessions.byId(id)
    return session === undefined ? plan.spec : this.#prepare(session, identity, access, undefined).plan.spec
  }

  /** One prompt per conversation: what an earlier attempt queued is still there. */
  #queuePrompt(tx: Tx, session: SessionRecord, first: DeliveryRecord | undefined, text: string): void {
    const { deliveries, policy } = this.#scene.deps
    if (deliveries.waiting(session.id).some(({ source }) => source === 'prompt')) return
    const ttlMs = policy().deliveryTtlMs
    if (first === undefined) deliveries.addFirst(tx, session, { source: 'prompt', intent: 'default', text, ttlMs })
    else deliveries.makePrompt(tx, first.id, text)
  }

  /** What a runtime that does not heed its signal brings too late is ended (G1). */
  async #launch(prepared: Prepared, signal: AbortSignal, commit: () => Promise<LaunchSpec>): Promise<AgentProcess> {
    const launching = this.#scene.deps.launcher.launch(prepared, signal, commit)
    try {
      return await Promise.race([launching, rejection(signal)])
    } catch (error) {
      this.#late = launching.then((late) => this.#endLate(late)).catch(() => {})
      throw error
    }
  }

  async #endLate(late: AgentProcess): Promise<void> {
    const { closed, cutFor } = this.#scene
    if (closed() && cutFor() !== 'city-stop') late.release()
    else await late.stop(0)
  }

  /** Waits for its terminal, unless it ends first; then runs what belongs before its first message. */
  async #becomeReady(prepared: Prepared | undefined, startup: AbortSignal, signal = startup): Promise<void> {
    const { id, deps, watch } = this.#scene
    const { process, terminal } = watch
    if (process === undefined) throw new Error('there is no process')
    const { launch } = deps.sessions.byId(id) ?? {}
    if (launch?.oneShot === true) return
    const ended = Promise.withResolvers<never>()
    ended.promise.catch(() => {})
    const leave = process.on((event) => {
      if (event.type === 'exit')
        ended.reject(new LaunchError('exited', 'the program ended while it was starting', event.exit))
    })
    const unlessEnded = <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended.promise])
    try {
      if (terminal !== undefined) await unlessEnded(terminal.ready(startup))
      if (terminal !== undefined && launch?.delivery === 'line') await unlessEnded(this.#firstPrompt(process))
      if (prepared !== undefined) await unlessEnded(deps.launcher.setUp(prepared, signal))
      signal.throwIfAborted()
    } finally {
      leave()
    }
  }

  /**
   * A shell reads its profile first, and what is typed meanwhile is shown twice: before its prompt, and behind it. So its
   * first words are waited for, the silence behind them, and its own word that it is idle; not for long, since a program
   * may have nothing to say.
   */
  async #firstPrompt(process: AgentProcess): Promise<void> {
    const { clock, policy } = this.#scene.deps
    using limit = deadline(clock, policy().lineReadyMs, 'it says nothing')
    let quiet = false
    let cancel: (() => void) | undefined
    await new Promise<void>((resolve) => {
      const look = () => {
        if (quiet && process.activity === 'idle') done()
      }
      const spoke = () => {
        quiet = false
        cancel?.()
        cancel = clock.after(QUIET_MS, () => {
          quiet = true
          look()
        })
      }
      const leave = process.on(({ type }) => {
        if (type === 'output') spoke()
        else look()
      })
      limit.signal.addEventListener('abort', done, { once: true })
      if (process.endOffset > 0) spoke()
      function done() {
        cancel?.()
        leave()
        resolve()
      }
    })
  }

  async #ready(prepared: Prepared | undefined, startedAt: number): Promise<void> {
    const { id, deps, watch, journal } = this.#scene
    const { deliveries, sessions, policy } = deps
    this.resumed = prepared?.plan.resumed === true
    this.#looks = 0
    await journal.write((tx) => {
      const before = sessions.need(tx, id)
      const typed = deliveries
        .waiting(id)
        .filter(({ state, generation }) => state === 'delivering' && generation === before.generation)
      const told = typed.length > 0 || prepared?.plan.promptInLaunch === true ? keyOf(before) : {}
      const session = sessions.move(tx, id, 'ready', { ...SUPERVISOR, fields: { ...this.#lifeOf(before), ...told } })
      for (const one of typed) deliveries.end(tx, one.id, { state: 'delivered', endOffset: 0 }, 'supervisor')
      const nudge = prepared?.plan.nudge
      if (nudge !== undefined) {
        const draft = { source: 'nudge', intent: 'default', text: nudge, ttlMs: policy().deliveryTtlMs } as const
        deliveries.add(tx, sessions.need(tx, id), draft, 'supervisor')
      }
      journal.operation(tx, session, 'start', startedAt)
    })
    watch.quietSince = deps.clock.now()
  }

  #lifeOf(session: SessionRecord): SessionChange {
    const { deps, watch } = this.#scene
    const now = deps.clock.now()
    const config = deps.config()
    const agent = config.agents.find(({ identity }) => identity === session.template)
    const { maxAgeMs, maxAgeJitterMs } = agePolicyOf(config, agent, session)
    const jitterMs = Math.floor(deps.chance() * maxAgeJitterMs)
    return {
      pid: watch.process?.pid,
      last_woke_at: now,
      lived_at: session.lived_at ?? now,
      last_active: now,
      attempts: 0,
      retry_at: undefined,
      max_age_at: maxAgeMs === undefined ? undefined : now + maxAgeMs + jitterMs,
    }
  }

  // --- A start that failed -----------------------------------------------------------------------------------------

  async #failed(identity: Identity, startedAt: number, error: unknown): Promise<void> {
    const { id, deps, watch, journal } = this.#scene
    const { sessions, deliveries, log } = deps
    const failure = startFailure(error)
    this.lastError = failure.message
    log.warn({ session: id, reason: failure.reason, error: failure.message }, 'session start failed')
    const exit = await this.#undo()
    const record = sessions.byId(id)
    const output = record?.state === 'creating' ? await lastOutputOf(record, deps) : ''
    await journal.write((tx) => {
      const session = sessions.need(tx, id)
      const begun = session.state === 'creating' && session.generation === identity.generation
      if (!begun && session.state !== 'start-pending') return
      for (const one of deliveries.waiting(id)) {
        if (one.state !== 'delivering') continue
        if (failure.nothingRan) deliveries.requeue(tx, one.id)
        else deliveries.end(tx, one.id, UNCERTAIN, 'supervisor')
      }
      journal.operation(tx, session, 'start', startedAt, failure.message)
      const turn = this.#turnAfter(session, failure, { exit: exit ?? failure.exit, output })
      if (turn.fields?.fresh === true) tellLost(tx, sessions, session)
      journal.move(tx, turn, output === '' ? {} : { message: `${failure.message}\n\n${output}` })
    })
    watch.exit = undefined
    watch.detach()
  }

  async #undo(): Promise<Exit | undefined> {
    const { id, deps, watch } = this.#scene
    using limit = deadline(deps.clock, UNDO_MS, 'the process did not end in time')
    try {
      await Promise.race([this.#late, rejection(limit.signal)])
      return await watch.ending((process) => Promise.race([process.stop(0), rejection(limit.signal)]))
    } catch (error) {
      deps.log.error({ session: id, err: error }, 'process of a failed start not ended')
      watch.detach()
      return undefined
    }
  }

  /** A failed start is tried again after a pause while somebody wants the session; too many in a row hold it. */
  #turnAfter(session: SessionRecord, failure: StartFailure, { exit, output }: LastRun): Turn {
    const { id, deps } = this.#scene
    const { crash } = deps.policy()
    const now = deps.clock.now()
    const gone: SessionChange = {
      process: false,
      pid: undefined,
      ...(exit === undefined ? {} : { last_exit: wireExit(exit, 'crash', output) }),
      // A program that ended by itself has crashed, also while it was starting.
      ...(failure.exit === undefined ? {} : { crashes: crashesWith(session, now, crash) }),
      // A harness that does not know the conversation ends before it is ready, and would again.
      ...(this.resumed && failure.exit?.reason === 'exited' ? KEY_LOST : {}),
    }
    if (session.desired !== 'running') return { ...endOf(session), fields: { ...gone, drain_reason: undefined } }
    // It was cut for a reason of ours: that is no failure of the start.
    const cut = this.#scene.cutFor()
    if (cut === 'city-stop') return { signal: 'rest', reason: 'city-stop', fields: gone }
    if (cut === 'kill' && session.state === 'creating') return { signal: 'kill', reason: 'killed', fields: gone }
    const signal = failedStart(session.lived_at !== undefined)
    const wanted = session.lived_at !== undefined || deps.want(id).run === 'yes'
    if (!wanted || failure.final)
      return {
        signal,
        reason: failure.reason,
        fields: { ...gone, desired: 'asleep', retry_at: now + crash.maxBackOffMs },
      }
    const attempts = Math.max(session.attempts, 1)
    if (attempts < crash.rapidLimit)
      return { signal, reason: failure.reason, fields: { ...gone, retry_at: now + backOffMs(attempts + 2, crash) } }
    return {
      signal: 'quarantine',
      reason: failure.reason,
      fields: { ...gone, attempts: 0, quarantined_until: now + crash.holdMs },
    }
  }

  // --- Taking over -------------------------------------------------------------------------------------------------

  async adopt(session: SessionRecord, signal: AbortSignal): Promise<void> {
    const { id, deps, watch, journal } = this.#scene
    const runtime = deps.runtimes.get(session.runtime)
    const identity = identityOf(session)
    const startedAt = deps.clock.now()
    watch.observedAt = startedAt
    if (runtime === undefined || session.launch === undefined || identity === undefined) {
      // It was never told who it is, so nothing of it can run.
      watch.detach()
      return
    }
    using limit = deadline(deps.clock, this.#looks === 0 ? FIRST_LOOK_MS : LOOK_MS, 'no answer in time', signal)
    this.#looks++
    const looking = runtime.adopt({ identity, name: session.session_name, ...session.launch }, limit.signal)
    const found = await Promise.race([looking, rejection(limit.signal)]).catch((error: unknown) => {
      // An answer that comes later is for the next look to find.
      void looking.then((late) => late.state === 'alive' && late.process.release()).catch(() => {})
      return { state: 'unknown' as const, message: textOf(error) }
    })
    if (this.#scene.closed()) {
      if (found.state === 'alive') found.process.release()
      return
    }
    if (found.state === 'unknown') return this.#notSeen(session, found.message)
    this.#unknownSince = undefined
    this.#reportedUnknown = false
    if (found.state === 'dead') {
      watch.detach()
      watch.exit = found.exit
      return
    }
    watch.attach(found.process, session)
    await deps.hearMissed(session)
    deps.log.info({ session: id, pid: found.process.pid }, 'session adopted')
    await journal.write((tx) => journal.operation(tx, session, 'adopt', startedAt))
    if (session.state === 'creating' && session.desired === 'running') await this.#finish(identity, startedAt, signal)
  }

  /** Its start was under way when an earlier supervisor ended. */
  async #finish(identity: Identity, startedAt: number, signal: AbortSignal): Promise<void> {
    const { deps } = this.#scene
    using limit = deadline(deps.clock, deps.policy().startupTimeoutMs, TOO_SLOW, signal)
    try {
      await this.#becomeReady(undefined, limit.signal)
      await this.#ready(undefined, startedAt)
    } catch (error) {
      if (!this.#scene.closed()) await this.#failed(identity, startedAt, error)
    }
  }

  /** Nothing is known: nothing is done, and it is looked for again (R1). */
  async #notSeen(session: SessionRecord, message: string): Promise<void> {
    const { id, deps, watch, journal } = this.#scene
    const now = deps.clock.now()
    watch.notSeen()
    this.#unknownSince ??= now
    this.lookAt = now + Math.min(1_000 * 2 ** Math.min(this.#looks - 1, 5), MAX_PAUSE_MS)
    deps.log.warn({ session: id, message }, 'session not observable')
    deps.changed(id)
    if (this.#reportedUnknown || now - this.#unknownSince < deps.policy().unknownMs) return
    await journal.write((tx) => deps.sessions.tell(tx, session, 'session.unknown_state', { ...SUPERVISOR, message }))
    this.#reportedUnknown = true
  }
}

const TOO_SLOW = 'startup-timeout'

/** A bounded command may be done before anybody could see it run: that is no failed start. */
function endOfBounded({ plan }: Prepared, error: unknown): Exit | undefined {
  return plan.facts.oneShot && error instanceof LaunchError && error.code === 'exited' ? error.exit : undefined
}

interface StartFailure {
  readonly reason: string
  readonly message: string
  /** Nothing was run that could have seen a prompt. */
  readonly nothingRan: boolean
  /** Trying again cannot help. */
  readonly final: boolean
  readonly exit: Exit | undefined
}

const REASONS: { readonly [Code in LaunchError['code']]?: string } = {
  timeout: TOO_SLOW,
  not_found: 'missing-dependency',
  unavailable: 'missing-dependency',
}
const NOTHING_RAN: ReadonlySet<LaunchError['code']> = new Set(['spawn_failed', 'not_found', 'unavailable'])

function startFailure(error: unknown): StartFailure {
  const message = textOf(error)
  if (error instanceof StartError)
    return { message, reason: error.reason, nothingRan: true, final: error.final, exit: undefined }
  if (!(error instanceof LaunchError))
    return {
      message,
      reason: message === TOO_SLOW ? TOO_SLOW : 'failed-create',
      nothingRan: false,
      final: false,
      exit: undefined,
    }
  const reason = REASONS[error.code] ?? 'failed-create'
  return { message, reason, nothingRan: NOTHING_RAN.has(error.code), final: false, exit: error.exit }
}
