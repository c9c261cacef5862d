/** `svcctl session …`: conversations with agents. */
import type { Reply } from '../../client/client.ts'
import type { SessionResponse, WaitInfo } from '../../contract/session-model.ts'
import type { SessionCreateRequest } from '../../contract/sessions.ts'
import { waitFlags } from '../base/accepted.ts'
import { type ArgumentSpec, type CommandSpec, type FlagSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { readWords } from '../base/data.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { bodyOf, ifMatchFlag } from '../base/fields.ts'
import {
  asking,
  type FieldsOf,
  type InCity,
  inCity,
  printsItem,
  printsList,
  printsPages,
  type QueryFor,
  starts,
} from '../base/in-city.ts'
import { pageFlags } from '../base/paged.ts'
import { type FieldFlag, fieldsFrom, fieldsOf } from '../base/said-flags.ts'
import { converse } from '../live/attach.ts'
import { answerFields, respondTo } from '../live/respond.ts'
import { shellWord } from '../print/shell-word.ts'
import { printLive, printTranscript } from '../views/live.ts'
import {
  DELETED,
  DELIVERY,
  DRAIN,
  endOf,
  PENDING,
  PRUNED,
  SESSION,
  STOPPED,
  SUB_AGENT,
  WAIT,
} from '../views/session-views.ts'
import { printableLines } from '../views/turn-text.ts'

type Run = CommandSpec['run']

/** The session that the command runs in. */
const ownSession = ({ env }: Context['io']): string | undefined => env['SVC_SESSION_ID'] || undefined

const itemParams = ({ cityName, input }: InCity) => ({ cityName, id: input.required('session') })

/** The session that is named, else the one that the command runs in: what agents say of themselves. */
function ownParams({ context, cityName, input }: InCity) {
  const id = input.text('session') ?? ownSession(context.io)
  if (id === undefined)
    throw usageError('which session is missing', 'name one; inside a session it is the one where none is named')
  return { cityName, id }
}

const listFilters: readonly FieldFlag[] = [
  { flags: '--state <states>', description: 'States, separated by commas; also all, open (the default) and closed.' },
  { flags: '--template <agent>', description: 'Of this agent or provider.', complete: 'agent' },
  { flags: '--rig <rig>', description: 'Of this rig.' },
]
const list = printsPages(
  SESSION,
  ({ client, cityName, options }, page, filters) => {
    const query = { ...bodyOf<QueryFor<'list-sessions'>>(filters), ...page }
    return client.call('list-sessions', { params: { cityName }, query, ...options })
  },
  { fields: fieldsOf(listFilters) },
)

const getItem = printsItem(SESSION, (city) =>
  city.client.call('get-session', { params: itemParams(city), ...city.options }),
)

/** The session, then the last lines of its screen. */
async function getWithScreen(context: Context, input: Input): Promise<number> {
  let screen: string | undefined
  const code = await printsItem(SESSION, async (city) => {
    const reply = await city.client.call('get-session', {
      params: itemParams(city),
      query: { peek: true },
      ...city.options,
    })
    screen = reply.body.last_output
    return reply
  })(context, input)
  if (screen !== undefined && context.print.isForPeople) await context.print.lines(['', printableLines(screen)])
  return code
}
const get: Run = (context, input) => (input.on('peek') ? getWithScreen : getItem)(context, input)

const metaFlag: FieldFlag = {
  flags: '--meta <key=value>',
  field: 'metadata',
  repeatable: true,
  as: 'pairs',
  description: 'Metadata.',
}
const createFlags: readonly FieldFlag[] = [
  { flags: '--alias <alias>' },
  { flags: '--title <title>' },
  { flags: '-m, --message <text>', as: 'data', description: 'First message; @FILE or - reads it.' },
  { flags: '--runtime <runtime>' },
  { flags: '--work-dir <dir>', complete: 'file' },
  {
    flags: '--option <key=value>',
    field: 'options',
    repeatable: true,
    as: 'pairs',
    description: 'An option of the provider.',
  },
  metaFlag,
]
const create = starts(
  'session.create',
  ({ client, cityName, options }, fields) =>
    client.call('create-session', { params: { cityName }, body: bodyOf<SessionCreateRequest>(fields), ...options }),
  async (context, input) => ({
    kind: input.on('provider') ? 'provider' : 'agent',
    name: input.required('name'),
    ...(await fieldsFrom(context, input, createFlags)),
  }),
)

const updateFlags: readonly FieldFlag[] = [
  { flags: '--title <title>' },
  { flags: '--alias <alias>', description: "Another handle; '' for none." },
  metaFlag,
]
const update = printsItem(
  SESSION,
  (city, fields) =>
    city.client.call('patch-session', { params: itemParams(city), body: bodyOf<object>(fields), ...city.options }),
  fieldsOf(updateFlags),
)

const remove = asking(
  (input) => `Close session ${input.required('session')} and delete its record?`,
  printsItem(DELETED, (city) => city.client.call('delete-session', { params: itemParams(city), ...city.options })),
)

/** What is said, and how. */
const saying =
  (flags: readonly FieldFlag[] = []): FieldsOf =>
  async (context, input) => {
    const words = input.texts('message')
    if (words.length === 0) throw usageError('what to say is missing', 'give it as words, or as - for stdin')
    return { message: await readWords(context.io, words), ...(await fieldsFrom(context, input, flags)) }
  }

interface Saying {
  readonly message: string
}

const say = (operation: 'send-session-message' | 'prompt-session') =>
  starts(
    'session.message',
    (city, fields) =>
      city.client.call(operation, { params: itemParams(city), body: bodyOf<Saying>(fields), ...city.options }),
    saying(),
  )

const intentFlag: FieldFlag = { flags: '--intent <intent>' }
const submit = starts(
  'session.submit',
  (city, fields) =>
    city.client.call('submit-session', { params: itemParams(city), body: bodyOf<Saying>(fields), ...city.options }),
  saying([intentFlag]),
)

const whenFlag: FieldFlag = { flags: '--delivery <when>' }
const nudge = printsItem(
  DELIVERY,
  (city, fields) =>
    city.client.call('nudge-session', { params: itemParams(city), body: bodyOf<Saying>(fields), ...city.options }),
  saying([whenFlag]),
)

/** A list with a flag that cancels one of what it lists. */
const listOrCancel =
  (list: Run, cancel: Run): Run =>
  (context, input) =>
    (input.text('cancel') === undefined ? list : cancel)(context, input)

const deliveryFilters: readonly FieldFlag[] = [{ flags: '--state <state>' }]
const deliveries = listOrCancel(
  printsPages(
    DELIVERY,
    (city, page, filters) => {
      const query = { ...bodyOf<QueryFor<'list-session-deliveries'>>(filters), ...page }
      return city.client.call('list-session-deliveries', { params: itemParams(city), query, ...city.options })
    },
    { fields: fieldsOf(deliveryFilters) },
  ),
  printsItem(DELIVERY, (city) =>
    city.client.call('cancel-session-delivery', {
      params: { ...itemParams(city), deliveryId: city.input.text('cancel') ?? '' },
      ...city.options,
    }),
  ),
)

type Plain =
  | 'kill-session'
  | 'suspend-session'
  | 'wake-session'
  | 'resume-session'
  | 'pin-session'
  | 'unpin-session'
  | 'reset-session'
  | 'request-session-restart'
  | 'heartbeat-session'
  | 'drain-session'
  | 'undrain-session'
  | 'ack-session-drain'
  | 'release-session-name'

/** Operations that take an id, and answer with the session. */
const act = (operation: Plain, params: typeof itemParams) =>
  printsItem(
    SESSION,
    (city): Promise<Reply<SessionResponse>> => city.client.call(operation, { params: params(city), ...city.options }),
  )

const stop = printsItem(STOPPED, (city) =>
  city.client.call('stop-session', { params: itemParams(city), ...city.options }),
)

const close = printsItem(SESSION, (city) =>
  city.client.call('close-session', {
    params: itemParams(city),
    query: { delete: city.input.on('delete') ? true : undefined },
    ...city.options,
  }),
)

const rename = printsItem(SESSION, (city) =>
  city.client.call('rename-session', {
    params: itemParams(city),
    body: { title: city.input.required('title') },
    ...city.options,
  }),
)

const setMode = printsItem(SESSION, (city) =>
  city.client.call('set-session-permission-mode', {
    params: itemParams(city),
    body: { permission_mode: city.input.required('mode') },
    ...city.options,
  }),
)

const pending = printsItem(PENDING, (city) =>
  city.client.call('get-session-pending', { params: itemParams(city), ...city.options }),
)

const respondFlags: readonly FieldFlag[] = [
  { flags: '--request <id>', field: 'request_id', description: 'Only where this one is pending.' },
  { flags: '--text <text>' },
]
const respond = printsItem(SESSION, respondTo, answerFields)

const formatFlags: readonly FieldFlag[] = [
  { flags: '--format <format>' },
  { flags: '--thinking', field: 'include_thinking', description: 'With what the agent thought.' },
]
const pageOfTranscript: readonly FieldFlag[] = [
  { flags: '--limit <n>', as: 'number', description: 'Entries; 100 where absent.' },
  { flags: '--before <entry>' },
  { flags: '--after <entry>' },
]

async function transcript(context: Context, input: Input): Promise<number> {
  if (input.on('follow')) return followSession(context, input)
  const query = await fieldsFrom(context, input, [...formatFlags, ...pageOfTranscript])
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('get-session-transcript', {
      params: itemParams(city),
      query: bodyOf<QueryFor<'get-session-transcript'>>(query),
      ...city.options,
    }),
  )
  if (context.print.isForPeople) {
    await printTranscript(context, body)
    await noteEnd(context, input)
  } else await context.print.item({ item: body, columns: [], name: ({ id }) => id, json: text })
  return EXIT.ok
}

