/** What sessions cost: tokens and money per turn, totals of them, budgets (decisions 230, 236). */

import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam, Timestamp } from '../base/names.ts'
import { listFields, PageQuery } from '../base/paging.ts'
import {
  array,
  boolean,
  choice,
  component,
  described,
  integer,
  object,
  optional,
  type Static,
  string,
} from '../base/schema.ts'

/** Exact: never a number, which would be rounded on its way. */
export const Money = string({
  pattern: '^[0-9]{1,10}(\\.[0-9]{1,12})?$',
  description: 'US dollars as a decimal.',
  examples: ['0.0125'],
})
/** More than any turn has: a harness that counts wrongly must not spoil the sums of its city for good. */
export const MOST_TOKENS = 1_000_000_000
const ToldCost = string({
  pattern: '^[0-9]{1,4}(\\.[0-9]{1,12})?$',
  description: 'What it cost in US dollars, where the harness says so.',
  examples: ['0.0125'],
})

export const MAX_UNCOUNTED = 100
/** What a turn was of whose model nobody spoke. */
export const UNKNOWN_MODEL = 'unknown'
export const USAGE_SOURCES = ['protocol', 'report', 'log'] as const
export const COST_SOURCES = ['harness', 'prices'] as const
/** `open`: the turn goes on. `cut`: its process ended in it; it used at least this. */
export const TURN_STATES = ['open', 'ended', 'cut'] as const
export const BUDGET_ACTIONS = ['warn', 'suspend'] as const
export type BudgetAction = (typeof BUDGET_ACTIONS)[number]

const tokens = (description: string) => integer({ minimum: 0, description })
const day = string({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'A day of UTC.', examples: ['2026-11-22'] })
const model = string({ maxLength: 200, description: `Its name; \`${UNKNOWN_MODEL}\` where nobody said it.` })

const TOKENS = {
  input: tokens('Tokens of prompts that were read anew: neither from a cache nor into one.'),
  output: tokens('Tokens of answers, with what was thought.'),
  cache_read: tokens('Tokens of prompts that came from a cache.'),
  cache_write: tokens('Tokens of prompts that were written to a cache.'),
}

const told = (field: typeof TOKENS.input) => ({ ...field, maximum: MOST_TOKENS })

/** A turn as a harness tells of it. */
export const UsageReport = component('UsageReport', {
  id: optional(
    string({ minLength: 1, maxLength: 200, description: 'Names the turn: one that was told before counts once.' }),
  ),
  model: optional({ ...model, minLength: 1 }),
  input: told(TOKENS.input),
  output: told(TOKENS.output),
  cache_read: optional(told(TOKENS.cache_read)),
  cache_write: optional(told(TOKENS.cache_write)),
  cost_usd: optional(ToldCost),
})
export type UsageReport = Static<typeof UsageReport>

const SUM = {
  turns: integer({
    minimum: 0,
    description: 'Turns that were recorded, or answers of the model where a harness logs each.',
  }),
  ...TOKENS,
  cost_usd: optional({ ...Money, description: 'Of the turns whose cost is known; absent where that of none is.' }),
  unpriced_turns: integer({ minimum: 0, description: 'Turns whose cost nobody knows.' }),
}
export const UsageTotals = component('UsageTotals', SUM, {
  description: 'Sums of turns; absent where none was recorded.',
})
export type UsageTotals = Static<typeof UsageTotals>

const TURN = {
  session_id: string(),
  agent: string({ description: 'Agent that worked: all sessions of one agent have its name.' }),
  bead_id: optional(string({ description: 'Bead that it had in progress when the turn began, or during it.' })),
  convoy_id: optional(string({ description: 'The oldest open convoy of that bead.' })),
  provider: string(),
  model,
  ...TOKENS,
  cost_usd: optional(Money),
  cost_source: optional(
    choice(COST_SOURCES, { description: 'Who said the cost: the harness, or the prices of the city.' }),
  ),
  source: choice(USAGE_SOURCES, { description: 'Who told of the turn.' }),
  key: string({ description: 'Names the turn in its session.' }),
  state: choice(TURN_STATES, {
    description:
      'Whether the turn goes on (`open`), has ended, or was `cut` by the end of its process and used at least this.',
  }),
}
export const UsageRecordedPayload = component('UsageRecordedPayload', TURN)
export type UsageRecordedPayload = Static<typeof UsageRecordedPayload>
export const UsageTurn = component('UsageTurn', { ...TURN, at: Timestamp })
export type UsageTurn = Static<typeof UsageTurn>

