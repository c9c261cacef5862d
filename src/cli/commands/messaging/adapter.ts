/** `svcctl adapter …`: what carries messages between a city and chats, and what is on its way there. */
import type { AdapterInfo } from '../../../contract/messaging/adapters.ts'
import type { ClaimedDelivery, OutboundDelivery } from '../../../contract/messaging/deliveries.ts'
import type { InboundBody, InboundResult } from '../../../contract/messaging/inbound.ts'
import type { CommandSpec } from '../../base/command.ts'
import { EXIT, usageError } from '../../base/failure.ts'
import type { AnswerOf, Call } from '../../framework/declaration.ts'
import { commandsOf } from '../../framework/declare.ts'
import { readData } from '../../framework/fields.ts'
import { printItem } from '../../framework/run.ts'
import { timeoutWithWait } from '../../framework/waiting.ts'
import { view } from '../../print/view.ts'
import { ADAPTERS as TABLE } from '../../tables/adapters.ts'
import { conversationText, namedConversation, needConversation, ofAdapterFlags } from '../../views/conversations.ts'

const nameOf = ({ provider, account_id: account }: Pick<AdapterInfo, 'provider' | 'account_id'>) =>
  `${provider}/${account}`

const ADAPTER = view<AdapterInfo>()('ADAPTER transport status PENDING DEAD last_seen_at', {
  wide: 'name callback_url secured old_secret_until failures paused_until lease_seconds capabilities metadata registered_at last_delivery_at',
  as: { ADAPTER: nameOf, PENDING: 'pending_deliveries', DEAD: 'dead_deliveries' },
})
const REGISTERED = view<AnswerOf<'register-adapter'>>()('ADAPTER transport status secret', {
  wide: 'name callback_url secured lease_seconds capabilities metadata registered_at',
  as: { ADAPTER: nameOf },
})
const REMOVED = view<AnswerOf<'delete-adapter'>>()('status ADAPTER DEAD', {
  as: { ADAPTER: nameOf, DEAD: 'dead_deliveries' },
  name: nameOf,
})
const CHILD = view<AnswerOf<'create-child-conversation'>>()('transcript_id CONVERSATION', {
  as: { CONVERSATION: ({ conversation }) => conversationText(conversation) },
})
const DELIVERY = view<OutboundDelivery>()('id status ATTEMPTS NEXT ERROR transcript_id SEQ AGE', {
  wide: 'session_id answered_attempts failure_kind lease_expires_at receipt.message_id settled_at',
  as: {
    ATTEMPTS: 'attempts',
    NEXT: 'next_attempt_at',
    ERROR: ({ last_error: error, failure_kind: kind }) => error ?? kind,
    SEQ: 'sequence',
    AGE: 'created_at',
  },
})
const CLAIMED = view<ClaimedDelivery>()('delivery_id attempt CONVERSATION TEXT lease_expires_at', {
  as: {
    CONVERSATION: ({ conversation }) => conversationText(conversation),
    TEXT: ({ entry }) => entry.text,
  },
})
const RECEIVED = view<InboundResult>()('transcript_id SEQ match TO duplicate', {
  as: {
    SEQ: 'transcript_entry.sequence',
    TO: ({ target_agent_name: agent, target_session_id: session, target_mailbox: mailbox }) =>
      agent ?? session ?? mailbox,
  },
})
const FORGOTTEN = view<AnswerOf<'delete-delivery'>>()('status id', { name: 'id' })

/** `irc/libera`, as lists show it; of the account everything behind the first slash. */
function splitName(name: string | undefined): { readonly provider: string; readonly account: string } {
  const at = name?.indexOf('/') ?? -1
  if (name === undefined || at <= 0 || at === name.length - 1)
    throw usageError(`"${name ?? ''}" names no adapter`, 'expected PROVIDER/ACCOUNT, such as irc/libera')
  return { provider: name.slice(0, at), account: name.slice(at + 1) }
}

