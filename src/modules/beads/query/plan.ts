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
import type { Database } from '../../../kernel/database.ts'
import { wordsBeginning } from '../../../kernel/vocabulary.ts'
import type { ColumnName } from '../store/columns.ts'
import { BLOCKING_SQL } from '../store/shifts.ts'
import { COUNTED } from '../store/tallies.ts'
import { labelWord } from '../store/words.ts'
import { beginningOf, type Meaning, match, type Sql, type WordsAmong, whereOf, wordsOfTexts } from './filters.ts'
import { allOf, asksForWords, conditions, MAX_WORDS, type Query, type Words, wordsIn } from './query.ts'

export interface Plan {
  /** The table and how it is read. */
  readonly from: string
  /** What holds for every entry of that index. */
  readonly always: string
  /** With words that are looked up among the beads only that are looked at, where those are known. */
  readonly where: (among?: WordsAmong) => Sql
  /** How many belong to it, where that is kept. */
  readonly total?: number
  /** How many are counted at most. */
  readonly cap: number
  /** So many entries are looked at for one page at most; absent: there are not more. */
  readonly window?: number
  /** It is worth knowing which numbers the beads of a window have. */
  readonly wordy: boolean
  /** Words that must stand together are asked for: to look them up costs as much for few beads as for a whole window. */
  readonly phrased?: true
}

