/** `svcctl convoy …`: groups of work, and how far they are. */
import type { Reply } from '../../client/client.ts'
import type {
  Convoy,
  ConvoyCreateRequest,
  ConvoyPatchRequest,
  MERGE_STRATEGIES,
  StrandedBead,
} from '../../contract/convoys.ts'
import { type CommandSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { type FieldFlag, fieldsFrom, fieldsOf } from '../base/field-flags.ts'
import { bodyOf, ifMatchFlag, setFlags, unsetFlag } from '../base/fields.ts'
import {
  type AnswerOf,
  allColumns,
  asking,
  fieldsOver,
  type InCity,
  inCity,
  printsItem,
  printsPages,
  type QueryFor,
  type View,
} from '../base/in-city.ts'
import { listAll, mostOf, pageFlags, pageSize } from '../base/paged.ts'
import { BEADS } from '../views/bead-views.ts'

const STRATEGIES = ['direct', 'mr', 'local'] as const satisfies typeof MERGE_STRATEGIES

/** A row each. */
const CONVOYS: View<Convoy> = {
  columns: [
    { header: 'ID', value: (convoy) => convoy.id },
    { header: 'STATUS', value: (convoy) => convoy.status, kind: 'state' },
    { header: 'PROGRESS', value: ({ progress }) => `${progress.closed} of ${progress.total}` },
    { header: 'OWNER', value: (convoy) => convoy.owner },
    { header: 'TITLE', value: (convoy) => convoy.title },
    { header: 'AGE', value: (convoy) => convoy.created_at, kind: 'time' },
    { header: 'OWNED', value: (convoy) => convoy.owned, wide: true },
    { header: 'NOTIFY', value: (convoy) => convoy.notify, wide: true },
    { header: 'MERGE', value: (convoy) => convoy.merge, wide: true },
    { header: 'TARGET', value: (convoy) => convoy.target, wide: true },
    { header: 'MOLECULE', value: (convoy) => convoy.molecule, wide: true },
    { header: 'RIG', value: (convoy) => convoy.rig, wide: true },
    { header: 'DESCRIPTION', value: (convoy) => convoy.description, wide: true },
    { header: 'CLOSED_AT', value: (convoy) => convoy.closed_at, kind: 'time', wide: true },
    { header: 'CLOSE_REASON', value: (convoy) => convoy.close_reason, wide: true },
    { header: 'REVISION', value: (convoy) => convoy.revision, wide: true },
  ],
  name: ({ id }) => id,
}
/** A line per field, under the names that they have on the wire. */
const CONVOY: View<Convoy> = {
  ...CONVOYS,
  columns: CONVOYS.columns.map((column) => (column.header === 'AGE' ? { ...column, header: 'CREATED_AT' } : column)),
}

type Member = AnswerOf<'get-convoy'>['children'][number]
const MEMBER: View<Member> = {
  columns: [
    { header: 'ID', value: ({ id }) => id },
    { header: 'STATUS', value: ({ status }) => status, kind: 'state' },
    { header: 'TYPE', value: (member) => member.issue_type },
    { header: 'ASSIGNEE', value: (member) => ('assignee' in member ? member.assignee : undefined) },
    { header: 'TITLE', value: ({ title }) => title },
  ],
  name: ({ id }) => id,
}
const STRANDED: View<StrandedBead> = {
  columns: [...BEADS.columns, { header: 'CONVOYS', value: ({ convoys }) => convoys.join(', ') }],
  name: BEADS.name,
}

const settingFlags: readonly FieldFlag[] = [
  { flags: '-d, --description <text>', as: 'data', description: 'More about it; @FILE or - to read it.' },
  { flags: '--owner <name>', description: 'Who looks after it.' },
  { flags: '--notify <name>', description: 'Who is told when it is closed.' },
  { flags: '--merge <strategy>', choices: STRATEGIES, description: 'How the work of its members is merged.' },
  { flags: '--target <branch>', description: 'Branch that the work of its members goes to.' },
  { flags: '--molecule <id>', description: 'Molecule that works on it.' },
  { flags: '--owned', description: 'It never closes by itself, and may be landed.' },
]
const createFlags: readonly FieldFlag[] = [
  {
    flags: '--item <id>',
    field: 'items',
    repeatable: true,
    description: 'A bead that becomes a member.',
    complete: 'bead',
  },
  { flags: '--rig <rig>', description: 'Rig that it belongs to; the city itself where absent.', complete: 'rig' },
  ...settingFlags,
]
const updateFlags: readonly FieldFlag[] = [
  { flags: '--title <title>', description: 'What it is about.' },
  ...settingFlags,
]
const listFilters: readonly FieldFlag[] = [
  {
    flags: '-s, --status <status>',
    repeatable: true,
    choices: ['open', 'in_progress', 'closed'],
    description: 'Any of these.',
  },
  { flags: '--all', description: 'Closed convoys too.' },
  { flags: '--order <order>', choices: ['asc', 'desc'], description: 'Oldest or newest first.' },
]

const itemParams = ({ cityName, input }: InCity) => ({ cityName, id: input.required('id') })

const list = printsPages(
  CONVOYS,
  ({ client, cityName, options }, page, filters) => {
    const query = { ...bodyOf<QueryFor<'list-convoys'>>(filters), ...page }
    return client.call('list-convoys', { params: { cityName }, query, ...options })
  },
  { fields: fieldsOf(listFilters) },
)

/** The convoy, then its members: as JSON one object, with as many of them as were asked for. */
async function get(context: Context, input: Input): Promise<number> {
  const most = mostOf(input)
  const { first, members } = await inCity(context, input, async (city) => {
    let first: Reply<AnswerOf<'get-convoy'>> | undefined
    const members = await listAll(async (cursor) => {
      const query = { limit: pageSize(most), cursor }
      const reply = await city.client.call('get-convoy', { params: itemParams(city), query, ...city.options })
      first ??= reply
      const { children, next_cursor: next } = reply.body
      return { ...reply, body: { items: children, ...(next === undefined ? {} : { next_cursor: next }) } }
    }, most)
    return { first, members }
  })
  if (first === undefined) throw new TypeError('a list without a first page')
  const whole = members.items.length === first.body.children.length
  const { next_cursor: _, ...view } = first.body
  const json = whole ? first.text : JSON.stringify({ ...view, children: members.items })
  await context.print.item({ item: first.body.convoy, ...allColumns(CONVOY), json })
  if (context.print.format === 'table' || context.print.format === 'wide') {
    if (members.items.length > 0) await context.print.lines([''])
    await context.print.list({ items: members.items, ...MEMBER, json })
  }
  if (members.more) await context.note(`showing the first ${members.items.length} members; --paginate gets all`)
  return EXIT.ok
}

const create = printsItem(
  CONVOY,
  ({ client, cityName, options }, fields) =>
    client.call('create-convoy', { params: { cityName }, body: bodyOf<ConvoyCreateRequest>(fields), ...options }),
  fieldsOver(async (context, input) => ({
    title: input.texts('title').join(' '),
    ...(await fieldsFrom(context, input, createFlags)),
  })),
)

const update = printsItem(
  CONVOY,
  (city, fields) =>
    city.client.call('patch-convoy', {
      params: itemParams(city),
      body: bodyOf<ConvoyPatchRequest>(fields),
      ...city.options,
    }),
  fieldsOver(fieldsOf(updateFlags)),
)

const DELETED: View<AnswerOf<'delete-convoy'>> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'ID', value: ({ id }) => id },
  ],
  name: ({ id }) => id,
}
const remove = asking(
  (input) => `Delete convoy ${input.required('id')}? Its members stay.`,
  printsItem(DELETED, (city) => city.client.call('delete-convoy', { params: itemParams(city), ...city.options })),
)

