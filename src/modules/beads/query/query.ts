/** What a list of beads asks for, as data: the query language and the parameters of lists both become this. */
import type { BeadStatus } from '../../../contract/beads.ts'
import type { AskedColumn } from '../store/columns.ts'
import { isUnspaced, segmented } from '../store/words.ts'

/** Columns that hold text. */
export type TextField = 'id' | AskedColumn<'text' | 'status'>
export type NumberField = AskedColumn<'number'>
export type TimeField = AskedColumn<'time'>
export type Comparison = '=' | '<' | '<=' | '>' | '>='
export type Edge = 'blocked-by' | 'blocks' | 'child-of'
export type State = 'blocked' | 'ready' | 'claimed' | 'deferred' | 'ephemeral'
export type WordField = 'text' | 'title' | 'description'

/** A moment, a whole day (UTC), or a span back from now. */
export type Moment = { readonly at_ms: number } | { readonly day_ms: number } | { readonly ago_ms: number }

/** These words in a row; the last one may be the beginning of a word where `open` is true. */
export interface Words {
  readonly kind: 'words'
  readonly field: WordField
  readonly text: string
  readonly open: boolean
  /** All words that there are with that beginning, where they were looked up. */
  readonly endings?: readonly string[]
}

/** Each is true or false of a bead, never unknown: a comparison with what is absent is false, and its NOT true. */
export type Query =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Query[] }
  | { readonly kind: 'not'; readonly part: Query }
  | { readonly kind: 'one-of'; readonly field: TextField; readonly values: readonly string[] }
  /** The text is in it somewhere; case does not matter. */
  | { readonly kind: 'contains'; readonly field: TextField; readonly text: string }
  | { readonly kind: 'number'; readonly field: NumberField; readonly op: Comparison; readonly value: number }
  | { readonly kind: 'time'; readonly field: TimeField; readonly op: Comparison; readonly value: Moment }
  | { readonly kind: 'has'; readonly what: TextField | NumberField | TimeField | 'label' }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'metadata'; readonly key: string; readonly values: readonly string[] }
  | { readonly kind: 'metadata-contains'; readonly key: string; readonly text: string }
  /** The key is there with a value that is not empty. */
  | { readonly kind: 'has-metadata'; readonly key: string }
  | { readonly kind: 'edge'; readonly edge: Edge; readonly id: string }
  | { readonly kind: 'state'; readonly state: State }
  | Words

export const not = (part: Query): Query => ({ kind: 'not', part })
export const statusIs = (...values: readonly BeadStatus[]): Query => ({ kind: 'one-of', field: 'status', values })

/** All of them; one alone stands for itself. */
export function allOf(parts: readonly Query[]): Query {
  const [only] = parts
  return only !== undefined && parts.length === 1 ? only : { kind: 'and', parts }
}
export function anyOf(parts: readonly Query[]): Query {
  const [only] = parts
  return only !== undefined && parts.length === 1 ? only : { kind: 'or', parts }
}

/** Every condition in it, itself included. */
export function* conditions(query: Query): Generator<Query> {
  yield query
  if (query.kind === 'not') yield* conditions(query.part)
  if (query.kind === 'and' || query.kind === 'or') for (const part of query.parts) yield* conditions(part)
}

/** Words as the text index sees them: runs of letters and digits, and single letters where scripts have no spaces. */
export const wordsIn = (text: string): readonly string[] => segmented(text).match(/[\p{L}\p{N}\p{Co}]+/gu) ?? []

/** Words that one query may look for: each can be in every bead. */
export const MAX_WORDS = 32
/** A word of a script without spaces has about so many letters, each of which is a word of the index. */
const LETTERS_OF_WORD = 4

/** How many words somebody looks for; those of a script without spaces are estimated. */
export function wordsAsked(text: string): number {
  const words = wordsIn(text)
  const letters = words.filter(isUnspaced).length
  return words.length - letters + Math.ceil(letters / LETTERS_OF_WORD)
}

/** True where the index of words is looked into; whole titles and texts are found by their words too. */
export const asksForWords = (query: Query): boolean =>
  [...conditions(query)].some(
    (one) => one.kind === 'words' || (one.kind === 'one-of' && (one.field === 'title' || one.field === 'description')),
  )
