/** Messages to and from chats, as the supervisor joins them. */
import { adapterOperations } from '../../contract/messaging/adapters.ts'
import { participantOperations } from '../../contract/messaging/participants.ts'
import { transcriptOperations } from '../../contract/messaging/transcripts.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { randomHex } from '../../kernel/ids.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Store } from '../../kernel/store.ts'
import type { Addresses } from '../../messaging/address.ts'
import type { Digests } from '../../messaging/digest.ts'
import { ADAPTERS_SCHEMA } from './adapters/schema.ts'
import { Attachments } from './entries/attachments.ts'
import type { Dependent } from './entries/dependents.ts'
import { Members } from './entries/members.ts'
import { TranscriptRetention } from './entries/retention.ts'
import { ENTRIES_SCHEMA, SEARCH_SCHEMA, TOMBSTONES_SCHEMA } from './entries/schema.ts'
import { Transcripts } from './entries/store.ts'
import { TranscriptStreams } from './entries/stream.ts'
import { createAdapterHandlers } from './http/adapters.ts'
import type { MessagingCity } from './http/city.ts'
import { createDeliveryHandlers } from './http/deliveries.ts'
import { createInboundHandlers } from './http/inbound.ts'
import { createParticipantHandlers } from './http/participants.ts'
import { createTranscriptHandlers } from './http/transcripts.ts'
import { forgetChatMail, HumanChat, type PeoplesMail } from './inbound/chat-mail.ts'
import { Inbound } from './inbound/inbound.ts'
import { CHAT_MAIL_SCHEMA } from './inbound/schema.ts'
import { callingsOf } from './notices/callings.ts'
import { Notices } from './notices/notices.ts'
import { NOTICES_SCHEMA } from './notices/schema.ts'
import { type Carriage, closeCarriage, openCarriage, startCarriage } from './outbox/carriage.ts'
import { OUTBOX_SCHEMA } from './outbox/schema.ts'
import { Publisher } from './publish/publish.ts'
import { bindingExpiry } from './routing/expiry.ts'
import type { ChatTargets, DefaultRoute } from './routing/ports.ts'
import { Routing } from './routing/routing.ts'
import { ROUTING_SCHEMA } from './routing/schema.ts'
import { sweepsOfMessaging } from './sweeps.ts'

export interface MessagingContext {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
  /** Ends what an adapter of this name follows. */
  readonly accessEnded: (adapter: string) => void
  readonly addresses: () => Addresses
  /** How members are told. */
  readonly digests: Digests
  readonly targets: ChatTargets
  /** Where files of messages are kept. */
  readonly attachments: string
  /** How long entries are kept; undefined: for ever. */
  readonly keptMs: () => number | undefined
  /** Frames of streams in the form that goes onto the socket. */
  readonly encode: (frames: readonly string[]) => Buffer
  readonly defaultRoutes: () => readonly DefaultRoute[]
  readonly peoplesMail: PeoplesMail
}

