/** `svcctl transcript …`: what was said in conversations of chats, and what is said there. */
import type { CommandSpec, FlagSpec } from '../../base/command.ts'
import type { Context } from '../../base/context.ts'
import { EXIT, usageError } from '../../base/failure.ts'
import { ownSessionId } from '../../base/own.ts'
import { parseTimeout } from '../../framework/accepted.ts'
import type { AnswerOf, Call } from '../../framework/declaration.ts'
import { commandsOf } from '../../framework/declare.ts'
import { printItem } from '../../framework/run.ts'
import { view } from '../../print/view.ts'
import { TRANSCRIPTS as TABLE } from '../../tables/transcripts.ts'
import { download, upload } from '../../views/attachments.ts'
import { CONVERSATION_FILTER, conversationFlags, conversationOf, needConversation } from '../../views/conversations.ts'
import { ENTRY, MEMBER, TRANSCRIPT } from '../../views/transcript-views.ts'
import { watchTranscript } from '../../views/transcript-watch.ts'

const DELETED = view<AnswerOf<'delete-transcript'>>()('status transcript_id entries', { name: 'transcript_id' })
const ACKED = view<AnswerOf<'ack-transcript'>>()('status last_read_sequence')
const LEFT = view<AnswerOf<'delete-transcript-membership'>>()('status mailbox', { name: 'mailbox' })
const UPLOADED = view<AnswerOf<'upload-transcript-attachment'>>()('id filename mime_type size', {
  wide: 'sha256 created_at',
})
const SENT = view<AnswerOf<'publish-transcript-entry'>>()('delivery_status SEQ delivery_id MESSAGE ERROR', {
  wide: 'transcript_entry.text',
  as: {
    SEQ: 'transcript_entry.sequence',
    MESSAGE: 'receipt.message_id',
    ERROR: ({ receipt }) => receipt?.error ?? receipt?.failure_kind,
  },
  name: ({ transcript_entry: { sequence } }) => sequence,
})

/** A session speaks, and reads, as itself. */
const self = ({ io }: Context) => ({ session_id: ownSessionId(io) })

async function create(call: Call<'ensure-transcript'>): Promise<number> {
  const conversation = needConversation(conversationOf(call.input))
  return printItem(call.context, TRANSCRIPT, await call.send({ conversation }))
}

// ---- saying something -----------------------------------------------------------------------------------------------

const WAITED_MS = 5_000
/** Beyond what the server waits for the delivery, for the files and the answer. */
const GRACE_MS = 60_000
const sendFlags: readonly FlagSpec[] = [
  { flags: '--attach <file...>', description: 'A file that goes with it; again for more.', complete: 'file' },
  {
    flags: '--wait <duration>',
    description: 'How long to wait for the chat to have it (default: 5s; not at all while no adapter is there).',
  },
]

/** Who says so with `--session` or `--agent` speaks for another than itself. */
async function say(call: Call<'publish-transcript-entry'>): Promise<number> {
  const { context, input, said } = call
  const { text, attachments = [], agent_name, session_id } = said
  const files = input.texts('attach')
  if (text === undefined && files.length === 0 && attachments.length === 0)
    throw usageError('there is nothing to say', 'give the text, - for stdin, or --attach FILE')
  const uploads: string[] = []
  for (const file of files) uploads.push((await upload(call, file)).body.id)
  const all = [...attachments, ...uploads]
  const reply = await call.send({
    session_id: agent_name === undefined || input.has('session') ? session_id : undefined,
    attachments: all.length === 0 ? undefined : all,
    wait: input.text('wait'),
  })
  await printItem(context, SENT, reply)
  // It is kept, and tried again: only what is given up is a failure.
  if (reply.body.delivery_status === 'pending')
    await context.note('not delivered yet; svcctl transcript watch shows when')
  return reply.body.delivery_status === 'dead' ? EXIT.operationFailed : EXIT.ok
}

