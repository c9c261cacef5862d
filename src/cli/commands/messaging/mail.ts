/** `svcctl mail …`: what people and agents write to each other. */
import type { Reply } from '../../../client/client.ts'
import type {
  MailArchived,
  MailArchiveFilter,
  MailBroadcastRequest,
  Message,
} from '../../../contract/messaging/mail.ts'
import type { CommandSpec, FlagSpec, Input } from '../../base/command.ts'
import type { Context } from '../../base/context.ts'
import { EXIT, usageError } from '../../base/failure.ts'
import { ownSessionId } from '../../base/own.ts'
import type { AnswerOf, Call } from '../../framework/declaration.ts'
import { commandsOf } from '../../framework/declare.ts'
import { bodyOf } from '../../framework/fields.ts'
import { listAll, mostOf, pageSize } from '../../framework/paged.ts'
import { printItem } from '../../framework/run.ts'
import { listWaiting, timeoutWithWait } from '../../framework/waiting.ts'
import { view } from '../../print/view.ts'
import { MAIL as TABLE } from '../../tables/mail.ts'
import { MESSAGE, MESSAGES, printMessage, printThread } from '../../views/mail-views.ts'
import { sendWritten, subjectOf } from '../../views/mail-writing.ts'

const MOVED = { view: MESSAGE, rows: MESSAGES } as const
const DELETED = view<AnswerOf<'delete-mail'>>()('status id', { name: 'id' })
const COUNT = view<AnswerOf<'count-mail'>>()('unread total')
const ARCHIVED = view<MailArchived['results'][number]>()('id status error')

/** Who asks: the session that runs the command, else whoever sits there. */
const ownMailbox = ({ io }: Context): string => ownSessionId(io) ?? 'human'
const everybody: FlagSpec = { flags: '--all-mailboxes', description: 'Everybody’s, not only one’s own.' }

/** One's own mail, unless another mailbox or all of them are asked for. */
function whose(context: Context, input: Input): { readonly agent?: string } {
  if (!input.on('allMailboxes')) return input.has('agent') ? {} : { agent: ownMailbox(context) }
  if (input.has('agent')) throw usageError('--agent and --all-mailboxes are mutually exclusive')
  return {}
}

/** An agent writes as itself. */
const sender = ({ io }: Context) => ({ from: ownSessionId(io) })

// ---- reading --------------------------------------------------------------------------------------------------------

async function inbox(context: Context, input: Input): Promise<number> {
  const agent = input.text('agent') ?? ownMailbox(context)
  const { terminal } = context.io
  using limit = context.within()
  const city = await context.needCity(undefined, limit.signal)
  if (terminal !== undefined && context.print.isForPeople) {
    // Agents, who call these commands often, need no screen.
    const { showInbox } = await import('../../inbox/inbox.ts')
    return await showInbox(context, terminal, { city, agent, isOwn: agent === ownMailbox(context) })
  }
  const client = await context.client()
  const query = { agent, limit: 100 }
  const { body, text } = await client.call('list-mail', { params: { cityName: city }, query, signal: limit.signal })
  await context.print.list({ items: body.items, ...MESSAGES, json: text })
  return EXIT.ok
}

const waitFlag: FlagSpec = {
  flags: '--wait <duration>',
  description: 'Where there is none, wait this long for some to come.',
}

const showMail = (call: Call<'list-mail'>): Promise<number> =>
  showMessages(call, call.input.has('status') ? 'nothing is found' : 'nothing is unread')

function searchMail(call: Call<'list-mail'>): Promise<number> {
  const { context, input } = call
  const where = input.text('agent') ?? ownMailbox(context)
  return showMessages(
    call,
    input.on('allMailboxes')
      ? 'nothing is found'
      : `nothing is found in the mailbox of ${where}; --all-mailboxes looks in everybody’s`,
  )
}

async function showMessages(call: Call<'list-mail'>, nothing: string): Promise<number> {
  const { context } = call
  const all = await listWaiting(call, call.send)
  await context.print.list({ ...all, ...MESSAGES })
  if (all.items.length === 0) await context.note(nothing)
  if (all.more) await context.note(`showing the first ${all.items.length}; --limit N or --paginate gets more`)
  return EXIT.ok
}

