/** `svcctl bead …`: units of work, what they wait for and who has them. */
import type { Reply } from '../../client/client.ts'
import type {
  BEAD_STATUSES,
  Bead,
  BeadBatchRequest,
  BeadCloseRequest,
  BeadCreateRequest,
  BeadPatchRequest,
  DeletedBead,
  FAILURE_CLASSES,
  HookBead,
  OUTCOMES,
} from '../../contract/beads.ts'
import { parseTimeout, settle, waitFlags } from '../base/accepted.ts'
import { type CommandSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { readData, readWords } from '../base/data.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { bodyOf, type Fields, ifMatchFlag, setFlags, unsetFlag } from '../base/fields.ts'
import {
  type AnswerOf,
  asking,
  fieldsOver,
  type InCity,
  inCity,
  printsItem,
  printsPages,
  type QueryFor,
  type View,
  viewOf,
} from '../base/in-city.ts'
import { pageFlags } from '../base/paged.ts'
import { type FieldFlag, fieldsFrom, fieldsOf } from '../base/said-flags.ts'
import { graphLines } from '../views/bead-graph.ts'
import { exportFile, importFile, transferTimeout } from '../views/bead-transfer.ts'
import { BEAD, BEADS, COMMENT, DEPS, depRows, printPage } from '../views/bead-views.ts'

const STATUSES = ['open', 'in_progress', 'closed'] as const satisfies typeof BEAD_STATUSES
const RESULTS = ['pass', 'fail', 'skipped', 'canceled', 'missing_root'] as const satisfies typeof OUTCOMES
const FAILURES = ['transient', 'hard'] as const satisfies typeof FAILURE_CLASSES
const TYPE_HELP = 'Any word: task, bug, feature, chore, epic, …'
const PRIORITY_HELP = '0 is the most urgent, 4 the least.'
const TIME_HELP = 'A time, or how long ago: 7d.'

/** Fields of a bead that can be said when it is made and when it is changed. */
const bodyFlags: readonly FieldFlag[] = [
  { flags: '-t, --type <type>', field: 'issue_type', description: TYPE_HELP },
  { flags: '-p, --priority <n>', as: 'number', description: PRIORITY_HELP },
  { flags: '-d, --description <text>', as: 'data', description: 'The instructions; @FILE or - to read them.' },
  { flags: '-a, --assignee <name>', description: 'Who has it.' },
  { flags: '-l, --label <label>', field: 'labels', repeatable: true, description: 'A label to put on it.' },
  { flags: '--parent <id>', description: 'Bead that contains it.', complete: 'bead' },
  { flags: '--meta <key=value>', field: 'metadata', repeatable: true, as: 'pairs', description: 'Metadata to set.' },
  {
    flags: '--defer-until <time>',
    as: 'future',
    description: 'Not ready before: a time, or a duration from now.',
  },
]
const createFlags: readonly FieldFlag[] = [
  ...bodyFlags,
  {
    flags: '--needs <id>',
    field: 'needs',
    repeatable: true,
    description: 'What blocks it; TYPE:ID for another edge.',
    complete: 'bead',
  },
  { flags: '--rig <rig>', description: 'Rig that it belongs to; the city itself where absent.', complete: 'rig' },
  { flags: '--ephemeral', description: 'Swept some time after it is closed.' },
  { flags: '--from <name>', description: 'Who sends it.' },
  { flags: '--ref <ref>', description: 'What it is the bead of, elsewhere.' },
]
const updateFlags: readonly FieldFlag[] = [
  { flags: '--title <title>', description: 'What it is about.' },
  { flags: '-s, --status <status>', choices: STATUSES, description: 'As closing and reopening do.' },
  ...bodyFlags,
  { flags: '--remove-label <label>', field: 'remove_labels', repeatable: true, description: 'A label to take off.' },
]
const closeFlags: readonly FieldFlag[] = [
  { flags: '-r, --reason <text>', description: 'Why it is done.' },
  { flags: '--outcome <outcome>', choices: RESULTS, description: 'How it went.' },
  {
    flags: '--result <json>',
    field: 'output',
    as: 'json',
    description: 'What came out of it: JSON or text, @FILE or -.',
  },
  { flags: '--failure-class <class>', choices: FAILURES, description: 'Is another try worth it.' },
  { flags: '--failure-reason <text>', description: 'What went wrong.' },
  { flags: '--commit <commit>', description: 'Commit that holds the work.' },
]

const readyFilters: readonly FieldFlag[] = [
  { flags: '-t, --type <type>', field: 'type', repeatable: true, description: 'Any of these types.' },
  { flags: '-l, --label <label>', field: 'label', repeatable: true, description: 'All of these labels.' },
  { flags: '-a, --assignee <name>', description: 'Who has it, under any of their names.' },
  { flags: '--unassigned', description: 'Nobody has it.' },
  { flags: '--rig <rig>', description: 'Of this rig.', complete: 'rig' },
  { flags: '--parent <id>', description: 'Children of this bead.', complete: 'bead' },
  { flags: '-p, --priority <n>', as: 'number', description: PRIORITY_HELP },
  { flags: '--routed-to <name>', description: 'Routed to this agent or pool.', complete: 'agent' },
  { flags: '--root <id>', field: 'root_bead_id', description: 'Of the molecule with this root.' },
  {
    flags: '--meta <key=value>',
    field: 'metadata',
    repeatable: true,
    description: 'With this metadata; KEY: any value.',
  },
  { flags: '--created-before <time>', as: 'past', description: TIME_HELP },
  { flags: '--created-after <time>', as: 'past', description: TIME_HELP },
  { flags: '--updated-before <time>', as: 'past', description: TIME_HELP },
  { flags: '--updated-after <time>', as: 'past', description: TIME_HELP },
  { flags: '--q <words>', field: 'q', description: 'Words of title and description.' },
]
const tierFilter: FieldFlag = {
  flags: '--ephemeral <tier>',
  choices: ['only', 'exclude'],
  description: 'Both tiers where absent.',
}
const closedFilters: readonly FieldFlag[] = [
  { flags: '-s, --status <status>', repeatable: true, choices: STATUSES, description: 'Any of these.' },
  { flags: '--closed-before <time>', as: 'past', description: TIME_HELP },
  { flags: '--closed-after <time>', as: 'past', description: TIME_HELP },
]
const allFlag: FieldFlag = { flags: '--all', description: 'Closed beads too.' }
const orderFlag: FieldFlag = {
  flags: '--order <order>',
  choices: ['asc', 'desc'],
  description: 'Oldest or newest first.',
}
const listFilters: readonly FieldFlag[] = [...closedFilters, allFlag, ...readyFilters, tierFilter, orderFlag]
const readyOnly: readonly FieldFlag[] = [
  ...readyFilters,
  tierFilter,
  { flags: '--exclude-type <type>', repeatable: true, description: 'None of these types.' },
  { flags: '--exclude-label <label>', repeatable: true, description: 'None of these labels.' },
  {
    flags: '--order <order>',
    field: 'sort',
    choices: ['ready', 'oldest'],
    description: 'By priority, then age; or by age only.',
  },
]
const exportFilters: readonly FieldFlag[] = [
  ...closedFilters,
  ...readyFilters,
  { flags: '--ephemeral <tier>', choices: ['only', 'include'], description: 'Left out where absent.' },
]
const importFlags: readonly FieldFlag[] = [
  { flags: '--rig <rig>', description: 'Whose beads these are; by their prefixes where absent.', complete: 'rig' },
  { flags: '--mode <mode>', choices: ['upsert', 'create'], description: '`create`: an id that exists is an error.' },
  { flags: '--dry-run', description: 'Only say what would happen.' },
  { flags: '--remap', description: 'New ids where the prefix is not one of the city.' },
]

const itemParams = ({ cityName, input }: InCity) => ({ cityName, id: input.required('id') })

/** Who runs the command, where an agent does: the name that it holds work under. */
const ownName = ({ env }: Context['io']): string | undefined =>
  env['SVC_ALIAS'] || env['SVC_SESSION_NAME'] || env['SVC_AGENT'] || undefined

/** The session that asks, unless the command speaks for somebody else. */
const ownSession = ({ env }: Context['io'], input: Input, given: string | undefined): Fields => ({
  session_id: input.text('sessionId') ?? (given === undefined ? env['SVC_SESSION_ID'] || undefined : undefined),
  session_name: input.text('sessionName') ?? (given === undefined ? env['SVC_SESSION_NAME'] || undefined : undefined),
})

const list = printsPages(
  BEADS,
  ({ client, cityName, options }, page, filters) => {
    const query = { ...bodyOf<QueryFor<'list-beads'>>(filters), ...page }
    return client.call('list-beads', { params: { cityName }, query, ...options })
  },
  { fields: fieldsOf(listFilters) },
)

const query = printsPages(
  BEADS,
  ({ client, cityName, input, options }, page, fields) => {
    const expression = { q: input.texts('expression').join(' '), ...bodyOf<object>(fields) }
    return client.call('query-beads', { params: { cityName }, query: { ...expression, ...page }, ...options })
  },
  { fields: fieldsOf([allFlag, orderFlag]) },
)

/** The server holds one answer back no longer. */
const LONGEST_WAIT_MS = 120_000
const patienceMs = (input: Input): Promise<number> => parseTimeout(input, 0, 'wait')

const ready = printsPages(
  BEADS,
  async ({ context, client, cityName, input, options }, page, filters) => {
    const { clock } = context.io
    const until = clock.now() + (await patienceMs(input))
    const ask = (more: QueryFor<'list-ready-beads'>) => {
      const query = { ...bodyOf<QueryFor<'list-ready-beads'>>(filters), ...page, ...more }
      return client.call('list-ready-beads', { params: { cityName }, query, ...options })
    }
    let reply = await ask({})
    while (page.cursor === undefined && reply.body.items.length === 0 && clock.now() < until) {
      const wait = `${Math.ceil(Math.min(until - clock.now(), LONGEST_WAIT_MS))}ms`
      reply = await ask({ index: Number(reply.headers.get('x-svc-index')), wait })
    }
    return reply
  },
  { fields: fieldsOf(readyOnly), patienceMs },
)

async function get(context: Context, input: Input): Promise<number> {
  const { io, print } = context
  const page = io.stdout.isTerminal && (print.format === 'table' || print.format === 'wide')
  return page ? getPage(context, input) : getItem(context, input)
}

const getItem = printsItem(BEAD, (city) => city.client.call('get-bead', { params: itemParams(city), ...city.options }))

async function getPage(context: Context, input: Input): Promise<number> {
  const [bead, deps, comments] = await inCity(context, input, (city) => {
    const [{ client, options }, params] = [city, itemParams(city)]
    return Promise.all([
      client.call('get-bead', { params, ...options }),
      client.call('list-bead-deps', { params, ...options }),
      client.call('list-bead-comments', { params, query: { limit: 1 }, ...options }),
    ])
  })
  await printPage(context, { bead: bead.body, json: bead.text, deps: deps.body, comments: comments.body.total })
  return EXIT.ok
}

const create = printsItem(
  BEAD,
  ({ client, cityName, options }, fields) =>
    client.call('create-bead', { params: { cityName }, body: bodyOf<BeadCreateRequest>(fields), ...options }),
  fieldsOver(async (context, input) => {
    const title = input.texts('title').join(' ')
    return { ...(title === '' ? {} : { title }), ...(await fieldsFrom(context, input, createFlags)) }
  }),
)

const update = printsItem(
  BEAD,
  (city, fields) =>
    city.client.call('patch-bead', {
      params: itemParams(city),
      body: bodyOf<BeadPatchRequest>(fields),
      ...city.options,
    }),
  fieldsOver(fieldsOf(updateFlags)),
)

const DELETED: View<DeletedBead> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'ID', value: ({ id }) => id },
    { header: 'DELETED', value: ({ deleted }) => deleted.join(', ') },
  ],
  name: ({ id }) => id,
}
const remove = asking(
  (input) => `Delete ${input.required('id')}${input.on('cascade') ? ' and everything below it' : ''} for good?`,
  (context, input) =>
    inCity(context, input, async (city) => {
      const { body, text } = await city.client.call('delete-bead', {
        params: itemParams(city),
        query: { cascade: input.on('cascade') ? true : undefined },
        ...city.options,
      })
      if ('request_id' in body) return settle(context, input, 'bead.delete', { ...body, city: city.cityName }, text)
      await context.print.item({ item: body, ...DELETED, json: text })
      return EXIT.ok
    }),
)

