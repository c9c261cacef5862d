/**
 * Which index a list reads. The engine keeps no statistics here and would guess; this counts, up to a bound, and compares.
 *
 * I1  `beads_facts` (all beads) and `beads_live` (those not closed) hold, in the order of lists, every column that filters
 *     look at: reading one from end to end touches no row.
 * I2  Instead a condition with an index of its own may lead: its beads are collected first and looked at one by one.
 * I3  A plan changes what is read and never what is found.
 */
import { MAX_EXACT_TOTAL } from '../../../contract/base/paging.ts'
import type { Database, SqlValue } from '../../../kernel/database.ts'
import { BLOCKING_SQL } from '../store/edges.ts'
import { COUNTED } from '../store/schema.ts'
import { type Meaning, match, type Sql, type WordLookup, whereOf } from './filters.ts'
import { allOf, conditions, type Edge, type Query, type TextField, type TimeField } from './query.ts'

export interface Plan {
  /** The table and how it is read. */
  readonly from: string
  /** What holds for every entry of that index. */
  readonly always: string
  /** Of the beads with these numbers only, where that is known of them: words are looked up for no others. */
  readonly where: (numbers?: NumberRange) => Sql
  /** Counts all that belongs to it at a bearable cost; absent where there is no such way. */
  readonly count?: () => number
  /** Without `count`: how many are counted at most. */
  readonly cap: number
  /** At most so many entries are looked at for one page; absent: as many as there are. */
  readonly window?: number
  /** It is worth knowing which numbers the beads of a window have. */
  readonly wordy: boolean
}

export interface NumberRange {
  readonly from: number
  readonly to: number
}

/** What an index of its own says about one condition. */
interface Lead {
  /** A row for each bead, from the index alone. */
  readonly entries: Sql
  /** Their numbers. */
  readonly numbers: Sql
}
interface Leader extends Lead {
  readonly condition: Query
}
interface Sized {
  readonly leader: Leader
  readonly size: number
}

/** Microseconds, on a machine of moderate speed: only their proportions matter. */
const COST = { fact: 0.06, seek: 1.4, probe: 0.4, word: 0.25, wordOfOne: 20 }
/** A scan this cheap is not worth a count. */
const CHEAP_MICROSECONDS = 1_500
/** A page costs no more than about this. */
const MAX_MICROSECONDS = 15_000
/** Counting stops here: what has more does not lead, and words that have more are taken to be in all beads. */
const MAX_LED = Math.ceil(MAX_MICROSECONDS / COST.seek)
/** What one comparison leaves: a guess. */
const SELECTIVITY = 0.3
/** `total` of what is laborious to count is exact up to here where closed beads are among it. */
const LABORIOUS_CAP = 1_000

export function planOf(db: Database, query: Query, meaning: Meaning): Plan {
  const parts = conjuncts(query)
  const live = parts.some(excludesClosed)
  const size = sizeOf(db, live)
  const where = (words?: WordLookup) => whereOf(allOf(parts), words === undefined ? meaning : { ...meaning, words })
  const scan = { ...(live ? LIVE_INDEX : FACTS_INDEX), where, wordy: false, cap: MAX_EXACT_TOTAL }
  const looks = size * (COST.fact + probesPerBead(parts) * COST.probe)
  const total = totalOf(db, query, meaning)
  // Alone it is counted in its own index.
  const [alone] = parts.length === 1 ? leaders(parts, meaning) : []
  const countAlone = () => (alone === undefined ? countOf(db, scan) : countRows(db, alone.entries))
  const exact = { ...scan, count: () => total ?? countAlone() }
  const counts = new Counts(db)
  const laborious = [...conditions(query)].some((one) => isLaborious(one, looks))
  // A page of what is frequent is soon full.
  const untilFull = total === undefined ? looks : looks * Math.min(1, PAGE / total)
  if (!laborious && untilFull <= CHEAP_MICROSECONDS) return exact
  const best = cheapest(counts, leaders(parts, meaning))
  if (best !== undefined && ledCost(best.size, Number.POSITIVE_INFINITY) <= CHEAP_MICROSECONDS)
    return ledPlan(best, Number.POSITIVE_INFINITY, parts, meaning)
  const words = wordCost(db, counts, query)
  if (best !== undefined && ledCost(best.size, words) < Math.min(looks + words, MAX_MICROSECONDS))
    return ledPlan(best, words, parts, meaning)
  if (!laborious) return exact
  const fits = looks + words <= MAX_MICROSECONDS
  return {
    ...scan,
    ...(alone === undefined ? {} : { count: countAlone }),
    cap: fits && live ? MAX_EXACT_TOTAL : LABORIOUS_CAP,
    ...(fits ? {} : { window: Math.ceil((size * MAX_MICROSECONDS) / (looks + words)), wordy: words > 0 }),
  }
}