/**
 * What is archived can be read too, and stays where it is. What a person looks at in the mailbox of an agent, that has not
 * read.
 */
async function readMessage({ context, client, cityName, said, options, send }: Call<'read-mail'>): Promise<number> {
  const params = { cityName, id: String(said.id) }
  const found = await client.call('get-mail', { params, ...options })
  const { status, mailbox, to } = found.body
  const isOthers = ownSessionId(context.io) === undefined && mailbox !== 'human'
  const { body, text } = status === 'unread' && !isOthers ? await send() : found
  await printMessage(context, body, text)
  if (status === 'unread' && isOthers) await context.note(`it stays unread: it is mail of ${to}`)
  return EXIT.ok
}

async function showThread({ context, input, send }: Call<'get-mail-thread'>): Promise<number> {
  const most = mostOf(input)
  const { items, json, more } = await listAll((cursor) => send({ limit: pageSize(most), cursor }), most)
  await printThread(context, items, json)
  if (more) await context.note(`showing the first ${items.length}; --paginate gets all`)
  return EXIT.ok
}

// ---- writing --------------------------------------------------------------------------------------------------------

/** `-` among the recipients: the text comes from stdin. */
const STDIN = '-'

async function sendMessage(call: Call<'send-mail'>): Promise<number> {
  const { context, input, client, cityName, said, options } = call
  const words = input.texts('to')
  const [to, ...others] = words.filter((word) => word !== STDIN)
  if (to === undefined) throw usageError("missing required argument 'to'", 'see: svcctl mail send --help')
  if (words.includes(STDIN) && said.body !== undefined) throw usageError('- and --body are mutually exclusive')
  const body = words.includes(STDIN) ? await context.io.stdin.readAll() : said.body
  if (others.length > 0 && (said.cc !== undefined || said.thread_id !== undefined))
    throw usageError('--cc and --thread-id go with one recipient only')
  return await sendWritten(context, { to, subject: said.subject, body }, async (written) => {
    const text = { body: written.body, subject: written.subject ?? subjectOf(written.body) }
    if (others.length === 0) return printSent(context, await call.send({ to, ...text }))
    const { from, priority, notify } = said
    const body = bodyOf<MailBroadcastRequest>({ from, priority, notify, ...text, to: [to, ...others] })
    const sent = await client.call('broadcast-mail', { params: { cityName }, body, ...options })
    await context.print.list({ items: sent.body.items, ...MESSAGES, json: sent.text })
    return EXIT.ok
  })
}

async function sendReply(call: Call<'reply-mail'>): Promise<number> {
  const { context, client, cityName, said, options } = call
  const params = { cityName, id: String(said.id) }
  const isWritten = said.body === undefined && context.canAsk
  const answers = isWritten ? (await client.call('get-mail', { params, ...options })).body : undefined
  const about = { to: answers?.from ?? '', body: said.body, answers }
  return await sendWritten(context, about, async ({ body }) => {
    if (body === undefined) throw usageError('there is nothing to send', 'say --body TEXT, or --body - for stdin')
    return printSent(context, await call.send({ body }))
  })
}

async function sendToAll(call: Call<'broadcast-mail'>): Promise<number> {
  const { context, said } = call
  return await sendWritten(context, { to: 'everybody', subject: said.subject, body: said.body }, async (written) => {
    const text = { body: written.body, subject: written.subject ?? subjectOf(written.body) }
    const { body, text: json } = await call.send(text)
    await context.print.list({ items: body.items, ...MESSAGES, json })
    return EXIT.ok
  })
}

const printSent = (context: Context, reply: Pick<Reply<Message>, 'body' | 'text'>) => printItem(context, MESSAGE, reply)

// ---- archiving ------------------------------------------------------------------------------------------------------

