/** `svcctl bead …`: units of work, what they wait for and who has them. */

import type { Bead, BeadBatchRequest, DeletedBead, HookBead } from '../../contract/beads.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import type { AnswerOf, Call, SaidOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { bodyOf, type Fields, jsonOrText, readData } from '../framework/fields.ts'
import { printItem } from '../framework/run.ts'
import { listWaiting, timeoutWithWait } from '../framework/waiting.ts'
import { around, type View, view, viewInside } from '../print/view.ts'
import { BEADS as TABLE } from '../tables/beads.ts'
import { graphLines } from '../views/bead-graph.ts'
import { exportFile, importFile, RESULT, transferMs, transferTimeout } from '../views/bead-transfer.ts'
import { BEAD, BEADS, COMMENT, DEPS, depRows, printPage } from '../views/bead-views.ts'

const SHOWN = { view: BEAD, rows: BEADS } as const
const held = (shown: View<Bead>) => viewInside(shown, ({ bead }: { readonly bead: Bead }) => bead)
const HELD = { view: held(BEAD), rows: held(BEADS) } as const
const DELETED = view<DeletedBead>()('status id deleted', { name: 'id' })
const ON_HOOK = around(view<HookBead>()('tier').columns, BEADS)
const CLAIMED = view<AnswerOf<'claim-hook'>>()(
  'action reason bead_id bead.title assignee route root_bead_id continuation_group continuation_assigned drain_acknowledged bead.description',
  { name: ({ bead_id: id, action }) => id ?? action },
)
const IDS = view<{ readonly key: string; readonly id: string }>()('key id', { name: 'id' })

/** Who runs the command, where an agent does: the name that it holds work under. */
const ownName = ({ env }: Context['io']): string | undefined =>
  env['SVC_ALIAS'] || env['SVC_SESSION_NAME'] || env['SVC_AGENT'] || undefined

/** The session that asks, unless the command speaks for somebody else. */
const ownSession = ({ env }: Context['io'], speaksForOther: boolean) => ({
  session_id: speaksForOther ? undefined : env['SVC_SESSION_ID'] || undefined,
  session_name: speaksForOther ? undefined : env['SVC_SESSION_NAME'] || undefined,
})

const holder = ({ io }: Context) => ({ assignee: ownName(io) })

function claimant({ io }: Context, input: Input): SaidOf<'claim-bead'> {
  const isOther = input.has('assignee')
  const assignee = ownName(io)
  if (assignee === undefined && !isOther) throw usageError('who claims it is missing', 'say --assignee NAME')
  return { assignee, ...ownSession(io, isOther) }
}

/** Who closes it, and what came out of it. */
async function reporter({ io }: Context, input: Input): Promise<SaidOf<'close-bead'>> {
  const output = await resultOf(io, input.texts('result'))
  return { session_id: io.env['SVC_SESSION_ID'] || undefined, ...(output === undefined ? {} : { output }) }
}

const PAIR = /^([A-Za-z_][\w-]*)=(.*)$/s

/** All of it, or key by key. */
async function resultOf(io: Context['io'], texts: readonly string[]): Promise<unknown> {
  const [only] = texts
  if (only === undefined) return undefined
  if (texts.length === 1 && !PAIR.test(only)) return jsonOrText(await readData(io, only))
  return Object.fromEntries(
    texts.map((text) => {
      const [, key = '', value = ''] = PAIR.exec(text) ?? []
      if (key === '') throw usageError(`invalid --result "${text}": expected KEY=VALUE, where there are several`)
      return [key, jsonOrText(value)]
    }),
  )
}

function asker({ io }: Context, input: Input): SaidOf<'list-hook'> {
  const isOther = input.has('agent')
  const agent = io.env['SVC_AGENT'] || undefined
  if (agent === undefined && !isOther)
    throw usageError('whose hook is missing', 'name the agent: svcctl bead hook AGENT')
  return { agent, ...ownSession(io, isOther) }
}