/** Of a path, whose account has another name than in bodies. */
function inPath({ provider: name }: { readonly provider?: string | undefined }) {
  const { provider, account } = splitName(name)
  return { provider, accountId: account }
}

/** One that streams may leave its account to the server. */
function inBody({ provider: name }: { readonly provider?: string | undefined }) {
  if (name?.includes('/') !== true) return {}
  const { provider, account } = splitName(name)
  return { provider, account_id: account }
}

async function openChild(call: Call<'create-child-conversation'>): Promise<number> {
  const known = { provider: String(call.said.provider), account_id: String(call.said.accountId) }
  const conversation = needConversation(await namedConversation(call, known))
  return printItem(call.context, CHILD, await call.send({ conversation }))
}

/** Messages of a chat, as a bridge brings them in. */
async function receive({ context, input, client, cityName, said, options }: Call<'receive-inbound'>): Promise<number> {
  const data = await readData(context.io, input.text('data') ?? '-')
  const params = { cityName, provider: String(said.provider), accountId: String(said.accountId) }
  const body: InboundBody = parsedBody(data)
  const { body: reply, text } = await client.call('receive-inbound', { params, body, ...options })
  const items = 'results' in reply ? reply.results : [reply]
  await context.print.list({ items, ...RECEIVED, json: text })
  return EXIT.ok
}

/** The server looks whether it is what it should be. */
function parsedBody(text: string): InboundBody {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`invalid --data: ${error instanceof Error ? error.message : 'not JSON'}`)
  }
}

