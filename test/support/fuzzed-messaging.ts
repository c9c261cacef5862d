/** What is said in the fuzzed city: mail, chats of adapters of two kinds, who answers there, deliveries in every state. */
import type { Answered, Fields } from './crash-client.ts'
import { fresh } from './fresh.ts'

const ACCOUNT = 'fuzz'
/** One whose deliveries wait to be claimed, one that has them at once. */
const ADAPTERS = [
  { provider: 'pulled', account_id: ACCOUNT, transport: 'pull' },
  { provider: 'streamed', account_id: ACCOUNT, transport: 'stream' },
] as const
const [PULLED, STREAMED] = ADAPTERS
const CONVERSATIONS = [
  { provider: PULLED.provider, account_id: ACCOUNT, conversation_id: '#bound', kind: 'room' },
  { provider: STREAMED.provider, account_id: ACCOUNT, conversation_id: '#group', kind: 'room' },
  {
    provider: STREAMED.provider,
    account_id: ACCOUNT,
    conversation_id: 'thread-1',
    parent_conversation_id: '#group',
    kind: 'thread',
  },
  { provider: PULLED.provider, account_id: ACCOUNT, conversation_id: 'person', kind: 'dm' },
] as const
const [BOUND, GROUPED] = CONVERSATIONS
const HANDLES = ['first', 'second']
/** Takes messages: terminals with plain programs in them are not for chats. */
const LISTENER = 'f-talker'
const AGENTS = ['front', 'shop/clerk']
const FEWEST_MAILS = 8
const FEWEST_DELIVERIES = 6
const FEWEST_OUT = 3
const FEWEST_ENTRIES = 4
const KEPT_ATTACHMENTS = 6
const SHOWN = 40

interface HeldDelivery {
  readonly provider: string
  readonly id: string
  readonly status: string
}
export interface HeldMessaging {
  readonly mails: readonly Fields[]
  readonly transcripts: readonly Fields[]
  readonly members: readonly Fields[]
  readonly attachments: readonly string[]
  readonly groups: readonly Fields[]
  readonly participants: readonly Fields[]
  readonly bindings: readonly Fields[]
  readonly adapters: readonly Fields[]
  readonly deliveries: readonly HeldDelivery[]
}
export const NO_MESSAGING: HeldMessaging = {
  mails: [],
  transcripts: [],
  members: [],
  attachments: [],
  groups: [],
  participants: [],
  bindings: [],
  adapters: [],
  deliveries: [],
}

type List = (path: string) => Promise<readonly Fields[] | undefined>
type Send = (method: string, path: string, body?: object) => Promise<Answered | undefined>

const textsOf = (items: readonly Fields[], name: string): readonly string[] =>
  items.flatMap((item) => (item[name] === undefined ? [] : [String(item[name])]))

export async function lookAtMessaging(list: List, before: HeldMessaging): Promise<HeldMessaging> {
  const [mails, transcripts, groups, participants, bindings, adapters, waiting] = await Promise.all([
    list(`/mail?status=all&limit=${SHOWN}`),
    list(`/transcripts?limit=${SHOWN}`),
    list(`/participants/groups?limit=${SHOWN}`),
    list(`/participants?limit=${SHOWN}`),
    list(`/participants/bindings?limit=${SHOWN}`),
    list(`/adapters?limit=${SHOWN}`),
    list(`/adapters/${PULLED.provider}/${ACCOUNT}/deliveries?limit=${SHOWN}`),
  ])
  const known = transcripts ?? before.transcripts
  const members = await Promise.all(
    textsOf(known, 'transcript_id')
      .slice(0, 4)
      .map((id) => list(`/transcripts/${id}/memberships`)),
  )
  return {
    mails: mails ?? before.mails,
    transcripts: known,
    members: members.flatMap((some) => some ?? []),
    attachments: before.attachments,
    groups: groups ?? before.groups,
    participants: participants ?? before.participants,
    bindings: bindings ?? before.bindings,
    adapters: adapters ?? before.adapters,
    deliveries:
      waiting?.map((one) => ({
        provider: PULLED.provider,
        id: String(one['id']),
        status: String(one['status']),
      })) ?? before.deliveries,
  }
}

/** Fills up what requests have used; answers with the ids of files that were brought along. */
export async function tendMessaging(send: Send, upload: () => Promise<string | undefined>, held: HeldMessaging) {
  await tendAdapters(send, held)
  for (const conversation of CONVERSATIONS) await send('POST', '/transcripts', { conversation })
  await tendMail(send, held)
  await tendRoutes(send)
  await tendEntries(send, held)
  await tendDeliveries(send, held)
  const made = await upload()
  return made === undefined ? held.attachments : [...held.attachments.slice(1 - KEPT_ATTACHMENTS), made]
}

