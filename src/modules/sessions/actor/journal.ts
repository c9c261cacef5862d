/** What is written about one session by its actor: moves, calls of the runtime, questions that it asks. */
import { cut } from '../../../contract/base/text.ts'
import type { WORKER_OPERATIONS } from '../../../contract/sessions/session-model.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Pending } from '../../../runtimes/process/runtime.ts'
import type { TurnCost } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Turn } from './reconcile.ts'
import { type ActorDeps, textOf } from './scene.ts'
import { abandonTurns } from './turns.ts'

type Operation = (typeof WORKER_OPERATIONS)[number]

const MAX_ERROR_CHARACTERS = 4_000
/** D1: what was being typed into a process that is gone is not typed into another one. */
export const UNCERTAIN = {
  state: 'failed',
  code: 'delivery_uncertain',
  message: 'the process ended while it was being typed; it is not typed again',
} as const

export class Journal {
  readonly #id: string
  readonly #deps: ActorDeps

  constructor(id: string, deps: ActorDeps) {
    this.#id = id
    this.#deps = deps
  }

  write<T>(change: (tx: Tx) => T): Promise<T> {
    return this.#deps.store.db.write(change)
  }

  /** Something that was observed: nobody waits for it, and its loss is no failure of an effect. */
  note(what: string, change: (tx: Tx) => void): void {
    void this.write(change).catch((error: unknown) =>
      this.#deps.log.warn({ session: this.#id, err: error }, `${what} not recorded`),
    )
  }

  move(tx: Tx, turn: Turn, { actor = 'supervisor', message = '' } = {}): void {
    const session = this.#deps.sessions.move(tx, this.#id, turn.signal, {
      actor,
      ...(turn.event === undefined ? {} : { event: turn.event }),
      ...(message === '' ? {} : { message }),
      reason: turn.reason,
      deadlineMs: turn.deadlineMs,
      ...(turn.fields === undefined ? {} : { fields: turn.fields }),
    })
    if (session.state === 'closed') this.#deps.closeOut(tx, session)
  }

  /** Ends what was being typed into a process that is gone, and the turns that were under way in it; `untyped` waits on. */
  abandon(tx: Tx, untyped: ReadonlySet<string> = new Set()): void {
    const { deliveries } = this.#deps
    abandonTurns(tx, this.#id, this.#deps, this)
    for (const { id, state } of deliveries.waiting(this.#id)) {
      if (state !== 'delivering') continue
      if (untyped.has(id)) deliveries.requeue(tx, id)
      else deliveries.end(tx, id, UNCERTAIN, 'supervisor')
    }
  }

  /** A call of the runtime has ended. */
  operation(
    tx: Tx,
    session: SessionRecord,
    operation: Operation,
    startedAt: number,
    error?: string,
    more: TurnCost & { readonly delivered?: boolean } = {},
  ): void {
    const now = this.#deps.clock.now()
    const bead = this.#deps.work.active(session)
    this.#deps.store.log.append(tx, {
      type: 'worker.operation',
      actor: 'supervisor',
      subject: session.id,
      payload: {
        op_id: `op-${this.#deps.random(8)}`,
        operation,
        result: error === undefined ? 'succeeded' : 'failed',
        session_id: session.id,
        session_name: session.session_name,
        template: session.template,
        provider: session.provider,
        transport: session.runtime,
        started_at: isoTime(startedAt),
        finished_at: isoTime(now),
        duration_ms: Math.max(now - startedAt, 0),
        agent_name: session.agent,
        ...(bead === undefined ? {} : { bead_id: bead }),
        ...more,
        ...(error === undefined ? {} : { error: cut(error, MAX_ERROR_CHARACTERS) }),
      },
    })
  }

  /** Does something with the process, and tells how that went; `refused`: why where the answer is false. */
  async observed(operation: Operation, refused: string, work: () => Promise<boolean>): Promise<boolean> {
    const startedAt = this.#deps.clock.now()
    const tell = (error?: string) =>
      this.note(operation, (tx) =>
        this.operation(tx, this.#deps.sessions.need(tx, this.#id), operation, startedAt, error),
      )
    try {
      const done = await work()
      tell(done ? undefined : refused)
      return done
    } catch (error) {
      tell(textOf(error))
      throw error
    }
  }

  /** Another question is open than before, or none. */
  asked(
    before: Pending | undefined,
    now: Pending | undefined,
    cleared: {
      readonly outcome: 'answered' | 'dismissed' | 'gone'
      readonly action: string | undefined
      readonly by: string | undefined
    },
  ): void {
    this.note('pending interaction', (tx) => {
      const session = this.#deps.sessions.byId(this.#id)
      if (session === undefined) return
      const about = { session_id: this.#id, template: session.template }
      const envelope = { actor: 'supervisor', subject: this.#id } as const
      if (before !== undefined)
        this.#deps.store.log.append(tx, {
          type: 'session.pending_cleared',
          ...envelope,
          payload: {
            ...about,
            request_id: before.requestId,
            outcome: cleared.outcome,
            ...(cleared.action === undefined ? {} : { action: cleared.action }),
            ...(cleared.by === undefined ? {} : { by: cleared.by }),
          },
        })
      if (now !== undefined)
        this.#deps.store.log.append(tx, {
          type: 'session.pending',
          ...envelope,
          payload: { ...about, pending: wirePending(now) },
        })
    })
  }
}

export function wirePending({ requestId, kind, prompt, options, metadata }: Pending) {
  return {
    request_id: requestId,
    kind,
    ...(prompt === undefined ? {} : { prompt }),
    ...(options.length === 0
      ? {}
      : { options: options.map(({ label }) => label), option_ids: options.map(({ id }) => id) }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata: { ...metadata } }),
  }
}
