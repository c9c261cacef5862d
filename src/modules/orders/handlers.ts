/** Handlers of orders. */

import type { Value } from '../../automation/plan.ts'
import type { Order, orderOperations } from '../../contract/automation/orders.ts'
import { DEFAULT_LIMIT } from '../../contract/base/paging.ts'
import { defineHandlers, ok, RawBody, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { formatPageToken, invalidCursor, parsePageToken } from '../../kernel/cursor.ts'
import { needRigs } from '../../kernel/near-names.ts'
import { Problem, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import type { ResolvedOrder } from './definitions/definition.ts'
import type { Orders, SeenOrder } from './orders.ts'
import { findRun, type HistoryFilter, historyPage, historyTotal, lastRuns, outputOf, wireRun } from './runs/rows.ts'
import { OrderTexts } from './shown.ts'
import { wireOrder } from './wire.ts'

export interface OrderCity {
  readonly store: Store
  readonly orders: Orders
  rigNames(): readonly string[]
}

/** What a run may be refused with that is not about the order itself. */
const PASSED_ON: ReadonlySet<string> = new Set([
  'validation-failed',
  'unavailable',
  'untrusted-pack',
  'conflict-config',
  'conflict-wrong-state',
])

/** A page ends here, however few orders are on it. */
const PAGE_CHARACTERS = 8 * 1024 * 1024

export function createOrderHandlers({ clock }: { readonly clock: Clock }) {
  const indexOf = ({ store }: OrderCity) => ({ 'X-SVC-Index': String(store.log.head) })
  const wait = ({ store }: OrderCity, query: { index?: number; wait?: string }, signal: AbortSignal): Promise<void> =>
    waitForChange(store.log, query, clock, signal, ({ type }) => type.startsWith('order.'))
  const show = ({ store, orders }: OrderCity, order: ResolvedOrder): Order => {
    const run = lastRuns(store.db, [order.scoped]).get(order.scoped)
    return wireOrder(orders.one(order), run === undefined ? undefined : wireRun(run))
  }
  const texts = new OrderTexts()
  const changed = async (
    city: OrderCity,
    order: ResolvedOrder,
    enabled: boolean,
    actor: string,
  ): Promise<Reply<Order>> => {
    const { store, orders } = city
    await store.db.write((tx) => orders.setEnabled(tx, order, enabled, actor))
    return ok(show(city, order))
  }

  return defineHandlers<typeof orderOperations, OrderCity>({
    'list-orders': async (call) => {
      const { query, signal } = call
      await wait(call.city, query, signal)
      const { store, orders } = call.city
      needRigs(query.rig, call.city.rigNames())
      const headers = indexOf(call.city)
      const { limit = DEFAULT_LIMIT, cursor } = query
      const kind = `orders ${JSON.stringify([query.enabled, query.trigger, query.action, query.rig, query.due, query.valid])}`
      const behind = cursor === undefined ? undefined : String(parsePageToken(kind, cursor)[0])
      const all = orders
        .all()
        .filter((seen) => isMeant(seen, query))
        .sort((a, b) => (a.order.scoped < b.order.scoped ? -1 : 1))
      const rest = behind === undefined ? all : all.filter(({ order }) => order.scoped > behind)
      const items = fitting(texts.of(store.db, rest.slice(0, limit || DEFAULT_LIMIT)))
      const last = rest.length > items.length ? rest[items.length - 1] : undefined
      const { warnings } = orders.resolved
      const more = {
        total: all.length,
        ...(last === undefined ? {} : { next_cursor: formatPageToken(kind, [last.order.scoped]) }),
        ...(warnings.length === 0 ? {} : { warnings }),
      }
      const text = `{"items":[${items.join(',')}],${JSON.stringify(more).slice(1)}`
      return ok(new RawBody(Buffer.from(text), 'application/json'), headers)
    },

    'get-order': async (call) => {
      const { params, query, signal } = call
      call.city.orders.need(params.name, query.rig)
      await wait(call.city, query, signal)
      const { city } = call
      const headers = indexOf(city)
      return ok(show(city, city.orders.need(params.name, query.rig)), headers)
    },

    'run-order': ({ city, params, query, body, claim, actor }) =>
      city.store.keys.once(claim, async () => {
        const { store, orders } = city
        const order = orders.need(params.name, query.rig)
        // The schema takes JSON, and nothing else.
        const vars = body?.vars as Readonly<Record<string, Value>> | undefined
        const input = { force: body?.force === true, actor, ...(vars === undefined ? {} : { vars }) }
        try {
          return await store.db.write((tx) =>
            store.keys.remember(tx, claim, { status: 201, body: wireRun(orders.run(tx, order, input)) }),
          )
        } catch (error) {
          throw refusalOf(error, order)
        }
      }),

    'check-order': async ({ city, params, query, signal }) =>
      ok(await city.orders.check(city.orders.need(params.name, query.rig), signal)),

    'enable-order': ({ city, params, query, actor }) =>
      changed(city, city.orders.need(params.name, query.rig), true, actor),

    'disable-order': ({ city, params, query, actor }) =>
      changed(city, city.orders.need(params.name, query.rig), false, actor),

    'list-order-history': async (call) => {
      const { query, signal } = call
      await wait(call.city, query, signal)
      const { db } = call.city.store
      const headers = indexOf(call.city)
      const { name, status, limit = DEFAULT_LIMIT, cursor } = query
      const filter: HistoryFilter = { names: name, statuses: status }
      const kind = `order history ${JSON.stringify([name, status])}`
      const most = limit || DEFAULT_LIMIT
      const rows = historyPage(db, filter, cursor === undefined ? undefined : placeIn(kind, cursor), most)
      const page = rows.slice(0, most)
      const last = rows.length > most ? page.at(-1) : undefined
      return ok(
        {
          items: page.map(wireRun),
          total: historyTotal(db, filter),
          ...(last === undefined ? {} : { next_cursor: formatPageToken(kind, [last.n]) }),
        },
        headers,
      )
    },

    'get-order-run': async (call) => {
      const { params, query, signal } = call
      needRun(call.city, params.run_id)
      await wait(call.city, query, signal)
      const { city } = call
      const headers = indexOf(city)
      return ok({ ...wireRun(needRun(city, params.run_id)), ...outputOf(city.store.db, params.run_id) }, headers)
    },
  })
}

function needRun({ store }: OrderCity, id: string) {
  const run = findRun(store.db, id)
  if (run === undefined) throw problem('order-run-not-found', `there is no run ${id} of an order`)
  return run
}

function placeIn(kind: string, cursor: string): number {
  const place = Number(parsePageToken(kind, cursor)[0])
  if (!Number.isSafeInteger(place)) throw invalidCursor('not of this list')
  return place
}

interface Wanted {
  readonly enabled?: boolean
  readonly trigger?: readonly string[]
  readonly action?: string
  readonly rig?: readonly string[]
  readonly due?: boolean
  readonly valid?: boolean
}

function isMeant({ order, enabled, outlook }: SeenOrder, wanted: Wanted): boolean {
  const { definition, issues, file } = order
  const isValid = definition !== undefined && issues.length === 0
  return (
    (wanted.enabled === undefined || wanted.enabled === enabled) &&
    (wanted.valid === undefined || wanted.valid === isValid) &&
    (wanted.due === undefined || wanted.due === (outlook.kind === 'due')) &&
    (wanted.action === undefined || wanted.action === definition?.action.kind) &&
    isAmong(wanted.trigger, definition?.trigger.kind) &&
    isAmong(wanted.rig, file.rig)
  )
}

/** As many as a page may hold; one in any case. */
function fitting(texts: readonly string[]): readonly string[] {
  let characters = 0
  const tooMany = texts.findIndex((text, index) => {
    characters += text.length
    return index > 0 && characters > PAGE_CHARACTERS
  })
  return tooMany < 0 ? texts : texts.slice(0, tooMany)
}

const isAmong = (wanted: readonly string[] | undefined, value: string | undefined): boolean =>
  wanted === undefined || wanted.length === 0 || (value !== undefined && wanted.includes(value))

/** What its formula or its bead refuses is a matter of how things are; what is wrong with a variable, of the request. */
function refusalOf(error: unknown, { scoped }: ResolvedOrder): unknown {
  if (!(error instanceof Problem) || PASSED_ON.has(error.code) || error.status >= 500) return error
  return problem('conflict-wrong-state', `${scoped} cannot run: ${error.message}`, { cause: error })
}
