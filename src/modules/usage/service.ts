/** Usage of one running city. */
import type { UsageReport, UsageTotals, UsageTurn } from '../../contract/sessions/usage.ts'
import type { Tx } from '../../kernel/database.ts'
import { randomHex } from '../../kernel/ids.ts'
import { type BudgetDeps, Budgets } from './budget.ts'
import { Harvest, type HarvestDeps, type Recorded } from './harvest.ts'
import { dayOf, Ledger, type LedgerDeps, type Spender } from './ledger.ts'

export type UsageDeps = LedgerDeps &
  Omit<BudgetDeps, 'ledger'> &
  Omit<HarvestDeps, 'ledger' | 'recorded'> & {
    /** A turn of that session has succeeded. */
    readonly worked: (tx: Tx, sessionId: string, at: number) => void
  }

export class Usage {
  readonly ledger: Ledger
  readonly budgets: Budgets
  readonly harvest: Harvest
  readonly #deps: UsageDeps

  constructor(deps: UsageDeps) {
    this.#deps = deps
    this.ledger = new Ledger(deps)
    this.budgets = new Budgets({ ...deps, ledger: this.ledger })
    this.harvest = new Harvest({
      ...deps,
      ledger: this.ledger,
      recorded: (tx, id, now, found) => this.#recorded(tx, id, now, found),
    })
  }

  /** What a harness, or whoever watches it, tells of a turn. False: it counts already, or its log is read. */
  report(tx: Tx, who: Spender, report: UsageReport): boolean {
    const now = this.#deps.clock.now()
    const id = report.id ?? `report-${randomHex(12)}`
    if (this.ledger.record(tx, who, { ...report, id, source: 'report', at: now }) === undefined) return false
    this.#recorded(tx, who.id, now, { times: [now], endedAt: now })
    return true
  }

  /** What a session has used in all; undefined: nothing is known. */
  of(sessionId: string): UsageTotals | undefined {
    return this.ledger.totals('session', sessionId)
  }

  grew(sessionId: string): void {
    this.harvest.grew(sessionId)
  }

  turn(sessionId: string, key: string): Promise<UsageTurn | undefined> {
    return this.harvest.turn(sessionId, key)
  }

  #recorded(tx: Tx, id: string, now: number, { times, endedAt }: Recorded): void {
    if (endedAt !== undefined) this.#deps.worked(tx, id, endedAt)
    this.budgets.spent(tx, id, now, new Set(times.map(dayOf)))
  }
}
