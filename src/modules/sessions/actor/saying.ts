/** Saying one thing after the other to one session: typing, finding out what became of it, making way (D1, D2). */
import type { AgentProcess, DeliveryOutcome } from '../../../runtimes/process/runtime.ts'
import { type DeliveryRecord, endingOf, outcomeAfterCrash, plainText } from '../queue/deliveries.ts'
import type { SessionRecord } from '../record/record.ts'
import { deadline, rejection } from './deadline.ts'
import type { Action } from './reconcile.ts'
import { LOOK_MS, NO_INTERRUPT, type Scene } from './scene.ts'

const TYPING_MS = 60_000
const INTERRUPT_MS = 10_000
/** Whatever refused a message may refuse it again at once. */
const REFUSED_MS = 500
const DISMISSED_MS = 200

export class Saying {
  readonly #scene: Scene

  constructor(scene: Scene) {
    this.#scene = scene
  }

  async deliver(session: SessionRecord, delivery: DeliveryRecord, signal: AbortSignal): Promise<void> {
    const { deps, watch, journal } = this.#scene
    const { process } = watch
    if (process === undefined) return
    const startedAt = deps.clock.now()
    if (!(await journal.write((tx) => deps.deliveries.begin(tx, delivery.id, session.generation)))) return
    const text = deps.deliveries.text(delivery.id)
    const said = { seq: delivery.seq, id: delivery.id, text: session.runtime === 'acp' ? text : plainText(text) }
    const endOffset = process.endOffset
    using limit = deadline(deps.clock, TYPING_MS, 'it took too long', signal)
    let outcome: DeliveryOutcome
    try {
      outcome = await Promise.race([process.deliver(said, limit.signal), rejection(limit.signal)])
    } catch {
      outcome = await this.#whatBecameOf(process, delivery)
    }
    await this.#conclude(session, delivery, outcome, { startedAt, endOffset })
  }

  /** A delivery that an earlier supervisor had begun. */
  async settle(session: SessionRecord, delivery: DeliveryRecord): Promise<void> {
    const { process } = this.#scene.watch
    if (process === undefined) return
    const same = delivery.generation === session.generation
    const outcome = same ? await this.#whatBecameOf(process, delivery) : outcomeAfterCrash('unknown')
    const startedAt = this.#scene.deps.clock.now()
    await this.#conclude(session, delivery, outcome, { startedAt, endOffset: process.endOffset })
  }

  /** Makes way for a message that may interrupt: ends the turn, dismisses what is asked. */
  async interrupt(signal: AbortSignal): Promise<void> {
    const { id, deps, watch, journal } = this.#scene
    const { process, pending } = watch
    if (process === undefined) return
    using limit = deadline(deps.clock, INTERRUPT_MS, 'no answer in time', signal)
    const now = deps.clock.now()
    // Where it cannot be interrupted, waiting for it to be idle is pointless.
    const pointless = now - deps.policy().interruptMs
    try {
      if (pending !== undefined) await watch.answer(pending.requestId, { action: 'cancel' }, limit.signal)
      const done = await journal.observed('interrupt', NO_INTERRUPT, () => process.interrupt(limit.signal))
      watch.interruptedAt = done ? now : pointless
    } catch (error) {
      deps.log.warn({ session: id, err: error }, 'turn not interrupted')
      watch.interruptedAt = pointless
    }
    if (pending !== undefined && watch.pending === pending) await this.#pause(DISMISSED_MS)
  }

  expire({ deliveries: due, state }: Extract<Action, { do: 'expire-deliveries' }>): Promise<void> {
    const { deps, journal } = this.#scene
    const ending =
      state === 'expired'
        ? ({ state, code: 'expired', message: 'nobody took it in time' } as const)
        : ({ state, code: 'timeout', message: 'the session did not take it in time' } as const)
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
    { startedAt, endOffset }: { readonly startedAt: number; readonly endOffset: number },
  ): Promise<void> {
    const { deps, watch, journal, turns } = this.#scene
    if (this.#scene.closed()) return
    // A protocol that tells the end of a turn: its operation is told then (U1).
    const opensTurn = outcome.state === 'delivered' && session.runtime === 'acp'
    const known = endingOf(outcome, delivery.attempts + 1, endOffset)
    const ending = known === undefined || !opensTurn ? known : { ...known, turnStartedAt: startedAt }
    if (outcome.state === 'delivered') watch.typed(deps.deliveries.text(delivery.id))
    await journal.write((tx) => {
      if (ending === undefined) deps.deliveries.requeue(tx, delivery.id)
      else deps.deliveries.end(tx, delivery.id, ending, 'supervisor')
      const failed = outcome.state === 'delivered' ? undefined : outcome.message
      if (!opensTurn)
        journal.operation(tx, session, delivery.source === 'nudge' ? 'nudge' : 'message', startedAt, failed)
    })
    // It was over before it was recorded.
    if (opensTurn && watch.process?.activity === 'idle') turns.ended()
    if (ending === undefined) await this.#pause(REFUSED_MS)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#scene.deps.clock.after(ms, resolve))
  }
}
