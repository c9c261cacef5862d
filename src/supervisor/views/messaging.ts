/** Where chats meet sessions and the configuration. */
import { join } from 'node:path'
import { parseDurationMs } from '../../contract/base/durations.ts'
import { DEFAULT_CHAT_RETENTION } from '../../contract/config-schema.ts'
import { toChunk } from '../../http/sse.ts'
import type { AdapterCaller } from '../../kernel/caller.ts'
import { given } from '../../kernel/present.ts'
import { Problem } from '../../kernel/problem.ts'
import { HUMAN, parseMailbox } from '../../messaging/address.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { mail as mailFamily } from '../../modules/mail/family.ts'
import type { Sender } from '../../modules/mail/mail.ts'
import type { MailRecord } from '../../modules/mail/record.ts'
import { type AdapterKey, nameOfKey, normalKey } from '../../modules/messaging/adapters/adapter.ts'
import { bearerSecret, isSigned } from '../../modules/messaging/adapters/credentials.ts'
import { isCarried } from '../../modules/messaging/entries/attached.ts'
import { type MessagingContext, messaging } from '../../modules/messaging/family.ts'
import type { MessagingCity } from '../../modules/messaging/http/city.ts'
import type { PeoplesMail } from '../../modules/messaging/inbound/chat-mail.ts'
import type { ChatTargets } from '../../modules/messaging/routing/ports.ts'
import { sessions as sessionFamily } from '../../modules/sessions/family.ts'
import { addressesOf } from './addresses.ts'
import { digestsOf } from './digests.ts'
import type { Running } from './running.ts'

export function messagingContext(city: Running): MessagingContext {
  const { name, store, host } = city
  return {
    name,
    store,
    clock: host.clock,
    log: host.log,
    random: host.random,
    accessEnded: (adapter) =>
      host.revoked((one) => one.kind === 'adapter' && one.city === name && one.name === adapter),
    addresses: () => addressesOf(city),
    digests: digestsOf(city),
    targets: targetsOf(city),
    attachments: join(city.path, '.svc', 'attachments'),
    keptMs: () => keptFor(configuration.of(city).config.current().extmsg.retention_ttl),
    encode: (frames) => toChunk(frames.join('')),
    defaultRoutes: () => configuration.of(city).config.current().extmsg.default_route ?? [],
    peoplesMail: peoplesMailOf(city),
  }
}

const keptFor = (text: string = DEFAULT_CHAT_RETENTION): number | undefined =>
  text === 'off' ? undefined : parseDurationMs(text)
const ADAPTER_PATH = /^\/v0\/city\/([^/]+)(?:\/adapters\/([^/]+)\/([^/]+)|\/)/

/** Whether a request says that it comes from an adapter. */
export const showsAdapter = ({ header }: { readonly header: (name: string) => string | undefined }): boolean =>
  bearerSecret(header) !== undefined || isSigned(header)

/** The adapter that a request comes from: whose secret it shows, or whose path it has signed for. */
export function adapterCalling(
  running: (name: string) => Running | undefined,
  { path, header }: { readonly path: string; readonly header: (name: string) => string | undefined },
): AdapterCaller | undefined {
  const secret = bearerSecret(header)
  const [, encoded, ...place] = ADAPTER_PATH.exec(path) ?? []
  if (encoded === undefined || !showsAdapter({ header })) return undefined
  const city = running(decodeURIComponent(encoded))
  const here = city === undefined ? undefined : messaging.find(city)
  if (city === undefined || here === undefined) return undefined
  const [provider, account] = place.map((part) => (part === undefined ? undefined : decodeURIComponent(part)))
  if (secret !== undefined) {
    const key = here.adapters.bySecret(secret)
    return key === undefined ? undefined : callerOf(city, here, key)
  }
  const adapter = provider === undefined || account === undefined ? undefined : here.adapters.find(provider, account)
  if (adapter === undefined || here.adapters.secrets(adapter).length === 0) return undefined
  return {
    ...callerOf(city, here, adapter),
    prove: (bytes) => void here.authenticator.prove(adapter, { header, bytes }),
  }
}

const callerOf = (city: Running, { store, transcripts }: MessagingCity, key: AdapterKey): AdapterCaller => ({
  kind: 'adapter',
  city: city.name,
  name: nameOfKey(key),
  isSelf: (provider, accountId) => nameOfKey(normalKey(provider, accountId)) === nameOfKey(key),
  carries: (id) => {
    const conversation = transcripts.find(id)?.conversation
    return conversation !== undefined && nameOfKey(conversation) === nameOfKey(key)
  },
  carriesFile: (id) => isCarried(store.db, id, key),
})

/** Who can be told what is said in a chat. */
const targetsOf = (city: Running): ChatTargets => ({
  session: (id) => {
    const all = sessionFamily.of(city).sessions
    const session = all.store.byId(id)
    if (session === undefined) return undefined
    return {
      id,
      name: session.session_name,
      closed: session.state === 'closed',
      takesMessages: all.takesNudges(session),
    }
  },
  agentTakesMessages: (identity) => sessionFamily.of(city).sessions.agentTakesNudges(identity),
})

const PEOPLE: Sender = { display: HUMAN, mailbox: HUMAN, rig: '' }

/** What people are mailed, and what they answer in a chat. */
const peoplesMailOf = (city: Running): PeoplesMail => ({
  find: (tx, id) => unlessRefused(() => mailedMessage(mailFamily.of(city).mail.need(tx, id))),
  // As what is said in a chat to an agent itself, it starts or wakes whom it is for.
  reply: (tx, id, body) =>
    unlessRefused(() => mailFamily.of(city).mail.reply(tx, id, { from: PEOPLE, body, notify: true }).id),
})

const mailedMessage = ({ id, from, sender, from_session_id: session, subject, body, reply_to }: MailRecord) => ({
  id,
  from,
  ...(sender.startsWith('label:') ? {} : { sender: parseMailbox(sender) }),
  ...given('session_id', session),
  subject,
  body,
  ...given('reply_to', reply_to),
})

/** Undefined: the mail is gone, or nobody could get the answer. */
function unlessRefused<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch (error) {
    if (error instanceof Problem && (error.status === 404 || error.status === 409)) return undefined
    throw error
  }
}
