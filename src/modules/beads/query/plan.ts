/**
 * Which index a list reads, by three rules. The engine keeps no statistics here and would guess.
 *
 * R1  A list walks `beads_live` where it cannot want closed beads, else `beads_facts`: both are in the order of lists and
 *     hold every column that filters look at, so that no row is touched. It walks so far as `looks` allows; a cursor
 *     goes on from there.
 * R2  A condition with an index of its own leads instead where that index has few beads: those are fetched and compared
 *     with the rest.
 * R3  A total that nobody keeps is counted as far as the page looks, and of closed beads only up to a cap.
 *
 * A plan changes what is read and never what is found.
 */
import { MAX_EXACT_TOTAL } from '../../../contract/base/paging.ts'
import type { Database, SqlValue } from '../../../kernel/database.ts'
import type { ColumnName } from '../store/columns.ts'
import { BLOCKING_SQL } from '../store/shifts.ts'
import { COUNTED } from '../store/tallies.ts'
import { labelWord } from '../store/words.ts'
import { type Meaning, match, type Sql, type WordLookup, whereOf, wordsOfTexts } from './filters.ts'
import { allOf, asksForWords, conditions, type Edge, type Query } from './query.ts'

export interface Plan {
  /** The table and how it is read. */
  readonly from: string
  /** What holds for every entry of that index. */
  readonly always: string
  /** Of the beads with these numbers only, where that is known of them: words are looked up for no others. */
  readonly where: (numbers?: NumberRange) => Sql
  /** How many belong to it, where that is kept. */
  readonly total?: number
  /** How many are counted at most. */
  readonly cap: number
  /** So many entries are looked at for one page at most; absent: there are not more. */
  readonly window?: number
  /** It is worth knowing which numbers the beads of a window have. */
  readonly wordy: boolean
}

export interface NumberRange {
  readonly from: number
  readonly to: number
}

/** What an index of its own says about some conditions. */
interface Leader {
  readonly conditions: readonly Query[]
  /** A row for each bead, from the index alone. */
  readonly entries: Sql
  /** Their numbers. */
  readonly numbers: Sql
}

/** How much one page looks at: it takes a few milliseconds. */
export interface Bounds {
  /** One for each entry and condition, some for what is not in the index. */
  readonly looks: number
  /** Beads that a leader has at most. */
  readonly led: number
}
const BOUNDS: Bounds = { looks: 40_000, led: 2_000 }
const LOOKS_ELSEWHERE = 4
/** For a bead by itself; a window looks words up together. */
const LOOKS_FOR_WORDS = 128
/** `total` is exact up to here where closed beads are among it. */
const CLOSED_CAP = 1_000

export function planOf(db: Database, query: Query, meaning: Meaning, bounds = BOUNDS): Plan {
  const parts = conjuncts(query)
  const live = parts.some(excludesClosed)
  const size = sizeOf(db, live)
  const window = Math.ceil(bounds.looks / looksOf(parts))
  const led = size <= bounds.led ? undefined : ledPlan(db, parts, meaning, bounds)
  if (led !== undefined) return led
  const total = totalOf(db, query, meaning)
  return {
    ...(live ? LIVE_INDEX : FACTS_INDEX),
    where: (words?: WordLookup) => whereOf(allOf(parts), words === undefined ? meaning : { ...meaning, words }),
    cap: live ? MAX_EXACT_TOTAL : CLOSED_CAP,
    wordy: asksForWords(query),
    ...(total === undefined ? {} : { total }),
    ...(size <= window ? {} : { window }),
  }
}

const LIVE_INDEX = { from: 'beads b INDEXED BY beads_live', always: `b.status <> 'closed'` }
const FACTS_INDEX = { from: 'beads b INDEXED BY beads_facts', always: '1' }
const SIZE = 'SELECT coalesce(sum(beads), 0) FROM bead_counts'

const firstNumber = ([row]: readonly (readonly unknown[])[]): number => Number(row?.[0] ?? 0)
const sizeOf = (db: Database, live: boolean): number =>
  firstNumber(db.rows(live ? `${SIZE} WHERE status <> 'closed'` : SIZE))

