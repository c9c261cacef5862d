/**
 * The process of one session as it is observed: by its runtime, and by its screen where the runtime cannot tell.
 *
 * H1  What is shown of a process is never older than `observedAt`; of one that is gone nothing is shown.
 * H2  An exit is kept until it has been recorded; one that we bring about is not kept at all.
 */
import type { Activity, AgentProcess, Answer, Exit, Pending } from '../../../runtimes/process/runtime.ts'
import type { LiveFacts, Terminal } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Journal } from './journal.ts'
import type { Situation } from './reconcile.ts'
import { type ActorDeps, SUPERVISOR } from './scene.ts'

/** A screen that has not told anything since something was typed: for this long it is taken for busy. */
const TYPED_MS = 3_000

interface Running {
  readonly process: AgentProcess
  readonly terminal: Terminal | undefined
  readonly detach: () => void
}

interface Listeners {
  /** Something that the actor decides by has changed. */
  poke(): void
  /** Its turn has ended. */
  idle(): void
}

export class Watch {
  presence: Situation['process']
  /** It ended, and nobody asked for it. */
  exit: Exit | undefined
  /** Since when it has shown no sign of work. */
  quietSince: number
  busySince: number | undefined
  /** When the turn was last interrupted for what waits. */
  interruptedAt: number | undefined
  observedAt: number
  readonly #id: string
  readonly #deps: ActorDeps
  readonly #journal: Journal
  readonly #tell: Listeners
  #running: Running | undefined
  #ending = false
  #released = false
  #activity: Activity = 'unknown'
  #typedAt: number | undefined
  #pending: Pending | undefined
  #pendingSince: number | undefined
  /** How the pending interaction was answered, for its event. */
  #answered: Answer['action'] | undefined

  constructor(record: SessionRecord, deps: ActorDeps, journal: Journal, tell: Listeners) {
    this.#id = record.id
    this.#deps = deps
    this.#journal = journal
    this.#tell = tell
    this.presence = record.process ? 'unadopted' : 'none'
    this.observedAt = deps.clock.now()
    this.quietSince = record.last_active ?? this.observedAt
  }

  get process(): AgentProcess | undefined {
    return this.#running?.process
  }

  get terminal(): Terminal | undefined {
    return this.#running?.terminal
  }

  get pending(): Pending | undefined {
    return this.#pending
  }

  get facts(): LiveFacts {
    return {
      liveness: this.presence === 'alive' ? 'alive' : this.presence === 'none' ? 'dead' : 'unknown',
      activity: this.#activity,
      pending: this.#pending,
      pendingSince: this.#pendingSince,
      attached: this.#deps.attended(this.#id),
      observedAt: this.observedAt,
      lastActive: this.#running === undefined ? undefined : this.quietSince,
    }
  }

  /** As far as typing is concerned: a screen that was just typed into is not known to be idle. */
  get activity(): Activity {
    return this.#activity === 'unknown' && this.settlesAt !== undefined ? 'in-turn' : this.#activity
  }

  /** Until when a screen that was typed into is taken for busy. */
  get settlesAt(): number | undefined {
    if (this.#typedAt === undefined || this.#running?.terminal === undefined) return undefined
    const until = this.#typedAt + TYPED_MS
    return until > this.#deps.clock.now() ? until : undefined
  }

  attach(process: AgentProcess, session: SessionRecord): void {
    this.detach()
    const { launch } = session
    const terminal = launch === undefined ? undefined : this.#deps.terminal(process, session, launch)
    const stops: (() => void)[] = []
    this.#running = {
      process,
      terminal,
      detach: () => {
        for (const stop of stops) stop()
        terminal?.close()
      },
    }
    this.presence = 'alive'
    this.exit = undefined
    stops.push(
      process.on((event) => {
        if (event.type === 'output') this.#sawOutput()
        else if (event.type === 'exit') this.#sawExit(event.exit)
        else if (event.type === 'conversation') this.#sawConversation(event.conversationId)
        else this.#look()
      }),
    )
    if (terminal !== undefined) stops.push(terminal.onChange(() => this.#look()))
    this.#look()
    // It may have ended between its start and our listening.
    if (process.alive === 'dead')
      this.#sawExit({ code: undefined, signal: undefined, reason: 'unknown', at: this.#deps.clock.now() })
  }

  detach(): void {
    this.#running?.detach()
    this.#running = undefined
    this.#activity = 'unknown'
    this.busySince = undefined
    this.#typedAt = undefined
    this.interruptedAt = undefined
    this.#setPending(undefined)
  }

  /** The supervisor ends: the process runs on, and nothing of it is told any more. */
  release(): void {
    this.#released = true
    this.#running?.process.release()
    this.detach()
  }

  /** What happens during `work` is our doing: an exit then is no event. */
  async ending<T>(work: (process: AgentProcess) => Promise<T>): Promise<T | undefined> {
    const process = this.#running?.process
    if (process === undefined) return undefined
    this.#ending = true
    try {
      const result = await work(process)
      this.detach()
      this.exit = undefined
      return result
    } finally {
      this.#ending = false
    }
  }

  typed(message: string): void {
    this.#typedAt = this.#deps.clock.now()
    this.quietSince = this.#typedAt
    this.#running?.terminal?.delivered(message)
  }

  /** False: that one is no longer open. */
  async answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { process, terminal } = this.#running ?? {}
    if (process === undefined) return false
    this.#answered = answer.action
    if (process.pending?.requestId === requestId) return process.answer(requestId, answer, signal)
    return (await terminal?.answer(requestId, answer, signal)) ?? false
  }

  #sawOutput(): void {
    this.quietSince = this.#deps.clock.now()
    this.observedAt = this.quietSince
    this.#deps.insight.grew(this.#id)
    this.#deps.changed(this.#id)
  }

  #sawExit(exit: Exit): void {
    if (this.#ending || this.#released) return
    this.exit = exit
    this.#tell.poke()
  }

  #sawConversation(conversationId: string): void {
    if (this.#released) return
    this.#journal.note('conversation', (tx) => {
      this.#deps.sessions.change(tx, this.#id, { conversation_id: conversationId }, SUPERVISOR)
    })
  }

  /** Activity and pending interaction, from the runtime where it knows, else from the screen. */
  #look(): void {
    const { process, terminal } = this.#running ?? {}
    if (process === undefined) return
    const now = this.#deps.clock.now()
    const activity = process.activity !== 'unknown' ? process.activity : (terminal?.activity ?? 'unknown')
    this.observedAt = now
    if (activity !== this.#activity) this.#become(activity, now)
    this.#setPending(process.pending ?? terminal?.pending)
    this.#deps.changed(this.#id)
    this.#tell.poke()
  }

  #become(activity: Activity, now: number): void {
    if (this.#activity === 'in-turn') this.quietSince = now
    this.#activity = activity
    this.busySince = activity === 'in-turn' ? now : undefined
    if (activity !== 'unknown') this.#typedAt = undefined
    if (activity !== 'idle') return
    this.interruptedAt = undefined
    this.#tell.idle()
  }

  #setPending(pending: Pending | undefined): void {
    const before = this.#pending
    if (before?.requestId === pending?.requestId) return
    const action = this.#answered
    const outcome = action === 'cancel' ? 'dismissed' : this.#running === undefined ? 'gone' : 'answered'
    this.#answered = undefined
    this.#pending = pending
    this.#pendingSince = pending === undefined ? undefined : this.#deps.clock.now()
    if (this.#released) return
    this.#journal.asked(before, pending, { outcome, action })
    this.#deps.changed(this.#id)
  }
}