export const USAGE_BY = ['session', 'agent', 'bead', 'convoy', 'model', 'day'] as const
export type UsageBy = (typeof USAGE_BY)[number]

export const UsageGroup = component('UsageGroup', {
  key: string({
    description:
      'Id of the session, bead or convoy, name of the agent or model, or the day (UTC). Empty: turns that belong to no bead.',
  }),
  name: optional(string({ description: 'What people call it: alias of a session, title of a bead or convoy.' })),
  ...SUM,
})
export type UsageGroup = Static<typeof UsageGroup>

export const BudgetPayload = component('BudgetPayload', {
  budget: choice(['day', 'session'], { description: 'Which budget.' }),
  day: optional(day),
  session_id: optional(string({ description: 'Whose turn crossed it.' })),
  limit_usd: Money,
  spent_usd: Money,
  action: choice(BUDGET_ACTIONS),
})
export type BudgetPayload = Static<typeof BudgetPayload>

export const BudgetStatus = component('BudgetStatus', {
  day,
  today: UsageTotals,
  per_day_usd: optional(Money),
  per_session_usd: optional(Money),
  action: choice(BUDGET_ACTIONS, { description: 'What happens at a crossing.' }),
  crossed_at: optional({ ...Timestamp, description: 'When today crossed its budget, as it is now.' }),
  held_sessions: array(string(), {
    maxItems: 100,
    description: 'Sessions that a budget suspended and nobody woke; at most 100.',
  }),
})
export type BudgetStatus = Static<typeof BudgetStatus>

const moment = (description: string) =>
  string({ minLength: 1, maxLength: 64, description, examples: ['2026-11-22', '24h'] })

const usage = family(
  { name: 'Usage', about: 'Tokens and money that sessions have used.' },
  '/v0/city/{cityName}',
  { cityName: CityNameParam, id: string({ minLength: 1, description: 'Id, alias or name of a session.' }) },
  {},
)

export const listUsage = usage.get('list-usage', '/usage', {
  summary: 'List what was used, by session, agent, bead, convoy, model or day',
  description:
    'What cost most comes first; days come newest first. With `since` or `until` only turns in between count; those older than 90 days by whole hours.',
  query: object({
    by: optional(choice(USAGE_BY, { description: 'What a row is about: `session` where absent.' })),
    key: optional(array(string({ minLength: 1 }), { maxItems: 100, description: 'Only these; any of them.' })),
    since: optional(moment('From then on: a day, a time, or that long ago.')),
    until: optional(moment('Until then: a day with its end, a time, or that long ago.')),
    ...PageQuery,
  }),
  replies: {
    200: component('ListBodyUsageGroup', {
      ...listFields(UsageGroup),
      sum: described(UsageTotals, 'Of all turns in that time, whatever `key` and the page show.'),
      uncounted: array(string(), {
        maxItems: MAX_UNCOUNTED,
        description: `Sessions that run and of whose turns nothing tells: no sum has them; at most ${MAX_UNCOUNTED}.`,
      }),
    }),
  },
  problems: ['invalid-cursor'],
})

export const getSessionUsage = usage.get('get-session-usage', '/sessions/{id}/usage', {
  summary: 'What a session has used, turn by turn',
  description: 'Newest first. Turns are kept for 90 days, totals for good.',
  query: object({ ...PageQuery }),
  replies: {
    200: component('SessionUsage', {
      session_id: string(),
      counted: boolean({ description: 'Something tells what its turns use. False: what is 0 is not known.' }),
      totals: UsageTotals,
      ...listFields(UsageTurn),
    }),
  },
  problems: ['session-not-found', 'ambiguous-session', 'name-taken', 'invalid-cursor'],
})

export const getBudget = usage.get('get-budget', '/budget', {
  summary: 'What today cost, and what it may cost',
  description: 'Days are those of UTC.',
  replies: { 200: BudgetStatus },
})

export const usageOperations = [listUsage, getSessionUsage, getBudget] as const

const inLog = { log: 'city', emittedBy: 'usage' } as const
export const USAGE_EVENT_TYPES = {
  'usage.recorded': {
    payload: UsageRecordedPayload,
    ...inLog,
    when: 'a turn ended, and what it used is known; once per turn',
  },
  'budget.crossed': {
    payload: BudgetPayload,
    ...inLog,
    when: 'a budget was used up; once per budget and day or session',
  },
} as const satisfies EventTypes