async function showHook({ context, input, client, cityName, said, options, send }: Call<'list-hook'>): Promise<number> {
  if (input.on('claim')) {
    await context.print.require(CLAIMED)
    const body = bodyOf<{ agent: string }>({ ...said, drain_ack: input.on('drainAck') ? true : undefined })
    return printItem(context, CLAIMED, await client.call('claim-hook', { params: { cityName }, body, ...options }))
  }
  if (input.on('drainAck')) throw usageError('--drain-ack goes with --claim')
  const { body, text } = await send()
  await context.print.list({ items: body.items, ...ON_HOOK, json: text })
  return EXIT.ok
}

async function showReady(call: Call<'list-ready-beads'>): Promise<number> {
  const { context } = call
  const all = await listWaiting(call, call.send)
  await context.print.list({ ...all, ...BEADS })
  if (all.more) await context.note(`showing the first ${all.items.length}; --limit N or --paginate gets more`)
  return EXIT.ok
}

/** In a terminal with what it hangs together with. */
async function showBead({ context, client, cityName, said, options, send }: Call<'get-bead'>): Promise<number> {
  if (!context.io.stdout.isTerminal || !context.print.isForPeople) {
    const reply = await send()
    const code = await printItem(context, BEAD, reply)
    for (const warning of reply.body.warnings ?? []) await context.note(`warning: ${warning}`)
    return code
  }
  const params = { cityName, id: String(said.id) }
  const [bead, deps, comments] = await Promise.all([
    send(),
    client.call('list-bead-deps', { params, ...options }),
    client.call('list-bead-comments', { params, query: { limit: 1 }, ...options }),
  ])
  await printPage(context, { bead: bead.body, json: bead.text, deps: deps.body, comments: comments.body.total })
  for (const warning of bead.body.warnings ?? []) await context.note(`warning: ${warning}`)
  return EXIT.ok
}

async function showGraph({ context, send }: Call<'get-bead-graph'>): Promise<number> {
  const { body, text } = await send()
  const { print, io } = context
  if (!print.isForPeople) {
    await print.list({ items: body.beads, ...BEADS, json: text })
    return EXIT.ok
  }
  const width = io.stdout.isTerminal ? io.stdout.columns : Number.POSITIVE_INFINITY
  await print.lines(graphLines(body, { width, paint: (state, mark) => print.paint(state, mark) }))
  if (body.truncated === true) await context.note(`there are more: only ${body.beads.length} are shown`)
  return EXIT.ok
}