/** What an index of its own says about some conditions. */
interface Leader {
  readonly conditions: readonly Query[]
  /** The numbers of its beads, where these are not more than `most` and soon found. */
  readonly find: (most: number) => readonly number[] | undefined
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
/** Words are looked up for all numbers between those of a window, which lie apart where it has few of all beads. */
const LOOKS_FOR_WORDS = 16
/** `total` is exact up to here where closed beads are among it. */
const CLOSED_CAP = 1_000

export function planOf(db: Database, asked: Query, meaning: Meaning, bounds = BOUNDS): Plan {
  const query = withEndings(db, asked)
  const parts = conjuncts(query)
  const live = parts.some(excludesClosed)
  const size = sizeOf(db, live)
  const window = Math.ceil(bounds.looks / looksOf(parts))
  const led = size <= bounds.led ? undefined : ledPlan(db, parts, meaning, bounds)
  if (led !== undefined) return led
  const total = totalOf(db, query, meaning)
  return {
    ...(live ? LIVE_INDEX : FACTS_INDEX),
    where: (among) => whereOf(allOf(parts), among === undefined ? meaning : { ...meaning, among }),
    cap: live ? MAX_EXACT_TOTAL : CLOSED_CAP,
    wordy: asksForWords(query),
    ...(asksForPhrases(query) ? { phrased: true } : {}),
    ...(total === undefined ? {} : { total }),
    ...(size <= window ? {} : { window }),
  }
}

const asksForPhrases = (query: Query): boolean =>
  [...conditions(query)].some((one) => one.kind === 'words' && wordsIn(one.text).length > 1)

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
  parts.flatMap((part) => [...conditions(part)]).reduce((sum, one) => sum + looksOfOne(one), 1)

function looksOfOne(query: Query): number {
  switch (query.kind) {
    case 'words':
      return LOOKS_FOR_WORDS
    case 'metadata':
    case 'metadata-contains':
    case 'has-metadata':
    case 'edge':
      return LOOKS_ELSEWHERE
    case 'has':
      return ROW_FIELDS.has(query.what) ? LOOKS_ELSEWHERE : 1
    case 'one-of':
    case 'contains':
      return ROW_FIELDS.has(query.field) ? LOOKS_FOR_WORDS : 1
    default:
      return 1
  }
}

/** The beads of the smallest leader, each compared with the rest of the query; undefined where none is small (R2). */
function ledPlan(db: Database, parts: readonly Query[], meaning: Meaning, { looks, led }: Bounds): Plan | undefined {
  let best: { readonly rest: readonly Query[]; readonly numbers: readonly number[] } | undefined
  for (const { conditions: own, find } of leaders(db, parts, meaning, looks)) {
    const rest = parts.filter((part) => !own.includes(part))
    const most = Math.min(led, Math.ceil(looks / looksOf(rest)), (best?.numbers.length ?? led + 1) - 1)
    const numbers = find(most)
    if (numbers !== undefined) best = { rest, numbers }
  }
  if (best === undefined) return undefined
  const { rest, numbers } = best
  const others = whereOf(allOf(rest), { ...meaning, among: wordsAmong(db, numbers) })
  const where = {
    text: `b.n IN (SELECT value FROM json_each(?)) AND (${others.text})`,
    values: [JSON.stringify(numbers), ...others.values],
  }
  return { from: 'beads b NOT INDEXED', always: '1', where: () => where, cap: MAX_EXACT_TOTAL, wordy: false }
}

function leaders(db: Database, parts: readonly Query[], meaning: Meaning, looks: number): readonly Leader[] {
  const words = parts.filter((part) => part.kind === 'words')
  const expression = words.map((part) => `(${match(part)})`).join(' AND ')
  const searched =
    words.length > 0 && isSoonFound(db, [words.flatMap(eachWord)], looks) ? [ofWords(db, words, expression)] : []
  // Words come last: what others leave tells how far it is worth to look for them.
  return [...parts.flatMap((part) => leaderOf(db, part, meaning, looks) ?? []), ...searched]
}

/**
 * Words that stand together are looked for from one to the next bead that has all of them, be it the last one. So each of
 * these groups must have a word that few beads have; one alone is no search.
 */
function isSoonFound(db: Database, groups: readonly (readonly string[])[], looks: number): boolean {
  const most = Math.floor(looks / groups.flat().length)
  const isRare = (word: string) => db.rows(`${MATCHING} LIMIT 1 OFFSET ?`, word, most).length === 0
  return groups.every((words) => words.length === 1 || words.some(isRare))
}

/** Each of some words by itself. */
function eachWord(words: Words): readonly string[] {
  const { field, text } = words
  const all = wordsIn(text).map((one) => match({ field, text: one, open: false }))
  const beginning = beginningOf(words)
  return beginning === undefined ? all : [...all.slice(0, -1), match({ ...words, text: beginning })]
}

/** Words with a beginning that are looked up, for all of a query: each takes a few microseconds. */
const MAX_ENDINGS = 64
/** Others are folded by the index, in a way of its own. */
const PLAIN = /^[0-9a-z]+$/i
/** Whether one parts a word is for the index to say. */
const MARK = /\p{M}/u

/** The query with the words that begin as it says, where these are few. */
function withEndings(db: Database, query: Query): Query {
  const beginnings = [...conditions(query)].filter((one) => one.kind === 'words' && beginningOf(one) !== undefined)
  const most = Math.floor(MAX_ENDINGS / Math.max(beginnings.length, 1))
  const replaced = (one: Query): Query => {
    if (one.kind === 'and' || one.kind === 'or') return { kind: one.kind, parts: one.parts.map(replaced) }
    if (one.kind === 'not') return { kind: 'not', part: replaced(one.part) }
    if (one.kind !== 'words') return one
    const endings = endingsOf(db, one, most)
    return endings === undefined ? one : { ...one, endings }
  }
  return beginnings.length === 0 ? query : replaced(query)
}

/** All words of the index that begin so; undefined where they are more than `most`. */
function endingsOf(db: Database, words: Words, most: number): readonly string[] | undefined {
  const beginning = beginningOf(words)
  if (beginning === undefined || !PLAIN.test(beginning) || MARK.test(words.text)) return undefined
  const found = wordsBeginning({ db, table: 'bead_terms' }, beginning.toLowerCase(), most)
  // One that is not a word to whoever reads it again would not be found by itself.
  return found?.every((term) => wordsIn(term).length === 1) ? found : undefined
}

const INDEX_OF: { readonly [Name in ColumnName]?: string } = {
  assignee: 'beads_assignee',
  issue_type: 'beads_type',
  parent: 'beads_parent',
  root_bead_id: 'beads_root',
  updated_at: 'beads_updated',
  closed_at: 'beads_closed',
}

function leaderOf(db: Database, condition: Query, meaning: Meaning, looks: number): Leader | undefined {
  switch (condition.kind) {
    case 'one-of':
      if (condition.field === 'title' || condition.field === 'description') return ofTexts(db, condition, looks)
      return ofColumn(db, condition.field === 'id' ? '' : INDEX_OF[condition.field], condition, meaning)
    case 'time':
      return ofColumn(db, INDEX_OF[condition.field], condition, meaning)
    case 'label':
      return ofLabel(db, condition)
    case 'metadata':
      return ofMetadata(db, condition, `o.value IN (${condition.values.map(() => '?').join(', ')})`, condition.values)
    case 'has-metadata':
      return ofMetadata(db, condition, `o.value <> ''`, [])
    case 'edge':
      return ofEdge(db, condition, meaning)
    default:
      return undefined
  }
}

/** Rows of `text`, each with the number of a bead; `entries` are as many, and cheaper. */
function ofRows(db: Database, own: readonly Query[], { text, values }: Sql, entries = text): Leader {
  return {
    conditions: own,
    find(most) {
      const [row] = db.rows(`SELECT count(*) FROM (${entries} LIMIT ?)`, ...values, most + 1)
      return Number(row?.[0]) > most ? undefined : db.rows(text, ...values).map(([n]) => Number(n))
    },
  }
}

function ofWords(db: Database, own: readonly Query[], expression: string): Leader {
  return { conditions: own, find: (most) => findWords(db, expression, most) }
}

const MATCHING = 'SELECT rowid FROM bead_words WHERE bead_words MATCH ?'

/** At most one more than `most`: of what is frequent the first ones are soon found. */
function findWords(db: Database, expression: string, most: number): readonly number[] | undefined {
  const found = db.rows(`${MATCHING} LIMIT ?`, expression, most + 1).map(([n]) => Number(n))
  return found.length > most ? undefined : found
}

const FEW = 32

/** Looks words up among these beads, each expression once. */
export function wordsAmong(db: Database, numbers: readonly number[]): WordsAmong {
  if (numbers.length === 0) return () => []
  const known = new Map<string, readonly number[]>()
  const least = numbers.reduce((one, other) => Math.min(one, other), Number.MAX_SAFE_INTEGER)
  const greatest = numbers.reduce((one, other) => Math.max(one, other), 0)
  // The index of words goes straight to a number that is an integer; the driver binds numbers as others, which it ignores.
  // Words that never stand together are looked for up to the end of the index: that way which is the shorter one. Few
  // beads were led to, mostly by a rare word, and going back is slow to begin.
  const [row] = db.rows('SELECT max(n) FROM beads')
  const isNearEnd = numbers.length < FEW || least + greatest > Number(row?.[0])
  const way = isNearEnd ? 'ASC' : 'DESC'
  const among = `${MATCHING} AND rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
    AND +rowid IN (SELECT value FROM json_each(?)) ORDER BY rowid ${way}`
  return (expression) => {
    const found =
      known.get(expression) ??
      db.rows(among, expression, least, greatest, JSON.stringify(numbers)).map(([n]) => Number(n))
    known.set(expression, found)
    return found
  }
}

/** Those whose words are the same; the text itself is still compared. */
function ofTexts(
  db: Database,
  condition: Extract<Query, { readonly kind: 'one-of' }>,
  looks: number,
): Leader | undefined {
  const expression = wordsOfTexts(condition)
  const { field, values } = condition
  if (expression === undefined || (field !== 'title' && field !== 'description')) return undefined
  const groups = values.map((text) => eachWord({ kind: 'words', field, text, open: false }).slice(0, MAX_WORDS))
  return isSoonFound(db, groups, looks) ? ofWords(db, [], expression) : undefined
}

/** Those that the index of words has, and those that it does not have yet: the label itself is still looked for. */
function ofLabel(db: Database, { label }: Extract<Query, { readonly kind: 'label' }>): Leader {
  return ofRows(db, [], {
    text: `${MATCHING}
      UNION ALL SELECT n FROM beads WHERE n > (SELECT n FROM bead_words_upto)`,
    values: [`labels : "${labelWord(label)}"`],
  })
}

function ofColumn(db: Database, index: string | undefined, condition: Query, meaning: Meaning): Leader | undefined {
  if (index === undefined) return undefined
  const { text, values } = whereOf(condition, meaning)
  const indexed = index === '' ? '' : `INDEXED BY ${index}`
  return ofRows(db, [condition], { text: `SELECT b.n FROM beads b ${indexed} WHERE ${text}`, values })
}

function ofMetadata(
  db: Database,
  condition: Extract<Query, { readonly kind: 'metadata' | 'has-metadata' }>,
  test: string,
  named: readonly string[],
): Leader | undefined {
  if (condition.key.startsWith('svc.')) return undefined
  const where = `WHERE o.key = ? AND ${test}`
  const values = [condition.key, ...named]
  const text = `SELECT b.n FROM bead_metadata o CROSS JOIN beads b ON b.id = o.bead ${where}`
  return ofRows(db, [condition], { text, values }, `SELECT 1 FROM bead_metadata o ${where}`)
}

function ofEdge(
  db: Database,
  condition: Extract<Query, { readonly kind: 'edge' }>,
  meaning: Meaning,
): Leader | undefined {
  const { edge, id } = condition
  if (edge === 'child-of') return ofColumn(db, 'beads_parent', condition, meaning)
  const [own, other] = edge === 'blocked-by' ? ['issue_id', 'depends_on_id'] : ['depends_on_id', 'issue_id']
  // Edges may lead to beads that are not there: only those that are count.
  const text = `SELECT b.n FROM bead_deps o CROSS JOIN beads b ON b.id = o.${own} WHERE o.${other} = ? AND ${BLOCKING_SQL}`
  return ofRows(db, [condition], { text, values: [id] })
}
