/** Tokens and money, as they are shown: what nobody knows is empty, never 0. */

import type { BudgetStatus, UsageGroup, UsageTotals, UsageTurn } from '../../contract/sessions/usage.ts'
import type { AnswerOf } from '../framework/declaration.ts'
import { view } from '../print/view.ts'

/** `$1.20 of $50.00, crossed`; nothing where nothing was used and nothing is limited. */
export function todayOf({ today, per_day_usd: limit, crossed_at: at }: BudgetStatus): string | undefined {
  if (today.turns === 0 && limit === undefined) return undefined
  const spent = moneyOf(today) ?? (today.turns === 0 ? '$0.00' : 'unknown')
  return `${spent}${limit === undefined ? '' : ` of $${limit}`}${at === undefined ? '' : ', crossed'}`
}

/** `$12.40`, `$0.0012`; `≥ $1.00` where some of it is not known. */
export const moneyOf = ({ cost_usd: cost, unpriced_turns: unknown }: UsageTotals): string | undefined =>
  cost === undefined ? undefined : unknown > 0 ? `≥ $${cost}` : `$${cost}`

export const USAGE = view<UsageGroup>()('key name turns input output cache_read cache_write COST', {
  wide: 'unpriced_turns',
  as: { COST: moneyOf },
})

export const TURN = view<UsageTurn>()('at model input output cache_read cache_write COST bead_id', {
  wide: 'state source cost_source convoy_id provider KEY',
  as: { COST: ({ cost_usd: cost }) => (cost === undefined ? undefined : `$${cost}`), KEY: 'key' },
  name: 'key',
})

export const BUDGET = view<AnswerOf<'get-budget'>>()('day TODAY PER_DAY PER_SESSION action crossed_at HELD', {
  as: {
    TODAY: ({ today }) => moneyOf(today) ?? (today.turns === 0 ? 'nothing' : 'unknown'),
    PER_DAY: ({ per_day_usd: limit }) => (limit === undefined ? undefined : `$${limit}`),
    PER_SESSION: ({ per_session_usd: limit }) => (limit === undefined ? undefined : `$${limit}`),
    HELD: ({ held_sessions: held }) => (held.length === 0 ? undefined : held.join(', ')),
  },
})
