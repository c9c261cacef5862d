/** The table of needs of a city, and its pages. */
import { isNeedKind, MAX_NEED_CONTENT, type Need, type NeedKind, type NeedSeverity } from '../../contract/needs.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { Database, Row, SqlValue, Tx } from '../../kernel/database.ts'
import type { NeedDraft } from '../../kernel/needs.ts'

export const NEEDS_SCHEMA = `
CREATE TABLE needs (
  id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  subject TEXT NOT NULL,
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  rank INTEGER NOT NULL,
  holds_up INTEGER NOT NULL,
  since INTEGER NOT NULL,
  snoozed_until INTEGER,
  body TEXT NOT NULL,
  UNIQUE (source, subject, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX needs_in_order ON needs (rank, holds_up DESC, since, id);
`

type Reader = Pick<Database | Tx, 'get' | 'all'>

/** What is the same however long it stands: two that are equal are the same news. */
export type NeedBody = Pick<Need, 'subject' | 'title' | 'detail' | 'operations' | 'content' | 'content_cut'>

export interface NeedRow {
  readonly id: string
  readonly key: string
  readonly kind: NeedKind
  readonly severity: NeedSeverity
  readonly holdsUp: number
  readonly since: number
  readonly snoozedUntil: number | undefined
  readonly body: NeedBody
}

export interface NeedFilter {
  readonly severity?: NeedSeverity | undefined
  readonly kind?: readonly NeedKind[] | undefined
  /** Needs that are snoozed beyond this time are left out; undefined: they are listed. */
  readonly awakeAt?: number | undefined
}

/** Where a page begins: the order of the last need of the page before. */
export type NeedKey = readonly [rank: number, holdsUp: number, since: number, id: string]

const SEVERITIES: readonly NeedSeverity[] = ['act', 'watch']
const rankOf = (severity: NeedSeverity): number => SEVERITIES.indexOf(severity)

export const keyOf = (need: NeedRow): NeedKey => [rankOf(need.severity), need.holdsUp, need.since, need.id]

/** Negative where `one` comes first: what a person must act on, what holds up more, what is older. */
export function compareNeeds(one: NeedRow, other: NeedRow): number {
  const [rank, holdsUp, since, id] = keyOf(one)
  const [otherRank, otherHoldsUp, otherSince, otherId] = keyOf(other)
  return rank - otherRank || otherHoldsUp - holdsUp || since - otherSince || (id < otherId ? -1 : 1)
}

export const isBehind = (need: NeedRow, [rank, holdsUp, since, id]: NeedKey): boolean => {
  const [itsRank, itsHoldsUp, itsSince, itsId] = keyOf(need)
  const order = itsRank - rank || holdsUp - itsHoldsUp || itsSince - since
  return order > 0 || (order === 0 && itsId > id)
}

export function wireNeed(city: string, row: NeedRow): Need {
  const { id, kind, severity, holdsUp, since, snoozedUntil, body } = row
  const { subject, title, detail, operations, content, content_cut } = body
  return {
    id,
    kind,
    severity,
    city,
    subject,
    since: isoTime(since),
    title,
    ...(detail === undefined ? {} : { detail }),
    holds_up: holdsUp,
    operations,
    ...(snoozedUntil === undefined ? {} : { snoozed_until: isoTime(snoozedUntil) }),
    ...(content === undefined ? {} : { content }),
    ...(content_cut === undefined ? {} : { content_cut }),
  }
}

/** Bytes of UTF-8 that a need may have in its `content`; cut between characters. */
export function bodyOf({ subject, title, detail, operations = [], content }: NeedDraft): NeedBody {
  const bytes = content === undefined ? undefined : Buffer.from(content)
  const isCut = bytes !== undefined && bytes.length > MAX_NEED_CONTENT
  const kept = isCut ? new TextDecoder().decode(bytes.subarray(0, MAX_NEED_CONTENT), { stream: true }) : content
  return {
    subject,
    title,
    ...(detail === undefined ? {} : { detail }),
    operations: [...operations],
    ...(kept === undefined ? {} : { content: kept }),
    ...(isCut ? { content_cut: true } : {}),
  }
}