/** How many there are of what only speaks of columns that are counted; undefined where it speaks of more. */
function totalOf(db: Database, query: Query, meaning: Meaning): number | undefined {
  if (![...conditions(query)].every(isCounted)) return undefined
  const { text, values } = whereOf(query, meaning)
  return firstNumber(db.rows(`${SIZE} AS b WHERE ${text}`, ...values))
}

const IN_COUNTS: ReadonlySet<string> = new Set(COUNTED)

function isCounted(query: Query): boolean {
  switch (query.kind) {
    case 'and':
    case 'or':
    case 'not':
      return true
    case 'one-of':
    case 'contains':
    case 'number':
      return IN_COUNTS.has(query.field)
    case 'has':
      return IN_COUNTS.has(query.what)
    default:
      return false
  }
}

/** What must hold, each by itself. */
const conjuncts = (query: Query): readonly Query[] => (query.kind === 'and' ? query.parts.flatMap(conjuncts) : [query])

function excludesClosed(query: Query): boolean {
  if (query.kind === 'one-of') return query.field === 'status' && !query.values.includes('closed')
  if (query.kind === 'state') return query.state === 'ready' || query.state === 'claimed'
  return (
    query.kind === 'not' &&
    query.part.kind === 'one-of' &&
    query.part.field === 'status' &&
    query.part.values.includes('closed')
  )
}

/** Columns that the indexes of lists do not have. */
const ROW_FIELDS: ReadonlySet<string> = new Set<ColumnName>(['title', 'description', 'close_reason'])

/** What one bead costs, in looks. */
const looksOf = (parts: readonly Query[]): number =>
  parts.flatMap((part) => [...conditions(part)]).reduce((sum, one) => sum + (isElsewhere(one) ? LOOKS_ELSEWHERE : 1), 1)

function isElsewhere(query: Query): boolean {
  switch (query.kind) {
    case 'metadata':
    case 'metadata-contains':
    case 'has-metadata':
    case 'edge':
    case 'words':
      return true
    case 'has':
      return ROW_FIELDS.has(query.what)
    case 'one-of':
    case 'contains':
      return ROW_FIELDS.has(query.field)
    default:
      return false
  }
}

/** The beads of the smallest leader, each compared with the rest of the query; undefined where none is small (R2). */
function ledPlan(db: Database, parts: readonly Query[], meaning: Meaning, bounds: Bounds): Plan | undefined {
  let best: { readonly leader: Leader; readonly rest: readonly Query[]; readonly size: number } | undefined
  for (const leader of leaders(parts, meaning)) {
    const rest = parts.filter((part) => !leader.conditions.includes(part))
    const words = rest.flatMap((part) => [...conditions(part)]).filter(({ kind }) => kind === 'words').length
    const most = Math.min(bounds.led, Math.ceil(bounds.looks / (looksOf(rest) + words * LOOKS_FOR_WORDS)))
    const least = Math.min(most, best?.size ?? most)
    const size = countUpTo(db, leader.entries, least + 1)
    if (size <= most && size < (best?.size ?? Number.POSITIVE_INFINITY)) best = { leader, rest, size }
  }
  if (best === undefined) return undefined
  const { numbers } = best.leader
  const others = whereOf(allOf(best.rest), { ...meaning, words: 'each' })
  const where = { text: `b.n IN (${numbers.text}) AND (${others.text})`, values: [...numbers.values, ...others.values] }
  return { from: 'beads b NOT INDEXED', always: '1', where: () => where, cap: MAX_EXACT_TOTAL, wordy: false }
}

const countUpTo = (db: Database, { text, values }: Sql, most: number): number =>
  firstNumber(db.rows(`SELECT count(*) FROM (${text} LIMIT ?)`, ...values, most))

function leaders(parts: readonly Query[], meaning: Meaning): readonly Leader[] {
  const words = parts.filter((part) => part.kind === 'words')
  const searched = words.length === 0 ? [] : [ofWords(words, words.map((part) => `(${match(part)})`).join(' AND '))]
  return [...searched, ...parts.flatMap((part) => leaderOf(part, meaning) ?? [])]
}