/** A request may have given one a secret, or changed how it is served: then it begins anew. */
async function tendAdapters(send: Send, { adapters }: HeldMessaging): Promise<void> {
  for (const one of ADAPTERS) {
    const there = adapters.find(({ provider, account_id }) => provider === one.provider && account_id === ACCOUNT)
    if (there !== undefined && (there['secured'] === true || there['transport'] !== one.transport))
      await send('DELETE', `/adapters/${one.provider}/${ACCOUNT}`)
    await send('POST', '/adapters', { ...one, lease_seconds: 86_400 })
  }
}

async function tendMail(send: Send, { mails }: HeldMessaging): Promise<void> {
  const [first] = textsOf(mails, 'id')
  for (let n = mails.length; n < FEWEST_MAILS; n++)
    await send('POST', '/mail', {
      to: n % 2 === 0 ? 'human' : 'front',
      subject: `Mail ${n}`,
      body: 'words',
      notify: false,
    })
  if (first !== undefined) await send('POST', `/mail/${first}/reply`, { body: 'answer', notify: false })
}

async function tendRoutes(send: Send): Promise<void> {
  await send('POST', '/participants/bindings', { conversation: BOUND, mailbox: 'human' })
  const group = await send('POST', '/participants/groups', { root_conversation: GROUPED })
  const id = group?.body['id']
  if (typeof id !== 'string') return
  for (const handle of HANDLES) await send('POST', '/participants', { group_id: id, handle, session_id: LISTENER })
}

async function tendEntries(send: Send, { transcripts }: HeldMessaging): Promise<void> {
  for (const { transcript_id: id, conversation, next_sequence: next } of transcripts) {
    const provider = String(Reflect.get(Object(conversation), 'provider'))
    if (!ADAPTERS.some((one) => one.provider === provider) || Number(next) > FEWEST_ENTRIES) continue
    const message = { provider_message_id: fresh('m-'), conversation, actor: { id: 'u-1' }, text: 'words' }
    await send('POST', `/adapters/${provider}/${ACCOUNT}/inbound`, { message })
    await send('PUT', `/transcripts/${String(id)}/memberships/${LISTENER}`, {})
  }
}

/** Some wait, some are out, one is dead: each conversation has one under way, so they are of many. */
async function tendDeliveries(send: Send, { deliveries }: HeldMessaging): Promise<void> {
  const [out, dead] = ['in_flight', 'dead'].map((wanted) => deliveries.filter(({ status }) => status === wanted))
  const live = deliveries.filter(({ status }) => status === 'pending' || status === 'in_flight')
  for (let n = live.length; n < FEWEST_DELIVERIES; n++) {
    const conversation = { ...BOUND, conversation_id: fresh('#') }
    const made = await send('POST', '/transcripts', { conversation })
    const id = made?.body['transcript_id']
    if (typeof id === 'string') await send('POST', `/transcripts/${id}/entries?wait=0s`, { text: `out ${n}` })
  }
  const base = `/adapters/${PULLED.provider}/${ACCOUNT}/deliveries`
  if (out !== undefined && out.length < FEWEST_OUT)
    await send('POST', `${base}/claim`, { limit: FEWEST_OUT, wait: '0s', lease_seconds: 3600 })
  const claimed = out?.[0]
  if (claimed !== undefined && dead?.length === 0)
    await send('POST', `${base}/${claimed.id}/ack`, { receipt: { delivered: false, failure_kind: 'permanent' } })
}

