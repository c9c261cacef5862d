/** Usage, as the supervisor joins it. */
import { usageOperations } from '../../contract/sessions/usage.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { type Sweep, sweepOfRows } from '../../kernel/retention.ts'
import { createUsageHandlers, type UsageCity } from './handlers.ts'
import { TURNS_KEPT_MS } from './ledger.ts'
import { GROWING_TURNS, USAGE_SCHEMA } from './schema.ts'
import { Usage, type UsageDeps } from './service.ts'

export interface UsageContext extends UsageDeps, Omit<UsageCity, 'usage'> {
  /** Sessions whose logs may tell of turns that nobody has recorded yet. */
  readonly unread: () => readonly string[]
  /** Calls the listener whenever another configuration is in force. */
  readonly onReconfigured: (listener: () => void) => () => void
}

/** Turns go a day after only their hours are asked for. */
const sweepOfTurns = ({ db, clock }: Pick<UsageContext, 'db' | 'clock'>): Sweep => {
  const old = 'SELECT id FROM usage_turns WHERE at < ? ORDER BY at'
  return sweepOfRows(db, clock, {
    name: 'usage_turns',
    keptMs: () => TURNS_KEPT_MS + 86_400_000,
    has: (before) => db.get(`${old} LIMIT 1`, before) !== undefined,
    remove: (tx, before, limit) => tx.run(`DELETE FROM usage_turns WHERE id IN (${old} LIMIT ?)`, before, limit),
  })
}

export const usage = defineFamily({
  operations: usageOperations,
  schema: migrationsOf('usage', USAGE_SCHEMA, GROWING_TURNS),
  handlers: (host: { readonly clock: Clock }) => createUsageHandlers(host),
  open: (context: UsageContext) => {
    const all = new Usage(context)
    const lookAtBudgets = () => {
      context.db
        .write((tx) => all.budgets.configured(tx, context.clock.now()))
        .catch((error: unknown) => context.log.warn({ err: error }, 'budgets not looked at'))
    }
    const unlisten = context.onReconfigured(lookAtBudgets)
    return {
      sweeps: [sweepOfTurns(context)],
      usage: all,
      resolve: context.resolve,
      names: context.names,
      counted: context.counted,
      running: context.running,
      unread: context.unread,
      unlisten,
      lookAtBudgets,
    }
  },
  // What ended while nobody looked, and limits that were set meanwhile.
  phases: {
    starting_agents: ({ usage: all, unread, lookAtBudgets }) => {
      lookAtBudgets()
      for (const id of unread()) all.grew(id)
    },
  },
  retention: ({ sweeps }) => sweeps,
  close: async ({ usage: all, unlisten }) => {
    unlisten()
    await all.harvest.close()
  },
})