const close = printsItem(
  BEAD,
  (city, fields) =>
    city.client.call('close-bead', {
      params: itemParams(city),
      body: bodyOf<BeadCloseRequest>(fields),
      ...city.options,
    }),
  fieldsOf(closeFlags),
)

const reopen = printsItem(BEAD, (city) =>
  city.client.call('reopen-bead', { params: itemParams(city), ...city.options }),
)

const assign = printsItem(BEAD, (city) => {
  const expected = city.input.text('expectedAssignee')
  return city.client.call('assign-bead', {
    params: itemParams(city),
    body: {
      assignee: city.input.required('assignee'),
      ...(expected === undefined ? {} : { expected_assignee: expected }),
    },
    ...city.options,
  })
})

async function route(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('route-bead', {
      params: itemParams(city),
      body: { target: input.required('target') },
      ...city.options,
    }),
  )
  for (const warning of body.warnings ?? []) await context.note(`warning: ${warning}`)
  await context.print.item({ item: body, ...BEAD, json: text })
  return EXIT.ok
}

const claim = printsItem(
  viewOf(BEAD, ({ bead }: AnswerOf<'claim-bead'>) => bead),
  async (city, fields) => {
    const reply = await city.client.call('claim-bead', {
      params: itemParams(city),
      body: bodyOf<{ assignee: string }>(fields),
      ...city.options,
    })
    for (const warning of reply.body.warnings ?? []) await city.context.note(`warning: ${warning}`)
    return reply
  },
  async ({ io }, input) => {
    const given = input.text('assignee')
    const assignee = given ?? ownName(io)
    if (assignee === undefined) throw usageError('who claims it is missing', 'say --assignee NAME')
    return { assignee, branch: input.text('branch'), ...ownSession(io, input, given) }
  },
)