export const messaging = defineFamily({
  operations: [...transcriptOperations, ...participantOperations, ...adapterOperations],
  schema: [
    ...migrationsOf('messaging', ENTRIES_SCHEMA, ROUTING_SCHEMA, SEARCH_SCHEMA, TOMBSTONES_SCHEMA),
    ...migrationsOf('adapters', ADAPTERS_SCHEMA, OUTBOX_SCHEMA),
    ...migrationsOf('notices', NOTICES_SCHEMA),
    ...migrationsOf('chat-mail', CHAT_MAIL_SCHEMA),
  ],
  handlers: () => ({
    ...createTranscriptHandlers(),
    ...createParticipantHandlers(),
    ...createAdapterHandlers(),
    ...createDeliveryHandlers(),
    ...createInboundHandlers(),
  }),
  // What signatures are of.
  traits: {
    'register-adapter': { keepsBytes: true },
    'receive-inbound': { keepsBytes: true, quiet: true },
    'claim-deliveries': { keepsBytes: true, waits: true },
    'ack-delivery': { keepsBytes: true },
    'fail-delivery': { keepsBytes: true },
  },
  open: async (context: MessagingContext): Promise<MessagingCity> => {
    const { name, store, clock, log, addresses } = context
    const { db } = store
    const transcripts = new Transcripts({ db, clock })
    const streams = new TranscriptStreams({ transcripts, encode: context.encode })
    const members = new Members({
      db,
      log: store.log,
      clock,
      addressOf: (mailbox) => addresses().of(mailbox),
      left: (transcript, mailbox) => streams.left(transcript, mailbox),
    })
    const routing = new Routing({ ...context, transcripts, members, newId: (prefix) => `${prefix}-${randomHex(8)}` })
    const attachments = new Attachments({ db, clock, root: context.attachments })
    const retention = new TranscriptRetention({
      db,
      clock,
      log,
      attachments,
      agesCount: () => store.log.agesCount(),
      keptMs: context.keptMs,
    })
    const notices = new Notices({
      city: name,
      clock,
      log: store.log,
      transcripts,
      members,
      callings: callingsOf(routing.groups),
      digests: context.digests,
      hearsBots: ({ provider, account_id }) =>
        carriage.adapters.find(provider, account_id)?.capabilities.no_way_out === true,
      nameOf: (mailbox) => addresses().of(mailbox).display,
      fileOf: (tx, id) => attachments.placeOf(id, tx),
    })
    const carriage = await openCarriage({ ...context, transcripts, delivered: notices.published.bind(notices) })
    const publisher = new Publisher({
      store,
      transcripts,
      addresses,
      carrier: carriage.outbox,
      refusalToSpeak: routing.refusalToSpeak.bind(routing),
    })
    const humanChat = new HumanChat({ transcripts, routing, mail: context.peoplesMail, voice: publisher })
    const inbound = new Inbound({
      ...context,
      city: name,
      transcripts,
      members,
      routing,
      notices,
      mail: humanChat,
    })
    const { bindings } = routing
    const expiry = bindingExpiry({ db, clock, log, bindings })
    const dependents = dependentsOf(routing, carriage)
    const { accessEnded } = context
    return {
      name,
      store,
      clock,
      addresses,
      transcripts,
      members,
      attachments,
      streams,
      retention,
      routing,
      notices,
      inbound,
      humanChat,
      expiry,
      publisher,
      dependents,
      accessEnded,
      ...carriage,
    }
  },
  phases: {
    starting_agents: async (city) => {
      await city.attachments.forgetIncoming()
      await city.expiry.start()
      await startCarriage(city)
    },
  },
  reactions: ({ humanChat }) => [humanChat.reaction()],
  retention: sweepsOfMessaging,
  stop: ({ streams, callbacks }) => {
    streams.end()
    return callbacks.close()
  },
  close: async (city) => {
    await city.expiry.stop()
    await city.retention.close()
    await closeCarriage(city)
  },
})

const named = (kind: string, one: { readonly id: string } | undefined): string | undefined =>
  one === undefined ? undefined : `${kind} ${one.id}`

/** Bindings, groups and deliveries of a conversation go with its transcript. */
const dependentsOf = ({ bindings, groups }: Routing, { outbox }: Carriage): readonly Dependent[] => [
  {
    holds: (tx, id) => named('binding', bindings.active(tx, id)),
    release: (tx, id, actor) => {
      const binding = bindings.active(tx, id)
      if (binding !== undefined) bindings.end(tx, binding, 'transcript_deleted', actor)
    },
  },
  {
    holds: (tx, id) => named('group', groups.of(tx, id)),
    release: (tx, id, actor) => {
      const group = groups.of(tx, id)
      if (group !== undefined) groups.delete(tx, group, actor)
    },
  },
  {
    holds: (tx, id) => {
      const pending = outbox.pendingIn(tx, id)
      return pending === 0 ? undefined : `${pending} pending ${pending === 1 ? 'delivery' : 'deliveries'}`
    },
    // What came since the deletion began: all else went in slices before.
    release: (tx, id) => void outbox.forget(tx, id, Number.MAX_SAFE_INTEGER),
  },
  { holds: () => undefined, release: forgetChatMail },
]
