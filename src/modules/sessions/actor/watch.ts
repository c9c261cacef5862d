/**
 * The process of one session as it is observed: by its runtime, by its own reports, and by its screen.
 *
 * H1  What is shown of a process is never older than `observedAt`; of one that is gone nothing is shown.
 * H2  An exit is kept until it has been recorded; one that we bring about is not kept at all.
 */

import type { Acknowledger } from '../../../contract/sessions/session-model.ts'
import { deadline } from '../../../kernel/deadline.ts'
import type { AgentProcess, Answer, DeliveryGuard, Evidence, Exit, Pending } from '../../../runtimes/process/runtime.ts'
import { tellLost } from '../record/identity.ts'
import type { LiveFacts, Terminal } from '../record/ports.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import type { Report } from '../record/report.ts'
import type { Ruled } from '../reports/permissions.ts'
import { afterReport, type Reported, takesMessages, type Weighed, weigh } from './evidence.ts'
import type { Journal } from './journal.ts'
import type { Situation } from './reconcile.ts'
import { type ActorDeps, LOOK_MS, SUPERVISOR } from './scene.ts'

/** By then a hook has asked for itself what its harness asks on its screen. */
const HOOK_MS = 2_000

/** Nobody is at a terminal any more: so long a half line there waits for somebody to come back. */
const LEFT_MS = 30_000

/** Clocks are corrected by less all the time. */
const JUMP_MS = 60_000

interface Running {
  readonly process: AgentProcess
  readonly terminal: Terminal | undefined
  readonly session: SessionRecord
  readonly detach: () => void
}

interface Listeners {
  /** Something that the actor decides by has changed. */
  poke(): void
  /** Its turn has ended. */
  idle(): void
}

export class Watch {
  /** It ended, and nobody asked for it. */
  exit: Exit | undefined
  /** Since when it has shown no sign of work. */
  quietSince: number
  /** Since when it takes no messages. */
  busySince: number | undefined
  /** Since when a person has half a line in its terminal. */
  personTypingSince: number | undefined
  /** When a person was last seen at its terminal. */
  personSeenAt: number
  /** Why the half line there could not be taken back. */
  lineStays: string | undefined
  /** How many turns were seen to end. */
  turnsEnded = 0
  /** When the last message began to be typed into this process. */
  saidAt: number | undefined
  /** When the turn was last interrupted for what waits. */
  interruptedAt: number | undefined
  observedAt: number
  readonly #id: string
  readonly #deps: ActorDeps
  readonly #journal: Journal
  readonly #tell: Listeners
  #running: Running | undefined
  /** What is known while nothing is attached. */
  #absence: Exclude<Situation['process'], 'alive'>
  /** Between the clock of days and the one that only goes forward. */
  #clockOffset: number
  #ending = false
  #released = false
  #evidence: Evidence
  /** When time alone changes the evidence. */
  #evidenceUntil: number | undefined
  #reported: Reported = {}
  #outputAt = 0
  #typedAt: number | undefined
  #interruptedAt: number | undefined
  #pendingSince: number | undefined
  /** How the pending interaction was answered, for its event. */
  #answered: Answer | undefined
  /** What became of a question of the harness, where it says so. */
  #outcome: Report['outcome']
  /** The question of a hook beside which a dialog was drawn, and since when that is gone. */
  #beside: { readonly requestId: string; readonly goneAt: number | undefined } | undefined
  /** What its screen asks, and since when. */
  #onScreen: { readonly requestId: string; readonly at: number } | undefined
  /** The question of the protocol that was looked up last, and whether a rule answers it. */
  #ruled: { readonly requestId: string; readonly answers: boolean } | undefined

