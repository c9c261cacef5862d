/** Adapters: what carries messages between this city and chats (decisions 140 to 150, 176). */
import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, PageQuery } from '../base/paging.ts'
import {
  boolean,
  choice,
  component,
  integer,
  literal,
  nullable,
  object,
  optional,
  record,
  type Static,
  string,
} from '../base/schema.ts'
import { ConversationRef, MAX_CONVERSATION_PART, MAX_PROVIDER, TranscriptId } from './conversations.ts'
import {
  AckRequest,
  ClaimedDeliveries,
  ClaimRequest,
  DELIVERY_STATUSES,
  DeliveryList,
  FAILURE_KINDS,
  FailRequest,
  OutboundDelivery,
} from './deliveries.ts'
import { ChatMetadata } from './entries.ts'
import { INBOUND } from './inbound.ts'

export const TRANSPORTS = ['callback', 'pull', 'stream'] as const
export type Transport = (typeof TRANSPORTS)[number]
export const ADAPTER_STATUSES = ['online', 'stale', 'failing'] as const
export type AdapterStatus = (typeof ADAPTER_STATUSES)[number]

export const MAX_ADAPTERS = 1_000
/** Lease of one that asks for its deliveries, where it names none. */
export const DEFAULT_PULL_LEASE_SECONDS = 90

const provider = string({
  maxLength: MAX_PROVIDER,
  minLength: 1,
  description: 'Kind of chat; letter case does not count.',
})
const account = string({ maxLength: MAX_CONVERSATION_PART, minLength: 1, description: 'Account there.' })
const transport = choice(TRANSPORTS, {
  description:
    '`pull`: it claims deliveries; works behind NAT. `callback`: they are posted to `{callback_url}/publish`. `stream`: they are delivered with their entry, and read from the stream of the transcript. Absent: `callback` with a URL, else `pull`.',
})
const callbackUrl = string({
  minLength: 1,
  maxLength: 2_000,
  description:
    'http or https, without credentials. Link-local addresses and those of metadata services are refused, of a name when it is connected to; redirects are not followed.',
  examples: ['http://127.0.0.1:9000/chat'],
})
const name = string({
  minLength: 1,
  maxLength: 200,
  description: 'What people call it; absent: `provider/account_id`.',
})
const lease = integer({
  minimum: 1,
  maximum: 86_400,
  description: `It is \`stale\` so long after its last call. Absent: ${DEFAULT_PULL_LEASE_SECONDS} for \`pull\`, never for the others.`,
})

export const AdapterCapabilities = component('AdapterCapabilities', {
  supports_child_conversations: optional(
    boolean({ description: 'It takes `POST {callback_url}/child-conversation`.' }),
  ),
  supports_attachments: optional(boolean()),
  no_way_out: optional(
    boolean({
      description:
        'Nothing can be said there, as with webhooks. Messages of bots then notify agents like those of people: no answer can make two bots go on for ever.',
    }),
  ),
  max_message_length: optional(integer({ minimum: 0, description: 'Characters; 0: any number. It splits by itself.' })),
})
export type AdapterCapabilities = Static<typeof AdapterCapabilities>

const INFO = {
  provider: string(),
  account_id: string(),
  name: string(),
  transport: choice(TRANSPORTS),
  callback_url: optional(string()),
  capabilities: AdapterCapabilities,
  lease_seconds: optional(integer({ minimum: 1, description: 'Absent: it is never stale.' })),
  metadata: ChatMetadata,
  secured: boolean({ description: 'It has a secret, and its calls need it.' }),
  old_secret_until: optional({ ...Timestamp, description: 'A secret that was changed is good until then.' }),
  status: choice(ADAPTER_STATUSES, {
    description: '`stale`: its lease has run out. `failing`: its last three attempts or more have failed.',
  }),
  failures: integer({ minimum: 0, description: 'Attempts that failed since the last that did not.' }),
  paused_until: optional({ ...Timestamp, description: 'It asked for no more before then.' }),
  pending_deliveries: integer({ minimum: 0 }),
  dead_deliveries: integer({ minimum: 0 }),
  registered_at: Timestamp,
  last_seen_at: { ...Timestamp, description: 'Its last call, to within ten seconds.' },
  last_delivery_at: optional(Timestamp),
}
export const AdapterInfo = component('AdapterInfo', INFO, { description: 'Without its secret.' })
export type AdapterInfo = Static<typeof AdapterInfo>