async function uploadFiles(call: Call<'upload-transcript-attachment'>): Promise<number> {
  const replies = []
  for (const file of call.input.texts('file')) replies.push(await upload(call, file))
  const items = replies.map(({ body }) => body)
  const [only] = replies
  if (only !== undefined && replies.length === 1) return printItem(call.context, UPLOADED, only)
  await call.context.print.list({ items, ...UPLOADED, json: JSON.stringify({ items, total: items.length }) })
  return EXIT.ok
}

// ---- commands -------------------------------------------------------------------------------------------------------

const command = commandsOf(TABLE)
const EXAMPLE = 'cv-0123456789abcdef0123456789abcdef'
const ID = { called: { transcriptId: 'id' }, completes: { transcriptId: 'transcript' } } as const
const ALSO_ID = { transcriptId: 'transcript' } as const
const WHO = 'Who reads it: a session, an agent, or `human`.'

export const commands: readonly CommandSpec[] = [
  command('transcript list', 'list-transcripts', {
    flags: { ...CONVERSATION_FILTER.flags, session_id: '--session' },
    completes: { ...CONVERSATION_FILTER.completes, session_id: 'session' },
    view: TRANSCRIPT,
    examples: {
      'svcctl transcript list': 'conversations, the liveliest first',
      'svcctl transcript list --provider irc --session mayor': 'what the mayor reads there',
    },
  }),
  command('transcript get', 'get-transcript', {
    ...ID,
    arguments: ['<transcriptId...>'],
    view: TRANSCRIPT,
    examples: { [`svcctl transcript get ${EXAMPLE}`]: 'which conversation it is, and how far' },
  }),
  command('transcript create', 'ensure-transcript', {
    leaves: { conversation: 'its parts have flags of their own' },
    more: conversationFlags,
    view: TRANSCRIPT,
    run: create,
    examples: {
      "svcctl transcript create --provider irc --account libera --conversation '#builds'":
        'its id, before anybody spoke',
    },
  }),
  command('transcript entries', 'list-transcript-entries', {
    ...ID,
    arguments: ['<transcriptId>'],
    flags: { after_sequence: '--after', before_sequence: '--before', q: '--search' },
    view: ENTRY,
    examples: {
      [`svcctl transcript entries ${EXAMPLE} --order desc --limit 20`]: 'what was said last',
      [`svcctl transcript entries ${EXAMPLE} --after 118`]: 'what came since',
    },
  }),
  command('transcript search', 'list-transcript-entries', {
    summary: 'Search what was said',
    description: 'All of the words; `word*` is the beginning of one.',
    arguments: ['<transcriptId>', '<q...>'],
    called: { transcriptId: 'id', q: 'words' },
    completes: ALSO_ID,
    flags: { after_sequence: '--after', before_sequence: '--before' },
    view: ENTRY,
    examples: { [`svcctl transcript search ${EXAMPLE} deploy fail*`]: 'with a word that begins with fail' },
  }),
  command('transcript unread', 'get-transcript-backfill', {
    ...ID,
    arguments: ['<transcriptId>'],
    flags: { session_id: '--session' },
    says: { session_id: `${WHO} Default: the session that runs the command.` },
    completes: { ...ALSO_ID, session_id: 'mailbox' },
    fill: self,
    print: async (context, { body, text }) => {
      await context.print.list({ items: body.items, ...ENTRY, json: text })
      const last = body.items.at(-1)?.sequence ?? body.last_read_sequence
      if (last < body.head_sequence) await context.note(`there are more: up to ${body.head_sequence}`)
    },
    examples: { [`svcctl transcript unread ${EXAMPLE} --session mayor`]: 'what the mayor has not read' },
  }),
  command('transcript ack', 'ack-transcript', {
    arguments: ['<transcriptId>', '<sequence>'],
    called: { transcriptId: 'id' },
    flags: { session_id: '--session' },
    says: { session_id: `${WHO} Default: the session that runs the command.` },
    completes: { ...ALSO_ID, session_id: 'mailbox' },
    fill: self,
    view: ACKED,
    examples: { [`svcctl transcript ack ${EXAMPLE} 118`]: 'it is read up to there' },
  }),
  command('transcript watch', 'stream-transcript', {
    also: ['list-transcript-entries'],
    summary: 'See what is said, as it is said',
    description: 'The last ten entries, then what comes; with --after from there on. Ctrl-C ends it.',
    arguments: ['<transcriptId>'],
    called: { transcriptId: 'id' },
    completes: ALSO_ID,
    flags: { after_sequence: '--after' },
    run: watchTranscript,
    examples: { [`svcctl transcript watch ${EXAMPLE}`]: 'a chat on a terminal' },
  }),
  command('transcript send', 'publish-transcript-entry', {
    also: ['upload-transcript-attachment'],
    description:
      'It is kept and on its way when this ends; it waits a little for the chat to have it. A session speaks as itself; a person as the operator, unless --session or --agent says for whom.',
    arguments: ['<transcriptId>', '[text...]'],
    called: { transcriptId: 'id' },
    says: { text: 'What to say; - reads stdin.', attachments: 'Id of a file that was uploaded.' },
    completes: { ...ALSO_ID, session_id: 'session', agent_name: 'agent' },
    flags: {
      session_id: '--session',
      agent_name: '--agent',
      reply_to_message_id: '--reply-to',
      explicit_target: '--target',
      metadata: '--meta',
      attachments: '--attachment',
    },
    leaves: { idempotency_key: '--idempotency-key is the header' },
    more: sendFlags,
    fill: self,
    timeoutMs: async (input) => (await parseTimeout(input, WAITED_MS, 'wait')) + GRACE_MS,
    run: say,
    view: SENT,
    examples: {
      [`svcctl transcript send ${EXAMPLE} Deploy finished`]: 'in the chat',
      [`svcctl transcript send ${EXAMPLE} - --attach report.pdf < summary.txt`]: 'a text from stdin, and a file',
    },
  }),
  command('transcript upload', 'upload-transcript-attachment', {
    summary: 'Upload a file, for a message to come',
    operands: [{ name: '<file...>', complete: 'file' }],
    leaves: { filename: 'it is that of the file' },
    run: uploadFiles,
    examples: { 'svcctl transcript upload report.pdf': 'its id, for --attachment' },
  }),
  command('transcript download', 'get-transcript-attachment', {
    arguments: ['<attachmentId>'],
    called: { attachmentId: 'id' },
    more: [
      { flags: '--to <file>', description: 'Where to (default: stdout, unless that is a terminal).', complete: 'file' },
    ],
    run: download,
    examples: { 'svcctl transcript download at-0123456789abcdef01234567 --to report.pdf': 'a file of a chat' },
  }),
  command('transcript member list', 'list-transcript-memberships', {
    ...ID,
    arguments: ['<transcriptId>'],
    view: MEMBER,
    examples: { [`svcctl transcript member list ${EXAMPLE}`]: 'who reads it, and up to where' },
  }),
  command('transcript member add', 'put-transcript-membership', {
    arguments: ['<transcriptId>', '<sessionId>'],
    called: { transcriptId: 'id', sessionId: 'who' },
    says: { sessionId: WHO },
    completes: { ...ALSO_ID, sessionId: 'mailbox' },
    flags: { backfill_policy: '--backfill', metadata: '--meta' },
    view: MEMBER,
    examples: { [`svcctl transcript member add ${EXAMPLE} mayor --backfill since_join`]: 'is told of what is said' },
  }),
  command('transcript member remove', 'delete-transcript-membership', {
    arguments: ['<transcriptId>', '<sessionId>'],
    called: { transcriptId: 'id', sessionId: 'who' },
    says: { sessionId: WHO },
    completes: { ...ALSO_ID, sessionId: 'mailbox' },
    view: LEFT,
    examples: { [`svcctl transcript member remove ${EXAMPLE} mayor`]: 'is told no more' },
  }),
  command('transcript delete', 'delete-transcript', {
    ...ID,
    arguments: ['<transcriptId...>'],
    asks: (names) => `Delete transcript ${names} and all that was said there?`,
    view: DELETED,
    examples: {
      [`svcctl transcript delete ${EXAMPLE} --yes`]: 'nobody may be bound to it',
      [`svcctl transcript delete ${EXAMPLE} --cascade --yes`]: 'with its bindings and deliveries',
    },
  }),
]
