/**
 * Ending the process of one session, and recording an end that nobody asked for.
 *
 * E1  When a record says that nothing runs, nothing of its tree runs.
 * E2  An exit is recorded once, with what it means; one that we brought about is no crash.
 */
import { cutStart } from '../../../contract/base/text.ts'
import type { Tx } from '../../../kernel/database.ts'
import { deadline, rejection } from '../../../kernel/deadline.ts'
import type { AgentProcess, Exit } from '../../../runtimes/process/runtime.ts'
import { tellLost } from '../record/identity.ts'
import { mayMove } from '../record/lifecycle.ts'
import type { SessionsDeps } from '../record/ports.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import { classifyExit, type ExitVerdict, wireExit } from './crash.ts'
import { afterDrain, endOf, type Turn } from './reconcile.ts'
import { LOOK_MS, type Scene, SUPERVISOR } from './scene.ts'

/** Beyond the grace: the tree is being killed. */
const MARGIN_MS = 20_000
const SCREEN_LINES = 50
const MAX_SCREEN_CHARACTERS = 4_000
/** Reasons of our own that say that it had failed. */
const STALLS: ReadonlySet<string> = new Set(['progress-stall', 'circuit-open'])

interface KillCause {
  readonly reason: string
  readonly actor: string
}
const ON_REQUEST: KillCause = { reason: 'killed', actor: 'api' }

export class Ending {
  readonly #scene: Scene
  /** Of the process that ended last: what was on its way to it and never written. */
  #untyped: ReadonlySet<string> = new Set()

  constructor(scene: Scene) {
    this.#scene = scene
  }

