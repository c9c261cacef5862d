/** `svcctl convoy …`: groups of work, and how far they are. */

import type { Reply } from '../../client/client.ts'
import type { Convoy, StrandedBead } from '../../contract/convoys.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT, usageError } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { listAll, mostOf, pageSize } from '../framework/paged.ts'
import { printItem } from '../framework/run.ts'
import { anyOf } from '../print/columns.ts'
import { allColumns, around, view } from '../print/view.ts'
import { CONVOYS as TABLE } from '../tables/convoys.ts'
import { BEADS } from '../views/bead-views.ts'
import { beadsAmong } from '../views/bead-words.ts'

const MORE = {
  wide: 'owned notify merge target molecule rig description closed_at close_reason revision',
  as: { AGE: 'created_at', PROGRESS: ({ progress }: Convoy) => `${progress.closed} of ${progress.total}` },
} as const
/** A row each. */
const CONVOYS = view<Convoy>()('id status PROGRESS owner title AGE', MORE)
/** A line per field, under the names that they have on the wire. */
const CONVOY = view<Convoy>()('id status PROGRESS owner title created_at', MORE)

type Member = AnswerOf<'get-convoy'>['children'][number]
const MEMBER = view<Member>()('id status TYPE ASSIGNEE title', {
  as: { TYPE: 'issue_type', ASSIGNEE: (member) => ('assignee' in member ? member.assignee : undefined) },
})
const STRANDED = around([], BEADS, view<StrandedBead>()('convoys').columns)
const DELETED = view<AnswerOf<'delete-convoy'>>()('status id', { name: 'id' })
const CHECKED = view<AnswerOf<'check-convoy'>>()('convoy_id complete closed total')
const SWEPT = view<AnswerOf<'check-convoys'>>()('checked closed truncated', { name: ({ closed }) => closed.join('\n') })
const LANDED = view<AnswerOf<'land-convoy'>>()('landed dry_run convoy.id convoy.status OPEN', {
  as: { OPEN: ({ open }) => anyOf(open) },
  name: 'convoy.id',
})

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

/** Ids behind a title are meant as members, not as words of it; a title in one word may name whatever it likes. */
async function refuseBeads(call: Call<'create-convoy'>): Promise<void> {
  const words = call.input.texts('title')
  if (words.length < 2) return
  const [bead] = await beadsAmong(call.client, words, call)
  if (bead === undefined) return
  throw usageError(
    `${bead} is a bead, and would be a word of the title`,
    `for a member: --item ${bead}; else quote the title`,
  )
}

const command = commandsOf(TABLE)
const ID = { completes: { id: 'convoy' } } as const
const SETTINGS = { description: 'More about it.' } as const
const MEMBERS = { says: { items: 'Ids of beads.' }, completes: { id: 'convoy', items: 'bead' } } as const

export const commands: readonly CommandSpec[] = [
  command('convoy list', 'list-convoys', {
    flags: { status: '-s' },
    view: CONVOYS,
    examples: { 'svcctl convoy list': 'open convoys, and how far they are' },
  }),
  command('convoy get', 'get-convoy', {
    ...ID,
    arguments: ['<id...>'],
    run: showWithMembers,
    examples: { 'svcctl convoy get al-c0n': 'a convoy with its members' },
  }),
  command('convoy create', 'create-convoy', {
    arguments: ['<title...>'],
    flags: { items: '--item', description: '-d' },
    says: { ...SETTINGS, items: 'A bead that becomes a member.' },
    completes: { items: 'bead' },
    json: true,
    view: CONVOY,
    run: async (call) => {
      await refuseBeads(call)
      return call.show()
    },
    examples: { 'svcctl convoy create "New login" --item al-x1y --item al-z9k --notify mayor': 'group two beads' },
  }),
  command('convoy update', 'patch-convoy', {
    ...ID,
    arguments: ['<id...>'],
    flags: { description: '-d' },
    says: SETTINGS,
    json: true,
    view: CONVOY,
    examples: { 'svcctl convoy update al-c0n --target release --no-owned': 'change two settings' },
  }),
  command('convoy delete', 'delete-convoy', {
    ...ID,
    arguments: ['<id...>'],
    asks: (names) => `Delete convoy ${names}? Its members stay.`,
    view: DELETED,
    examples: { 'svcctl convoy delete al-c0n --yes': 'ungroup its members, which stay' },
  }),
  command('convoy check', 'check-convoy', {
    ...ID,
    also: ['check-convoys'],
    summary: 'Tell whether a convoy is complete, or close all that are',
    description: 'With an id it only tells. Without one it closes every convoy that is complete.',
    arguments: ['[id]'],
    run: async ({ context, input, client, cityName, options, send }) => {
      if (input.text('id') !== undefined) return printItem(context, CHECKED, await send())
      await context.print.require(SWEPT)
      return printItem(context, SWEPT, await client.call('check-convoys', { params: { cityName }, ...options }))
    },
    examples: { 'svcctl convoy check al-c0n': 'is it complete', 'svcctl convoy check': 'close what is' },
  }),
  command('convoy stranded', 'list-stranded', {
    view: STRANDED,
    examples: { 'svcctl convoy stranded': 'what would keep convoys open for ever' },
  }),
  command('convoy add', 'add-to-convoy', {
    ...MEMBERS,
    arguments: ['<id>', '<items...>'],
    view: CONVOY,
    examples: { 'svcctl convoy add al-c0n al-x1y al-z9k': 'two more members' },
  }),
  command('convoy remove', 'remove-from-convoy', {
    ...MEMBERS,
    arguments: ['<id>', '<items...>'],
    view: CONVOY,
    examples: { 'svcctl convoy remove al-c0n al-x1y': 'it does not belong to it any more' },
  }),
  command('convoy close', 'close-convoy', {
    ...ID,
    arguments: ['<id...>'],
    flags: { reason: '-r' },
    view: CONVOY,
    examples: { 'svcctl convoy close al-c0n -r "enough for now"': 'whatever its members are' },
  }),
  command('convoy land', 'land-convoy', {
    ...ID,
    arguments: ['<id...>'],
    view: LANDED,
    examples: { 'svcctl convoy land al-c0n --dry-run': 'what is still open' },
  }),
]