export const MESSAGING_BODIES: { readonly [operationId: string]: readonly object[] } = {
  'send-mail': [
    { to: 'human', subject: 'Made', notify: false },
    { to: 'front', subject: 'Made', cc: ['human'], notify: false },
  ],
  'broadcast-mail': [{ to: ['human', 'front'], subject: 'Made', notify: false }],
  'reply-mail': [{ body: 'Answer', notify: false }],
  'archive-mails': [{ filter: { agent: 'human' }, limit: 1 }],
  'ensure-transcript': CONVERSATIONS.map((conversation) => ({ conversation })),
  'publish-transcript-entry': [{ text: 'Made' }],
  'ack-transcript': [{ session_id: LISTENER, sequence: 1 }],
  'put-transcript-membership': [{}, { backfill_policy: 'since_join' }],
  'upsert-participant': [{ handle: 'third', session_id: LISTENER }],
  'ensure-group': [{ root_conversation: GROUPED }],
  'patch-group': [{ default_handle: 'first' }, { last_addressed_handle: null }],
  'bind-conversation': CONVERSATIONS.flatMap((conversation) => [
    { conversation, session_id: LISTENER, replace: true },
    { conversation, mailbox: 'human' },
  ]),
  'unbind-conversations': [{ conversation: BOUND }, { mailbox: 'human' }],
  'register-adapter': [...ADAPTERS, { provider: 'made', account_id: ACCOUNT }],
  'patch-adapter': [{ name: 'Made' }, { metadata: { a: 'b' } }],
  'receive-inbound': CONVERSATIONS.map(({ provider: _, account_id: __, ...conversation }) => ({
    message: { provider_message_id: 'made', conversation, actor: { id: 'u-2' }, text: 'Made' },
  })),
  'create-child-conversation': [{ conversation: GROUPED, label: 'Made' }],
  'claim-deliveries': [{ limit: 1, wait: '0s' }, {}],
  'ack-delivery': [{ receipt: { delivered: true, message_id: 'made' } }],
  'fail-delivery': [{ attempt: 1, failure_kind: 'transient' }],
}

const each = (name: string, values: readonly string[]) => values.map((value) => ({ [name]: value }))
const mailIds = ({ mails }: HeldMessaging) => textsOf(mails, 'id')
const transcriptIds = ({ transcripts }: HeldMessaging) => textsOf(transcripts, 'transcript_id')
const groupIds = ({ groups }: HeldMessaging) => textsOf(groups, 'id')
const accountsOf = ({ adapters }: HeldMessaging) =>
  adapters.map(({ provider, account_id }) => ({ provider: String(provider), accountId: String(account_id) }))
const deliveriesIn =
  (...states: readonly string[]): Place =>
  ({ deliveries }) =>
    [...deliveries.filter(({ status }) => states.includes(status)), ...deliveries.slice(0, 1)].map(
      ({ provider, id }) => ({
        provider,
        accountId: ACCOUNT,
        deliveryId: id,
      }),
    )

type Place = (held: HeldMessaging) => readonly { readonly [parameter: string]: string }[]
/** Before those of others: deliveries of sessions have a path that ends alike. */
export const MESSAGING_PLACES: readonly (readonly [string, Place])[] = [
  ['/mail/threads/{id}', ({ mails }) => each('id', textsOf(mails, 'thread_id'))],
  ['/mail/{id}', (held) => each('id', mailIds(held))],
  ['/transcripts/attachments/{attachmentId}', ({ attachments }) => each('attachmentId', attachments)],
  [
    '/memberships/{sessionId}',
    (held) =>
      transcriptIds(held).flatMap((id) => [LISTENER, 'front'].map((sessionId) => ({ transcriptId: id, sessionId }))),
  ],
  ['/transcripts/{transcriptId}', (held) => each('transcriptId', transcriptIds(held))],
  ['/groups/{groupId}', (held) => each('groupId', groupIds(held))],
  ['/bindings/{bindingId}', ({ bindings }) => each('bindingId', textsOf(bindings, 'id'))],
  ['/participants/{participantId}', ({ participants }) => each('participantId', textsOf(participants, 'id'))],
  ['/adapters/{provider}/{accountId}/deliveries/{deliveryId}/retry', deliveriesIn('dead')],
  ['/adapters/{provider}/{accountId}/deliveries/{deliveryId}/ack', deliveriesIn('in_flight')],
  ['/adapters/{provider}/{accountId}/deliveries/{deliveryId}/fail', deliveriesIn('in_flight')],
  ['/adapters/{provider}/{accountId}/deliveries/{deliveryId}', deliveriesIn('dead', 'in_flight', 'pending')],
  ['/adapters/{provider}/{accountId}', accountsOf],
]

export const MESSAGING_FIELDS: { readonly [field: string]: (held: HeldMessaging) => readonly string[] } = {
  to: () => ['human', ...AGENTS],
  cc: () => ['human', 'front'],
  from: () => ['human', 'front', 'fuzz'],
  ids: mailIds,
  thread_id: ({ mails }) => textsOf(mails, 'thread_id'),
  agent_name: () => AGENTS,
  mailbox: () => ['human'],
  transcript_id: transcriptIds,
  group_id: groupIds,
  handle: () => HANDLES,
  default_handle: () => HANDLES,
  explicit_target: () => HANDLES,
  account_id: () => [ACCOUNT],
  conversation_id: () => [...CONVERSATIONS.map(({ conversation_id }) => conversation_id)],
  parent_conversation_id: () => ['#group'],
  kind: () => ['room', 'thread', 'dm'],
  attachments: ({ attachments }) => attachments,
}
