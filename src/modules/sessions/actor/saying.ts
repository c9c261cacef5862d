/** Saying one thing after the other to one session: typing, finding out what became of it, making way (D1, D2). */

import { deadline, rejection } from '../../../kernel/deadline.ts'
import { plainText } from '../../../messaging/hostile-text.ts'
import type { AgentProcess, DeliveryOutcome } from '../../../runtimes/process/runtime.ts'
import { clearAway, layOut, untakenBy } from '../queue/attachments.ts'
import { type DeliveryRecord, endingOf, isNoAttempt, isReminder, outcomeAfterCrash } from '../queue/deliveries.ts'
import { keyOf } from '../record/identity.ts'
import type { SessionRecord } from '../record/record.ts'
import { takesMessages } from './evidence.ts'
import type { Interrupts } from './interrupts.ts'
import type { Action } from './reconcile.ts'
import { LOOK_MS, type Scene, SUPERVISOR } from './scene.ts'

const TYPING_MS = 60_000
const INTERRUPT_MS = 10_000
/** Whatever refused a message may refuse it again at once. */
const REFUSED_MS = 500
const DISMISSED_MS = 200

const LATE = {
  expired: { state: 'expired', message: 'nobody took it in time' },
  timeout: { state: 'failed', message: 'the session did not take it in time' },
  held: { state: 'failed', message: 'somebody at its terminal has typed half a line and has not entered it' },
} as const

interface Attempt {
  readonly startedAt: number
  readonly endOffset: number
  /** Aborts when the session is to end. */
  readonly signal: AbortSignal
}

export class Saying {
  readonly #scene: Scene
  readonly #interrupts: Interrupts

  constructor(scene: Scene, interrupts: Interrupts) {
    this.#scene = scene
    this.#interrupts = interrupts
  }

  async deliver(session: SessionRecord, delivery: DeliveryRecord, signal: AbortSignal): Promise<void> {
    const { deps, watch, journal } = this.#scene
    const { process } = watch
    if (process === undefined) return
    const startedAt = deps.clock.now()
    using limit = deadline(deps.clock, TYPING_MS, 'it took too long', signal)
    const announce = await this.#mayBegin(session, limit.signal)
    if (announce === undefined) return this.#pause(REFUSED_MS)
    if (!(await journal.write((tx) => deps.deliveries.begin(tx, delivery.id, session.generation)))) return
    watch.saidAt = startedAt
    // As its host types it: the screen is compared with it.
    const text = this.#wordsOf(session, delivery.id)
    const attached = deps.deliveries.attachments(delivery.id)
    const untaken = untakenBy(attached, deps.sessions.byId(session.id)?.offers)
    const endOffset = process.endOffset
    if (untaken !== undefined) {
      const refused: DeliveryOutcome = { state: 'failed', code: 'refused', message: untaken }
      return this.#conclude(session, delivery, refused, { startedAt, endOffset, signal })
    }
    const directory = session.launch?.directory ?? ''
    const said = {
      seq: delivery.seq,
      ...((watch.lineLeftAt ?? Number.POSITIVE_INFINITY) <= startedAt ? { clearsLine: true } : {}),
      id: delivery.id,
      text,
      ...(attached.length === 0 ? {} : { attachments: layOut(attached, directory, delivery.id) }),
    }
    let outcome: DeliveryOutcome
    try {
      outcome = await Promise.race([process.deliver(said, limit.signal, announce(text)), rejection(limit.signal)])
    } catch {
      outcome = await this.#whatBecameOf(process, delivery)
    }
    if (said.clearsLine && outcome.state === 'failed' && outcome.code === 'held') watch.lineStays = outcome.message
    if (attached.length > 0) clearAway(directory, delivery.id)
    await this.#conclude(session, delivery, outcome, { startedAt, endOffset, signal })
  }

  /** Enter behind a backslash is the end of a line to a program that draws its own: a blank keeps them apart. */
  #wordsOf({ launch }: SessionRecord, id: string): string {
    const text = plainText(this.#scene.deps.deliveries.text(id))
    return launch?.delivery === 'tui' && launch.io === 'pty' && text.endsWith('\\') ? `${text} ` : text
  }