  constructor(record: SessionRecord, deps: ActorDeps, journal: Journal, tell: Listeners) {
    this.#id = record.id
    this.#deps = deps
    this.#journal = journal
    this.#tell = tell
    this.#absence = record.process ? 'unadopted' : 'none'
    this.observedAt = deps.clock.now()
    this.#clockOffset = this.observedAt - deps.clock.monotonic()
    this.personSeenAt = this.observedAt
    this.quietSince = record.last_active ?? this.observedAt
    this.#evidence = { activity: 'unknown', pending: undefined, since: this.observedAt, source: 'none' }
  }

  /** Whether it has a process: one is attached, or what was found where one was looked for. */
  get presence(): Situation['process'] {
    return this.#running === undefined ? this.#absence : 'alive'
  }

  get process(): AgentProcess | undefined {
    return this.#running?.process
  }

  get terminal(): Terminal | undefined {
    return this.#running?.terminal
  }

  /** When the half line of a person counts as left behind; undefined: there is none, somebody is there, or it stays. */
  get lineLeftAt(): number | undefined {
    const since = this.personTypingSince
    if (since === undefined || this.lineStays !== undefined || this.#deps.attached(this.#id)) return undefined
    return Math.max(since, this.personSeenAt) + LEFT_MS
  }

  get evidence(): Evidence {
    return this.#evidence
  }

  get pending(): Pending | undefined {
    return this.#evidence.pending
  }

  get facts(): LiveFacts {
    return {
      ...this.#evidence,
      liveness: this.presence === 'alive' ? 'alive' : this.presence === 'none' ? 'dead' : 'unknown',
      pendingSince: this.#pendingSince,
      attached: this.#deps.attached(this.#id),
      observedAt: this.observedAt,
      lastActive: this.#running === undefined ? undefined : this.quietSince,
    }
  }

  /** When it must be looked at again though nothing happens. */
  get lookAt(): number | undefined {
    return this.#evidenceUntil
  }

  attach(process: AgentProcess, session: SessionRecord): void {
    this.detach()
    const { launch } = session
    const terminal = launch === undefined ? undefined : this.#deps.terminal(process, session, launch)
    const stops: (() => void)[] = []
    this.#running = {
      process,
      terminal,
      session,
      detach: () => {
        for (const stop of stops) stop()
        terminal?.close()
      },
    }
    this.#deps.usage.grew(this.#id)
    this.exit = undefined
    this.busySince = takesMessages('unknown', session) ? undefined : this.#deps.clock.now()
    stops.push(
      process.on((event) => {
        if (event.type === 'output') this.#sawOutput()
        else if (event.type === 'exit') this.#sawExit(event.exit)
        else if (event.type === 'conversation') this.#sawConversation(event.conversationId)
        else if (event.type === 'offers') this.#note('offers', { offers: event.offers })
        else if (event.type === 'title') this.#sawTitle(event.title)
        else if (event.type === 'person-typing') this.#sawPersonTyping(event.typing)
        else this.#look()
      }),
    )
    if (terminal !== undefined) stops.push(terminal.onChange(() => this.#look()))
    this.#sawPersonTyping(process.personTyping)
    this.#look()
    this.#tell.poke()
    // It may have ended between its start and our listening.
    if (process.alive === 'dead')
      this.#sawExit({ code: undefined, signal: undefined, reason: 'unknown', at: this.#deps.clock.now() })
  }

  /** Nobody answers for a process that may be there. */
  notSeen(): void {
    this.detach()
    this.#absence = 'unknown'
  }

  /** Nothing of it runs. */
  detach(): void {
    this.#running?.detach()
    this.#running = undefined
    this.#absence = 'none'
    this.#reported = {}
    this.#outputAt = 0
    this.#typedAt = undefined
    this.#interruptedAt = undefined
    this.busySince = undefined
    this.personTypingSince = undefined
    this.lineStays = undefined
    this.saidAt = undefined
    this.interruptedAt = undefined
    this.#believe({ activity: 'unknown', pending: undefined, source: 'none', until: undefined }, this.#deps.clock.now())
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

  /**
   * A last look before typing: the screen may have become a dialog since the last one. Undefined: it is not the moment;
   * else what announces the message, and says when Enter may follow it. `force`: also into a turn, but never into a question.
   */
  async beforeTyping({
    force,
    signal,
  }: {
    readonly force: boolean
    readonly signal: AbortSignal
  }): Promise<((message: string) => DeliveryGuard | undefined) | undefined> {
    const { terminal, session } = this.#running ?? {}
    const free = () => undefined
    if (terminal === undefined || session === undefined) return free
    const at = await terminal.lookNow(signal)
    if (terminal.asks || (!force && !takesMessages(this.#evidence.activity, session))) return undefined
    if (session.launch?.delivery !== 'tui') return free
    return (message) => {
      terminal.typing(message)
      return { mayEnter: () => terminal.mayEnter(signal), ...(force ? {} : { at }) }
    }
  }

  /** Who says that its program took what was typed at that time; waits until somebody does, or nobody will. */
  async acknowledged(typedAt: number, signal: AbortSignal): Promise<Acknowledger> {
    const { process, terminal, session } = this.#running ?? {}
    if (session?.runtime === 'acp') return 'protocol'
    if (session?.launch?.delivery !== 'tui') return process?.activity === 'unknown' ? 'nobody' : 'protocol'
    const heard = () => (this.#reported.activity?.at ?? 0) >= typedAt && this.#reported.activity?.is === 'in-turn'
    const taken = heard() ? 'unknown' : await terminal?.taken(signal).catch(() => 'unknown' as const)
    if (heard()) return 'hook'
    return taken === 'taken' ? 'screen' : 'nobody'
  }

  typed(message: string): void {
    this.#typedAt = this.#deps.clock.now()
    this.quietSince = this.#typedAt
    this.#running?.terminal?.delivered(message)
    this.#look()
  }

  /** It was interrupted: a turn that was reported before may be over without a word. */
  interrupted(): void {
    this.#interruptedAt = this.#deps.clock.now()
    this.#look()
  }

  /** The harness says something of itself; of a process that is gone nothing is believed. */
  reported(report: Report): void {
    if (this.#running === undefined || this.#released) return
    if (report.pending === null) this.#outcome = report.outcome
    this.#reported = afterReport(this.#reported, report)
    this.quietSince = Math.max(this.quietSince, report.at)
    this.#look()
  }

  /** Looks whether time has changed what is known; by how much the clock was set since it was looked at last. */
  review(): number {
    const jump = this.#followClock()
    if (this.#evidenceUntil !== undefined && this.#evidenceUntil <= this.#deps.clock.now()) this.#look()
    return jump
  }

  /** Where the clock was set, or the machine slept, what was seen before is as old as it was, and all rest begins now. */
  #followClock(): number {
    const { clock } = this.#deps
    const offset = clock.now() - clock.monotonic()
    const jump = offset - this.#clockOffset
    if (Math.abs(jump) < JUMP_MS) return 0
    this.#clockOffset = offset
    const moved = (at: number | undefined) => (at === undefined ? undefined : at + jump)
    this.quietSince = clock.now()
    this.busySince = moved(this.busySince)
    this.personTypingSince = moved(this.personTypingSince)
    this.personSeenAt += jump
    this.saidAt = moved(this.saidAt)
    this.interruptedAt = moved(this.interruptedAt)
    this.#typedAt = moved(this.#typedAt)
    this.#interruptedAt = moved(this.#interruptedAt)
    this.#outputAt += jump
    this.#evidenceUntil = moved(this.#evidenceUntil)
    const { activity, question } = this.#reported
    this.#reported = {
      ...this.#reported,
      ...(activity && { activity: { ...activity, at: activity.at + jump } }),
      ...(question && { question: { ...question, at: question.at + jump } }),
    }
    return jump
  }

  /** False: that one is no longer open. */
  async answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { process, terminal } = this.#running ?? {}
    if (process === undefined) return false
    this.#answered = answer
    const { pending } = process
    if (pending?.requestId === requestId) return this.#answerProtocol(process, pending, answer, signal)
    const asked = this.#reported.question
    if (asked?.pending.requestId === requestId) {
      if (asked.answer !== undefined) return asked.answer(answer, signal)
      // It was told of by whoever takes the answer elsewhere: here it can be taken back alone.
      if (answer.action !== 'cancel') return false
      this.reported({ at: this.#deps.clock.now(), pending: null, outcome: 'dismissed' })
      return true
    }
    return (await terminal?.answer(requestId, answer, signal)) ?? false
  }

  async #answerProtocol(
    process: AgentProcess,
    pending: Pending,
    answer: Answer,
    signal: AbortSignal,
  ): Promise<boolean> {
    const session = this.#running?.session
    const taken = await process.answer(pending.requestId, answer, signal)
    if (taken && session !== undefined)
      this.#journal.note('decision', (tx) => this.#deps.permissions.decided(tx, session, pending, answer, true))
    return taken
  }

  #sawOutput(): void {
    this.quietSince = this.#deps.clock.now()
    this.#outputAt = this.quietSince
    this.observedAt = this.quietSince
    if (this.#evidence.source === 'report') this.#look()
    this.#deps.insight.grew(this.#id)
    this.#deps.usage.grew(this.#id)
    this.#deps.changed(this.#id)
  }

  #sawExit(exit: Exit): void {
    this.#deps.usage.grew(this.#id)
    if (this.#ending || this.#released) return
    this.exit = exit
    this.#tell.poke()
  }

  #sawPersonTyping(typing: boolean): void {
    this.personTypingSince = typing ? this.#deps.clock.now() : undefined
    this.lineStays = undefined
    this.#tell.poke()
  }

  #note(what: string, change: Omit<SessionChange, 'state'>): void {
    if (this.#released) return
    this.#journal.note(what, (tx) => void this.#deps.sessions.change(tx, this.#id, change, SUPERVISOR))
  }

  /** Another one than was asked for: its agent does not have that any more. */
  #sawConversation(conversationId: string): void {
    if (this.#released) return
    this.#journal.note('conversation', (tx) => {
      const session = this.#deps.sessions.need(tx, this.#id)
      if (session.conversation_id !== conversationId) tellLost(tx, this.#deps.sessions, session)
      this.#deps.sessions.change(tx, this.#id, { conversation_id: conversationId }, SUPERVISOR)
    })
  }

  /** A chat that nobody has named goes by the name that its agent finds for it. */
  #sawTitle(title: string): void {
    if (this.#released) return
    this.#journal.note('title', (tx) => {
      const { origin, titled } = this.#deps.sessions.need(tx, this.#id)
      if (origin === 'manual' && !titled) this.#deps.sessions.change(tx, this.#id, { title }, SUPERVISOR)
    })
  }

  #look(): void {
    const { process, terminal } = this.#running ?? {}
    if (process === undefined) return
    const now = this.#deps.clock.now()
    const sources = {
      protocol: this.#unruled(process),
      reported: this.#reported,
      screen: terminal,
      hookUntil: this.#hookUntil(terminal?.pending, now),
      outputAt: this.#outputAt,
    }
    const overtaken = this.#overtakenAt(terminal?.asks === true, now)
    const weighed = weigh({ ...sources, typedAt: this.#typedAt, interruptedAt: this.#interruptedAt, now })
    this.observedAt = now
    const until = [weighed.until, overtaken].filter((at) => at !== undefined)
    if (!this.#believe({ ...weighed, until: until.length === 0 ? undefined : Math.min(...until) }, now)) return
    this.#deps.changed(this.#id)
    this.#tell.poke()
  }

  /**
   * A dialog was drawn beside the question of a hook, and is gone: somebody has answered at the terminal. When that will
   * be sure; it is told once it is.
   */
  #overtakenAt(asks: boolean, now: number): number | undefined {
    const { question } = this.#reported
    if (question?.overtaken === undefined) {
      this.#beside = undefined
      return undefined
    }
    const { requestId } = question.pending
    if (asks) this.#beside = { requestId, goneAt: undefined }
    if (asks || this.#beside?.requestId !== requestId) return undefined
    const { goneAt = now } = this.#beside
    this.#beside = { requestId, goneAt }
    if (goneAt + HOOK_MS > now) return goneAt + HOOK_MS
    this.#beside = undefined
    question.overtaken()
    return undefined
  }

  #hookUntil(pending: Pending | undefined, now: number): number | undefined {
    if (pending?.requestId !== this.#onScreen?.requestId)
      this.#onScreen = pending === undefined ? undefined : { requestId: pending.requestId, at: now }
    const asksByHook = this.#running?.session.launch?.asksByHook === true
    return asksByHook && this.#onScreen !== undefined ? this.#onScreen.at + HOOK_MS : undefined
  }

  /** A question of the protocol that a rule decides is put to nobody, unless the agent does not take that answer. */
  #unruled(process: AgentProcess): Pick<AgentProcess, 'activity' | 'pending'> {
    const { pending } = process
    const session = this.#running?.session
    if (pending === undefined || session === undefined) return process
    if (this.#ruled?.requestId !== pending.requestId) {
      const rule = this.#deps.permissions.ruled(session, pending)
      this.#ruled = { requestId: pending.requestId, answers: rule !== undefined }
      if (rule !== undefined) void this.#answerByRule(process, session, pending, rule)
    }
    return this.#ruled.answers ? { activity: 'in-turn', pending: undefined } : process
  }

  async #answerByRule(process: AgentProcess, session: SessionRecord, pending: Pending, rule: Ruled): Promise<void> {
    using limit = deadline(this.#deps.clock, LOOK_MS, 'no answer in time')
    const taken = await process.answer(pending.requestId, rule, limit.signal).catch(() => false)
    if (this.#released) return
    if (taken) this.#journal.note('decision', (tx) => this.#deps.permissions.decided(tx, session, pending, rule, false))
    else this.#ruled = { requestId: pending.requestId, answers: false }
    this.#look()
  }

  /** False: it was known. */
  #believe({ until, ...weighed }: Weighed, now: number): boolean {
    const before = this.#evidence
    const same = weighed.activity === before.activity
    const asksTheSame = weighed.pending?.requestId === before.pending?.requestId
    const moved = until !== this.#evidenceUntil
    this.#evidenceUntil = until
    if (same && asksTheSame && weighed.source === before.source) return moved
    this.#evidence = {
      ...weighed,
      pending: asksTheSame ? before.pending : weighed.pending,
      since: same ? before.since : now,
    }
    if (!same) this.#changed(before, now)
    if (!asksTheSame) this.#asked(before.pending)
    return true
  }

  #changed(before: Evidence, now: number): void {
    const { activity } = this.#evidence
    const session = this.#running?.session
    if (before.activity === 'in-turn') {
      this.quietSince = now
      this.turnsEnded++
    }
    const busy = session !== undefined && !takesMessages(activity, session)
    this.busySince = busy ? (this.busySince ?? now) : undefined
    if (activity !== 'idle') return
    this.interruptedAt = undefined
    this.#tell.idle()
  }

  #asked(before: Pending | undefined): void {
    const { pending } = this.#evidence
    const { action, by } = this.#answered ?? {}
    const taken = action === 'cancel' ? 'dismissed' : this.#running === undefined ? 'gone' : 'answered'
    const outcome = this.#outcome ?? taken
    this.#answered = undefined
    this.#outcome = undefined
    this.#pendingSince = pending === undefined ? undefined : this.#deps.clock.now()
    if (this.#released) return
    this.#journal.asked(before, pending, { outcome, action, by })
    this.#deps.changed(this.#id)
  }
}