/** Whoever waits for more of it learns that no more comes. */
async function noteEnd(context: Context, input: Input): Promise<void> {
  const session = await inCity(context, input, (city) =>
    city.client.call('get-session', { params: itemParams(city), ...city.options }),
  ).catch(() => undefined)
  const end = session === undefined ? undefined : endOf(session.body, context.io.clock.now())
  if (end !== undefined) await context.note(end)
}

async function followSession(context: Context, input: Input): Promise<number> {
  const { params, client } = await placeOf(context, input)
  const query = await fieldsFrom(context, input, formatFlags)
  await printLive(context, client, { operation: 'stream-session', params, query, signal: context.io.reading() })
  return EXIT.ok
}

/** For what goes on beyond the time limit of a request. */
const placeOf = (context: Context, input: Input) =>
  inCity(context, input, async (city) => ({ params: itemParams(city), client: city.client }))

async function peek(context: Context, input: Input): Promise<number> {
  const query = await fieldsFrom(context, input, peekFlags)
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('peek-session', {
      params: itemParams(city),
      query: bodyOf<QueryFor<'peek-session'>>(query),
      ...city.options,
    }),
  )
  if (context.print.isForPeople) await context.print.lines(body.lines.map(printableLines))
  else await context.print.item({ item: body, columns: [], name: ({ session_id }) => session_id, json: text })
  return EXIT.ok
}
const peekFlags: readonly FieldFlag[] = [{ flags: '--lines <n>', as: 'number' }]