/** What one request takes. */
const MOST_AT_ONCE = 1_000
const filterFlags: readonly FlagSpec[] = [
  {
    flags: '--query <words>',
    description: 'What `mail search` finds in one’s own mail, or in that of --to, instead of ids.',
  },
  { flags: '--to <name>', description: 'Filter: whose mailbox (default: one’s own).', complete: 'mailbox' },
  { flags: '--all-mailboxes', description: 'Filter: everybody’s.' },
  { flags: '--from <name>', description: 'Filter: its sender.', complete: 'mailbox' },
  { flags: '--subject-prefix <text>', description: 'Filter: what its subject begins with.' },
  { flags: '--subject-contains <text>', description: 'Filter: what is in its subject.' },
  { flags: '--empty-body', description: 'Filter: only what has no text.' },
  { flags: '--include-read', description: 'Filter: also what was read.' },
]
const WITH_FILTER = ['from', 'subjectPrefix', 'subjectContains', 'emptyBody', 'includeRead'] as const

async function archive(call: Call<'archive-mails'>): Promise<number> {
  const { context, input, said } = call
  const isFiltered = said.filter !== undefined || WITH_FILTER.some((name) => input.has(name))
  const ways = [said.ids !== undefined, input.has('query'), isFiltered].filter(Boolean).length
  if (ways !== 1)
    throw usageError(
      ways === 0 ? 'what is to be archived is missing' : 'ids, --query and filters are mutually exclusive',
      'name ids, or say --query WORDS, or filters such as --from NAME or --subject-prefix TEXT',
    )
  if (isFiltered) return showArchived(context, [await call.send({ filter: said.filter ?? filterOf(context, input) })])
  const ids = said.ids ?? (await idsOf(call))
  if (ids.length === 0) await context.note('nothing is found')
  const replies: Reply<MailArchived>[] = []
  for (let at = 0; at < ids.length; at += MOST_AT_ONCE)
    replies.push(await call.send({ ids: ids.slice(at, at + MOST_AT_ONCE), limit: undefined }))
  return showArchived(context, replies)
}

const mailboxOf = (context: Context, input: Input): { readonly to: string } | { readonly all_recipients: true } => {
  if (!input.on('allMailboxes')) return { to: input.text('to') ?? ownMailbox(context) }
  if (input.has('to')) throw usageError('--to and --all-mailboxes are mutually exclusive')
  return { all_recipients: true }
}

const filterOf = (context: Context, input: Input): MailArchiveFilter =>
  bodyOf<MailArchiveFilter>({
    ...mailboxOf(context, input),
    from: input.text('from'),
    subject_prefix: input.text('subjectPrefix'),
    subject_contains: input.text('subjectContains'),
    empty_body: input.on('emptyBody') || undefined,
    include_read: input.on('includeRead') || undefined,
  })

/** What a search finds that is not archived. */
async function idsOf({ context, input, client, cityName, said, options }: Call<'archive-mails'>): Promise<string[]> {
  const mailbox = mailboxOf(context, input)
  const agent = 'to' in mailbox ? mailbox.to : undefined
  const most = said.limit ?? Number.POSITIVE_INFINITY
  const { items } = await listAll(
    (cursor) =>
      client.call('list-mail', {
        params: { cityName },
        query: { agent, q: input.text('query'), status: 'all', limit: pageSize(most), cursor },
        ...options,
      }),
    most,
  )
  return items.map(({ id }) => id)
}

/** Not 0 where one of them is not there. */
async function showArchived(context: Context, replies: readonly Reply<MailArchived>[]): Promise<number> {
  const results = replies.flatMap(({ body }) => body.results)
  const [only] = replies
  const json =
    only !== undefined && replies.length === 1
      ? only.text
      : JSON.stringify({ dry_run: only?.body.dry_run ?? false, results, total: results.length })
  await context.print.list({ items: results, ...ARCHIVED, json })
  if (only?.body.dry_run === true) await context.note('nothing is changed: this was a dry run')
  return results.some(({ status }) => status === 'not_found') ? EXIT.notFound : EXIT.ok
}

// ---- commands -------------------------------------------------------------------------------------------------------

