/** A city with chats, without its surroundings: for tests of routing and of what comes in. */
import type { TestContext } from 'node:test'
import type { ExternalInboundMessage, InboundBody, InboundResult } from '../../src/contract/messaging/inbound.ts'
import type { Tx } from '../../src/kernel/database.ts'
import { problem } from '../../src/kernel/problem.ts'
import { type Address, type Addresses, HUMAN, type Mailbox, parseMailbox } from '../../src/messaging/address.ts'
import { type Conversation, transcriptId } from '../../src/messaging/conversation.ts'
import type { EntryRow, TranscriptRow } from '../../src/modules/messaging/entries/rows.ts'
import { Inbound } from '../../src/modules/messaging/inbound/inbound.ts'
import type { Called, ChatMail } from '../../src/modules/messaging/inbound/ports.ts'
import type { DefaultRoute } from '../../src/modules/messaging/routing/ports.ts'
import { Routing } from '../../src/modules/messaging/routing/routing.ts'
import { opened } from '../../src/modules/messaging/testing.ts'
import { ManualClock } from './manual-clock.ts'

const SOURCE = { provider: 'irc', account_id: 'acct' } as const
export const ROOM: Conversation = { scope_id: 'bay', ...SOURCE, conversation_id: '#ops', kind: 'room' }
export const THREAD: Conversation = {
  ...ROOM,
  conversation_id: 't-1',
  parent_conversation_id: '#ops',
  kind: 'thread',
}
export const ROOM_ID = transcriptId(ROOM)
export const THREAD_ID = transcriptId(THREAD)

/** A message of that name, said by Ada. */
export const line = (id: string, over: Partial<ExternalInboundMessage> = {}): ExternalInboundMessage => ({
  provider_message_id: id,
  conversation: { conversation_id: '#ops', kind: 'room' },
  actor: { id: 'ada', display_name: 'Ada' },
  text: `text of ${id}`,
  ...over,
})

/** Agents `mayor` and `poet`, sessions `s1`, `s2` and `mute`, which takes no messages; `s9` is closed, `mayor` has `s1`. */
const KNOWN: readonly (Address & { readonly words: readonly string[] })[] = [
  { words: ['mayor', 's1'], mailbox: 'agent:mayor', display: 'mayor', rig: '', session_id: 's1' },
  { words: ['poet'], mailbox: 'agent:poet', display: 'poet', rig: '' },
  { words: ['shell'], mailbox: 'agent:shell', display: 'shell', rig: '' },
  { words: ['s2', 'worker'], mailbox: 'session:s2', display: 's2', rig: '', session_id: 's2' },
  { words: ['mute'], mailbox: 'session:mute', display: 'mute', rig: '', session_id: 'mute' },
  { words: [HUMAN], mailbox: HUMAN, display: HUMAN, rig: '' },
]

const addresses: Addresses = {
  resolve: (word) => {
    if (word === 'pool') throw problem('ambiguous-recipient', 'pool is a pool')
    const found = addresses.find(word)
    if (found === undefined) throw problem('recipient-not-found', `nobody is called ${word}`)
    return found
  },
  find: (word) => KNOWN.find(({ words }) => words.includes(word)),
  isClosed: () => false,
  of: (mailbox) => KNOWN.find((one) => one.mailbox === mailbox) ?? { mailbox, display: mailbox, rig: '' },
  ofSession: (id) => addresses.of(KNOWN.find((one) => one.session_id === id)?.mailbox ?? parseMailbox(`session:${id}`)),
  live: () => [],
}

interface Told {
  readonly transcript: string
  readonly text: string
  readonly match: string
  readonly target: Mailbox | undefined
}

interface ChatOptions {
  readonly defaultRoutes?: readonly DefaultRoute[]
  readonly mail?: ChatMail
}

/** Ends with the test. */
export function chats(t: TestContext, { defaultRoutes = [], mail }: ChatOptions = {}) {
  const clock = new ManualClock()
  const store = opened(t, clock)
  const { db, log, transcripts, members } = store
  const told: Told[] = []
  let made = 0
  const routing = new Routing({
    store,
    clock,
    transcripts,
    members,
    newId: (prefix) => `${prefix}-${++made}`,
    addresses: () => addresses,
    targets: {
      session: (id) =>
        ['s1', 's2', 's9', 'mute'].includes(id)
          ? { id, name: `runtime-${id}`, closed: id === 's9', takesMessages: id !== 'mute' }
          : undefined,
      agentTakesMessages: (identity) => identity !== 'shell',
    },
    defaultRoutes: () => defaultRoutes,
  })
  const notices = {
    inbound: (_: Tx, { id }: TranscriptRow, { text }: EntryRow, { match, target }: Called) => {
      told.push({ transcript: id, text, match, target })
      return { told: true } as const
    },
  }
  const inbound = new Inbound({
    store,
    clock,
    city: 'bay',
    transcripts,
    members,
    routing,
    notices,
    mail: mail ?? { reply: () => undefined },
  })
  const results = async (body: InboundBody): Promise<readonly InboundResult[]> => {
    const reply = await inbound.receive(body, SOURCE)
    return 'results' in reply ? reply.results : [reply]
  }
  return {
    ...store,
    clock,
    routing,
    inbound,
    told,
    results,
    /** What one message is answered. */
    say: async (message: ExternalInboundMessage, target?: string): Promise<InboundResult> => {
      const [result] = await results(target === undefined ? { message } : { message, target })
      if (result === undefined) throw new Error('a message without an answer')
      return result
    },
    bind: (conversation: Conversation, target: { mailbox: Mailbox; session_id?: string; session_name?: string }) =>
      db.write((tx) => routing.bindings.bind(tx, { conversation, target, reason: 'bound' }, 'api').binding),
    /** Types of the events so far, with what they are about. */
    events: (types?: RegExp): readonly string[] =>
      log
        .scan({}, { after: 0, upTo: log.head }, 'asc', 10_000, 100_000_000)
        .events.filter(({ type }) => types?.test(type) ?? true)
        .map(({ type, subject }) => `${type} ${subject}`),
    readers: (id: string): readonly string[] => members.of(id).map(({ mailbox }) => mailbox),
  }
}