const holderFields = async ({ io }: Context, input: Input): Promise<Fields> => ({
  assignee: input.text('assignee') ?? ownName(io),
})

const heartbeat = printsItem(
  BEAD,
  (city, fields) =>
    city.client.call('heartbeat-bead', { params: itemParams(city), body: bodyOf<object>(fields), ...city.options }),
  holderFields,
)

const release = printsItem(
  viewOf(BEAD, ({ bead }: AnswerOf<'release-bead'>) => bead),
  (city, fields) =>
    city.client.call('release-bead', { params: itemParams(city), body: bodyOf<object>(fields), ...city.options }),
  holderFields,
)

const ON_HOOK: View<HookBead> = {
  columns: [{ header: 'TIER', value: ({ tier }) => tier }, ...BEADS.columns],
  name: BEADS.name,
}
const CLAIMED: View<AnswerOf<'claim-hook'>> = {
  columns: [
    { header: 'ACTION', value: (answer) => answer.action },
    { header: 'REASON', value: (answer) => answer.reason },
    { header: 'BEAD_ID', value: (answer) => answer.bead_id },
    { header: 'TITLE', value: ({ bead }) => bead?.title },
    { header: 'ASSIGNEE', value: (answer) => answer.assignee },
    { header: 'ROUTE', value: (answer) => answer.route },
    { header: 'ROOT_BEAD_ID', value: (answer) => answer.root_bead_id },
    { header: 'CONTINUATION_GROUP', value: (answer) => answer.continuation_group },
    { header: 'CONTINUATION_ASSIGNED', value: (answer) => answer.continuation_assigned?.join(', ') },
    { header: 'DRAIN_ACKNOWLEDGED', value: (answer) => answer.drain_acknowledged },
    { header: 'DESCRIPTION', value: ({ bead }) => bead?.description },
  ],
  name: ({ bead_id: id, action }) => id ?? action,
}