  /** What is typed into a turn, by an eager nudge or after an interrupt that did not help, is forced. */
  #mayBegin(session: SessionRecord, signal: AbortSignal) {
    const { watch } = this.#scene
    const force = !takesMessages(watch.evidence.activity, session)
    return watch.beforeTyping({ force, signal })
  }

  /** A delivery that an earlier supervisor had begun. */
  async settle(session: SessionRecord, delivery: DeliveryRecord, signal: AbortSignal): Promise<void> {
    const { process } = this.#scene.watch
    if (process === undefined) return
    const same = delivery.generation === session.generation
    const outcome = same ? await this.#whatBecameOf(process, delivery) : outcomeAfterCrash('unknown')
    const startedAt = this.#scene.deps.clock.now()
    await this.#conclude(session, delivery, outcome, { startedAt, endOffset: process.endOffset, signal })
  }

  /** Makes way for a message that may interrupt: ends the turn, dismisses what is asked. */
  async interrupt(signal: AbortSignal): Promise<void> {
    const { id, deps, watch } = this.#scene
    const { process, pending } = watch
    if (process === undefined) return
    using limit = deadline(deps.clock, INTERRUPT_MS, 'no answer in time', signal)
    const now = deps.clock.now()
    // Where it cannot be interrupted, waiting for it to be idle is pointless.
    const pointless = now - deps.policy().interruptMs
    try {
      if (pending !== undefined) await watch.answer(pending.requestId, { action: 'cancel' }, limit.signal)
      watch.interruptedAt = (await this.#interrupts.press(process, limit.signal)) ? now : pointless
    } catch (error) {
      deps.log.warn({ session: id, err: error }, 'turn not interrupted')
      watch.interruptedAt = pointless
    }
    if (pending !== undefined && watch.pending === pending) await this.#pause(DISMISSED_MS)
  }

  expire({ deliveries: due, why }: Extract<Action, { do: 'expire-deliveries' }>): Promise<void> {
    const { deps, journal, watch } = this.#scene
    const stays = why === 'held' ? watch.lineStays : undefined
    const ending = { ...LATE[why], ...(stays === undefined ? {} : { message: stays }), code: why }
    return journal.write((tx) => {
      for (const { id } of due) deps.deliveries.end(tx, id, ending, 'supervisor')
    })
  }

  async #whatBecameOf(process: AgentProcess, { seq, id }: DeliveryRecord): Promise<DeliveryOutcome> {
    using limit = deadline(this.#scene.deps.clock, LOOK_MS, 'no answer in time')
    const known = await Promise.race([process.delivered({ seq, id }, limit.signal), rejection(limit.signal)]).catch(
      () => 'unknown' as const,
    )
    return outcomeAfterCrash(known)
  }

  async #conclude(
    session: SessionRecord,
    delivery: DeliveryRecord,
    outcome: DeliveryOutcome,
    { startedAt, endOffset, signal }: Attempt,
  ): Promise<void> {
    const { deps, watch, journal, turns } = this.#scene
    if (this.#scene.closed()) return
    // A protocol that tells the end of a turn: its operation is told then (U1).
    const opensTurn = outcome.state === 'delivered' && session.runtime === 'acp'
    const known = endingOf(outcome, delivery.attempts + 1, endOffset)
    const acknowledged =
      outcome.state === 'delivered' ? await this.#acknowledged(session, delivery, { startedAt, signal }) : {}
    if (this.#scene.closed()) return
    const ending = known && { ...known, ...acknowledged, ...(opensTurn ? { turnStartedAt: startedAt } : {}) }
    await journal.write((tx) => {
      if (ending === undefined) deps.deliveries.requeue(tx, delivery.id, { counted: !isNoAttempt(outcome) })
      else deps.deliveries.end(tx, delivery.id, ending, 'supervisor')
      if (outcome.state === 'delivered')
        deps.sessions.change(tx, session.id, keyOf(deps.sessions.need(tx, session.id)), SUPERVISOR)
      const failed = outcome.state === 'delivered' ? undefined : outcome.message
      if (!opensTurn)
        journal.operation(tx, session, isReminder(delivery.source) ? 'nudge' : 'message', startedAt, failed)
    })
    // It was over before it was recorded.
    if (opensTurn && watch.process?.activity === 'idle') turns.ended()
    // Whatever was in its way, another message, a redraw or a start, gets a little more time after each try.
    if (ending === undefined) await this.#pause(REFUSED_MS * (delivery.attempts + 1))
  }

  /** It was typed; its request ends when somebody says that it was taken, or is not going to. */
  async #acknowledged(
    session: SessionRecord,
    { id }: DeliveryRecord,
    { startedAt, signal }: Pick<Attempt, 'startedAt' | 'signal'>,
  ) {
    const { deps, watch } = this.#scene
    watch.typed(this.#wordsOf(session, id))
    using limit = deadline(deps.clock, TYPING_MS, 'nobody says that it was taken', signal)
    return { acknowledgedBy: await watch.acknowledged(startedAt, limit.signal) }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#scene.deps.clock.after(ms, resolve))
  }
}
