/** Lists of who takes part, page by page, oldest first. */
import type { Database, Row, SqlValue } from '../../../kernel/database.ts'
import { Page, type Paged, type PageWanted } from '../../../kernel/page.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { type ConversationWanted, conversationWhere } from '../entries/lists.ts'
import { normalHandle } from './handles.ts'
import { type BindingRow, bindingRow, type GroupRow, groupRow, type ParticipantRow, participantRow } from './rows.ts'

interface Wanted extends ConversationWanted, PageWanted {}

interface WhoWanted extends Wanted {
  /** Only what is for this session alone. */
  readonly session?: string | undefined
  readonly mailbox?: Mailbox | undefined
}

export interface BindingsWanted extends WhoWanted {
  readonly active: boolean
  readonly now: number
}

export interface ParticipantsWanted extends WhoWanted {
  readonly active: boolean
  readonly group_id?: string | undefined
  readonly handle?: string | undefined
}

interface Listed<Item> extends Paged<Item> {
  readonly total: number
}

interface Where {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/** What is told apart by when it was made, and by its id. */
interface Table {
  readonly name: string
  readonly since: string
}

const BINDINGS: Table = { name: 'chat_bindings', since: 'bound_at' }
const GROUPS: Table = { name: 'chat_groups', since: 'created_at' }
const PARTICIPANTS: Table = { name: 'chat_participants', since: 'created_at' }

type Wire<Row, Item> = (row: Row) => Item

export function listBindings<Item>(
  db: Database,
  { active, now, ...wanted }: BindingsWanted,
  wire: Wire<BindingRow, Item>,
): Listed<Item> {
  const unended = 'x.ended_at IS NULL AND (x.expires_at IS NULL OR x.expires_at > ?)'
  const status: Where = { sql: active ? unended : `NOT (${unended})`, values: [now] }
  const asked = { table: BINDINGS, wanted, own: [...whoWhere(wanted), status], filters: [active] }
  return list(db, asked, (row) => wire(bindingRow(row)))
}

export const listGroups = <Item>(db: Database, wanted: Wanted, wire: Wire<GroupRow, Item>): Listed<Item> =>
  list(db, { table: GROUPS, wanted, own: [], filters: [] }, (row) => wire(groupRow(row)))

export function listParticipants<Item>(
  db: Database,
  { active, ...wanted }: ParticipantsWanted,
  wire: Wire<ParticipantRow, Item>,
): Listed<Item> {
  const { group_id: group, handle } = wanted
  const own = [
    ...whoWhere(wanted),
    { sql: `x.removed_at IS ${active ? 'NULL' : 'NOT NULL'}`, values: [] },
    ...equal('group_id', group),
    ...equal('handle', handle === undefined ? undefined : normalHandle(handle)),
  ]
  const asked = { table: PARTICIPANTS, wanted, own, filters: [active, group, handle] }
  return list(db, asked, (row) => wire(participantRow(row)))
}

function whoWhere({ session, mailbox }: WhoWanted): readonly Where[] {
  const ofMailbox = mailbox === undefined ? [] : [{ sql: 'x.mailbox = ? AND x.session_id IS NULL', values: [mailbox] }]
  return [...equal('session_id', session), ...ofMailbox]
}

const equal = (column: string, value: string | undefined): readonly Where[] =>
  value === undefined ? [] : [{ sql: `x.${column} = ?`, values: [value] }]

interface Asked {
  readonly table: Table
  readonly wanted: WhoWanted
  readonly own: readonly Where[]
  /** What else tells a page of one list from that of another. */
  readonly filters: readonly unknown[]
}

function list<Item>(db: Database, { table, wanted, own, filters }: Asked, wire: Wire<Row, Item>): Listed<Item> {
  const { name, since } = table
  const { limit, cursor, session, mailbox, ...conversation } = wanted
  const where = [...own, ...inConversation(conversation)]
  const kind = `${name} ${JSON.stringify([session, mailbox, filters, conversation])}`
  const page = new Page(kind, ['number', 'string'], { limit, cursor })
  const behind = page.after === undefined ? [] : [{ sql: `(x.${since}, x.id) > (?, ?)`, values: page.after }]
  const end = `ORDER BY x.${since}, x.id LIMIT ${page.ask}`
  const rows = select(db, `x.* FROM ${name} AS x`, [...where, ...behind], end)
  return {
    ...page.of(rows, (row) => [Number(row[since]), String(row.id)], wire),
    total: Number(select(db, `count(*) AS total FROM ${name} AS x`, where, '')[0]?.total),
  }
}

function inConversation({ transcript_id: id, ...wanted }: ConversationWanted): readonly Where[] {
  const parts = conversationWhere(wanted)
  const among = parts.map(({ sql }) => sql).join(' AND ')
  const within =
    parts.length === 0
      ? []
      : [
          {
            sql: `x.transcript_id IN (SELECT t.id FROM transcripts AS t WHERE ${among})`,
            values: parts.flatMap(({ values }) => values),
          },
        ]
  return [...equal('transcript_id', id), ...within]
}

function select(db: Database, what: string, where: readonly Where[], end: string): readonly Row[] {
  const sql = where.length === 0 ? '' : `WHERE ${where.map((one) => one.sql).join(' AND ')}`
  return db.all(`SELECT ${what} ${sql} ${end}`, ...where.flatMap(({ values }) => values))
}