export const AdapterWithSecret = component('AdapterWithSecret', {
  ...INFO,
  secret: optional(string({ description: 'The secret that was made for it, shown this once.' })),
})
export type AdapterWithSecret = Static<typeof AdapterWithSecret>

const secret = string({
  writeOnly: true,
  pattern: '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$',
  description:
    '`whsec_` and the base64 of 24 to 64 bytes, as Standard Webhooks has them. Of an adapter that has one: the proof that this is its owner.',
})
export const AdapterRegistration = component('AdapterRegistration', {
  provider,
  account_id: optional({ ...account, description: 'Account there; only `stream` may leave it out and gets one.' }),
  name: optional(name),
  transport: optional(transport),
  callback_url: optional(callbackUrl),
  secret: optional(secret),
  generate_secret: optional(boolean({ description: 'Make a secret for it, if it has none.' })),
  capabilities: optional(AdapterCapabilities),
  lease_seconds: optional(lease),
  metadata: optional(ChatMetadata),
})
export type AdapterRegistration = Static<typeof AdapterRegistration>

export const AdapterPatch = component('AdapterPatch', {
  name: optional(nullable(name)),
  callback_url: optional(callbackUrl),
  capabilities: optional(AdapterCapabilities),
  lease_seconds: optional(nullable(lease)),
  metadata: optional(
    record(nullable(string({ maxLength: 4096 })), { maxProperties: 64, description: 'Merged with what is there.' }),
  ),
  rotate_secret: optional(
    boolean({ description: 'Make a new secret; the one before is good for 24 h more, and both sign.' }),
  ),
})
export type AdapterPatch = Static<typeof AdapterPatch>

const RemovedAdapter = component('RemovedAdapter', {
  status: literal('unregistered'),
  provider: string(),
  account_id: string(),
  dead_deliveries: integer({ minimum: 0, description: 'Deliveries that were pending and are dead now.' }),
})

export const ChildRequest = component('ChildConversationRequest', {
  conversation: ConversationRef,
  label: string({ minLength: 1, maxLength: 200, description: 'What the new conversation is called.' }),
})
const ChildConversation = component('ChildConversation', { conversation: ConversationRef, transcript_id: TranscriptId })