async function claim({ context, input, send }: Call<'claim-deliveries'>): Promise<number> {
  const { body, text } = await send(input.has('wait') ? { wait: input.text('wait') } : {})
  await context.print.list({ items: body.items, ...CLAIMED, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const NAMED = {
  called: { provider: 'adapter', deliveryId: 'id' },
  says: { provider: 'PROVIDER/ACCOUNT, such as irc/libera.', deliveryId: 'Id of the delivery.' },
  completes: { provider: 'adapter', deliveryId: 'none' },
  leaves: { accountId: 'it is behind the / of PROVIDER/ACCOUNT' },
  change: inPath,
} as const
const SET = { callback_url: '--callback-url', metadata: '--meta', lease_seconds: '--lease' } as const
const DELIVERY_OF = '<provider>'
const SHOWN = 'svcctl adapter delivery'

export const commands: readonly CommandSpec[] = [
  command('adapter list', 'list-adapters', {
    view: ADAPTER,
    examples: { 'svcctl adapter list': 'what is there, and whether it works' },
  }),
  command('adapter get', 'get-adapter', {
    ...NAMED,
    arguments: ['<provider...>'],
    view: ADAPTER,
    examples: { 'svcctl adapter get irc/libera': 'all about one' },
  }),
  command('adapter register', 'register-adapter', {
    arguments: ['<provider>'],
    called: { provider: 'adapter' },
    says: { provider: NAMED.says.provider },
    flags: SET,
    leaves: { account_id: NAMED.leaves.accountId },
    change: inBody,
    view: REGISTERED,
    examples: {
      'svcctl adapter register irc/libera --generate-secret':
        'one that claims its deliveries; its secret is shown once',
      'svcctl adapter register chat/main --callback-url http://127.0.0.1:9000/chat':
        'one that deliveries are posted to',
    },
  }),
  command('adapter update', 'patch-adapter', {
    ...NAMED,
    arguments: ['<provider...>'],
    flags: SET,
    json: true,
    view: REGISTERED,
    rows: REGISTERED,
    examples: {
      'svcctl adapter update irc/libera --rotate-secret': 'a new secret; the one before works for 24 h more',
      'svcctl adapter update chat/main --callback-url http://127.0.0.1:9001/chat': 'it has moved',
    },
  }),
  command('adapter remove', 'delete-adapter', {
    ...NAMED,
    arguments: ['<provider...>'],
    asks: (names) => `Remove adapter ${names}? What is on its way there is lost.`,
    view: REMOVED,
    examples: { 'svcctl adapter remove irc/libera --yes': 'transcripts and bindings stay' },
  }),
  command('adapter child', 'create-child-conversation', {
    ...NAMED,
    summary: 'Open a thread in a conversation',
    arguments: ['<provider>', '<label>'],
    leaves: { ...NAMED.leaves, conversation: 'its parts have flags of their own' },
    more: ofAdapterFlags,
    view: CHILD,
    run: openChild,
    examples: {
      'svcctl adapter child chat/main "Build 12" --transcript cv-0123456789abcdef0123456789abcdef':
        'its transcript is there then',
    },
  }),
  command('adapter receive', 'receive-inbound', {
    ...NAMED,
    description:
      'What a bridge does with what is said in a chat: {"message": …}, or {"messages": […]} with up to 500. What was here before is answered as it was then. An adapter with a secret proves it: --token SECRET.',
    arguments: ['<provider>'],
    more: [{ flags: '--data <json>', description: 'The messages: JSON, @FILE or - (default: stdin).' }],
    run: receive,
    examples: { 'svcctl adapter receive irc/libera --data @line.json': 'a line of the chat' },
  }),
  command('adapter delivery list', 'list-deliveries', {
    ...NAMED,
    arguments: [DELIVERY_OF],
    completes: { ...NAMED.completes, transcript_id: 'transcript' },
    flags: { transcript_id: '--transcript' },
    view: DELIVERY,
    examples: {
      [`${SHOWN} list irc/libera`]: 'what is on its way, and what became of it',
      [`${SHOWN} list irc/libera --status dead`]: 'what was given up',
    },
  }),
  command('adapter delivery get', 'get-delivery', {
    ...NAMED,
    arguments: [DELIVERY_OF, '<deliveryId>'],
    view: DELIVERY,
    examples: { [`${SHOWN} get irc/libera dl-01k00000000000000000000000`]: 'its attempts, and what was answered' },
  }),
  command('adapter delivery retry', 'retry-delivery', {
    ...NAMED,
    arguments: [DELIVERY_OF, '<deliveryId>'],
    view: DELIVERY,
    examples: { [`${SHOWN} retry irc/libera dl-01k00000000000000000000000`]: 'once more, and now' },
  }),
  command('adapter delivery delete', 'delete-delivery', {
    ...NAMED,
    arguments: [DELIVERY_OF, '<deliveryId>'],
    view: FORGOTTEN,
    examples: { [`${SHOWN} delete irc/libera dl-01k00000000000000000000000`]: 'one that was given up' },
  }),
  command('adapter delivery claim', 'claim-deliveries', {
    ...NAMED,
    description:
      'What a bridge does that claims its deliveries. One with a secret proves it: --token SECRET. Each is to be acknowledged or failed before its lease ends.',
    arguments: [DELIVERY_OF],
    flags: { lease_seconds: '--lease' },
    more: [{ flags: '--wait <duration>', description: 'Where there is none, wait this long: at most 2m.' }],
    timeoutMs: timeoutWithWait,
    run: claim,
    examples: { [`${SHOWN} claim irc/libera --wait 1m --limit 10 -o json`]: 'what is to be said there' },
  }),
  command('adapter delivery ack', 'ack-delivery', {
    ...NAMED,
    arguments: [DELIVERY_OF, '<deliveryId>'],
    view: DELIVERY,
    examples: {
      [`${SHOWN} ack irc/libera dl-01k00000000000000000000000 --receipt '{"message_id":"m-902"}'`]: 'it is in the chat',
    },
  }),
  command('adapter delivery fail', 'fail-delivery', {
    ...NAMED,
    arguments: [DELIVERY_OF, '<deliveryId>'],
    view: DELIVERY,
    examples: {
      [`${SHOWN} fail irc/libera dl-01k00000000000000000000000 --attempt 1 --failure-kind transient`]:
        'it is tried again',
    },
  }),
]
