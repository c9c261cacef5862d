/** Handlers of orders. */

import type { Value } from '../../automation/plan.ts'
import type { Order, orderOperations } from '../../contract/automation/orders.ts'
import { defineHandlers, ok, RawBody, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { needRigs } from '../../kernel/near-names.ts'
import { Page } from '../../kernel/page.ts'
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
      const kind = `orders ${JSON.stringify([query.enabled, query.trigger, query.action, query.rig, query.due, query.valid])}`
      const page = new Page(kind, ['string'], query)
      const [behind = ''] = page.after ?? []
      const all = orders
        .all()
        .filter((seen) => isMeant(seen, query))
        .sort((a, b) => (a.order.scoped < b.order.scoped ? -1 : 1))
      const rest = all.filter(({ order }) => order.scoped > behind).slice(0, page.ask)
      const shown = texts.of(store.db, rest)
      // Quotes of a text count twice: a page of very large orders ends a little before it is full.
      const { items, ...next } = page.of(
        rest.keys(),
        (at) => [rest[at]?.order.scoped ?? ''],
        (at) => shown[at] ?? '',
      )
      const { warnings } = orders.resolved
      const more = { total: all.length, ...next, ...(warnings.length === 0 ? {} : { warnings }) }
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
      const { name, status } = query
      const filter: HistoryFilter = { names: name, statuses: status }
      const page = new Page(`order history ${JSON.stringify([name, status])}`, ['number'], query)
      const rows = historyPage(db, filter, page.after?.[0], page.ask)
      return ok({ ...page.of(rows, ({ n }) => [n], wireRun), total: historyTotal(db, filter) }, headers)
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

const isAmong = (wanted: readonly string[] | undefined, value: string | undefined): boolean =>
  wanted === undefined || wanted.length === 0 || (value !== undefined && wanted.includes(value))

/** What its formula or its bead refuses is a matter of how things are; what is wrong with a variable, of the request. */
function refusalOf(error: unknown, { scoped }: ResolvedOrder): unknown {
  if (!(error instanceof Problem) || PASSED_ON.has(error.code) || error.status >= 500) return error
  return problem('conflict-wrong-state', `${scoped} cannot run: ${error.message}`, { cause: error })
}
