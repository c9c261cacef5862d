/**
 * What the city may cost, and what happens when it costs more.
 *
 * B1  A crossing is told once: by the day or the session, and by the limit. It is found in the write of the turn that
 *     crosses it, or where the limit itself has moved.
 * B2  `suspend` holds a session once per crossing. Who wakes it has decided: it goes on until another limit is crossed.
 * B3  What agents report of themselves holds nobody else: a day that is over its budget by reports alone holds the sessions
 *     that report, and no others.
 */
import type { Settings } from '../../contract/config-schema.ts'
import type { BudgetPayload, BudgetStatus } from '../../contract/sessions/usage.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { Database, Tx } from '../../kernel/database.ts'
import type { EventLog } from '../../kernel/event-log.ts'
import { formatUsd, type Nano, parseUsd } from '../../kernel/money.ts'
import { dayOf, type Ledger, NOTHING, REPORTED } from './ledger.ts'

const MAX_HELD = 100

export interface BudgetDeps {
  readonly db: Database
  readonly events: EventLog
  readonly ledger: Ledger
  readonly settings: () => { readonly [Key in keyof Settings['budget']]: Settings['budget'][Key] }
  /** Sessions that may work: neither suspended nor closed. */
  readonly awake: () => readonly string[]
  /** Suspends a session for this reason, until a person wakes it. */
  readonly suspend: (tx: Tx, sessionId: string) => void
}

interface Crossing {
  readonly budget: BudgetPayload['budget']
  /** The day or the session. */
  readonly key: string
  readonly limit: Nano
}

export class Budgets {
  readonly #deps: BudgetDeps

  constructor(deps: BudgetDeps) {
    this.#deps = deps
  }

  /** After turns of the session were recorded, which were on these days. */
  spent(tx: Tx, sessionId: string, now: number, days: ReadonlySet<string>): void {
    const { per_session_usd: session } = this.#limits
    if (session !== undefined) this.#session(tx, sessionId, session, now)
    for (const day of days) this.#day(tx, day, now, sessionId)
  }

  /** Other limits are in force. */
  configured(tx: Tx, now: number): void {
    const { per_session_usd: session } = this.#limits
    if (session !== undefined) for (const id of this.#deps.awake()) this.#session(tx, id, session, now)
    this.#day(tx, dayOf(now), now, undefined)
  }

  status(now: number): BudgetStatus {
    const { db, ledger, settings } = this.#deps
    const { per_day_usd: perDay, per_session_usd: perSession } = this.#limits
    const day = dayOf(now)
    const crossed =
      perDay === undefined
        ? undefined
        : db.get("SELECT at FROM budget_crossings WHERE budget = 'day' AND key = ? AND limit_nano = ?", day, perDay)
    const awake = new Set(this.#deps.awake())
    const held = db.all('SELECT DISTINCT session_id AS id FROM budget_holds')
    return {
      day,
      today: ledger.totals('day', day) ?? NOTHING,
      ...(perDay === undefined ? {} : { per_day_usd: formatUsd(perDay) }),
      ...(perSession === undefined ? {} : { per_session_usd: formatUsd(perSession) }),
      action: settings().action ?? 'warn',
      ...(crossed === undefined ? {} : { crossed_at: isoTime(Number(crossed.at)) }),
      held_sessions: held
        .map(({ id }) => String(id))
        .filter((id) => !awake.has(id))
        .slice(0, MAX_HELD),
    }
  }

  get #limits(): { readonly per_day_usd: Nano | undefined; readonly per_session_usd: Nano | undefined } {
    const { per_day_usd: day, per_session_usd: session } = this.#deps.settings()
    return {
      per_day_usd: day === undefined ? undefined : parseUsd(day),
      per_session_usd: session === undefined ? undefined : parseUsd(session),
    }
  }

  #session(tx: Tx, id: string, limit: Nano, now: number): void {
    const spent = this.#deps.ledger.spent(tx, 'session', id)
    const crossing: Crossing = { budget: 'session', key: id, limit }
    if (spent >= limit && this.#tell(tx, crossing, spent, id, now)) this.#hold(tx, crossing, id)
  }

  #day(tx: Tx, day: string, now: number, by: string | undefined): void {
    const { per_day_usd: limit } = this.#limits
    if (limit === undefined) return
    const spent = this.#deps.ledger.spent(tx, 'day', day)
    if (spent < limit) return
    const crossing: Crossing = { budget: 'day', key: day, limit }
    this.#tell(tx, crossing, spent, by, now)
    // A turn is recorded a little after it: what is over is told, and the new day begins with nothing.
    if (day !== dayOf(now)) return
    // Sessions that begin to work afterwards are held after their first turn.
    const held = this.#holdsAll(tx, crossing, spent, now) ? this.#deps.awake() : by === undefined ? [] : [by]
    for (const id of held) this.#hold(tx, crossing, id)
  }

  /** B3: true once, when what was measured is over the budget too. */
  #holdsAll(tx: Tx, { key, limit }: Crossing, spent: Nano, now: number): boolean {
    const measured = spent - this.#deps.ledger.spent(tx, REPORTED, key)
    return measured >= limit && this.#isNew(tx, 'measured', key, limit, now)
  }

  #isNew(tx: Tx, budget: string, key: string, limit: Nano, now: number): boolean {
    return tx.run('INSERT OR IGNORE INTO budget_crossings VALUES (?, ?, ?, ?)', budget, key, limit, now) > 0
  }

  /** False: it was told before. */
  #tell(tx: Tx, { budget, key, limit }: Crossing, spent: Nano, by: string | undefined, now: number): boolean {
    if (!this.#isNew(tx, budget, key, limit, now)) return false
    this.#deps.events.append(tx, {
      type: 'budget.crossed',
      actor: 'supervisor',
      ...(by === undefined ? {} : { subject: by }),
      payload: {
        budget,
        ...(budget === 'day' ? { day: key } : {}),
        ...(by === undefined ? {} : { session_id: by }),
        limit_usd: formatUsd(limit),
        spent_usd: formatUsd(spent),
        action: this.#deps.settings().action ?? 'warn',
      },
    })
    return true
  }

  #hold(tx: Tx, { budget, key, limit }: Crossing, id: string): void {
    if (this.#deps.settings().action !== 'suspend') return
    const isNew = tx.run('INSERT OR IGNORE INTO budget_holds VALUES (?, ?, ?, ?)', id, budget, key, limit) > 0
    if (isNew) this.#deps.suspend(tx, id)
  }
}
