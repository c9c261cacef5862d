/** Lists of who takes part, page by page, oldest first. */
import { DEFAULT_LIMIT } from '../../../contract/base/paging.ts'
import { formatPageToken, parsePageToken } from '../../../kernel/cursor.ts'
import type { Database, Row, SqlValue } from '../../../kernel/database.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { type ConversationWanted, conversationWhere } from '../entries/lists.ts'
import { normalHandle } from './handles.ts'
import { type BindingRow, bindingRow, type GroupRow, groupRow, type ParticipantRow, participantRow } from './rows.ts'

interface Wanted extends ConversationWanted {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

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

export interface Listed<Item> {
  readonly items: readonly Item[]
  readonly total: number
  readonly next: string | undefined
}

interface Where {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

/** What is told apart by when it was made, and by its id. */
interface Table<Item> {
  readonly name: string
  readonly since: string
  readonly parse: (row: Row) => Item
}

const BINDINGS: Table<BindingRow> = { name: 'chat_bindings', since: 'bound_at', parse: bindingRow }
const GROUPS: Table<GroupRow> = { name: 'chat_groups', since: 'created_at', parse: groupRow }
const PARTICIPANTS: Table<ParticipantRow> = { name: 'chat_participants', since: 'created_at', parse: participantRow }

export function listBindings(db: Database, { active, now, ...wanted }: BindingsWanted): Listed<BindingRow> {
  const unended = 'x.ended_at IS NULL AND (x.expires_at IS NULL OR x.expires_at > ?)'
  const status: Where = { sql: active ? unended : `NOT (${unended})`, values: [now] }
  return list(db, BINDINGS, wanted, [...whoWhere(wanted), status], [active])
}

export const listGroups = (db: Database, wanted: Wanted): Listed<GroupRow> => list(db, GROUPS, wanted, [], [])

export function listParticipants(db: Database, { active, ...wanted }: ParticipantsWanted): Listed<ParticipantRow> {
  const { group_id: group, handle } = wanted
  const where = [
    ...whoWhere(wanted),
    { sql: `x.removed_at IS ${active ? 'NULL' : 'NOT NULL'}`, values: [] },
    ...equal('group_id', group),
    ...equal('handle', handle === undefined ? undefined : normalHandle(handle)),
  ]
  return list(db, PARTICIPANTS, wanted, where, [active, group, handle])
}

function whoWhere({ session, mailbox }: WhoWanted): readonly Where[] {
  const ofMailbox = mailbox === undefined ? [] : [{ sql: 'x.mailbox = ? AND x.session_id IS NULL', values: [mailbox] }]
  return [...equal('session_id', session), ...ofMailbox]
}

const equal = (column: string, value: string | undefined): readonly Where[] =>
  value === undefined ? [] : [{ sql: `x.${column} = ?`, values: [value] }]

/** `filters`: what else tells a page of one list from that of another. */
function list<Item>(
  db: Database,
  { name, since, parse }: Table<Item>,
  wanted: WhoWanted,
  own: readonly Where[],
  filters: readonly unknown[],
): Listed<Item> {
  const { limit, cursor, session, mailbox, ...conversation } = wanted
  const most = limit || DEFAULT_LIMIT
  const where = [...own, ...inConversation(conversation)]
  const kind = `${name} ${JSON.stringify([session, mailbox, filters, conversation])}`
  const [at, id] = cursor === undefined ? [] : parsePageToken(kind, cursor)
  const behind = at === undefined || id === undefined ? [] : [{ sql: `(x.${since}, x.id) > (?, ?)`, values: [at, id] }]
  const rows = select(db, `x.* FROM ${name} AS x`, [...where, ...behind], `ORDER BY x.${since}, x.id LIMIT ${most + 1}`)
  const last = rows.length > most ? rows[most - 1] : undefined
  return {
    items: rows.slice(0, most).map(parse),
    total: Number(select(db, `count(*) AS total FROM ${name} AS x`, where, '')[0]?.total),
    next: last === undefined ? undefined : formatPageToken(kind, [Number(last[since]), String(last.id)]),
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