function rowOf(row: Row): NeedRow {
  const kind = String(row['kind'])
  if (!isNeedKind(kind)) throw new Error(`a need of the unknown kind ${kind}`)
  return {
    id: String(row['id']),
    key: String(row['key']),
    kind,
    severity: SEVERITIES[Number(row['rank'])] ?? 'watch',
    holdsUp: Number(row['holds_up']),
    since: Number(row['since']),
    snoozedUntil: row['snoozed_until'] === null ? undefined : Number(row['snoozed_until']),
    body: JSON.parse(String(row['body'])),
  }
}

export const rowsOf = (reader: Reader, source: string, subject: string): readonly NeedRow[] =>
  reader.all('SELECT * FROM needs WHERE source = ? AND subject = ?', source, subject).map(rowOf)

export const subjectsOf = (reader: Reader, source: string): readonly string[] =>
  reader.all('SELECT DISTINCT subject FROM needs WHERE source = ?', source).map(({ subject }) => String(subject))

export const sourcesIn = (reader: Reader): readonly string[] =>
  reader.all('SELECT DISTINCT source FROM needs').map(({ source }) => String(source))

export function findNeed(reader: Reader, id: string): NeedRow | undefined {
  const row = reader.get('SELECT * FROM needs WHERE id = ?', id)
  return row === undefined ? undefined : rowOf(row)
}

export function insertNeed(tx: Tx, source: string, subject: string, need: NeedRow): void {
  tx.run(
    'INSERT INTO needs (id, source, subject, key, kind, rank, holds_up, since, snoozed_until, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    need.id,
    source,
    subject,
    need.key,
    need.kind,
    rankOf(need.severity),
    need.holdsUp,
    need.since,
    need.snoozedUntil ?? null,
    JSON.stringify(need.body),
  )
}

export function updateNeed(tx: Tx, need: NeedRow): void {
  tx.run(
    'UPDATE needs SET kind = ?, rank = ?, holds_up = ?, since = ?, snoozed_until = ?, body = ? WHERE id = ?',
    need.kind,
    rankOf(need.severity),
    need.holdsUp,
    need.since,
    need.snoozedUntil ?? null,
    JSON.stringify(need.body),
    need.id,
  )
}

export const deleteNeed = (tx: Tx, id: string): void => void tx.run('DELETE FROM needs WHERE id = ?', id)

function conditionsOf({ severity, kind, awakeAt }: NeedFilter, after: NeedKey | undefined) {
  const where: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, ...bound: readonly SqlValue[]) => {
    where.push(condition)
    values.push(...bound)
  }
  if (severity !== undefined) add('rank = ?', rankOf(severity))
  if (kind !== undefined) add('kind IN (SELECT value FROM json_each(?))', JSON.stringify(kind))
  if (awakeAt !== undefined) add('(snoozed_until IS NULL OR snoozed_until <= ?)', awakeAt)
  if (after !== undefined) {
    const [rank, holdsUp, since, id] = after
    add('(rank, -holds_up, since, id) > (?, ?, ?, ?)', rank, -holdsUp, since, id)
  }
  return { sql: where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`, values }
}

export function pageOfNeeds(
  reader: Reader,
  filter: NeedFilter,
  from: { readonly after: NeedKey | undefined; readonly limit: number },
): readonly NeedRow[] {
  const { sql, values } = conditionsOf(filter, from.after)
  return reader
    .all(`SELECT * FROM needs ${sql} ORDER BY rank, holds_up DESC, since, id LIMIT ?`, ...values, from.limit)
    .map(rowOf)
}

export function countNeeds(reader: Reader, filter: NeedFilter): number {
  const { sql, values } = conditionsOf(filter, undefined)
  return Number(reader.get(`SELECT count(*) AS count FROM needs ${sql}`, ...values)?.['count'] ?? 0)
}
