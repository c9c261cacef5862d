/** Handler of what adapters bring in. */
import type { receiveInbound } from '../../../contract/messaging/adapters.ts'
import type { InboundBody, InboundReply } from '../../../contract/messaging/inbound.ts'
import { defineHandlers, type Handlers } from '../../../kernel/call.ts'
import { fingerprintOf, type IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { nameOfKey } from '../adapters/adapter.ts'
import { type Calling, calling } from './calling.ts'
import type { MessagingCity } from './city.ts'

type OfInbound = readonly [typeof receiveInbound]

export function createInboundHandlers(): Handlers<OfInbound, MessagingCity> {
  return defineHandlers<OfInbound, MessagingCity>({
    'receive-inbound': (call) => {
      const { city, body } = call
      const caller = calling(call)
      const { adapter } = caller
      city.rate.admit(adapter, newsIn(body))
      const claim = claimOf(caller, body)
      const source = { provider: adapter.provider, account_id: adapter.account_id }
      const { keys } = city.store
      return keys.once(claim, async () => {
        const reply = (answered: InboundReply) => ({ status: 200, body: answered })
        return reply(
          await city.inbound.receive(body, source, (tx, answered) => keys.remember(tx, claim, reply(answered))),
        )
      })
    },
  })
}

/** The id of a signed message is its key: a replay is answered as the first time, and does nothing (decision 147). */
const claimOf = ({ adapter, proof }: Calling, body: InboundBody): IdempotencyClaim | undefined =>
  proof.by === 'signature'
    ? { scope: `signed by ${nameOfKey(adapter)}`, key: proof.id, fingerprint: fingerprintOf(body) }
    : undefined

/** Messages that somebody is told of: history disturbs nobody, however much of it comes. */
const newsIn = (body: InboundBody): number =>
  'messages' in body && body.provenance !== 'hydrated' ? body.messages.length : 1
