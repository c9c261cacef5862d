/** `svcctl convoy …`: groups of work, and how far they are. */
import type { Reply } from '../../client/client.ts'
import type { Convoy, StrandedBead } from '../../contract/convoys.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT } from '../base/failure.ts'
import { type AnswerOf, allColumns, type Call, type View } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { listAll, mostOf, pageSize } from '../framework/paged.ts'
import { printItem } from '../framework/run.ts'
import { CONVOYS as TABLE } from '../tables/convoys.ts'
import { BEADS } from '../views/bead-views.ts'

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
const DELETED: View<AnswerOf<'delete-convoy'>> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'ID', value: ({ id }) => id },
  ],
  name: ({ id }) => id,
}
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

/** The convoy, then its members: as JSON one object, with as many of them as were asked for. */
async function showWithMembers({ context, input, send }: Call<'get-convoy'>): Promise<number> {
  const most = mostOf(input)
  let first: Reply<AnswerOf<'get-convoy'>> | undefined
  const members = await listAll(async (cursor) => {
    const reply = await send({ limit: pageSize(most), cursor })
    first ??= reply
    const { children, next_cursor: next } = reply.body
    return { ...reply, body: { items: children, ...(next === undefined ? {} : { next_cursor: next }) } }
  }, most)
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

const command = commandsOf(TABLE)
const ID = { completes: { id: 'convoy' } } as const
const SETTINGS = { description: 'More about it.' } as const
const MEMBERS = { says: { items: 'Ids of beads.' }, completes: { id: 'convoy', items: 'bead' } } as const

export const commands: readonly CommandSpec[] = [
  command({
    path: ['convoy', 'list'],
    operation: 'list-convoys',
    flags: { status: '-s' },
    view: CONVOYS,
    examples: { 'svcctl convoy list': 'open convoys, and how far they are' },
  }),
  command({
    ...ID,
    path: ['convoy', 'get'],
    operation: 'get-convoy',
    arguments: ['<id...>'],
    run: showWithMembers,
    examples: { 'svcctl convoy get al-c0n': 'a convoy with its members' },
  }),
  command({
    path: ['convoy', 'create'],
    operation: 'create-convoy',
    arguments: ['<title...>'],
    flags: { items: '--item', description: '-d' },
    says: { ...SETTINGS, items: 'A bead that becomes a member.' },
    completes: { items: 'bead' },
    json: true,
    view: CONVOY,
    examples: { 'svcctl convoy create "New login" --item al-x1y --item al-z9k --notify mayor': 'group two beads' },
  }),
  command({
    ...ID,
    path: ['convoy', 'update'],
    operation: 'patch-convoy',
    arguments: ['<id...>'],
    flags: { description: '-d' },
    says: SETTINGS,
    json: true,
    view: CONVOY,
    examples: { 'svcctl convoy update al-c0n --target release --no-owned': 'change two settings' },
  }),
  command({
    ...ID,
    path: ['convoy', 'delete'],
    operation: 'delete-convoy',
    arguments: ['<id...>'],
    asks: (names) => `Delete convoy ${names}? Its members stay.`,
    view: DELETED,
    examples: { 'svcctl convoy delete al-c0n --yes': 'ungroup its members, which stay' },
  }),
  command({
    ...ID,
    path: ['convoy', 'check'],
    operation: 'check-convoy',
    also: ['check-convoys'],
    summary: 'Tell whether a convoy is complete, or close all that are',
    description: 'With an id it only tells. Without one it closes every convoy that is complete.',
    arguments: ['[id]'],
    run: async ({ context, input, client, cityName, options, send }) => {
      if (input.text('id') !== undefined) return printItem(context, CHECKED, await send())
      return printItem(context, SWEPT, await client.call('check-convoys', { params: { cityName }, ...options }))
    },
    examples: { 'svcctl convoy check al-c0n': 'is it complete', 'svcctl convoy check': 'close what is' },
  }),
  command({
    path: ['convoy', 'stranded'],
    operation: 'list-stranded',
    view: STRANDED,
    examples: { 'svcctl convoy stranded': 'what would keep convoys open for ever' },
  }),
  command({
    ...MEMBERS,
    path: ['convoy', 'add'],
    operation: 'add-to-convoy',
    arguments: ['<id>', '<items...>'],
    view: CONVOY,
    examples: { 'svcctl convoy add al-c0n al-x1y al-z9k': 'two more members' },
  }),
  command({
    ...MEMBERS,
    path: ['convoy', 'remove'],
    operation: 'remove-from-convoy',
    arguments: ['<id>', '<items...>'],
    view: CONVOY,
    examples: { 'svcctl convoy remove al-c0n al-x1y': 'it does not belong to it any more' },
  }),
  command({
    ...ID,
    path: ['convoy', 'close'],
    operation: 'close-convoy',
    arguments: ['<id...>'],
    flags: { reason: '-r' },
    view: CONVOY,
    examples: { 'svcctl convoy close al-c0n -r "enough for now"': 'whatever its members are' },
  }),
  command({
    ...ID,
    path: ['convoy', 'land'],
    operation: 'land-convoy',
    arguments: ['<id...>'],
    view: LANDED,
    examples: { 'svcctl convoy land al-c0n --dry-run': 'what is still open' },
  }),
]