/** Items of an ordinary page. */
const PAGE = 100
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

const LIVE_INDEX = { from: 'beads b INDEXED BY beads_live', always: `b.status <> 'closed'` }
const FACTS_INDEX = { from: 'beads b INDEXED BY beads_facts', always: '1' }

function countOf(db: Database, { from, always, where }: Pick<Plan, 'from' | 'always' | 'where'>): number {
  const { text, values } = where()
  return firstNumber(db.rows(`SELECT count(*) FROM ${from} WHERE ${always} AND (${text})`, ...values))
}

const countRows = (db: Database, { text, values }: Sql): number =>
  firstNumber(db.rows(`SELECT count(*) FROM (${text})`, ...values))

/** Each bead of the leader is fetched; words are looked up once, or for each of the few. */
const ledCost = (size: number, words: number): number => size * COST.seek + Math.min(words, size * COST.wordOfOne)

/** The beads of the leader, each compared with the rest of the query. */
function ledPlan({ leader, size }: Sized, words: number, parts: readonly Query[], meaning: Meaning): Plan {
  const { condition, numbers } = leader
  const rest = allOf(parts.filter((part) => part !== condition))
  const others = whereOf(rest, size * COST.wordOfOne < words ? { ...meaning, words: 'each' } : meaning)
  const where = {
    text: `b.n IN (${numbers.text}) AND (${others.text})`,
    values: [...numbers.values, ...others.values],
  }
  return { from: 'beads b NOT INDEXED', always: '1', where: () => where, cap: MAX_EXACT_TOTAL, wordy: false }
}

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

/** Columns that the indexes of lists do not have; those of these that are text are found through an index of their own. */
const ROW_FIELDS: ReadonlySet<string> = new Set(['title', 'description', 'close_reason'])
/** A look into the row costs as much as so many looks for one entry. */
const DEAR_PROBE = 3
/** A look through the labels that an index has. */
const CHEAP_PROBE = 0.25

/** Looks into other places that tell whether a bead belongs; undefined where the indexes of lists say so themselves. */
function probesOf(query: Query): number | undefined {
  switch (query.kind) {
    case 'words':
      return 0
    case 'label':
      return CHEAP_PROBE
    case 'metadata':
    case 'metadata-contains':
    case 'has-metadata':
      return query.key.startsWith('svc.') ? DEAR_PROBE : 1
    case 'edge':
      return query.edge === 'child-of' ? undefined : 1
    case 'has':
      return ROW_FIELDS.has(query.what) ? DEAR_PROBE : undefined
    case 'one-of':
    case 'contains':
      return ROW_FIELDS.has(query.field) ? 0 : undefined
    default:
      return undefined
  }
}

/** True for what is not to be looked at in every bead just for the total; `looks` is what that costs. */
const isLaborious = (query: Query, looks: number): boolean =>
  probesOf(query) !== undefined && (query.kind !== 'label' || looks > MAX_MICROSECONDS)

/** Comparisons come first and leave fewer beads to look for. */
function probesPerBead(parts: readonly Query[]): number {
  const comparisons = parts.filter(
    (part) => [...conditions(part)].every((one) => probesOf(one) === undefined) && !excludesClosed(part),
  )
  const probes = parts.flatMap((part) => [...conditions(part)]).reduce((sum, one) => sum + (probesOf(one) ?? 0), 0)
  return probes * SELECTIVITY ** comparisons.length
}

/** The words of a query are looked up before the first bead is looked at. */
function wordCost(db: Database, counts: Counts, query: Query): number {
  let beads = 0
  for (const one of conditions(query)) {
    if (one.kind !== 'words') continue
    const found = counts.upTo(searched(match(one)), MAX_LED)
    beads += found < MAX_LED ? found : sizeOf(db, false)
  }
  return beads * COST.word
}

function cheapest(counts: Counts, all: readonly Leader[]): Sized | undefined {
  let best: Sized | undefined
  for (const leader of all) {
    const most = best?.size ?? MAX_LED
    const size = counts.upTo(leader.entries, most)
    if (size < most) best = { leader, size }
  }
  return best
}

