/** Handlers of what is on its way to adapters. */
import { MAX_WAIT_MS } from '../../../contract/base/paging.ts'
import type { adapterOperations } from '../../../contract/messaging/adapters.ts'
import {
  DEFAULT_LEASE_SECONDS,
  type DeliveryStatus,
  MAX_CLAIM,
  type PublishReceipt,
} from '../../../contract/messaging/deliveries.ts'
import { defineHandlers, type Handlers, ok } from '../../../kernel/call.ts'
import { Page } from '../../../kernel/page.ts'
import { durationMs, invalidField, problem } from '../../../kernel/problem.ts'
import { waitForChange } from '../../../kernel/waiting.ts'
import { type AdapterKey, normalKey } from '../adapters/adapter.ts'
import { reported } from '../outbox/answers.ts'
import { STATES_OF, shown, statusOf } from '../outbox/delivery.ts'
import { indexOf } from './adapters.ts'
import { calling } from './calling.ts'
import type { MessagingCity } from './city.ts'

type OfDeliveries = Extract<(typeof adapterOperations)[number], { readonly id: (typeof HANDLED)[number] }>
const HANDLED = [
  'list-deliveries',
  'get-delivery',
  'claim-deliveries',
  'ack-delivery',
  'fail-delivery',
  'retry-delivery',
  'delete-delivery',
] as const

export function createDeliveryHandlers(): Handlers<readonly OfDeliveries[], MessagingCity> {
  return defineHandlers<readonly OfDeliveries[], MessagingCity>({
    'list-deliveries': async ({ city, params, query, signal }) => {
      const { store, outbox, clock } = city
      const key = known(city, params)
      await waitForChange(store.log, query, clock, signal, ({ type }) => type.startsWith('extmsg.'))
      const headers = indexOf(city)
      const { status, transcript_id: transcript } = query
      const kind = `deliveries ${key.provider}/${key.account_id} ${status ?? ''} ${transcript ?? ''}`
      const page = new Page(kind, ['number'], query)
      const [behind = 0] = page.after ?? []
      const wanted = { states: statesOf(status), transcript }
      const found = outbox.list(key, { ...wanted, behind, limit: page.ask })
      return ok({ ...page.of(found, ({ seq }) => [seq], shown), total: outbox.total(key, wanted) }, headers)
    },

    'get-delivery': ({ city, params }) => {
      const headers = indexOf(city)
      return ok(shown(city.outbox.need(known(city, params), params.deliveryId)), headers)
    },

    'claim-deliveries': async (call) => {
      const { limit = MAX_CLAIM, wait, lease_seconds: lease = DEFAULT_LEASE_SECONDS } = call.body ?? {}
      const waitMs = wait === undefined ? 0 : durationMs('body.wait', wait)
      if (waitMs > MAX_WAIT_MS) throw invalidField('body.wait', 'must be at most 2m', wait)
      const { adapter } = calling(call)
      const items = await call.city.claims.claim(adapter, { limit, waitMs, leaseMs: lease * 1000 }, call.signal)
      return ok({ items: [...items] })
    },

    'ack-delivery': async (call) => {
      const { city, params, body } = call
      const { adapter } = calling(call)
      const receipt = deliveredReceipt(body?.receipt ?? {})
      const found = city.outbox.need(adapter, params.deliveryId)
      if (found.state === 'delivered') return ok(shown(found))
      return city.store.db.write((tx) =>
        ok(shown(city.outbox.delivered(tx, city.outbox.need(adapter, params.deliveryId, tx), receipt))),
      )
    },

    'fail-delivery': async (call) => {
      const { city, params, body } = call
      const { adapter } = calling(call)
      const { outbox } = city
      return city.store.db.write((tx) => {
        const before = outbox.need(adapter, params.deliveryId, tx)
        const after = outbox.failed(tx, before, body.attempt, reported(body))
        if (after === undefined)
          throw problem(
            'conflict-wrong-state',
            `delivery ${before.id} is ${statusOf(before)} with attempt ${before.attempts}: attempt ${body.attempt} is over`,
          )
        return ok(shown(after))
      })
    },

    'retry-delivery': ({ city, params }) =>
      city.store.db.write((tx) => {
        const adapter = city.adapters.need(params.provider, params.accountId, tx)
        return ok(shown(city.outbox.retry(tx, adapter, city.outbox.need(adapter, params.deliveryId, tx))))
      }),

    'delete-delivery': ({ city, params }) =>
      city.store.db.write((tx) => {
        const found = city.outbox.need(known(city, params), params.deliveryId, tx)
        city.outbox.remove(tx, found)
        return ok({ status: 'deleted' as const, id: found.id })
      }),
  })
}

/** An adapter, or one that was removed and has deliveries still. */
function known(
  { adapters, outbox }: MessagingCity,
  params: { readonly provider: string; readonly accountId: string },
): AdapterKey {
  const key = normalKey(params.provider, params.accountId)
  if (outbox.total(key, { states: statesOf(undefined), transcript: undefined }) > 0) return key
  return adapters.need(params.provider, params.accountId)
}

const statesOf = (status: DeliveryStatus | undefined): readonly string[] =>
  status === undefined ? [...STATES_OF.pending, ...STATES_OF.delivered, ...STATES_OF.dead] : STATES_OF[status]

function deliveredReceipt(receipt: PublishReceipt): PublishReceipt {
  if (receipt.delivered === false || receipt.failure_kind !== undefined)
    throw invalidField('body.receipt', 'says that it was not delivered: use fail')
  return { ...receipt, delivered: true }
}