const claimNext = printsItem(
  CLAIMED,
  ({ client, cityName, options }, fields) =>
    client.call('claim-hook', { params: { cityName }, body: bodyOf<{ agent: string }>(fields), ...options }),
  async (context, input) => ({ ...asker(context, input), drain_ack: input.on('drainAck') ? true : undefined }),
)

async function hook(context: Context, input: Input): Promise<number> {
  if (input.on('claim')) return claimNext(context, input)
  if (input.on('drainAck')) throw usageError('--drain-ack goes with --claim')
  const { body, text } = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('list-hook', {
      params: { cityName },
      query: bodyOf<QueryFor<'list-hook'>>(asker(context, input)),
      ...options,
    }),
  )
  await context.print.list({ items: body.items, ...ON_HOOK, json: text })
  return EXIT.ok
}

function asker({ io }: Context, input: Input): Fields & { readonly agent: string } {
  const given = input.text('agent')
  const agent = given ?? (io.env['SVC_AGENT'] || undefined)
  if (agent === undefined) throw usageError('whose hook is missing', 'name the agent: svcctl bead hook AGENT')
  return { agent, ...ownSession(io, input, given) }
}

async function listDeps(context: Context, input: Input): Promise<number> {
  const fields = await fieldsFrom(context, input, depFilters)
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('list-bead-deps', {
      params: itemParams(city),
      query: bodyOf<QueryFor<'list-bead-deps'>>(fields),
      ...city.options,
    }),
  )
  await context.print.list({ items: depRows(body), ...DEPS, json: text })
  if (body.truncated === true) await context.note('there are more: only the first are listed')
  return EXIT.ok
}