const adapters = family(
  { name: 'Adapters', about: 'What carries messages between a city and chats, and what is on its way there.' },
  '/v0/city/{cityName}/adapters',
  {
    cityName: CityNameParam,
    provider: string({ minLength: 1, description: 'Provider of the adapter.', examples: ['irc'] }),
    accountId: string({ minLength: 1, description: 'Account of the adapter.', examples: ['libera'] }),
    deliveryId: string({
      minLength: 1,
      description: 'Id of the delivery.',
      examples: ['dl-01k00000000000000000000000'],
    }),
  },
  {},
)
const one = adapters.at('/{provider}/{accountId}', { problems: ['adapter-not-found'] })
/** What a secured adapter has to prove: its bearer secret, or a signature of Standard Webhooks. */
const PROOF = { headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'] } as const
const its = one.with(PROOF)
const deliveries = one.at('/deliveries', {})
const delivery = one.at('/deliveries/{deliveryId}', { problems: ['delivery-not-found'] })
const itsDelivery = its.at('/deliveries/{deliveryId}', { problems: ['delivery-not-found'] })

export const listAdapters = adapters.get('list-adapters', '', {
  summary: 'List adapters',
  description: 'By provider and account.',
  query: object({
    provider: optional(string({ description: 'Only those of this provider.' })),
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: listBody('ListBodyAdapterInfo', AdapterInfo) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})

export const registerAdapter = adapters.with(PROOF).post('register-adapter', '', {
  summary: 'Register or renew an adapter',
  description:
    '201: it is new. 200: it was there already; the same again renews its lease, another name, transport, URL, lease, or other capabilities or metadata replace what it had. Who renews one that has a secret proves it: in `secret`, as bearer, or by a signature. A secret is changed with PATCH.',
  body: AdapterRegistration,
  headers: ['Idempotency-Key'],
  replies: { 201: AdapterWithSecret, 200: AdapterWithSecret },
  problems: ['too-many-adapters'],
  emits: ['extmsg.adapter_added', 'extmsg.adapter_changed'],
})

export const getAdapter = one.get('get-adapter', '', {
  summary: 'Get an adapter',
  description: 'With its state; its secret is shown to nobody again.',
  replies: { 200: AdapterInfo },
  replyHeaders: ['X-SVC-Index', 'ETag'],
})
export const patchAdapter = one.patch('patch-adapter', '', {
  summary: 'Change an adapter, or its secret',
  description: 'Members that are absent stay; null brings back the default.',
  body: AdapterPatch,
  headers: ['If-Match'],
  replies: { 200: AdapterWithSecret },
  replyHeaders: ['ETag'],
  emits: ['extmsg.adapter_added', 'extmsg.adapter_changed'],
})
export const deleteAdapter = one.delete('delete-adapter', '', {
  summary: 'Remove an adapter',
  description: 'What is pending for it is dead; transcripts and bindings stay.',
  replies: { 200: RemovedAdapter },
  emits: ['extmsg.adapter_removed', 'extmsg.outbound_failed'],
})
export const receiveInbound = its.post('receive-inbound', '/inbound', {
  ...INBOUND,
  problems: [...INBOUND.problems, 'too-many-requests', 'idempotency-mismatch', 'idempotency-in-flight'],
})
export const createChild = one.post('create-child-conversation', '/children', {
  summary: 'Open a conversation within another one',
  description: 'Asks the adapter to open it: `POST {callback_url}/child-conversation`. Its transcript is there then.',
  body: ChildRequest,
  headers: ['Idempotency-Key'],
  replies: { 201: ChildConversation },
  problems: ['invalid-conversation', 'adapter-unsupported', 'bad-gateway'],
})

export const listDeliveries = deliveries.get('list-deliveries', '', {
  summary: 'List deliveries of an adapter',
  description: 'Oldest first. Those that were delivered are listed for 7 days, dead ones for 30.',
  query: object({
    status: optional(choice(DELIVERY_STATUSES, { description: 'Only those; `pending` has those in flight too.' })),
    transcript_id: optional(TranscriptId),
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: DeliveryList },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})
export const claimDeliveries = its.post('claim-deliveries', '/deliveries/claim', {
  summary: 'Claim deliveries',
  description:
    'For `pull`: what is due, of each conversation one at a time and in order. Each is to be acknowledged, or failed, before its lease ends; else it is given out again, with the same id and the next attempt. A claim may wait for something to come.',
  body: ClaimRequest,
  bodyOptional: true,
  replies: { 200: ClaimedDeliveries },
  problems: ['conflict-wrong-state'],
})
export const getDelivery = delivery.get('get-delivery', '', {
  summary: 'Get a delivery',
  description: 'How far it is, and what came of it.',
  replies: { 200: OutboundDelivery },
  replyHeaders: ['X-SVC-Index'],
})
export const ackDelivery = itsDelivery.post('ack-delivery', '/ack', {
  summary: 'Say that a delivery is in the chat',
  description: 'The same again changes nothing. It counts after the lease as well, and where it was given up.',
  body: AckRequest,
  bodyOptional: true,
  replies: { 200: OutboundDelivery },
  emits: ['extmsg.outbound', 'extmsg.adapter_changed'],
})
export const failDelivery = itsDelivery.post('fail-delivery', '/fail', {
  summary: 'Say that an attempt failed',
  description:
    'It is tried again after 1 s, 5 s, 30 s, 2 min, then every 10 min, up to 10 times or for 24 h; not at all where the failure is final.',
  body: FailRequest,
  replies: { 200: OutboundDelivery },
  problems: ['conflict-wrong-state'],
  emits: ['extmsg.outbound_failed', 'extmsg.adapter_changed'],
})
export const retryDelivery = delivery.post('retry-delivery', '/retry', {
  summary: 'Try a delivery again now',
  description:
    'One that is dead is pending again, at its place in its conversation, with 10 new attempts; one that waits for its next attempt is due at once.',
  replies: { 200: OutboundDelivery },
  problems: ['conflict-wrong-state'],
})
export const deleteDelivery = delivery.delete('delete-delivery', '', {
  summary: 'Forget a dead delivery',
  description: 'Its entry stays in the transcript.',
  replies: { 200: component('DeletedDelivery', { status: literal('deleted'), id: string() }) },
  problems: ['conflict-wrong-state'],
})

export const adapterOperations = [
  listAdapters,
  registerAdapter,
  getAdapter,
  patchAdapter,
  deleteAdapter,
  receiveInbound,
  createChild,
  listDeliveries,
  claimDeliveries,
  getDelivery,
  ackDelivery,
  failDelivery,
  retryDelivery,
  deleteDelivery,
] as const

const key = { provider: string(), account_id: string() }
export const ADAPTER_ADDED_REASONS = ['registered', 'replaced', 'changed', 'secret_rotated'] as const
export type AdapterAddedReason = (typeof ADAPTER_ADDED_REASONS)[number]
export const AdapterAddedPayload = component('AdapterAddedPayload', {
  ...key,
  name: string(),
  transport: choice(TRANSPORTS),
  reason: choice(ADAPTER_ADDED_REASONS),
})
export const AdapterRemovedPayload = component('AdapterRemovedPayload', {
  ...key,
  name: string(),
  dead_deliveries: integer({ minimum: 0 }),
})
export const AdapterChangedPayload = component('AdapterChangedPayload', {
  ...key,
  from: choice(ADAPTER_STATUSES),
  to: choice(ADAPTER_STATUSES),
  error: optional(string({ description: 'What its last attempt said.' })),
})
const aboutDelivery = {
  ...key,
  conversation_id: string(),
  transcript_id: TranscriptId,
  sequence: integer({ minimum: 1 }),
  delivery_id: string(),
  session: optional(string({ description: 'Session that spoke; absent: the operator.' })),
  attempts: integer({ minimum: 0 }),
}
export const OutboundPayload = component('OutboundPayload', {
  ...aboutDelivery,
  message_id: optional(string({ description: 'What the provider calls it.' })),
})
export const OutboundFailedPayload = component('OutboundFailedPayload', {
  ...aboutDelivery,
  failure_kind: choice(FAILURE_KINDS),
  error: string(),
})

const inLog = { log: 'city', emittedBy: 'adapters' } as const
const ofAdapter = { ...inLog, subject: '`provider/account_id`' } as const
const ofDelivery = { ...inLog, subject: 'session that spoke; else `provider/account_id`' } as const
export const ADAPTER_EVENT_TYPES = {
  'extmsg.adapter_added': { payload: AdapterAddedPayload, ...ofAdapter, when: 'an adapter is new, or not as it was' },
  'extmsg.adapter_removed': { payload: AdapterRemovedPayload, ...ofAdapter, when: 'an adapter was removed' },
  'extmsg.adapter_changed': {
    payload: AdapterChangedPayload,
    ...ofAdapter,
    when: 'an adapter becomes `online`, `stale` or `failing`',
  },
  'extmsg.outbound': { payload: OutboundPayload, ...ofDelivery, when: 'what was said here is in the chat' },
  'extmsg.outbound_failed': {
    payload: OutboundFailedPayload,
    ...ofDelivery,
    when: 'what was said here will not be in the chat: final, or given up',
  },
} as const satisfies EventTypes