const INDEX_OF: { readonly [Name in ColumnName]?: string } = {
  assignee: 'beads_assignee',
  issue_type: 'beads_type',
  parent: 'beads_parent',
  root_bead_id: 'beads_root',
  updated_at: 'beads_updated',
  closed_at: 'beads_closed',
}

function leaderOf(condition: Query, meaning: Meaning): Leader | undefined {
  switch (condition.kind) {
    case 'one-of':
      if (condition.field === 'id') return ofColumn('', condition, meaning)
      if (condition.field === 'title' || condition.field === 'description') return ofTexts(condition)
      return INDEX_OF[condition.field] === undefined
        ? undefined
        : ofColumn(`INDEXED BY ${INDEX_OF[condition.field]}`, condition, meaning)
    case 'time': {
      const index = INDEX_OF[condition.field]
      return index === undefined ? undefined : ofColumn(`INDEXED BY ${index}`, condition, meaning)
    }
    case 'label':
      return ofLabel(condition)
    case 'metadata':
      if (condition.key.startsWith('svc.')) return undefined
      return ofTable(
        condition,
        'bead_metadata',
        'bead',
        `o.key = ? AND o.value IN (${condition.values.map(() => '?').join(', ')})`,
        condition.key,
        ...condition.values,
      )
    case 'has-metadata':
      if (condition.key.startsWith('svc.')) return undefined
      return ofTable(condition, 'bead_metadata', 'bead', `o.key = ? AND o.value <> ''`, condition.key)
    case 'edge':
      return ofEdge(condition, condition.edge, condition.id, meaning)
    default:
      return undefined
  }
}

const MATCHING = 'SELECT rowid FROM bead_words WHERE bead_words MATCH ?'

function ofWords(led: readonly Query[], expression: string): Leader {
  const entries = { text: MATCHING, values: [expression] }
  return { conditions: led, entries, numbers: entries }
}

/** Those whose words are the same; the text itself is still compared. */
function ofTexts(condition: Extract<Query, { readonly kind: 'one-of' }>): Leader | undefined {
  const expression = wordsOfTexts(condition)
  return expression === undefined ? undefined : ofWords([], expression)
}

/** Those that the index of words has, and those that it does not have yet: the label itself is still looked for. */
function ofLabel(condition: Extract<Query, { readonly kind: 'label' }>): Leader {
  const numbers = {
    text: `${MATCHING} UNION ALL SELECT n FROM beads WHERE n > (SELECT n FROM bead_words_upto)`,
    values: [`labels : "${labelWord(condition.label)}"`],
  }
  return { conditions: [], entries: numbers, numbers }
}

function ofColumn(indexed: string, condition: Query, meaning: Meaning): Leader {
  const { text, values } = whereOf(condition, meaning)
  const numbers = { text: `SELECT b.n FROM beads b ${indexed} WHERE ${text}`, values }
  return { conditions: [condition], entries: numbers, numbers }
}

function ofTable(condition: Query, table: string, bead: string, where: string, ...values: readonly SqlValue[]): Leader {
  return {
    conditions: [condition],
    entries: { text: `SELECT 1 FROM ${table} o WHERE ${where}`, values },
    numbers: { text: `SELECT b.n FROM ${table} o CROSS JOIN beads b ON b.id = o.${bead} WHERE ${where}`, values },
  }
}

function ofEdge(condition: Query, edge: Edge, id: string, meaning: Meaning): Leader {
  if (edge === 'child-of') return ofColumn('INDEXED BY beads_parent', condition, meaning)
  const [own, other] = edge === 'blocked-by' ? ['issue_id', 'depends_on_id'] : ['depends_on_id', 'issue_id']
  const { numbers } = ofTable(condition, 'bead_deps', own, `o.${other} = ? AND ${BLOCKING_SQL}`, id)
  // Edges may lead to beads that are not there: only those that are count.
  return { conditions: [condition], entries: numbers, numbers }
}
