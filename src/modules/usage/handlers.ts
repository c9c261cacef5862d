/** Handlers of the usage family. */

import { DURATION_PATTERN } from '../../contract/base/durations.ts'
import { MAX_UNCOUNTED, type UsageBy, type UsageGroup, type usageOperations } from '../../contract/sessions/usage.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { type Clock, parseDay, parseTime } from '../../kernel/clock.ts'
import { Page } from '../../kernel/page.ts'
import { given } from '../../kernel/present.ts'
import { durationMs, invalidField } from '../../kernel/problem.ts'
import { NOTHING, placeParts, type Range } from './ledger.ts'
import type { Usage } from './service.ts'

export interface UsageCity {
  readonly usage: Usage
  /** Id of the session that is meant, also of one that is closed. */
  readonly resolve: (handle: string) => string
  /** Something tells what its turns use, as far as is known of its program. */
  readonly counted: (sessionId: string) => boolean
  /** Sessions with a process. */
  readonly running: () => readonly string[]
  /** What people call these, where they have a name. */
  readonly names: (by: UsageBy, keys: readonly string[]) => ReadonlyMap<string, string>
}

const DAY_MS = 86_400_000
const FOREVER_MS = Date.UTC(9000, 0)

export function createUsageHandlers({ clock }: { readonly clock: Clock }) {
  /** Whoever reports is counted, too. */
  const isCounted = ({ usage, counted }: UsageCity, id: string): boolean => counted(id) || usage.of(id) !== undefined

  return defineHandlers<typeof usageOperations, UsageCity>({
    'list-usage': ({ city, query }) => {
      const { usage, names, running } = city
      const { by = 'session', key: keys, since, until } = query
      const now = clock.now()
      const range = rangeOf(since, until, now)
      const page = new Page(`usage ${by} ${since ?? ''} ${until ?? ''}`, placeParts(by), query)
      const { items, total, capped } = usage.ledger.groups(by, { range, keys, now }, page.after, page.ask)
      const known = names(
        by,
        items.map(({ key }) => key),
      )
      const shown = page.of(
        items,
        ({ place }) => place,
        ({ key, totals }): UsageGroup => ({ key, ...given('name', known.get(key)), ...totals }),
      )
      return ok({
        ...shown,
        total,
        ...(capped ? { total_capped: true } : {}),
        sum: usage.ledger.sum(range, now),
        uncounted: running()
          .filter((id) => !isCounted(city, id))
          .slice(0, MAX_UNCOUNTED),
      })
    },

    'get-session-usage': ({ city, params, query }) => {
      const { usage, resolve } = city
      const id = resolve(params.id)
      const page = new Page(`usage of ${id}`, ['number', 'number'], query)
      const { turns, total } = usage.ledger.turns(id, page.after, page.ask)
      return ok({
        session_id: id,
        counted: isCounted(city, id),
        totals: usage.of(id) ?? NOTHING,
        ...page.of(
          turns,
          ({ place }) => place,
          ({ turn }) => turn,
        ),
        total,
      })
    },

    'get-budget': ({ city: { usage } }) => ok(usage.budgets.status(clock.now())),
  })
}

/** Undefined: all time. */
function rangeOf(since: string | undefined, until: string | undefined, now: number): Range | undefined {
  if (since === undefined && until === undefined) return undefined
  const from = since === undefined ? 0 : momentOf('since', since, now).from
  const to = until === undefined ? FOREVER_MS : momentOf('until', until, now).to
  return { from: clamp(from), to: clamp(Math.max(from, to)) }
}

const clamp = (at: number): number => Math.min(Math.max(at, 0), FOREVER_MS)

/** A day has a beginning and an end; everything else is a point. */
function momentOf(name: string, text: string, now: number): Range {
  const day = parseDay(text)
  if (day !== undefined) return { from: day, to: day + DAY_MS }
  const field = `query.${name}`
  const time = parseTime(text)
  if (time === undefined && !DURATION_PATTERN.test(text))
    throw invalidField(field, 'is no day, no time and no duration: write 2026-11-22, 2026-11-22T10:00:00Z or 24h', text)
  const at = time ?? now - durationMs(field, text)
  return { from: at, to: at }
}