const CHECKED: View<AnswerOf<'check-convoy'>> = {
  columns: [
    { header: 'CONVOY_ID', value: (check) => check.convoy_id },
    { header: 'COMPLETE', value: (check) => check.complete },
    { header: 'CLOSED', value: (check) => check.closed },
    { header: 'TOTAL', value: (check) => check.total },
  ],
  name: (check) => check.convoy_id,
}
const SWEPT: View<AnswerOf<'check-convoys'>> = {
  columns: [
    { header: 'CHECKED', value: (sweep) => sweep.checked },
    { header: 'CLOSED', value: ({ closed }) => closed.join(', ') },
    { header: 'TRUNCATED', value: (sweep) => sweep.truncated },
  ],
  name: ({ closed }) => closed.join('\n'),
}
const checkOne = printsItem(CHECKED, (city) =>
  city.client.call('check-convoy', { params: itemParams(city), ...city.options }),
)
const checkAll = printsItem(SWEPT, ({ client, cityName, options }) =>
  client.call('check-convoys', { params: { cityName }, ...options }),
)
const check = (context: Context, input: Input): Promise<number> =>
  input.text('id') === undefined ? checkAll(context, input) : checkOne(context, input)

const stranded = printsPages(STRANDED, ({ client, cityName, options }, page) =>
  client.call('list-stranded', { params: { cityName }, query: page, ...options }),
)

const changeMembers = (operation: 'add-to-convoy' | 'remove-from-convoy') =>
  printsItem(
    CONVOY,
    (city): Promise<Reply<Convoy>> =>
      city.client.call(operation, {
        params: itemParams(city),
        body: { items: [...city.input.texts('items')] },
        ...city.options,
      }),
  )