async function attach(context: Context, input: Input): Promise<number> {
  if (!input.on('command')) {
    const { params } = await placeOf(context, input)
    await converse(context, params)
    return EXIT.ok
  }
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('attach-session', { params: itemParams(city), ...city.options }),
  )
  const line = [body.command, ...body.args].map(shellWord).join(' ')
  await context.print.text({ text: `${line}\n`, json: text })
  return EXIT.ok
}

const prune = printsItem(PRUNED, ({ client, cityName, input, options }) =>
  client.call('prune-sessions', {
    params: { cityName },
    body: { closed_before: input.text('closedBefore') ?? '7d' },
    ...options,
  }),
)

const listSubAgents = printsList(SUB_AGENT, async (city) => {
  const reply = await city.client.call('list-session-agents', { params: itemParams(city), ...city.options })
  return { ...reply, body: { items: reply.body.agents } }
})

async function showSubAgent(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('get-session-agent', {
      params: { ...itemParams(city), agentId: input.required('agent') },
      ...city.options,
    }),
  )
  if (context.print.isForPeople) await printTranscript(context, body)
  else await context.print.item({ item: body, columns: [], name: ({ status }) => status, json: text })
  return EXIT.ok
}
const agents: Run = (context, input) =>
  (input.text('agent') === undefined ? listSubAgents : showSubAgent)(context, input)

const drainStatus = printsItem(DRAIN, (city) =>
  city.client.call('get-session-drain', { params: ownParams(city), ...city.options }),
)