/** What one plan has counted: beads that have a word are asked for as a leader, and for what looking them up costs. */
class Counts {
  readonly #db: Database
  readonly #known = new Map<string, { readonly found: number; readonly most: number }>()

  constructor(db: Database) {
    this.#db = db
  }

  /** How many there are, or `most`. */
  upTo({ text, values }: Sql, most: number): number {
    const key = [text, ...values].join('\0')
    const known = this.#known.get(key)
    // What stopped at a lower bound does not say whether there are more.
    if (known !== undefined && (known.found < known.most || most <= known.most)) return Math.min(known.found, most)
    const found = countRows(this.#db, { text: `${text} LIMIT ?`, values: [...values, most] })
    this.#known.set(key, { found, most })
    return found
  }
}

function leaders(parts: readonly Query[], meaning: Meaning): readonly Leader[] {
  return parts.flatMap((condition) => {
    const lead = leadOf(condition, meaning)
    return lead === undefined ? [] : [{ condition, ...lead }]
  })
}

const INDEX_OF_TEXT: Partial<Record<TextField, string>> = {
  assignee: 'beads_assignee',
  issue_type: 'beads_type',
  parent: 'beads_parent',
  root_bead_id: 'beads_root',
}
const INDEX_OF_TIME: Partial<Record<TimeField, string>> = { updated_at: 'beads_updated', closed_at: 'beads_closed' }

function leadOf(condition: Query, meaning: Meaning): Lead | undefined {
  switch (condition.kind) {
    case 'one-of': {
      const index = INDEX_OF_TEXT[condition.field]
      if (condition.field === 'id') return ofColumn('', whereOf(condition, meaning))
      return index === undefined ? undefined : ofColumn(`INDEXED BY ${index}`, whereOf(condition, meaning))
    }
    case 'time': {
      const index = INDEX_OF_TIME[condition.field]
      return index === undefined ? undefined : ofColumn(`INDEXED BY ${index}`, whereOf(condition, meaning))
    }
    case 'label':
      return ofLabel(condition.label)
    case 'metadata':
      if (condition.key.startsWith('svc.')) return undefined
      return ofTable(
        'bead_metadata',
        'bead',
        `o.key = ? AND o.value IN (${condition.values.map(() => '?').join(', ')})`,
        condition.key,
        ...condition.values,
      )
    case 'has-metadata':
      if (condition.key.startsWith('svc.')) return undefined
      return ofTable('bead_metadata', 'bead', `o.key = ? AND o.value <> ''`, condition.key)
    case 'edge':
      return ofEdge(condition.edge, condition.id, meaning)
    case 'words': {
      const entries = searched(match(condition))
      return { entries, numbers: entries }
    }
    default:
      return undefined
  }
}

const searched = (expression: string): Sql => ({
  text: 'SELECT rowid FROM bead_words WHERE bead_words MATCH ?',
  values: [expression],
})

function ofColumn(indexed: string, { text, values }: Sql): Lead {
  const numbers = { text: `SELECT b.n FROM beads b ${indexed} WHERE ${text}`, values }
  return { entries: numbers, numbers }
}

function ofLabel(label: string): Lead {
  const numbers = { text: 'SELECT o.n FROM bead_labels o WHERE o.label = ?', values: [label] }
  return { entries: numbers, numbers }
}

function ofTable(table: string, bead: string, where: string, ...values: readonly SqlValue[]): Lead {
  return {
    entries: { text: `SELECT 1 FROM ${table} o WHERE ${where}`, values },
    numbers: { text: `SELECT b.n FROM ${table} o CROSS JOIN beads b ON b.id = o.${bead} WHERE ${where}`, values },
  }
}

function ofEdge(edge: Edge, id: string, meaning: Meaning): Lead {
  if (edge === 'child-of') return ofColumn('INDEXED BY beads_parent', whereOf({ kind: 'edge', edge, id }, meaning))
  const [own, other] = edge === 'blocked-by' ? ['issue_id', 'depends_on_id'] : ['depends_on_id', 'issue_id']
  const { numbers } = ofTable('bead_deps', own, `o.${other} = ? AND ${BLOCKING_SQL}`, id)
  // Edges may lead to beads that are not there: only those that are count.
  return { entries: numbers, numbers }
}