  async stop(session: SessionRecord, graceMs: number, turn: Turn): Promise<void> {
    const { deps, journal } = this.#scene
    const startedAt = deps.clock.now()
    const exit = await this.#end(graceMs)
    await journal.write((tx) => {
      journal.abandon(tx, this.#untyped)
      journal.operation(tx, session, turn.event === 'session.reset' ? 'reset' : 'stop', startedAt)
      journal.move(tx, { ...turn, fields: { ...turn.fields, ...this.#gone(exit, turn) } })
    })
  }

  /** On request, or because its runtime is gone: it starts again, and nothing is counted. */
  async kill(session: SessionRecord, { reason, actor }: KillCause = ON_REQUEST): Promise<void> {
    const { deps, watch, journal } = this.#scene
    const startedAt = deps.clock.now()
    const exit = await this.#end(0)
    if (exit === undefined) {
      await this.#endByToken(session)
      watch.detach()
    }
    await journal.write((tx) => {
      journal.abandon(tx, this.#untyped)
      journal.operation(tx, session, 'kill', startedAt)
      const turn: Turn = { signal: 'kill', reason }
      if (session.process && mayMove(session.state, 'kill'))
        journal.move(tx, { ...turn, fields: this.#gone(exit, turn) }, { actor })
    })
  }

  /** The city stops: what ran sleeps, and is woken when the city starts again. */
  async rest(graceMs: number): Promise<void> {
    const { id, deps, journal } = this.#scene
    const exit = await this.#end(graceMs)
    const record = deps.sessions.byId(id)
    // Where that fails too, the next start of the city looks for it again.
    if (exit === undefined && record?.process === true) await this.#endByToken(record)
    await journal.write((tx) => {
      const session = deps.sessions.need(tx, id)
      if (!session.process && session.state !== 'start-pending') return
      journal.abandon(tx, this.#untyped)
      const turn: Turn = session.desired === 'running' ? { signal: 'rest', reason: 'city-stop' } : endOf(session)
      journal.move(tx, { ...turn, fields: { ...this.#gone(exit, turn), drain_reason: undefined } })
    })
  }

  /** Nobody asked for it, or it came before we did. */
  async exited(session: SessionRecord, exit: Exit, resumed: boolean): Promise<void> {
    const { deps, watch, journal } = this.#scene
    const screen = watch.terminal?.screen(SCREEN_LINES).lines.join('\n') ?? ''
    const facts = { exit, output: await lastOutputOf(session, deps), resumed, now: deps.clock.now() }
    const verdict = classifyExit(session, facts, deps.policy().crash)
    const asked = session.desired !== 'running' || (session.state === 'draining' && session.drain_acked)
    await this.#clear(session)
    this.#untyped = watch.process === undefined ? new Set() : await this.#untypedBy(watch.process)
    // Its key may be among it.
    await deps.hearMissed(session)
    await journal.write((tx) => {
      journal.abandon(tx, this.#untyped)
      if (asked) this.#recordAsked(tx, exit)
      else this.#record(tx, verdict, cutStart(screen, MAX_SCREEN_CHARACTERS))
    })
    watch.exit = undefined
    watch.detach()
    if (!asked && verdict.signal !== 'rest') deps.launcher.onDeath(session)
  }

  #recordAsked(tx: Tx, exit: Exit): void {
    const { id, deps, journal } = this.#scene
    const session = deps.sessions.need(tx, id)
    const drained = session.desired === 'running'
    const turn = drained
      ? afterDrain({ session, want: deps.want(id) }, session.drain_reason ?? 'drained')
      : endOf(session)
    journal.move(tx, { ...turn, fields: { ...turn.fields, ...this.#gone(exit, turn), drain_reason: undefined } })
  }

  #record(tx: Tx, { signal, reason, why, fields: verdict }: ExitVerdict, screen: string): void {
    const { id, deps, watch, journal } = this.#scene
    const session = deps.sessions.need(tx, id)
    const fields = { ...verdict, last_active: watch.quietSince }
    if (session.state !== 'creating' && !mayMove(session.state, signal)) {
      deps.sessions.change(tx, id, { process: false, pid: undefined }, SUPERVISOR)
      return
    }
    const message = screen === '' || signal === 'rest' ? {} : { message: screen }
    if (signal === 'quarantine' && session.state !== 'creating')
      deps.sessions.tell(tx, session, 'session.crashed', { ...SUPERVISOR, reason, ...message })
    if (verdict.fresh === true) tellLost(tx, deps.sessions, session)
    const told = why === undefined ? message : { message: screen === '' ? why : `${why}\n\n${screen}` }
    journal.move(tx, this.#turnOf(session, { signal, reason, fields }), told)
  }

  #turnOf(session: SessionRecord, turn: Turn): Turn {
    // Its start was cut by the end of an earlier supervisor: it is simply begun again.
    if (session.state === 'creating')
      return { signal: 'crash', reason: 'interrupted', event: 'session.start_failed', fields: turn.fields ?? {} }
    if (turn.signal !== 'rest') return turn
    return { ...turn, fields: { ...turn.fields, desired: 'asleep', retry_at: this.#pauseAfter(session) } }
  }

  /** A program that ends at once and is always wanted must not spin. */
  #pauseAfter({ last_woke_at }: SessionRecord): number | undefined {
    const { rapidMs, maxBackOffMs } = this.#scene.deps.policy().crash
    const now = this.#scene.deps.clock.now()
    return now - (last_woke_at ?? 0) < rapidMs ? now + maxBackOffMs : undefined
  }

  /** E2: the exit that follows is ours. What its hooks could not tell in time is heard before that: its key may be among it. */
  async #end(graceMs: number): Promise<Exit | undefined> {
    const { id, deps, watch } = this.#scene
    using limit = deadline(deps.clock, graceMs + MARGIN_MS, 'the process did not end in time')
    this.#untyped = new Set()
    const exit = await watch.ending(async (process) => {
      const end = await Promise.race([process.stop(graceMs), rejection(limit.signal)])
      this.#untyped = await this.#untypedBy(process)
      return end
    })
    const session = deps.sessions.byId(id)
    if (session?.process) await deps.hearMissed(session)
    return exit
  }

  /** Its host knows of what was under way whether any of it was written: what was not goes to the next process. */
  async #untypedBy(process: AgentProcess): Promise<ReadonlySet<string>> {
    const { id, deps } = this.#scene
    const untyped = new Set<string>()
    for (const { id: delivery, seq, state } of deps.deliveries.waiting(id)) {
      if (state !== 'delivering') continue
      using limit = deadline(deps.clock, LOOK_MS, 'no answer in time')
      const known = process.delivered({ seq, id: delivery }, limit.signal)
      if ((await Promise.race([known, rejection(limit.signal)]).catch(() => 'unknown')) === 'no') untyped.add(delivery)
    }
    return untyped
  }

  /** E1: what a process left behind, or its dead host, is the session's too. */
  async #clear(session: SessionRecord): Promise<void> {
    try {
      await this.#endByToken(session)
    } catch (error) {
      this.#scene.deps.log.error({ session: session.id, err: error }, 'processes left behind not ended')
    }
  }

  /** E1, where nobody answers for its process: whatever carries its token. */
  async #endByToken({ token }: SessionRecord): Promise<void> {
    const { clock, orphans } = this.#scene.deps
    if (token === undefined) return
    using limit = deadline(clock, MARGIN_MS, 'its processes did not end in time')
    await Promise.race([orphans.kill(token), rejection(limit.signal)])
  }

  #gone(exit: Exit | undefined, { reason = '' }: Turn): SessionChange {
    const why = STALLS.has(reason)
      ? 'crash'
      : reason === 'config-drift'
        ? 'config_change'
        : reason.startsWith('idle')
          ? 'idle'
          : 'user_stop'
    return {
      process: false,
      pid: undefined,
      last_active: this.#scene.watch.quietSince,
      ...(exit === undefined ? {} : { last_exit: wireExit(exit, why) }),
    }
  }
}

/** What a program said last; over a protocol its messages are no words for people. */
export async function lastOutputOf(
  { id, runtime, launch }: SessionRecord,
  { lastOutput, log }: Pick<SessionsDeps, 'lastOutput' | 'log'>,
): Promise<string> {
  if (runtime === 'acp' || launch === undefined) return ''
  return lastOutput(launch.directory).catch((error: unknown) => {
    log.warn({ session: id, err: error }, 'last output not read')
    return ''
  })
}
