/** `svcctl participant …`: who takes part in conversations of chats. */
import type { Binding, Group, Participant } from '../../../contract/messaging/participants.ts'
import type { CommandSpec } from '../../base/command.ts'
import { EXIT, usageError } from '../../base/failure.ts'
import type { AnswerOf, Call } from '../../framework/declaration.ts'
import { commandsOf } from '../../framework/declare.ts'
import { printItem } from '../../framework/run.ts'
import { view } from '../../print/view.ts'
import { PARTICIPANTS as TABLE } from '../../tables/participants.ts'
import {
  CONVERSATION_FILTER,
  conversationOrTranscriptFlags,
  conversationText,
  namedConversation,
  needConversation,
} from '../../views/conversations.ts'

const PARTICIPANT = view<Participant>()('id handle WHO group_id status created_at', {
  wide: 'session_id session_name public updated_at removed_at metadata',
  as: { WHO: ({ session_id, session_name, agent_name }) => agent_name ?? session_name ?? session_id },
})
const REMOVED = view<AnswerOf<'remove-participant'>>()('status id', { name: 'id' })
const GROUP = view<Group>()('id CONVERSATION default_handle LAST created_at', {
  wide: 'transcript_id mode fanout_policy metadata updated_at',
  as: {
    CONVERSATION: ({ root_conversation: conversation }) => conversationText(conversation),
    LAST: 'last_addressed_handle',
  },
})
const DELETED = view<AnswerOf<'delete-group'>>()('status id', { name: 'id' })
const BINDING = view<Binding>()('id CONVERSATION WHO status bound_at expires_at', {
  wide: 'transcript_id session_id binding_generation ended_at ended_reason metadata',
  as: {
    CONVERSATION: ({ conversation }) => conversationText(conversation),
    WHO: ({ session_id, session_name, agent_name, mailbox }) => agent_name ?? mailbox ?? session_name ?? session_id,
  },
})

/** The conversation of flags, or of the transcript that they name. */
async function bind(call: Call<'bind-conversation'>): Promise<number> {
  const conversation = needConversation(await namedConversation(call))
  const { session_id, agent_name, mailbox } = call.said
  if ([session_id, agent_name, mailbox].filter((one) => one !== undefined).length !== 1)
    throw usageError('whom it is bound to is missing', 'say one of --session, --agent and --mailbox human')
  return printItem(call.context, BINDING, await call.send({ conversation }))
}

async function unbind(call: Call<'unbind-conversations'>): Promise<number> {
  const conversation = await namedConversation(call)
  const { body, text } = await call.send(conversation === undefined ? {} : { conversation })
  await call.context.print.list({ items: body.unbound, ...BINDING, json: text })
  if (body.unbound.length === 0) await call.context.note('no binding is of these')
  return EXIT.ok
}

async function ensureGroup(call: Call<'ensure-group'>): Promise<number> {
  const root_conversation = needConversation(await namedConversation(call))
  return printItem(call.context, GROUP, await call.send({ root_conversation }))
}

async function removeParticipant(call: Call<'remove-participant'>): Promise<number> {
  const { context, client, cityName, input, said, options } = call
  const [group_id, handle] = [input.text('group'), input.text('handle')]
  const isNamed = said.participantId !== undefined
  if (isNamed ? group_id !== undefined || handle !== undefined : group_id === undefined || handle === undefined)
    throw usageError('name one: its id, or --group and --handle')
  if (isNamed || group_id === undefined || handle === undefined) return call.show()
  const query = { group_id, handle }
  const reply = await client.call('remove-participant-by-handle', { params: { cityName }, query, ...options })
  return printItem(context, REMOVED, reply)
}

const command = commandsOf(TABLE)
const WHO = {
  flags: { session_id: '--session', agent_name: '--agent' },
  completes: { session_id: 'session', agent_name: 'agent' },
} as const
const OF_CONVERSATION = {
  flags: { ...WHO.flags, ...CONVERSATION_FILTER.flags },
  completes: { ...WHO.completes, ...CONVERSATION_FILTER.completes },
} as const
const IN_PARTS = { more: conversationOrTranscriptFlags } as const
const SAID_BY_FLAGS = 'its parts have flags of their own'
const GROUP_FLAGS = { metadata: '--meta', fanout_policy: '--fanout' } as const