async function createBatch({
  context,
  input,
  client,
  cityName,
  said,
  options,
}: Call<'create-bead-batch'>): Promise<number> {
  const file = input.required('file')
  const plan = jsonObject(await readData(context.io, file === '-' ? '-' : `@${file}`), file)
  const body = bodyOf<BeadBatchRequest>({ ...plan, ...said })
  await context.print.require(IDS)
  const reply = await client.call('create-bead-batch', { params: { cityName }, body, ...options })
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

const command = commandsOf(TABLE)
const ID = { completes: { id: 'bead' } } as const
const FILTERS = {
  flags: { type: '-t', label: '-l', assignee: '-a', priority: '-p', root_bead_id: '--root', metadata: '--meta' },
  says: {
    rig: 'Of this rig.',
    parent: 'Children of this bead.',
    priority: '0 is the most urgent, 4 the least.',
    root_bead_id: 'Of the molecule with this root.',
    routed_to: 'Routed to this agent or pool.',
    metadata: 'With this metadata, KEY=VALUE; KEY: any value.',
  },
  completes: { routed_to: 'agent' },
} as const
const STATUS = { status: '-s' } as const
const BODY = {
  flags: {
    ...{ issue_type: '-t --type', priority: '-p', description: '-d', assignee: '-a', labels: '-l --label' },
    metadata: '--meta',
  },
  says: {
    issue_type: 'Any word: task, bug, feature, chore, epic, …',
    priority: '0 is the most urgent, 4 the least.',
    description: 'The instructions.',
    assignee: 'Who has it.',
    labels: 'A label to put on it.',
    parent: 'Bead that contains it.',
    metadata: 'Metadata to set.',
    defer_until: 'Not ready before.',
  },
  leaves: { type: 'it is the same as issue_type' },
} as const
const DEP = { flags: { type: '-t' }, completes: { id: 'bead', depends_on_id: 'bead' } } as const
const SESSION = {
  session_id: 'Session that works on it (default: SVC_SESSION_ID, in a session).',
  session_name: 'Its name (default: SVC_SESSION_NAME, in a session).',
} as const
const HOLDER = {
  fill: holder,
  flags: { assignee: '-a' },
  says: { assignee: 'Only if this is who has it (default: whoever runs it, in a session).' },
} as const

export const commands: readonly CommandSpec[] = [
  command('bead list', 'list-beads', {
    ...FILTERS,
    flags: { ...FILTERS.flags, ...STATUS },
    view: BEADS,
    examples: {
      'svcctl bead list': 'what is not closed, newest first',
      'svcctl bead list -s in_progress -a mayor': 'what somebody works on',
      'svcctl bead list --all --updated-after 1d --paginate -o jsonl': 'everything that changed today',
    },
  }),
  command('bead get', 'get-bead', {
    ...ID,
    ...SHOWN,
    also: ['list-bead-deps', 'list-bead-comments'],
    arguments: ['<id...>'],
    run: showBead,
    examples: { 'svcctl bead get al-x1y': 'a bead, with what it waits for' },
  }),
  command('bead create', 'create-bead', {
    ...BODY,
    arguments: ['[title...]'],
    says: {
      ...BODY.says,
      needs: 'What blocks it; TYPE:ID for another edge.',
      from: 'Who sends it.',
      ref: 'What it is the bead of, elsewhere.',
      ephemeral: 'Swept some time after it is closed.',
    },
    json: true,
    view: BEAD,
    examples: {
      'svcctl bead create "Fix the login" -t bug -p 1 -l ui': 'file a bug',
      'svcctl bead create Release --needs al-x1y -d @notes.md': 'something that waits for something',
    },
  }),
  command('bead update', 'patch-bead', {
    ...ID,
    ...BODY,
    ...SHOWN,
    arguments: ['<id...>'],
    flags: { ...BODY.flags, ...STATUS, remove_labels: '--remove-label' },
    says: { ...BODY.says, status: 'As closing and reopening do.', remove_labels: 'A label to take off.' },
    json: true,
    examples: {
      'svcctl bead update al-x1y -p 0 -l urgent': 'make it more urgent',
      'svcctl bead update al-x1y --unset defer_until --if-match 4': 'unless somebody was faster',
      [`svcctl bead update --query 'label=ui AND priority>2' -p 2`]: 'all that an expression finds',
    },
  }),
  command('bead delete', 'delete-bead', {
    ...ID,
    arguments: ['<id...>'],
    asks: (names, input) => `Delete ${names}${input.on('cascade') ? ' and everything below' : ''} for good?`,
    view: DELETED,
    examples: { 'svcctl bead delete al-x1y --yes': 'remove it, where nothing refers to it' },
  }),
  command('bead close', 'close-bead', {
    ...ID,
    ...SHOWN,
    arguments: ['<id...>'],
    flags: { reason: '-r' },
    leaves: { output: 'it is --result, whole or key by key' },
    more: [
      {
        flags: '--result <key=value>',
        field: 'output',
        repeatable: true,
        description:
          'What came out of it: a key, whose value is JSON or text; or all of it as JSON or text, @FILE or -.',
      },
    ],
    fill: reporter,
    says: {
      cancel: 'Cancel the molecule that works on it, then close it.',
      outcome: 'How it went.',
      session_id: 'Session that says so (default: SVC_SESSION_ID, in a session).',
      failure_class: 'Is another try worth it.',
      failure_reason: 'What went wrong.',
    },
    examples: {
      'svcctl bead close al-x1y -r "fixed in the parser" --commit 1a2b3c': 'it is done',
      'svcctl bead close al-x1y --outcome fail --failure-class hard': 'it cannot be done',
      [`svcctl bead close al-x1y --result verdict=clean --result 'modules=["a","b"]'`]:
        'a step that has something to report',
      'svcctl bead close al-x1y al-z9k': 'two of them',
    },
  }),
  command('bead reopen', 'reopen-bead', {
    ...SHOWN,
    arguments: ['<id...>'],
    completes: { id: 'closed-bead' },
    examples: { 'svcctl bead reopen al-x1y': 'it was not done after all' },
  }),
  command('bead assign', 'assign-bead', {
    ...ID,
    ...SHOWN,
    arguments: ['<id...>', '<assignee>'],
    says: {
      assignee: 'Who gets it; "" for nobody.',
      expected_assignee: 'Only if this is who has it now; "" for nobody.',
    },
    examples: {
      'svcctl bead assign al-x1y mayor': 'give it to somebody',
      'svcctl bead assign al-x1y bob --expected-assignee amy': 'hand it over',
    },
  }),
  command('bead route', 'route-bead', {
    ...SHOWN,
    arguments: ['<id...>', '<target>'],
    says: { target: 'Agent or pool; "" for none.' },
    completes: { id: 'bead', target: 'agent' },
    examples: { 'svcctl bead route al-x1y shop/polecat': 'let a pool take it' },
  }),
  command('bead claim', 'claim-bead', {
    ...ID,
    arguments: ['<id...>'],
    flags: { assignee: '-a' },
    says: { ...SESSION, assignee: 'Who takes it (default: whoever runs it, in a session).' },
    fill: claimant,
    ...HELD,
    examples: { 'svcctl bead claim al-x1y -a amy': 'take it, if nobody has it; exit code 5 otherwise' },
  }),
  command('bead heartbeat', 'heartbeat-bead', {
    ...ID,
    ...HOLDER,
    ...SHOWN,
    arguments: ['<id...>'],
    examples: { 'svcctl bead heartbeat al-x1y': 'keep a claim' },
  }),
  command('bead release', 'release-bead', {
    ...ID,
    ...HOLDER,
    arguments: ['<id...>'],
    ...HELD,
    examples: { 'svcctl bead release al-x1y': 'give it back' },
  }),
  command('bead ready', 'list-ready-beads', {
    ...FILTERS,
    flags: { ...FILTERS.flags, sort: '--order' },
    says: { ...FILTERS.says, sort: 'By priority, then age; or by age only.' },
    more: [{ flags: '--wait <duration>', description: 'Where nothing is ready, wait so long for something.' }],
    timeoutMs: timeoutWithWait,
    view: BEADS,
    run: showReady,
    examples: {
      'svcctl bead ready --unassigned': 'what could be started now',
      'svcctl bead ready --rig shop --wait 10m -o name': 'wait for work',
    },
  }),
  command('bead query', 'query-beads', {
    arguments: ['<q...>'],
    called: { q: 'expression' },
    says: { q: 'The expression; one word for the shell, or several.' },
    view: BEADS,
    examples: {
      [`svcctl bead query 'status=open AND (priority<2 OR label:urgent)'`]: 'what is urgent',
      [`svcctl bead query 'updated<30d AND assignee=none'`]: 'what nobody cares for',
    },
  }),
  command('bead hook', 'list-hook', {
    also: ['claim-hook'],
    arguments: ['[agent]'],
    says: { ...SESSION, agent: 'Agent, pool or person (default: SVC_AGENT).' },
    completes: { agent: 'agent' },
    fill: asker,
    more: [
      { flags: '--claim', description: 'Take the first that can be taken.' },
      { flags: '--drain-ack', description: 'With --claim: with nothing to do the session ends itself.' },
    ],
    view: ON_HOOK,
    run: showHook,
    examples: {
      'svcctl bead hook mayor': 'what it would be given',
      'svcctl bead hook --claim -o json': 'take the next work, in a session',
    },
  }),
  command('bead dep list', 'list-bead-deps', {
    ...ID,
    arguments: ['<id>'],
    flags: { type: '-t' },
    says: { direction: 'What it depends on, what depends on it, or both.', type: 'Only of this type.' },
    print: async (context, { body, text }) => {
      await context.print.list({ items: depRows(body), ...DEPS, json: text })
      if (body.truncated === true) await context.note('there are more: only the first are listed')
    },
    examples: { 'svcctl bead dep list al-x1y': 'what it waits for, and what waits for it' },
  }),
  command('bead dep add', 'add-bead-dep', {
    ...DEP,
    arguments: ['<id>', '<depends_on_id>'],
    says: { depends_on_id: 'Id of what it depends on.' },
    view: BEAD,
    examples: { 'svcctl bead dep add al-x1y al-z9k': 'the first waits for the second' },
  }),
  command('bead dep remove', 'remove-bead-dep', {
    arguments: ['<id>', '<dependsOnId>'],
    flags: { type: '-t' },
    says: { type: 'Only of this type (default: all types).' },
    completes: { id: 'bead', dependsOnId: 'bead' },
    view: BEAD,
    examples: { 'svcctl bead dep remove al-x1y al-z9k': 'it need not wait any more' },
  }),
  command('bead label add', 'add-bead-label', {
    ...ID,
    ...SHOWN,
    arguments: ['<id...>', '<label>'],
    examples: { 'svcctl bead label add al-x1y ui': 'put a label on it' },
  }),
  command('bead label remove', 'remove-bead-label', {
    ...ID,
    ...SHOWN,
    arguments: ['<id...>', '<label>'],
    examples: { 'svcctl bead label remove al-x1y ui': 'take it off again' },
  }),
  command('bead comment list', 'list-bead-comments', {
    ...ID,
    arguments: ['<id>'],
    view: COMMENT,
    examples: { 'svcctl bead comment list al-x1y': 'what was said about it' },
  }),
  command('bead comment add', 'add-bead-comment', {
    ...ID,
    arguments: ['<id>', '<text...>'],
    says: {
      text: 'What is said; - for stdin.',
      author: 'Who says it (default: the session, or the user who runs it).',
    },
    fill: ({ io }) => ({ author: ownName(io) ?? (io.env['USER'] || io.env['LOGNAME'] || undefined) }),
    view: COMMENT,
    examples: { 'svcctl bead comment add al-x1y "see the log of yesterday"': 'say something about it' },
  }),
  command('bead graph', 'get-bead-graph', {
    arguments: ['<rootID>'],
    called: { rootID: 'id' },
    completes: { rootID: 'bead' },
    run: showGraph,
    examples: { 'svcctl bead graph al-x1y': 'a tree: ✓ closed, ▶ in progress, ■ blocked, ○ open' },
  }),
  command('bead import', 'import-beads', {
    description:
      'One JSON object a line, as the bd tool writes them. A bad line is told of on stderr and does not poison the rest; exit code 1 when there was one.',
    operands: [{ name: '<file>', description: 'The file; - for stdin.', complete: 'file' }],
    more: [transferTimeout],
    timeoutMs: transferMs,
    view: RESULT,
    run: importFile,
    examples: {
      'svcctl bead import beads.jsonl --dry-run': 'see what would happen',
      'bd export | svcctl bead import - --remap': 'from another tracker',
    },
  }),
  command('bead export', 'export-beads', {
    ...FILTERS,
    flags: { ...FILTERS.flags, ...STATUS },
    operands: [{ name: '[file]', description: 'Where to put it (default: stdout).', complete: 'file' }],
    more: [transferTimeout],
    timeoutMs: transferMs,
    run: exportFile,
    examples: { 'svcctl bead export beads.jsonl --rig shop': 'everything of a rig, sorted by id' },
  }),
  command('bead batch', 'create-bead-batch', {
    operands: [{ name: '<file>', description: 'JSON with nodes and edges; - for stdin.', complete: 'file' }],
    leaves: { nodes: 'they are in the file', edges: 'they are in the file' },
    run: createBatch,
    examples: { 'svcctl bead batch plan.json': 'all of it or nothing' },
  }),
]