const close = printsItem(CONVOY, (city) => {
  const reason = city.input.text('reason')
  return city.client.call('close-convoy', {
    params: itemParams(city),
    body: reason === undefined ? {} : { reason },
    ...city.options,
  })
})

const LANDED: View<AnswerOf<'land-convoy'>> = {
  columns: [
    { header: 'LANDED', value: (landing) => landing.landed },
    { header: 'DRY_RUN', value: (landing) => landing.dry_run },
    { header: 'ID', value: ({ convoy }) => convoy.id },
    { header: 'STATUS', value: ({ convoy }) => convoy.status, kind: 'state' },
    { header: 'OPEN', value: ({ open }) => (open.length === 0 ? undefined : open.join(', ')) },
  ],
  name: ({ convoy }) => convoy.id,
}
const land = printsItem(LANDED, (city) =>
  city.client.call('land-convoy', {
    params: itemParams(city),
    body: {
      ...(city.input.on('force') ? { force: true } : {}),
      ...(city.input.on('dryRun') ? { dry_run: true } : {}),
    },
    ...city.options,
  }),
)

const convoy = { name: '<id>', description: 'Id of the convoy.', complete: 'convoy' } as const
const items = { name: '<items...>', description: 'Ids of beads.', complete: 'bead' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['convoy', 'list'],
    operations: ['list-convoys'],
    flags: [...listFilters, ...pageFlags],
    examples: [{ line: 'svcctl convoy list', does: 'open convoys, and how far they are' }],
    run: list,
  },
  {
    path: ['convoy', 'get'],
    operations: ['get-convoy'],
    arguments: [convoy],
    flags: pageFlags,
    examples: [{ line: 'svcctl convoy get al-c0n', does: 'a convoy with its members' }],
    run: get,
  },
  {
    path: ['convoy', 'create'],
    operations: ['create-convoy'],
    arguments: [{ name: '<title...>', description: 'What it is about.' }],
    flags: [...createFlags, ...setFlags, keyFlag],
    examples: [
      { line: 'svcctl convoy create "New login" --item al-x1y --item al-z9k --notify mayor', does: 'group two beads' },
    ],
    run: create,
  },
  {
    path: ['convoy', 'update'],
    operations: ['patch-convoy'],
    arguments: [convoy],
    flags: [...updateFlags, ...setFlags, unsetFlag, ifMatchFlag],
    examples: [{ line: 'svcctl convoy update al-c0n --target release --set owned=false', does: 'change two settings' }],
    run: update,
  },
  {
    path: ['convoy', 'delete'],
    operations: ['delete-convoy'],
    arguments: [convoy],
    flags: [yesFlag, ifMatchFlag],
    examples: [{ line: 'svcctl convoy delete al-c0n --yes', does: 'ungroup its members, which stay' }],
    run: remove,
  },
  {
    path: ['convoy', 'check'],
    operations: ['check-convoy', 'check-convoys'],
    summary: 'Tell whether a convoy is complete, or close all that are',
    description: 'With an id it only tells. Without one it closes every convoy that is complete.',
    arguments: [{ ...convoy, name: '[id]' }],
    examples: [
      { line: 'svcctl convoy check al-c0n', does: 'is it complete' },
      { line: 'svcctl convoy check', does: 'close what is' },
    ],
    run: check,
  },
  {
    path: ['convoy', 'stranded'],
    operations: ['list-stranded'],
    flags: pageFlags,
    examples: [{ line: 'svcctl convoy stranded', does: 'what would keep convoys open for ever' }],
    run: stranded,
  },
  {
    path: ['convoy', 'add'],
    operations: ['add-to-convoy'],
    arguments: [convoy, items],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl convoy add al-c0n al-x1y al-z9k', does: 'two more members' }],
    run: changeMembers('add-to-convoy'),
  },
  {
    path: ['convoy', 'remove'],
    operations: ['remove-from-convoy'],
    arguments: [convoy, items],
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl convoy remove al-c0n al-x1y', does: 'it does not belong to it any more' }],
    run: changeMembers('remove-from-convoy'),
  },
  {
    path: ['convoy', 'close'],
    operations: ['close-convoy'],
    arguments: [convoy],
    flags: [{ flags: '-r, --reason <text>', description: 'Why it is done.' }, ifMatchFlag],
    examples: [{ line: 'svcctl convoy close al-c0n -r "enough for now"', does: 'whatever its members are' }],
    run: close,
  },
  {
    path: ['convoy', 'land'],
    operations: ['land-convoy'],
    arguments: [convoy],
    flags: [{ flags: '--force' }, { flags: '--dry-run' }, ifMatchFlag],
    examples: [{ line: 'svcctl convoy land al-c0n --dry-run', does: 'what is still open' }],
    run: land,
  },
]