const command = commandsOf(TABLE)
const ID = { completes: { id: 'message' } } as const
const SUBJECT = { subject: 'What it is about (default: its first line).' } as const
const TEXT = {
  body: 'The text; in a terminal, where it is absent, the editor opens.',
  notify:
    'Start or wake whom it is for; --no-notify tells nobody. Without either one that runs is reminded when it is idle.',
  from: 'Who sends it (default: the session that runs the command, else `human`).',
} as const
const WRITES = { subject: '-s', body: '-b', priority: '-p' } as const
const MAILBOX = { agent: 'Whose mailbox (default: one’s own: that of the session, else `human`).' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['mail', 'inbox'],
    operations: [
      'list-mail',
      'count-mail',
      'get-mail-thread',
      'read-mail',
      'mark-mail-unread',
      'archive-mail',
      'unarchive-mail',
      'delete-mail',
      'reply-mail',
      'send-mail',
      'stream-city-events',
    ],
    summary: 'The mailbox as it lives, on a screen',
    description:
      'New mail shows at once; keys read, answer, archive and write, and `?` lists them. Where nobody looks at a screen it prints what `mail list` prints.',
    flags: [{ flags: '--agent <name>', description: MAILBOX.agent, complete: 'mailbox' }],
    examples: [
      { line: 'svcctl mail inbox', does: 'one’s own mail' },
      { line: 'svcctl mail inbox --agent mayor', does: 'what the mayor has' },
    ],
    run: inbox,
  },
  command('mail list', 'list-mail', {
    says: MAILBOX,
    completes: { agent: 'mailbox', from: 'mailbox' },
    flags: { status: '-s', q: '--search' },
    more: [everybody, waitFlag],
    fill: whose,
    timeoutMs: timeoutWithWait,
    run: showMail,
    view: MESSAGES,
    examples: {
      'svcctl mail list': 'what is unread',
      'svcctl mail list --status all': 'and what was read',
      'svcctl mail list --wait 10m -o json': 'wait for some, as a script does',
    },
  }),
  command('mail search', 'list-mail', {
    summary: 'Search mail',
    description:
      'All of the words, in subject, text or sender; `word*` is the beginning of one. The archive too, unless --status says otherwise.',
    arguments: ['<q...>'],
    called: { q: 'words' },
    says: MAILBOX,
    completes: { agent: 'mailbox', from: 'mailbox' },
    flags: { status: '-s' },
    more: [everybody],
    fill: whose,
    run: searchMail,
    view: MESSAGES,
    examples: { 'svcctl mail search deploy fail*': 'with a word that begins with fail' },
  }),
  command('mail read', 'read-mail', {
    ...ID,
    also: ['get-mail'],
    summary: 'Print a message, and mark it as read',
    description: 'A person who reads what is in the mailbox of an agent leaves it unread there.',
    arguments: ['<id...>'],
    run: readMessage,
    examples: { 'svcctl mail read ml-0123456789abcdef': 'head and text' },
  }),
  command('mail get', 'get-mail', {
    ...ID,
    summary: 'Print a message; it stays unread',
    arguments: ['<id...>'],
    run: async ({ context, send }) => {
      const { body, text } = await send()
      await printMessage(context, body, text)
      return EXIT.ok
    },
    examples: { 'svcctl mail get ml-0123456789abcdef': 'look without having read it' },
  }),
  command('mail thread', 'get-mail-thread', {
    ...ID,
    arguments: ['<id>'],
    says: { id: 'Id of the thread, or of a message in it.' },
    completes: { id: 'message', agent: 'mailbox' },
    view: MESSAGES,
    run: showThread,
    examples: { 'svcctl mail thread ml-0123456789abcdef': 'everything that was said' },
  }),
  command('mail send', 'send-mail', {
    also: ['broadcast-mail'],
    description:
      'It is in the mailbox when this ends, whether its reader runs or not. Several recipients get a message each, in one thread; `-` among them reads the text from stdin.',
    arguments: ['<to...>'],
    says: { ...SUBJECT, ...TEXT, cc: 'Who gets a copy.' },
    completes: { to: 'mailbox', cc: 'mailbox', from: 'mailbox', thread_id: 'message' },
    flags: WRITES,
    fill: sender,
    run: sendMessage,
    view: MESSAGES,
    examples: {
      'svcctl mail send mayor -s "Deploy finished" -b "All tests pass."': 'to one',
      'git log -3 | svcctl mail send mayor ops -s "What changed" -': 'a text from stdin, to two',
      'svcctl mail send mayor': 'write it in the editor',
    },
  }),
  command('mail reply', 'reply-mail', {
    ...ID,
    also: ['get-mail'],
    arguments: ['<id>'],
    says: { ...TEXT, cc: 'Who gets a copy.' },
    completes: { id: 'message', cc: 'mailbox', from: 'mailbox' },
    flags: WRITES,
    fill: sender,
    run: sendReply,
    view: MESSAGES,
    examples: {
      'svcctl mail reply ml-0123456789abcdef -b "Thank you"': 'to its sender, in its thread',
      'svcctl mail reply ml-0123456789abcdef --body @answer.md': 'a text from a file',
    },
  }),
  command('mail broadcast', 'broadcast-mail', {
    description:
      'Everybody with an open session gets it, but for the sender; with --to only these. All of them or nobody.',
    says: { ...SUBJECT, ...TEXT },
    completes: { to: 'mailbox', from: 'mailbox' },
    flags: WRITES,
    fill: sender,
    run: sendToAll,
    view: MESSAGES,
    examples: { 'svcctl mail broadcast -s "Freeze" -b "No merges until noon."': 'to everybody who is there' },
  }),
  command('mail count', 'count-mail', {
    says: MAILBOX,
    completes: { agent: 'mailbox' },
    more: [everybody],
    fill: whose,
    view: COUNT,
    examples: { 'svcctl mail count': 'how much is unread', 'svcctl mail count --all-mailboxes': 'of everybody' },
  }),
  command('mail check', 'check-mail', {
    says: MAILBOX,
    completes: { agent: 'mailbox' },
    fill: (context) => ({ agent: ownMailbox(context) }),
    print: async (context, { body, text }) => {
      await context.print.text({ text: body.text === '' ? '' : `${body.text.trimEnd()}\n`, json: text })
      if (body.unread === 0) await context.note('nothing is unread')
    },
    examples: {
      'svcctl mail check': 'what an agent is told of its mail',
      'svcctl mail check --agent mayor': 'of another',
    },
  }),
  command('mail archive', 'archive-mails', {
    also: ['list-mail'],
    summary: 'Archive messages',
    description:
      'By their ids, by what a search finds, or by what they have in common: then unread ones, oldest first.',
    arguments: ['[ids...]'],
    completes: { ids: 'message' },
    says: {
      ids: 'Ids of messages.',
      filter: 'The filter as JSON.',
      limit: 'At most so many (default: 100 of a filter).',
    },
    more: filterFlags,
    run: archive,
    examples: {
      'svcctl mail archive ml-0123456789abcdef ml-fedcba9876543210': 'two of them',
      'svcctl mail archive --from ci --subject-prefix "Build" --include-read --dry-run': 'what it would be',
      'svcctl mail archive --query "nightly report"': 'what a search finds',
    },
  }),
  command('mail unarchive', 'unarchive-mail', {
    ...ID,
    ...MOVED,
    arguments: ['<id...>'],
    examples: { 'svcctl mail unarchive ml-0123456789abcdef': 'back to where it was' },
  }),
  command('mail mark-unread', 'mark-mail-unread', {
    ...ID,
    ...MOVED,
    arguments: ['<id...>'],
    examples: { 'svcctl mail mark-unread ml-0123456789abcdef': 'for later' },
  }),
  command('mail delete', 'delete-mail', {
    ...ID,
    arguments: ['<id...>'],
    asks: (names) => `Delete ${names} for good?`,
    view: DELETED,
    examples: { 'svcctl mail delete ml-0123456789abcdef --yes': 'it is found no more' },
  }),
]
