/** Handlers of needs. */
import type { NeedKind, NeedSeverity, needOperations } from '../../contract/needs.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { cityOf } from '../../kernel/caller.ts'
import { type Clock, parseTime } from '../../kernel/clock.ts'
import { Page } from '../../kernel/page.ts'
import { durationMs, invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import type { Projection } from './projection.ts'
import {
  compareNeeds,
  countNeeds,
  findNeed,
  isBehind,
  keyOf,
  type NeedFilter,
  type NeedRow,
  pageOfNeeds,
  wireNeed,
} from './rows.ts'

export interface NeedCity {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'log'>
  readonly projection: Projection
}

/** A city as the list of all needs sees it. */
export interface CityNeeds {
  readonly name: string
  /** Undefined while it does not run, or cannot be read. */
  readonly db: Store['db'] | undefined
  /** Needs of the city as a whole, which its own store cannot tell of. */
  readonly own: readonly NeedRow[]
}

export interface NeedHost {
  readonly clock: Clock
  readonly needs: { readonly cities: () => readonly CityNeeds[] }
}

interface Query {
  readonly severity?: NeedSeverity
  readonly kind?: readonly NeedKind[]
  readonly snoozed?: boolean
  readonly cursor?: string
  readonly limit?: number
}
type Listed = readonly (readonly [city: string, need: NeedRow])[]

const MAX_SNOOZE_MS = 30 * 24 * 3_600_000

export function createNeedHandlers({ clock, needs }: NeedHost) {
  return defineHandlers<typeof needOperations, NeedCity>({
    'list-needs': ({ query, caller }) => {
      const own = cityOf(caller)
      if (own !== undefined && query.city !== undefined && query.city !== own) return ok({ items: [], total: 0 })
      const only = own ?? query.city
      const filter = filterOf(query, clock.now())
      const page = pageOf(query)
      const { after } = page
      const seen = needs.cities().filter(({ name }) => only === undefined || name === only)
      const found = seen.flatMap(({ name, db, own: whole }): Listed => {
        const rows = db === undefined ? [] : pageOfNeeds(db, filter, { after, limit: page.ask })
        const more = whole.filter((need) => holds(need, filter) && (after === undefined || isBehind(need, after)))
        return [...rows, ...more].map((need) => [name, need] as const)
      })
      const total = seen.reduce(
        (sum, { db, own: whole }) =>
          sum + (db === undefined ? 0 : countNeeds(db, filter)) + whole.filter((need) => holds(need, filter)).length,
        0,
      )
      const sorted = found.toSorted(([, one], [, other]) => compareNeeds(one, other))
      return ok({ ...shown(page, sorted), total })
    },

    'list-city-needs': async (call) => {
      const { query, signal } = call
      await waitForChange(call.city.store.log, query, clock, signal, ({ type }) => type.startsWith('need.'))
      const { name, store } = call.city
      const index = String(store.log.head)
      const filter = filterOf(query, clock.now())
      const page = pageOf(query)
      const found = pageOfNeeds(store.db, filter, { after: page.after, limit: page.ask })
      const listed = found.map((need) => [name, need] as const)
      return ok({ ...shown(page, listed), total: countNeeds(store.db, filter) }, { 'X-SVC-Index': index })
    },

    'snooze-need': async ({ params, body, city, actor }) => {
      const until = untilOf(body, clock.now())
      const { name, store, projection } = city
      const need = await store.db.write((tx) => {
        const found = findNeed(tx, params.need_id)
        if (found === undefined) throw problem('need-not-found', `there is no need ${params.need_id}: it may be over`)
        const changed = { ...found, snoozedUntil: until > clock.now() ? until : undefined }
        projection.change(tx, changed, actor)
        return changed
      })
      return ok(wireNeed(name, need))
    },
  })
}

const pageOf = (query: Query) => new Page('needs', ['number', 'number', 'number', 'string'], query)

const shown = (page: ReturnType<typeof pageOf>, found: Listed) =>
  page.of(
    found,
    ([, need]) => keyOf(need),
    ([city, need]) => wireNeed(city, need),
  )

const filterOf = ({ severity, kind, snoozed }: Query, now: number): NeedFilter => ({
  severity,
  kind,
  awakeAt: snoozed === true ? undefined : now,
})

const holds = (need: NeedRow, { severity, kind }: NeedFilter): boolean =>
  (severity === undefined || need.severity === severity) && (kind === undefined || kind.includes(need.kind))

function untilOf(body: { readonly until?: string; readonly for?: string }, now: number): number {
  if (body.until !== undefined && body.for !== undefined)
    throw invalidField('body.for', 'give either until or for, not both', body.for)
  if (body.for !== undefined) return within(now + durationMs('body.for', body.for), now, 'body.for')
  const until = body.until === undefined ? undefined : parseTime(body.until)
  if (until === undefined) throw invalidField('body.until', 'say until when, or for how long with for', body.until)
  return within(until, now, 'body.until')
}

function within(until: number, now: number, field: string): number {
  if (until > now + MAX_SNOOZE_MS) throw invalidField(field, 'is more than 30 days away', undefined)
  return until
}