const addDep = printsItem(BEAD, (city) => {
  const type = city.input.text('type')
  return city.client.call('add-bead-dep', {
    params: itemParams(city),
    body: { depends_on_id: city.input.required('depends_on_id'), ...(type === undefined ? {} : { type }) },
    ...city.options,
  })
})

const removeDep = printsItem(BEAD, (city) =>
  city.client.call('remove-bead-dep', {
    params: { ...itemParams(city), dependsOnId: city.input.required('depends_on_id') },
    query: { type: city.input.text('type') },
    ...city.options,
  }),
)

const setLabel = (operation: 'add-bead-label' | 'remove-bead-label') =>
  printsItem(
    BEAD,
    (city): Promise<Reply<Bead>> =>
      city.client.call(operation, {
        params: { ...itemParams(city), label: city.input.required('label') },
        ...city.options,
      }),
  )

const listComments = printsPages(COMMENT, (city, page) =>
  city.client.call('list-bead-comments', { params: itemParams(city), query: page, ...city.options }),
)

const addComment = printsItem(
  COMMENT,
  (city, fields) =>
    city.client.call('add-bead-comment', {
      params: itemParams(city),
      body: bodyOf<{ text: string }>(fields),
      ...city.options,
    }),
  async ({ io }, input) => ({
    text: await readWords(io, input.texts('text')),
    author: input.text('author') ?? ownName(io) ?? (io.env['USER'] || io.env['LOGNAME'] || undefined),
  }),
)

async function graph(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('get-bead-graph', { params: { cityName, rootID: input.required('id') }, ...options }),
  )
  const { print, io } = context
  if (print.format !== 'table' && print.format !== 'wide') {
    await print.list({ items: body.beads, ...BEADS, json: text })
    return EXIT.ok
  }
  const width = io.stdout.isTerminal ? io.stdout.columns : Number.POSITIVE_INFINITY
  await print.lines(graphLines(body, { width, paint: (state, mark) => print.paint(state, mark) }))
  if (body.truncated === true) await context.note(`there are more: only ${body.beads.length} are shown`)
  return EXIT.ok
}

const IDS: View<{ readonly key: string; readonly id: string }> = {
  columns: [
    { header: 'KEY', value: ({ key }) => key },
    { header: 'ID', value: ({ id }) => id },
  ],
  name: ({ id }) => id,
}

