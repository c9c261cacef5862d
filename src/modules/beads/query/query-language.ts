/**
 * The query language of `GET /beads/query`: text → query → text. `docs/guide/query-language.md` is for its readers.
 *
 *   query      = and { OR and }
 *   and        = term { AND term }
 *   term       = NOT term | "(" query ")" | condition | word | quoted [ "*" ]
 *   condition  = name op value { "," value }
 *   op         = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" | ":"
 */
import { cut } from '../../../contract/base/text.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Problem } from '../../../kernel/problem.ts'
import { allOf, anyOf, MAX_WORDS, type Moment, not, type Query, type WordField, wordsAsked } from './query.ts'
import {
  allow,
  type Condition,
  conditionOf,
  FIELDS,
  type Field,
  METADATA,
  mistake,
  type Value,
} from './query-conditions.ts'

const MAX_QUERY_CHARACTERS = 4_096
const MAX_TERMS = 100
const MAX_DEPTH = 20

/** The query that a text stands for, or 422 with the column of the mistake and what was expected there. */
export function parseQuery(source: string): Query {
  if (source.length > MAX_QUERY_CHARACTERS)
    throw mistake(MAX_QUERY_CHARACTERS + 1, `at most ${MAX_QUERY_CHARACTERS} characters`)
  return new Parser(source).parse()
}

class Parser {
  readonly #source: string
  #at = 0
  #terms = 0
  #depth = 0
  #words = 0

  constructor(source: string) {
    this.#source = source
  }

