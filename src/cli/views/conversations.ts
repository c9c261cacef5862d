/** Conversations of chats on the command line: how one is named, and how it is shown. */
import type { CallOptions, Client } from '../../client/client.ts'
import type { ConversationRef } from '../../contract/messaging/conversations.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import { usageError } from '../base/failure.ts'

/** Flags that name a conversation of an adapter. */
const ownFlags: readonly FlagSpec[] = [
  { flags: '--conversation <id>', description: 'What the provider calls it.' },
  {
    flags: '--kind <kind>',
    description: 'What it is (default: room; with --parent: thread).',
    choices: ['dm', 'room', 'thread'],
  },
  { flags: '--parent <id>', description: 'Of a thread: what it is in.' },
  { flags: '--scope <name>', description: 'Namespace (default: name of the city).' },
]

/** Flags that name a conversation. */
export const conversationFlags: readonly FlagSpec[] = [
  { flags: '--provider <name>', description: 'What carries the conversation, such as irc.' },
  { flags: '--account <id>', description: 'Account of the adapter there.' },
  ...ownFlags,
]

/** One that names it by its transcript, where it has one. */
const transcriptFlag: FlagSpec = {
  flags: '--transcript <id>',
  description: 'The conversation of this transcript; else its parts:',
  complete: 'transcript',
}
export const conversationOrTranscriptFlags: readonly FlagSpec[] = [transcriptFlag, ...conversationFlags]
/** Where provider and account are known. */
export const ofAdapterFlags: readonly FlagSpec[] = [transcriptFlag, ...ownFlags]

/** Filters of lists have the same words. */
export const CONVERSATION_FILTER = {
  flags: {
    transcript_id: '--transcript',
    account_id: '--account',
    conversation_id: '--conversation',
    parent_conversation_id: '--parent',
    scope_id: '--scope',
  },
  completes: { transcript_id: 'transcript' },
} as const

/** Parts that are known without the flags. */
type Known = Partial<Pick<ConversationRef, 'provider' | 'account_id'>>

/** What the flags name; undefined where they name nothing. */
export function conversationOf(input: Input, known: Known = {}): ConversationRef | undefined {
  const [conversation_id, parent, scope] = ['conversation', 'parent', 'scope'].map((name) => input.text(name))
  const said = [input.text('provider'), input.text('account'), conversation_id, parent, scope]
  if (said.every((part) => part === undefined)) return undefined
  const { provider = input.text('provider'), account_id = input.text('account') } = known
  if (provider === undefined || account_id === undefined || conversation_id === undefined)
    throw usageError('a conversation is named by --provider, --account and --conversation')
  return {
    provider,
    account_id,
    conversation_id,
    kind: input.text('kind') ?? (parent === undefined ? 'room' : 'thread'),
    ...(parent === undefined ? {} : { parent_conversation_id: parent }),
    ...(scope === undefined ? {} : { scope_id: scope }),
  }
}

interface Asking {
  readonly client: Client
  readonly cityName: string
  readonly input: Input
  readonly options: CallOptions & { readonly signal: AbortSignal }
}

/** The same, or the one of the transcript that is named. */
export async function namedConversation(
  { client, cityName, input, options }: Asking,
  known: Known = {},
): Promise<ConversationRef | undefined> {
  const id = input.text('transcript')
  const said = conversationOf(input, known)
  if (id === undefined) return said
  if (said !== undefined) throw usageError('--transcript and the parts of a conversation are mutually exclusive')
  const params = { cityName, transcriptId: id }
  return (await client.call('get-transcript', { params, ...options })).body.conversation
}

export const needConversation = (found: ConversationRef | undefined): ConversationRef => {
  if (found === undefined)
    throw usageError('which conversation is missing', 'say --transcript, or --provider, --account and --conversation')
  return found
}

/** `irc/libera #builds`, of a thread what it is in as well. */
export const conversationText = ({
  provider,
  account_id: account,
  conversation_id: id,
  parent_conversation_id: parent,
}: ConversationRef): string => `${provider}/${account} ${parent === undefined ? '' : `${parent} > `}${id}`