export const commands: readonly CommandSpec[] = [
  command('participant bind', 'bind-conversation', {
    ...WHO,
    ...IN_PARTS,
    flags: { ...WHO.flags, metadata: '--meta' },
    leaves: { conversation: SAID_BY_FLAGS },
    says: { mailbox: 'Mail to people is said there, and what is said there answers it.' },
    view: BINDING,
    run: bind,
    examples: {
      "svcctl participant bind --agent mayor --provider irc --account libera --conversation '#builds'":
        'what is said there goes to the mayor',
      'svcctl participant bind --mailbox human --transcript cv-0123456789abcdef0123456789abcdef':
        'people get their mail in that chat, and answer it there',
    },
  }),
  command('participant unbind', 'unbind-conversations', {
    ...WHO,
    ...IN_PARTS,
    leaves: { conversation: SAID_BY_FLAGS },
    says: { mailbox: 'Those of people.' },
    run: unbind,
    examples: { 'svcctl participant unbind --session helper': 'it belongs to no conversation any more' },
  }),
  command('participant binding list', 'list-bindings', {
    ...OF_CONVERSATION,
    view: BINDING,
    examples: {
      'svcctl participant binding list': 'whom conversations belong to',
      'svcctl participant binding list --agent mayor --status ended': 'which were the mayor’s',
    },
  }),
  command('participant binding get', 'get-binding', {
    arguments: ['<bindingId...>'],
    called: { bindingId: 'id' },
    completes: { bindingId: 'binding' },
    view: BINDING,
    examples: { 'svcctl participant binding get bd-0123456789abcdef': 'since when, and for how long' },
  }),
  command('participant binding end', 'end-binding', {
    arguments: ['<bindingId...>'],
    called: { bindingId: 'id' },
    completes: { bindingId: 'binding' },
    view: BINDING,
    examples: { 'svcctl participant binding end bd-0123456789abcdef': 'the conversation is nobody’s' },
  }),
  command('participant group list', 'list-groups', {
    ...CONVERSATION_FILTER,
    view: GROUP,
    examples: { 'svcctl participant group list': 'conversations that several share' },
  }),
  command('participant group get', 'get-group', {
    arguments: ['<groupId...>'],
    called: { groupId: 'id' },
    completes: { groupId: 'group' },
    view: GROUP,
    examples: { 'svcctl participant group get gr-0123456789abcdef': 'who is meant where nobody is called' },
  }),
  command('participant group create', 'ensure-group', {
    ...IN_PARTS,
    flags: GROUP_FLAGS,
    leaves: { root_conversation: SAID_BY_FLAGS },
    says: { default_handle: 'Handle of who is meant where nobody is called.', mode: 'How messages find their reader.' },
    view: GROUP,
    run: ensureGroup,
    examples: {
      "svcctl participant group create --provider irc --account libera --conversation '#builds' --default-handle mayor":
        'several share the conversation',
    },
  }),
  command('participant group update', 'patch-group', {
    arguments: ['<groupId...>'],
    called: { groupId: 'id' },
    completes: { groupId: 'group' },
    flags: GROUP_FLAGS,
    says: {
      default_handle: 'Handle of who is meant where nobody is called.',
      last_addressed_handle: 'Handle of who counts as called last.',
    },
    json: true,
    view: GROUP,
    examples: { 'svcctl participant group update gr-0123456789abcdef --default-handle ops': 'somebody else is meant' },
  }),
  command('participant group delete', 'delete-group', {
    arguments: ['<groupId...>'],
    called: { groupId: 'id' },
    completes: { groupId: 'group' },
    asks: (names) => `Delete group ${names} and its handles?`,
    view: DELETED,
    examples: { 'svcctl participant group delete gr-0123456789abcdef --yes': 'with its handles' },
  }),
  command('participant list', 'list-participants', {
    ...OF_CONVERSATION,
    flags: { ...OF_CONVERSATION.flags, group_id: '--group' },
    completes: { ...OF_CONVERSATION.completes, group_id: 'group' },
    view: PARTICIPANT,
    examples: { 'svcctl participant list --handle mayor': 'who is called so, and where' },
  }),
  command('participant get', 'get-participant', {
    arguments: ['<participantId...>'],
    called: { participantId: 'id' },
    view: PARTICIPANT,
    examples: { 'svcctl participant get pt-0123456789abcdef': 'whom a handle means' },
  }),
  command('participant add', 'upsert-participant', {
    ...WHO,
    arguments: ['<group_id>', '<handle>'],
    called: { group_id: 'group' },
    says: { group_id: 'Id of the group.' },
    completes: { ...WHO.completes, group_id: 'group' },
    flags: { ...WHO.flags, metadata: '--meta' },
    view: PARTICIPANT,
    examples: {
      'svcctl participant add gr-0123456789abcdef ops --agent operator': '`ops: …` goes to the operator from now on',
    },
  }),
  command('participant remove', 'remove-participant', {
    also: ['remove-participant-by-handle'],
    called: { participantId: 'id' },
    description: 'By its id, or by --group and --handle.',
    arguments: ['[participantId]'],
    more: [
      { flags: '--group <id>', description: 'Group of the handle.', complete: 'group', field: 'group_id' },
      { flags: '--handle <name>', description: 'What it is called there.' },
    ],
    view: REMOVED,
    run: removeParticipant,
    examples: {
      'svcctl participant remove pt-0123456789abcdef': 'its handle means nobody',
      'svcctl participant remove --group gr-0123456789abcdef --handle ops': 'the same',
    },
  }),
]
