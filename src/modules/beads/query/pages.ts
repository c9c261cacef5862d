/**
 * Pages of beads: newest first, or as they are ready, by keyset (decision 5; sheet 03 §1.5).
 *
 * I1  A walk meets every bead that stays in its set exactly once, whatever is created or changed meanwhile: a cursor holds
 *     the key of the last bead and not a number of beads.
 * I2  A cursor belongs to the filters and the order that it was made with; `total` is that of the first page.
 * I3  `total` is exact, or `total_capped` says that there may be more.
 * I4  A page looks at a bounded number of beads (`Plan.window`): it may be short, even empty, and have a `next_cursor`.
 *     It may be short too where its beads are very large.
 */
import { createHash } from 'node:crypto'
import { cut } from '../../../contract/base/text.ts'
import type { Bead } from '../../../contract/beads.ts'
import type { Database } from '../../../kernel/database.ts'
import { Page, type Paged, type PageWanted } from '../../../kernel/page.ts'
import { countReady, READY_SOURCES } from '../store/ready.ts'
import { type BeadRecord, wireBead } from '../store/record.ts'
import type { WorkCity } from '../work/city.ts'
import type { Meaning, Sql, WordsAmong } from './filters.ts'
import { type Bounds, type Plan, planOf, wordsAmong } from './plan.ts'
import type { Query } from './query.ts'
import { formatQuery } from './query-language.ts'

export type Order = 'newest' | 'oldest' | 'ready'

export interface BeadPage {
  readonly ids: readonly string[]
  readonly total: number
  readonly total_capped?: true
  readonly next_cursor?: string
}

/** What a page is ordered by; the id comes last. */
type Key = readonly (string | number)[]
interface Total {
  readonly total: number
  readonly capped: boolean
}

/** Columns of the key of each order, and how it runs. */
const ORDERS: Record<Order, { readonly columns: readonly string[]; readonly way: 'ASC' | 'DESC' }> = {
  newest: { columns: ['b.created_at', 'b.id'], way: 'DESC' },
  oldest: { columns: ['b.created_at', 'b.id'], way: 'ASC' },
  ready: { columns: ['coalesce(b.priority, 2)', 'b.created_at', 'b.id'], way: 'ASC' },
}
type WalkPage = Page<readonly ('string' | 'number')[]>

function pageOf(query: Query, order: Order, wanted: PageWanted): WalkPage {
  const parts = ORDERS[order].columns.map((column) => (column === 'b.id' ? 'string' : 'number'))
  return new Page(fingerprintOf(query, order), ['number', 'number', ...parts], wanted)
}

/** One page of the beads that a query means. */
export function readPage(
  db: Database,
  query: Query,
  order: Order,
  wanted: PageWanted,
  meaning: Meaning,
  bounds?: Bounds,
): BeadPage {
  const page = pageOf(query, order, wanted)
  const walk = walkOf(page)
  const found = isAllReady(query, order)
    ? lookUpReady(db, page.limit, walk, meaning.now)
    : lookUp(db, planOf(db, query, meaning, bounds), order, page.limit, walk)
  const keys = found.keys.slice(0, page.limit)
  const next = found.keys.length > page.limit ? keys.at(-1) : found.reached
  return {
    ids: keys.map((key) => String(key.at(-1))),
    total: found.total,
    ...(found.capped ? { total_capped: true } : {}),
    ...page.behind(next && [found.total, Number(found.capped), ...next]),
  }
}

/** One page with its beads, as many of them as an answer may hold (I4). */
export function readRecords(
  { beads, store }: Pick<WorkCity, 'beads' | 'store'>,
  query: Query,
  order: Order,
  wanted: PageWanted,
  meaning: Meaning,
): Omit<BeadPage, 'ids'> & Paged<Bead> {
  const { ids, ...found } = readPage(store.db, query, order, wanted, meaning)
  const { items, ...behind } = pageOf(query, order, wanted).of(
    beads.each(ids),
    (bead) => [found.total, Number(found.total_capped === true), ...keyOf(bead, order)],
    wireBead,
  )
  return { items, ...found, ...behind }
}

function keyOf({ id, created_at, priority }: BeadRecord, order: Order): Key {
  return order === 'ready' ? [priority ?? 2, created_at, id] : [created_at, id]
}

/** What is ready, and all of it. */
export const READY: Query = { kind: 'state', state: 'ready' }
const isAllReady = (query: Query, order: Order): boolean =>
  order === 'ready' && formatQuery(query) === formatQuery(READY)

interface Walk extends Total {
  readonly after: Key
}

function walkOf({ after: place }: WalkPage): Walk | undefined {
  if (place === undefined) return undefined
  const [total, capped, ...after] = place
  return { total: Math.max(Number(total), 0), capped: capped === 1, after }
}

function fingerprintOf(query: Query, order: Order): string {
  const hash = createHash('sha256').update(`${order} ${formatQuery(query)}`)
  return `beads ${cut(hash.digest('base64url'), 16)}`
}

interface Found extends Total {
  /** One more than asked for where there is one. */
  readonly keys: readonly Key[]
  /** Where looking stopped although there may be more behind it. */
  readonly reached: Key | undefined
}

