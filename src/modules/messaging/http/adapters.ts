/** Handlers of adapters: registration, changes, secrets, children. */
import type {
  AdapterInfo,
  AdapterPatch,
  AdapterWithSecret,
  adapterOperations,
} from '../../../contract/messaging/adapters.ts'
import { type Call, defineHandlers, type Handlers, ok, type Reply } from '../../../kernel/call.ts'
import type { AdapterCaller } from '../../../kernel/caller.ts'
import { nextTurn } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { checkPrecondition, definitionHash } from '../../../kernel/etag.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { Page } from '../../../kernel/page.ts'
import { problem } from '../../../kernel/problem.ts'
import { waitForChange } from '../../../kernel/waiting.ts'
import { normalConversation, transcriptId } from '../../../messaging/conversation.ts'
import { secretKey } from '../../../messaging/signature.ts'
import {
  type Adapter,
  type AdapterDefinition,
  definitionOf,
  infoOf,
  leaseOf,
  nameOfKey,
  normalKey,
} from '../adapters/adapter.ts'
import { checkedUrl } from '../adapters/url.ts'
import { openChild } from '../outbox/children.ts'
import type { MessagingCity } from './city.ts'

type AdapterOperations = readonly (typeof adapterOperations)[number][]
type OfAdapters = Extract<AdapterOperations[number], { readonly id: (typeof HANDLED)[number] }>
const HANDLED = [
  'list-adapters',
  'register-adapter',
  'get-adapter',
  'patch-adapter',
  'delete-adapter',
  'create-child-conversation',
] as const

/** Deliveries that one write ends while their adapter is removed, or becomes one that reads the stream. */
const ENDED_AT_ONCE = 200

export const indexOf = ({ store }: MessagingCity) => ({ 'X-SVC-Index': String(store.log.head) })

export function createAdapterHandlers(): Handlers<readonly OfAdapters[], MessagingCity> {
  return defineHandlers<readonly OfAdapters[], MessagingCity>({
    'list-adapters': async ({ city, query, signal }) => {
      const { store, adapters, clock } = city
      await waitForChange(store.log, query, clock, signal, ({ type }) => type.startsWith('extmsg.'))
      const headers = indexOf(city)
      const { provider } = query
      const page = new Page(`adapters ${provider ?? ''}`, ['string', 'string'], query)
      const shown = page.of(
        adapters.list(provider, page.after, page.ask),
        ({ provider, account_id }) => [provider, account_id],
        (adapter) => viewOf(city, adapter),
      )
      return ok({ ...shown, total: adapters.count(provider) }, headers)
    },

    'register-adapter': ({ city, body, claim, header, bytes, actor, caller }) => {
      const { store, adapters, authenticator } = city
      const definition = definitionOf(body, () => `lcl-${randomHex(4)}`)
      refuseOther(caller, definition)
      checkSecret(body.secret)
      return store.keys.once(claim, async () => {
        const reply = await store.db.write((tx): Reply<AdapterWithSecret> => {
          const known = adapters.find(definition.provider, definition.account_id, tx)
          if (known !== undefined) authenticator.prove(known, { header, bytes }, body.secret)
          if (caller.kind === 'adapter') refuseElsewhere(known, definition)
          const wanted = { secret: body.secret, generate: body.generate_secret === true, actor }
          const { adapter, created, secret } = adapters.register(tx, definition, wanted)
          arrange(city, tx, adapter)
          const shown = { ...viewOf(city, adapter), ...(secret === undefined ? {} : { secret }) }
          return store.keys.remember(tx, claim, { status: created ? 201 : 200, body: shown })
        })
        await streamAll(city, definition)
        return reply
      })
    },

    'get-adapter': ({ city, params }) => {
      const headers = indexOf(city)
      const adapter = city.adapters.need(params.provider, params.accountId)
      return ok(viewOf(city, adapter), { ...headers, ETag: `"${revisionOf(adapter)}"` })
    },

    'patch-adapter': ({ city, params, body, header, actor }) => {
      const { store, adapters } = city
      return store.db.write((tx) => {
        const before = adapters.need(params.provider, params.accountId, tx)
        checkPrecondition(header('if-match'), revisionOf(before))
        const adapter = adapters.change(tx, before, changed(before, body), actor)
        const secret = body.rotate_secret === true ? adapters.rotate(tx, adapter, actor) : undefined
        arrange(city, tx, adapter)
        const shown = { ...viewOf(city, adapter), ...(secret === undefined ? {} : { secret }) }
        return ok(shown, { ETag: `"${revisionOf(adapter)}"` })
      })
    },

    'delete-adapter': async ({ city, params, actor }) => {
      const { store, adapters, outbox, callbacks, rate } = city
      // Thousands may be pending: each write ends some, and the last one removes the adapter.
      for (let dead = 0; ; ) {
        const { adapter, buried } = await store.db.write((tx) => {
          const adapter = adapters.need(params.provider, params.accountId, tx)
          const buried = outbox.bury(tx, adapter, ENDED_AT_ONCE)
          if (buried < ENDED_AT_ONCE) {
            adapters.remove(tx, adapter, dead + buried, actor)
            tx.afterCommit(() => {
              callbacks.leave(adapter)
              rate.forget(adapter)
              city.accessEnded(nameOfKey(adapter))
            })
          }
          return { adapter, buried }
        })
        dead += buried
        const { provider, account_id } = adapter
        if (buried < ENDED_AT_ONCE)
          return ok({ status: 'unregistered' as const, provider, account_id, dead_deliveries: dead })
        await nextTurn()
      }
    },

    'create-child-conversation': ({ city, params, body, claim, signal }) => {
      const { store, adapters, transcripts, clock, name } = city
      const adapter = adapters.need(params.provider, params.accountId)
      const parent = normalConversation(body.conversation, name)
      if (nameOfKey(parent) !== nameOfKey(adapter))
        throw problem(
          'invalid-conversation',
          `body.conversation is of ${nameOfKey(parent)}, not of ${nameOfKey(adapter)}`,
        )
      return store.keys.once(claim, async () => {
        const secrets = adapters.secrets(adapter).map(({ secret }) => secret)
        const conversation = await openChild({ adapter, secrets, parent, label: body.label, city: name }, clock, signal)
        return store.db.write((tx) => {
          transcripts.ensure(tx, conversation)
          const made = { conversation, transcript_id: transcriptId(conversation) }
          return store.keys.remember(tx, claim, { status: 201, body: made })
        })
      })
    },
  })
}