async function batch(context: Context, input: Input): Promise<number> {
  const file = input.required('file')
  const body = bodyOf<BeadBatchRequest>({
    ...jsonObject(await readData(context.io, file === '-' ? '-' : `@${file}`, 'file'), file),
    rig: input.text('rig'),
  })
  const reply = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('create-bead-batch', { params: { cityName }, body, ...options }),
  )
  const items = Object.entries(reply.body.ids).map(([key, id]) => ({ key, id }))
  await context.print.list({ items, ...IDS, json: reply.text })
  return EXIT.ok
}

function jsonObject(text: string, file: string): Fields {
  try {
    const fields: unknown = JSON.parse(text)
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) return { ...fields }
  } catch {}
  throw usageError(`${file} is no JSON object`, 'expected {"nodes": […], "edges": […]}')
}

const bead = { name: '<id>', description: 'Id of the bead.', complete: 'bead' } as const
const holderFlag = {
  flags: '-a, --assignee <name>',
  description: 'Only if this is who has it; whoever runs it, in a session.',
} as const
const sessionFlags = [
  { flags: '--session-id <id>', description: 'Session that works on it; SVC_SESSION_ID in a session.' },
  { flags: '--session-name <name>', description: 'Its name; SVC_SESSION_NAME in a session.' },
] as const
const depType: FieldFlag = { flags: '-t, --type <type>', field: 'type', description: '`blocks` where absent.' }
const depFilters: readonly FieldFlag[] = [
  {
    flags: '--direction <direction>',
    choices: ['down', 'up', 'both'],
    description: 'What it depends on, what depends on it, or both.',
  },
  { flags: '-t, --type <type>', field: 'type', description: 'Only of this type.' },
]
const dependsOn = { name: '<depends_on_id>', description: 'Id of what it depends on.', complete: 'bead' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['bead', 'list'],
    operations: ['list-beads'],
    flags: [...listFilters, ...pageFlags],
    examples: [
      { line: 'svcctl bead list', does: 'what is not closed, newest first' },
      { line: 'svcctl bead list -s in_progress -a mayor', does: 'what somebody works on' },
      { line: 'svcctl bead list --all --updated-after 1d --paginate -o jsonl', does: 'everything that changed today' },
    ],
    run: list,
  },
  {
    path: ['bead', 'get'],
    operations: ['get-bead', 'list-bead-deps', 'list-bead-comments'],
    arguments: [bead],
    examples: [{ line: 'svcctl bead get al-x1y', does: 'a bead, with what it waits for' }],
    run: get,
  },
  {
    path: ['bead', 'create'],
    operations: ['create-bead'],
    arguments: [{ name: '[title...]', description: 'What it is about.' }],
    flags: [...createFlags, ...setFlags, keyFlag],
    examples: [
      { line: 'svcctl bead create "Fix the login" -t bug -p 1 -l ui', does: 'file a bug' },
      { line: 'svcctl bead create Release --needs al-x1y -d @notes.md', does: 'something that waits for something' },
    ],
    run: create,
  },
  {
    path: ['bead', 'update'],
    operations: ['patch-bead'],
    arguments: [bead],
    flags: [...updateFlags, ...setFlags, unsetFlag, ifMatchFlag],
    examples: [
      { line: 'svcctl bead update al-x1y -p 0 -l urgent', does: 'make it more urgent' },
      { line: 'svcctl bead update al-x1y --unset defer_until --if-match 4', does: 'unless somebody was faster' },
    ],
    run: update,
  },
  {
    path: ['bead', 'delete'],
    operations: ['delete-bead'],
    arguments: [bead],
    flags: [
      { flags: '--cascade', description: 'Its children too, and edges to them.' },
      yesFlag,
      ifMatchFlag,
      ...waitFlags,
    ],
    examples: [{ line: 'svcctl bead delete al-x1y --yes', does: 'remove it, where nothing refers to it' }],
    run: remove,
  },
  {
    path: ['bead', 'close'],
    operations: ['close-bead'],
    arguments: [bead],
    flags: [...closeFlags, ifMatchFlag],
    examples: [
      { line: 'svcctl bead close al-x1y -r "fixed in the parser" --commit 1a2b3c', does: 'it is done' },
      { line: 'svcctl bead close al-x1y --outcome fail --failure-class hard', does: 'it cannot be done' },
    ],
    run: close,
  },
  {
    path: ['bead', 'reopen'],
    operations: ['reopen-bead'],
    arguments: [{ ...bead, complete: 'closed-bead' }],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl bead reopen al-x1y', does: 'it was not done after all' }],
    run: reopen,
  },
  {
    path: ['bead', 'assign'],
    operations: ['assign-bead'],
    arguments: [bead, { name: '<assignee>', description: 'Who gets it; "" for nobody.' }],
    flags: [
      { flags: '--expected-assignee <name>', description: 'Only if this is who has it now; "" for nobody.' },
      ifMatchFlag,
    ],
    examples: [
      { line: 'svcctl bead assign al-x1y mayor', does: 'give it to somebody' },
      { line: 'svcctl bead assign al-x1y bob --expected-assignee amy', does: 'hand it over' },
    ],
    run: assign,
  },
  {
    path: ['bead', 'route'],
    operations: ['route-bead'],
    arguments: [bead, { name: '<target>', description: 'Agent or pool; "" for none.', complete: 'agent' }],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl bead route al-x1y shop/polecat', does: 'let a pool take it' }],
    run: route,
  },
  {
    path: ['bead', 'claim'],
    operations: ['claim-bead'],
    arguments: [bead],
    flags: [
      { flags: '-a, --assignee <name>', description: 'Who takes it; whoever runs it, in a session.' },
      ...sessionFlags,
      { flags: '--branch <branch>', description: 'Branch that the work is on.' },
      ifMatchFlag,
    ],
    examples: [{ line: 'svcctl bead claim al-x1y -a amy', does: 'take it, if nobody has it; exit code 5 otherwise' }],
    run: claim,
  },
  {
    path: ['bead', 'heartbeat'],
    operations: ['heartbeat-bead'],
    arguments: [bead],
    flags: [holderFlag, ifMatchFlag],
    examples: [{ line: 'svcctl bead heartbeat al-x1y', does: 'keep a claim' }],
    run: heartbeat,
  },
  {
    path: ['bead', 'release'],
    operations: ['release-bead'],
    arguments: [bead],
    flags: [holderFlag, ifMatchFlag],
    examples: [{ line: 'svcctl bead release al-x1y', does: 'give it back' }],
    run: release,
  },
  {
    path: ['bead', 'ready'],
    operations: ['list-ready-beads'],
    flags: [
      ...readyOnly,
      { flags: '--wait <duration>', description: 'Where nothing is ready, wait so long for something.' },
      ...pageFlags,
    ],
    examples: [
      { line: 'svcctl bead ready --unassigned', does: 'what could be started now' },
      { line: 'svcctl bead ready --rig shop --wait 10m -o name', does: 'wait for work' },
    ],
    run: ready,
  },
  {
    path: ['bead', 'query'],
    operations: ['query-beads'],
    arguments: [
      { name: '<expression...>', field: 'q', description: 'The expression; one word for the shell, or several.' },
    ],
    flags: [allFlag, orderFlag, ...pageFlags],
    examples: [
      { line: `svcctl bead query 'status=open AND (priority<2 OR label:urgent)'`, does: 'what is urgent' },
      { line: `svcctl bead query 'updated<30d AND assignee=none'`, does: 'what nobody cares for' },
    ],
    run: query,
  },
  {
    path: ['bead', 'hook'],
    operations: ['list-hook', 'claim-hook'],
    arguments: [{ name: '[agent]', description: 'Agent, pool or person; SVC_AGENT where absent.', complete: 'agent' }],
    flags: [
      { flags: '--claim', description: 'Take the first that can be taken.' },
      { flags: '--drain-ack', description: 'With --claim: with nothing to do the session ends itself.' },
      ...sessionFlags,
    ],
    examples: [
      { line: 'svcctl bead hook mayor', does: 'what it would be given' },
      { line: 'svcctl bead hook --claim -o json', does: 'take the next work, in a session' },
    ],
    run: hook,
  },
  {
    path: ['bead', 'dep', 'list'],
    operations: ['list-bead-deps'],
    arguments: [bead],
    flags: depFilters,
    examples: [{ line: 'svcctl bead dep list al-x1y', does: 'what it waits for, and what waits for it' }],
    run: listDeps,
  },
  {
    path: ['bead', 'dep', 'add'],
    operations: ['add-bead-dep'],
    arguments: [bead, dependsOn],
    flags: [depType, ifMatchFlag],
    examples: [{ line: 'svcctl bead dep add al-x1y al-z9k', does: 'the first waits for the second' }],
    run: addDep,
  },
  {
    path: ['bead', 'dep', 'remove'],
    operations: ['remove-bead-dep'],
    arguments: [bead, dependsOn],
    flags: [{ flags: '-t, --type <type>', description: 'All types where absent.' }, ifMatchFlag],
    examples: [{ line: 'svcctl bead dep remove al-x1y al-z9k', does: 'it need not wait any more' }],
    run: removeDep,
  },
  {
    path: ['bead', 'label', 'add'],
    operations: ['add-bead-label'],
    arguments: [bead, { name: '<label>' }],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl bead label add al-x1y ui', does: 'put a label on it' }],
    run: setLabel('add-bead-label'),
  },
  {
    path: ['bead', 'label', 'remove'],
    operations: ['remove-bead-label'],
    arguments: [bead, { name: '<label>' }],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl bead label remove al-x1y ui', does: 'take it off again' }],
    run: setLabel('remove-bead-label'),
  },
  {
    path: ['bead', 'comment', 'list'],
    operations: ['list-bead-comments'],
    arguments: [bead],
    flags: pageFlags,
    examples: [{ line: 'svcctl bead comment list al-x1y', does: 'what was said about it' }],
    run: listComments,
  },
  {
    path: ['bead', 'comment', 'add'],
    operations: ['add-bead-comment'],
    arguments: [bead, { name: '<text...>', description: 'What is said; - for stdin.' }],
    flags: [
      { flags: '--author <name>', description: 'Who says it: the session, or the user who runs it, where absent.' },
      keyFlag,
    ],
    examples: [{ line: 'svcctl bead comment add al-x1y "see the log of yesterday"', does: 'say something about it' }],
    run: addComment,
  },
  {
    path: ['bead', 'graph'],
    operations: ['get-bead-graph'],
    arguments: [{ name: '<id>', field: 'rootID', description: 'Id of its root.', complete: 'bead' }],
    examples: [{ line: 'svcctl bead graph al-x1y', does: 'a tree: ✓ closed, ▶ in progress, ■ blocked, ○ open' }],
    run: graph,
  },
  {
    path: ['bead', 'import'],
    operations: ['import-beads'],
    description:
      'One JSON object a line, as the bd tool writes them. A bad line is told of on stderr and does not poison the rest; exit code 1 when there was one.',
    arguments: [{ name: '<file>', description: 'The file; - for stdin.', complete: 'file' }],
    flags: [...importFlags, transferTimeout],
    examples: [
      { line: 'svcctl bead import beads.jsonl --dry-run', does: 'see what would happen' },
      { line: 'bd export | svcctl bead import - --remap', does: 'from another tracker' },
    ],
    run: importFile(importFlags),
  },
  {
    path: ['bead', 'export'],
    operations: ['export-beads'],
    arguments: [{ name: '[file]', description: 'Where to put it; stdout where absent.', complete: 'file' }],
    flags: [...exportFilters, transferTimeout],
    examples: [{ line: 'svcctl bead export beads.jsonl --rig shop', does: 'everything of a rig, sorted by id' }],
    run: exportFile(exportFilters),
  },
  {
    path: ['bead', 'batch'],
    operations: ['create-bead-batch'],
    arguments: [{ name: '<file>', description: 'JSON with nodes and edges; - for stdin.', complete: 'file' }],
    flags: [{ flags: '--rig <rig>', description: 'Rig of the nodes that name none.', complete: 'rig' }, keyFlag],
    examples: [{ line: 'svcctl bead batch plan.json', does: 'all of it or nothing' }],
    run: batch,
  },
]