  parse(): Query {
    const query = this.#either()
    if (this.#at < this.#source.length) throw this.#expected('AND, OR or the end')
    return query
  }

  #either(): Query {
    const parts = [this.#both()]
    while (this.#keyword('or')) parts.push(this.#both())
    return anyOf(parts)
  }

  #both(): Query {
    const parts = [this.#term()]
    while (this.#keyword('and')) parts.push(this.#term())
    return allOf(parts)
  }

  #term(): Query {
    this.#space()
    if (this.#keyword('not')) return this.#deeper(() => not(this.#term()))
    if (this.#take('(')) return this.#deeper(() => this.#group())
    if (++this.#terms > MAX_TERMS) throw this.#expected(`at most ${MAX_TERMS} conditions`)
    const column = this.#column
    const quoted = this.#quoted()
    if (quoted !== undefined) return this.#look('text', quoted, this.#take('*'), column)
    return this.#named(column)
  }

  #deeper(parse: () => Query): Query {
    if (++this.#depth > MAX_DEPTH) throw this.#expected(`at most ${MAX_DEPTH} parentheses and NOTs inside each other`)
    const query = parse()
    this.#depth--
    return query
  }

  #group(): Query {
    const query = this.#either()
    this.#space()
    if (!this.#take(')')) throw this.#expected('AND, OR or )')
    return query
  }

  /** A condition, or a word that is looked for. */
  #named(column: number): Query {
    const run = this.#match(/[^\s()"=!<>~:]+/y) ?? ''
    const name = run.toLowerCase()
    if (run === '' || name === 'and' || name === 'or') {
      this.#at = column - 1
      throw this.#expected('a condition, a word or (')
    }
    const key = name === METADATA ? this.#quoted() : undefined
    this.#space()
    const opColumn = this.#column
    const op = this.#match(/!=|<=|>=|[=<>~:]/y)
    if (op === undefined && key === undefined) return this.#look('text', run, true, column)
    if (op === undefined) throw this.#expected('an operator: = != ~ :')
    // A key of metadata keeps its case.
    const full = name.startsWith(METADATA) ? METADATA + (key ?? run.slice(METADATA.length)) : name
    return this.#condition({ name: full, column, op, opColumn, values: this.#values() })
  }

  #values(): readonly Value[] {
    const values: Value[] = []
    do {
      this.#space()
      const column = this.#column
      const quoted = this.#quoted()
      const value = quoted ?? this.#match(/[^\s(),"]+/y)
      if (value === undefined) throw this.#expected('a value')
      const starred = quoted !== undefined && this.#take('*')
      if (values.push({ text: value, quoted: quoted !== undefined, starred, column }) > MAX_TERMS)
        throw this.#expected(`at most ${MAX_TERMS} values`)
    } while (this.#comma())
    return values
  }

  #condition(condition: Condition): Query {
    const { name, column } = condition
    const field: Field | undefined = name.startsWith(METADATA)
      ? { type: 'metadata', key: name.slice(METADATA.length) }
      : FIELDS.get(name)
    if (field === undefined || (field.type === 'metadata' && field.key === ''))
      throw mistake(column, `a field, not "${cut(name, 40)}" (quote it to look for it as text)`)
    if (field.type === 'words' && (condition.op === '~' || condition.op === ':' || field.column === 'text'))
      return this.#searches(field.column, condition)
    const star = condition.values.find(({ starred }) => starred)
    if (star !== undefined)
      throw mistake(star.column, 'a text without a star: only words are looked for by their beginning')
    return conditionOf(field, condition)
  }

  #searches(column: WordField, condition: Condition): Query {
    allow(condition, '=', '!=', '~', ':')
    const found = anyOf(
      condition.values.map((value) => this.#look(column, value.text, !value.quoted || value.starred, value.column)),
    )
    return condition.op === '!=' ? not(found) : found
  }

  #look(field: WordField, sought: string, open: boolean, column: number): Query {
    const count = wordsAsked(sought)
    if (count === 0) throw mistake(column, 'a word with a letter or a digit')
    this.#words += count
    if (this.#words > MAX_WORDS) throw mistake(column, `at most ${MAX_WORDS} words to look for`)
    return { kind: 'words', field, text: sought, open }
  }

  /** A quoted text with its escapes undone; undefined where none starts here. */
  #quoted(): string | undefined {
    const column = this.#column
    const quote = this.#source[this.#at]
    if (quote !== '"' && quote !== "'") return undefined
    let found = ''
    for (let at = this.#at + 1; at < this.#source.length; at++) {
      const character = this.#source[at]
      if (character === quote) {
        this.#at = at + 1
        return found
      }
      if (character === '\\') at++
      found += this.#source[at] ?? ''
    }
    throw mistake(column, `a closing ${quote}`)
  }

  #comma(): boolean {
    const before = this.#at
    this.#space()
    if (this.#take(',')) return true
    this.#at = before
    return false
  }

  #keyword(word: string): boolean {
    this.#space()
    const found = /[a-z]+(?=[\s()"]|$)/iy
    found.lastIndex = this.#at
    if (found.exec(this.#source)?.[0].toLowerCase() !== word) return false
    this.#at += word.length
    return true
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false
    this.#at++
    return true
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#source)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #space(): void {
    this.#match(/\s+/y)
  }

  get #column(): number {
    return this.#at + 1
  }

  #expected(what: string): Problem {
    this.#space()
    return mistake(this.#column, what)
  }
}

/** The text of a query; the same query has the same text, and parsing it gives the query back. */
export function formatQuery(query: Query): string {
  switch (query.kind) {
    case 'and':
    case 'or':
      return query.parts.map(inner).join(query.kind === 'and' ? ' AND ' : ' OR ')
    case 'not':
      return `NOT ${inner(query.part)}`
    case 'one-of':
      return `${query.field}=${query.values.map(quote).join(',')}`
    case 'contains':
      return `${query.field}~${quote(query.text)}`
    case 'number':
      return `${query.field}${query.op}${query.value}`
    case 'time':
      return `${query.field}${query.op}${formatMoment(query.value)}`
    case 'has':
      return `has:${query.what}`
    case 'label':
      return `label=${quote(query.label)}`
    case 'metadata':
      return `metadata.${quote(query.key)}=${query.values.map(quote).join(',')}`
    case 'metadata-contains':
      return `metadata.${quote(query.key)}~${quote(query.text)}`
    case 'has-metadata':
      return `has:${quote(METADATA + query.key)}`
    case 'edge':
      return `${query.edge}:${quote(query.id)}`
    case 'state':
      return `is:${query.state}`
    case 'words':
      return `${query.field}~${quote(query.text)}${query.open ? '*' : ''}`
  }
}

const inner = (query: Query): string =>
  query.kind === 'and' || query.kind === 'or' ? `(${formatQuery(query)})` : formatQuery(query)
const quote = (value: string): string => `"${value.replaceAll(/["\\]/g, '\\$&')}"`

function formatMoment(moment: Moment): string {
  if ('ago_ms' in moment) return `${moment.ago_ms}ms`
  if ('day_ms' in moment) return cut(isoTime(moment.day_ms), 10)
  return isoTime(moment.at_ms)
}