/** Delivers the rest of what was pending when the adapter became one that reads the stream. */
async function streamAll({ store, adapters, outbox }: MessagingCity, key: AdapterDefinition): Promise<void> {
  const some = (tx: Tx) => {
    const adapter = adapters.find(key.provider, key.account_id, tx)
    return adapter === undefined ? 0 : outbox.streamed(tx, adapter, ENDED_AT_ONCE)
  }
  if (key.transport !== 'stream') return
  while ((await store.db.write(some)) === ENDED_AT_ONCE) await nextTurn()
}

/** What of the city depends on how the adapter is reached. */
function arrange({ outbox, callbacks }: MessagingCity, tx: Tx, adapter: Adapter): void {
  outbox.streamed(tx, adapter, ENDED_AT_ONCE)
  outbox.changed(tx, adapter)
  tx.afterCommit(() => callbacks.follow(adapter))
}

/** Hash of what somebody declared of the adapter: its state changes by itself and is no other version. */
const revisionOf = ({ name, transport, callback_url, capabilities, metadata, lease_ms }: AdapterDefinition): string =>
  definitionHash({ name, transport, callback_url, capabilities, metadata, lease_ms })

const viewOf = ({ adapters, outbox, clock }: MessagingCity, adapter: Adapter): AdapterInfo =>
  infoOf(adapter, adapters.secrets(adapter), outbox.counts(adapter), clock.now())

/** Its secret is for itself. */
function refuseOther(caller: Call['caller'], definition: AdapterDefinition): void {
  if (caller.kind === 'adapter' && !isThat(caller, definition))
    throw problem('forbidden', `this is the secret of ${caller.name}, not of ${nameOfKey(definition)}`)
}

/** The supervisor posts there: with its own secret an adapter must not make it call other programs of this machine or network. */
function refuseElsewhere(known: Adapter | undefined, { callback_url: wanted }: AdapterDefinition): void {
  if (wanted === undefined || originOf(wanted) === originOf(known?.callback_url)) return
  throw problem(
    'forbidden',
    `body.callback_url: an adapter keeps its callback at ${originOf(known?.callback_url) ?? 'no address'} with its own secret; another address needs the right "city"`,
  )
}
const originOf = (url: string | undefined): string | undefined =>
  url === undefined ? undefined : URL.parse(url)?.origin

const isThat = (caller: AdapterCaller, { provider, account_id }: AdapterDefinition) =>
  caller.isSelf(provider, account_id)

function checkSecret(secret: string | undefined): void {
  if (secret !== undefined && secretKey(secret) === undefined)
    throw problem('validation-failed', 'body.secret: is not whsec_ and the base64 of 24 to 64 bytes', {
      errors: [{ location: 'body.secret', message: 'is not whsec_ and the base64 of 24 to 64 bytes' }],
    })
}

function changed(before: Adapter, patch: AdapterPatch): AdapterDefinition {
  const { name, callback_url, capabilities, lease_seconds, metadata } = patch
  if (callback_url !== undefined && before.transport !== 'callback')
    throw problem(
      'validation-failed',
      `body.callback_url: ${nameOfKey(before)} has the transport ${before.transport}`,
      {
        errors: [{ location: 'body.callback_url', message: `is not for the transport ${before.transport}` }],
      },
    )
  const merged = Object.entries({ ...before.metadata, ...metadata })
  return {
    ...normalKey(before.provider, before.account_id),
    name: name === undefined ? before.name : name?.trim() || nameOfKey(before),
    transport: before.transport,
    callback_url: callback_url === undefined ? before.callback_url : checkedUrl(callback_url),
    capabilities: { ...before.capabilities, ...capabilities },
    metadata: Object.fromEntries(merged.filter((entry): entry is [string, string] => entry[1] !== null)),
    lease_ms: lease_seconds === undefined ? before.lease_ms : leaseOf(before.transport, lease_seconds ?? undefined),
  }
}