const waitFields: readonly FieldFlag[] = [
  { flags: '--note <text>', description: 'Said to it when the wait is over.' },
  { flags: '--timeout <duration>', description: 'After this long it is over anyway; 24h where absent.' },
]
const wait = printsItem(
  WAIT,
  ({ context, client, cityName, input, options }, fields) => {
    const { id, beads } = waiting(context.io, input)
    const body = { ...bodyOf<object>(fields), dep_ids: [...beads], ...(input.on('any') ? { dep_mode: 'any' } : {}) }
    return client.call('create-session-wait', {
      params: { cityName, id },
      body: bodyOf<Pick<WaitInfo, 'dep_ids'>>(body),
      ...options,
    })
  },
  fieldsOf(waitFields),
)

/** Ids of sessions look like nothing else. */
const SESSION_ID = /^s-[0-9a-f]{16}$/

/** Who waits for what: inside a session it is that one that waits, unless the first word or `--session` names another. */
function waiting(io: Context['io'], input: Input): { readonly id: string; readonly beads: readonly string[] } {
  const words = input.texts('beads')
  const own = ownSession(io)
  const named = input.text('session')
  if (named !== undefined) return { id: named, beads: words }
  const [first = '', ...rest] = words
  const names = [own, io.env['SVC_ALIAS'], io.env['SVC_SESSION_NAME']]
  if (own !== undefined && !SESSION_ID.test(first) && !names.includes(first)) return { id: own, beads: words }
  if (rest.length === 0)
    throw usageError('what it waits for is missing', 'name the session, then the beads that it waits for')
  return { id: first, beads: rest }
}

const waitFilters: readonly FieldFlag[] = [{ flags: '--state <state>' }]
const waits = listOrCancel(
  printsPages(
    WAIT,
    ({ client, cityName, input, options }, page, filters) => {
      const query = { ...bodyOf<QueryFor<'list-waits'>>(filters), session: input.text('session'), ...page }
      return client.call('list-waits', { params: { cityName }, query, ...options })
    },
    { fields: fieldsOf(waitFilters) },
  ),
  printsItem(WAIT, ({ client, cityName, input, options }) =>
    client.call('cancel-wait', { params: { cityName, id: input.text('cancel') ?? '' }, ...options }),
  ),
)

const session: ArgumentSpec = {
  name: '<session>',
  description: 'Id, alias or name of the session.',
  complete: 'session',
}
const own: ArgumentSpec = {
  ...session,
  name: '[session]',
  description: 'Id, alias or name of the session; inside a session the one that it runs in.',
}
const message: ArgumentSpec = { name: '[message...]', description: 'What to say; - for stdin.', complete: 'none' }
const sayFlags = [...waitFlags, keyFlag]

/** Told twice they would do it twice. */
const KEYED: ReadonlySet<Plain> = new Set(['kill-session', 'reset-session', 'request-session-restart'])
const flagsOf = (operation: Plain): readonly FlagSpec[] => (KEYED.has(operation) ? [keyFlag] : [])

const simple = (verb: string, operation: Plain, does: string): CommandSpec => ({
  path: ['session', verb],
  operations: [operation],
  arguments: [session],
  flags: flagsOf(operation),
  examples: [{ line: `svcctl session ${verb} helper`, does }],
  run: act(operation, itemParams),
})

/** What agents say of themselves. */
const ofOneself = (verb: string, operation: Plain, does: string): CommandSpec => ({
  path: ['session', verb],
  operations: [operation],
  arguments: [own],
  flags: flagsOf(operation),
  examples: [{ line: `svcctl session ${verb}`, does }],
  run: act(operation, ownParams),
})