function lookUp(db: Database, plan: Plan, order: Order, limit: number, walk: Walk | undefined): Found {
  const after = walk?.after
  const counts = walk === undefined && plan.total === undefined
  // Behind the last one there is none to be looked for.
  const wanted = walk === undefined ? Math.min(limit + 1, plan.total ?? limit + 1) : limit + 1
  const whole = order === 'ready' ? undefined : plan.window
  // A page of what is frequent is soon full; where it is not, or all have to be counted, the whole window is looked at.
  const first = counts || whole === undefined || plan.phrased === true ? whole : Math.min(FIRST_WINDOW, whole)
  let { keys, end } = lookAt(db, plan, order, wanted, after, first)
  if (first !== whole && keys.length < wanted && end.reached !== undefined)
    ({ keys, end } = lookAt(db, plan, order, wanted, after, whole))
  const reached = keys.length < wanted ? end.reached : undefined
  if (walk !== undefined) return { ...walk, keys, reached }
  if (plan.total !== undefined) return { total: plan.total, capped: false, keys, reached }
  const counted = countUpTo(db, plan, order, plan.cap + 1, end)
  const capped = end.reached !== undefined || counted > plan.cap
  return { total: Math.min(counted, plan.cap), capped, keys, reached }
}

const FIRST_WINDOW = 500

/** What of a window belongs, at most `count`. */
function lookAt(
  db: Database,
  plan: Plan,
  order: Order,
  count: number,
  after: Key | undefined,
  window: number | undefined,
): { readonly keys: readonly Key[]; readonly end: Window } {
  const end = endOfWindow(db, plan, order, after, window)
  return { keys: readKeys(db, plan, order, count, after, end), end }
}

interface Window {
  /** The key of the last entry that this page looks at; undefined where that is the last one there is. */
  readonly reached: Key | undefined
  /** Looks words up among its beads, where there are any to look up. */
  readonly among: WordsAmong | undefined
}
const NO_WINDOW: Window = { reached: undefined, among: undefined }

function endOfWindow(
  db: Database,
  { from, always, wordy }: Plan,
  order: Order,
  after: Key | undefined,
  window: number | undefined,
): Window {
  if (window === undefined) return NO_WINDOW
  const { columns, way } = ORDERS[order]
  const beyond = boundSql(columns, way === 'ASC' ? '>' : '<', after)
  const entries = `FROM ${from} WHERE ${always}${beyond.text} ${orderSql(order)}`
  const [last] = db.rows(`SELECT ${columns.join(', ')} ${entries} LIMIT 1 OFFSET ?`, ...beyond.values, window)
  const reached = last === undefined ? undefined : parseKey(last)
  if (!wordy) return { reached, among: undefined }
  const numbers = db.rows(`SELECT b.n ${entries} LIMIT ?`, ...beyond.values, window + 1).map(([n]) => Number(n))
  return { reached, among: wordsAmong(db, numbers) }
}

function readKeys(
  db: Database,
  plan: Plan,
  order: Order,
  limit: number,
  after: Key | undefined,
  end: Window,
): readonly Key[] {
  const { columns } = ORDERS[order]
  const { text, values } = entriesOf(plan, order, after, end)
  return db.rows(`SELECT ${columns.join(', ')} ${text} ${orderSql(order)} LIMIT ?`, ...values, limit).map(parseKey)
}

/** How many of a window belong, or `most`. */
function countUpTo(db: Database, plan: Plan, order: Order, most: number, end: Window): number {
  const { text, values } = entriesOf(plan, order, undefined, end)
  return Number(db.rows(`SELECT count(*) FROM (SELECT 1 ${text} LIMIT ?)`, ...values, most)[0]?.[0] ?? 0)
}

function entriesOf(plan: Plan, order: Order, after: Key | undefined, { reached, among }: Window): Sql {
  const where = plan.where(among)
  const { columns, way } = ORDERS[order]
  const beyond = boundSql(columns, way === 'ASC' ? '>' : '<', after)
  const end = boundSql(columns, way === 'ASC' ? '<=' : '>=', reached)
  return {
    text: `FROM ${plan.from} WHERE ${plan.always}${beyond.text}${end.text} AND (${where.text})`,
    values: [...beyond.values, ...end.values, ...where.values],
  }
}

function orderSql(order: Order): string {
  const { columns, way } = ORDERS[order]
  return `ORDER BY ${columns.map((column) => `${column} ${way}`).join(', ')}`
}

function boundSql(columns: readonly string[], op: '<' | '<=' | '>' | '>=', key: Key | undefined): Sql {
  if (key === undefined) return { text: '', values: [] }
  return { text: ` AND (${columns.join(', ')}) ${op} (${key.map(() => '?').join(', ')})`, values: key }
}

/** All that is ready: from the index that has it in order, and the little whose date has come. */
function lookUpReady(db: Database, limit: number, walk: Walk | undefined, now: number): Found {
  const { columns } = ORDERS.ready
  const beyond = boundSql(columns, '>', walk?.after)
  const keys = READY_SOURCES.flatMap((source) =>
    db.rows(
      `SELECT ${columns.join(', ')} FROM ${source}${beyond.text} ${orderSql('ready')} LIMIT ?`,
      now,
      ...beyond.values,
      limit + 1,
    ),
  )
    .map(parseKey)
    .sort(byKey)
  if (walk !== undefined) return { ...walk, keys, reached: undefined }
  return { total: countReady(db, now), capped: false, keys, reached: undefined }
}

const parseKey = (row: readonly unknown[]): Key =>
  row.map((value) => (typeof value === 'number' ? value : String(value)))

function byKey(a: Key, b: Key): number {
  const at = a.findIndex((value, index) => value !== b[index])
  const [left, right] = [a[at], b[at]]
  return left === undefined || right === undefined ? 0 : left < right ? -1 : 1
}