const reading: Pick<CommandSpec, 'operations' | 'arguments' | 'flags' | 'run'> = {
  operations: ['get-session-transcript', 'stream-session'],
  arguments: [session],
  flags: [{ flags: '-f, --follow', description: 'Go on with what comes.' }, ...formatFlags, ...pageOfTranscript],
  run: transcript,
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['session', 'list'],
    operations: ['list-sessions'],
    flags: [...listFilters, ...pageFlags],
    examples: [
      { line: 'svcctl session list', does: 'all open sessions' },
      { line: 'svcctl session list --state active,draining', does: 'those whose process runs' },
    ],
    run: list,
  },
  {
    path: ['session', 'get'],
    operations: ['get-session'],
    arguments: [session],
    flags: [{ flags: '--peek', description: 'With the last lines of its screen.' }],
    examples: [{ line: 'svcctl session get helper', does: 'one session' }],
    run: get,
  },
  {
    path: ['session', 'create'],
    operations: ['create-session'],
    arguments: [{ name: '<name>', description: 'Agent, or provider with --provider.', complete: 'agent' }],
    flags: [
      { flags: '--provider', description: 'NAME is a provider: a conversation without an agent.' },
      ...createFlags,
      ...sayFlags,
    ],
    examples: [
      { line: 'svcctl session create worker', does: 'start a session of an agent' },
      { line: 'svcctl session create shell --provider --alias sh', does: 'a shell to talk to' },
    ],
    run: create,
  },
  {
    path: ['session', 'update'],
    operations: ['patch-session'],
    arguments: [session],
    flags: [...updateFlags, ifMatchFlag],
    examples: [{ line: 'svcctl session update helper --title "Avatars"', does: 'another title' }],
    run: update,
  },
  {
    path: ['session', 'delete'],
    operations: ['delete-session'],
    arguments: [session],
    flags: [yesFlag, ifMatchFlag],
    examples: [{ line: 'svcctl session delete helper --yes', does: 'end it and forget it' }],
    run: remove,
  },
  {
    path: ['session', 'message'],
    operations: ['send-session-message'],
    arguments: [session, message],
    flags: sayFlags,
    examples: [{ line: 'svcctl session message helper run the tests', does: 'say something' }],
    run: say('send-session-message'),
  },
  {
    path: ['session', 'prompt'],
    operations: ['prompt-session'],
    arguments: [session, message],
    flags: sayFlags,
    examples: [{ line: 'svcctl session prompt helper - < task.md', does: 'say what a file says' }],
    run: say('prompt-session'),
  },
  {
    path: ['session', 'submit'],
    operations: ['submit-session'],
    arguments: [session, message],
    flags: [intentFlag, ...sayFlags],
    examples: [
      { line: 'svcctl session submit helper --intent interrupt_now stop that', does: 'interrupt, then say it' },
    ],
    run: submit,
  },
  {
    path: ['session', 'nudge'],
    operations: ['nudge-session'],
    arguments: [session, message],
    flags: [whenFlag, keyFlag],
    examples: [{ line: 'svcctl session nudge helper mail is waiting', does: 'remind it once it is idle' }],
    run: nudge,
  },
  {
    path: ['session', 'deliveries'],
    operations: ['list-session-deliveries', 'cancel-session-delivery'],
    arguments: [session],
    flags: [...deliveryFilters, { flags: '--cancel <delivery>', description: 'Cancel this one.' }, ...pageFlags],
    examples: [{ line: 'svcctl session deliveries helper', does: 'what was and will be said to it' }],
    run: deliveries,
  },
  {
    path: ['session', 'stop'],
    operations: ['stop-session'],
    arguments: [session],
    examples: [{ line: 'svcctl session stop helper', does: 'interrupt what it is doing' }],
    run: stop,
  },
  simple('kill', 'kill-session', 'end its processes; it starts again'),
  simple('suspend', 'suspend-session', 'stop it until somebody wakes it'),
  simple('wake', 'wake-session', 'start it'),
  simple('resume', 'resume-session', 'start it'),
  {
    path: ['session', 'close'],
    operations: ['close-session'],
    arguments: [session],
    flags: [{ flags: '--delete' }],
    examples: [{ line: 'svcctl session close helper', does: 'end it for good' }],
    run: close,
  },
  {
    path: ['session', 'rename'],
    operations: ['rename-session'],
    arguments: [session, { name: '<title>' }],
    examples: [{ line: 'svcctl session rename helper "Avatars"', does: 'another title' }],
    run: rename,
  },
  {
    path: ['session', 'permission-mode'],
    operations: ['set-session-permission-mode'],
    arguments: [session, { name: '<mode>', description: 'As the provider has them.' }],
    examples: [{ line: 'svcctl session permission-mode helper plan', does: 'for its next start' }],
    run: setMode,
  },
  {
    path: ['session', 'pending'],
    operations: ['get-session-pending'],
    arguments: [session],
    examples: [{ line: 'svcctl session pending helper', does: 'what it waits for' }],
    run: pending,
  },
  {
    path: ['session', 'respond'],
    operations: ['respond-session', 'get-session-pending'],
    arguments: [
      session,
      {
        name: '[choice]',
        description:
          'Number, label or id of a choice; or approve, approve-always, deny, cancel. Asked for in a terminal where absent.',
        complete: 'none',
      },
    ],
    flags: respondFlags,
    examples: [
      { line: 'svcctl session respond helper', does: 'see what it asks, and choose' },
      { line: 'svcctl session respond helper 1', does: 'the first choice' },
      { line: 'svcctl session respond helper deny', does: 'say no' },
    ],
    run: respond,
  },
  {
    ...reading,
    path: ['session', 'transcript'],
    examples: [{ line: 'svcctl session transcript helper --limit 20', does: 'the last entries' }],
  },
  {
    ...reading,
    path: ['session', 'logs'],
    summary: 'See what a session said and did',
    examples: [{ line: 'svcctl session logs -f helper', does: 'what it says, as it says it' }],
  },
  {
    path: ['session', 'peek'],
    operations: ['peek-session'],
    arguments: [session],
    flags: peekFlags,
    examples: [{ line: 'svcctl session peek helper', does: 'its screen' }],
    run: peek,
  },
  {
    path: ['session', 'attach'],
    operations: ['stream-session', 'submit-session', 'attach-session'],
    summary: 'Talk to a session: its live transcript and an input line',
    description: 'The end of the input (Ctrl-D) leaves; the session goes on.',
    arguments: [session],
    flags: [{ flags: '--command', description: 'Print the command that opens its terminal instead.' }],
    examples: [
      { line: 'svcctl session attach helper', does: 'watch and talk' },
      { line: 'eval "$(svcctl session attach helper --command)"', does: 'open its terminal' },
    ],
    run: attach,
  },
  {
    path: ['session', 'agents'],
    operations: ['list-session-agents', 'get-session-agent'],
    arguments: [session, { name: '[agent]', description: 'Id of a sub-agent: what it said, a line of JSON each.' }],
    examples: [{ line: 'svcctl session agents helper', does: 'its sub-agents' }],
    run: agents,
  },
  {
    path: ['session', 'wait'],
    operations: ['create-session-wait'],
    arguments: [
      {
        name: '<beads...>',
        description: 'The session, then the beads that it waits for; inside a session only the beads.',
        complete: 'session',
      },
    ],
    flags: [
      { flags: '--session <session>', description: 'Who waits; all words are beads then.', complete: 'session' },
      { flags: '--any', description: 'One of them is enough.' },
      ...waitFields,
      keyFlag,
    ],
    examples: [
      { line: 'svcctl session wait helper de-a1b de-c2d', does: 'wake it when both are closed' },
      { line: 'svcctl session wait de-a1b', does: 'from inside the session' },
    ],
    run: wait,
  },
  {
    path: ['session', 'waits'],
    operations: ['list-waits', 'cancel-wait'],
    arguments: [{ ...session, name: '[session]', description: 'Whose waits; those of all where absent.' }],
    flags: [...waitFilters, { flags: '--cancel <wait>', description: 'Cancel this one.' }, ...pageFlags],
    examples: [{ line: 'svcctl session waits --state pending', does: 'who waits for what' }],
    run: waits,
  },
  {
    path: ['session', 'prune'],
    operations: ['prune-sessions'],
    flags: [{ flags: '--closed-before <duration>', description: '7d where absent.' }],
    examples: [{ line: 'svcctl session prune --closed-before 30d', does: 'forget old ones' }],
    run: prune,
  },
  simple('pin', 'pin-session', 'keep it awake'),
  simple('unpin', 'unpin-session', 'let it sleep again'),
  simple('reset', 'reset-session', 'start again with a fresh conversation'),
  simple('drain', 'drain-session', 'let it finish, then sleep'),
  simple('undrain', 'undrain-session', 'take that back'),
  {
    path: ['session', 'drain-status'],
    operations: ['get-session-drain'],
    arguments: [own],
    examples: [{ line: 'svcctl session drain-status -o name', does: 'says draining where it is to finish' }],
    run: drainStatus,
  },
  ofOneself('drain-ack', 'ack-session-drain', 'an agent says that it has finished'),
  ofOneself('request-restart', 'request-session-restart', 'restart once its turn has ended'),
  ofOneself('heartbeat', 'heartbeat-session', 'an agent says that it is at work'),
  simple('release-name', 'release-session-name', 'free the alias of a closed session'),
]
