/** What people type to search, as an expression of FTS5 (decision 135), in mail and in chats. */
import { type Vocabulary, wordsBeginning } from '../kernel/vocabulary.ts'

/** More of them no text has in common with what somebody looks for. */
const MAX_WORDS = 64
/** Beginnings up to here are words of the index themselves: its `prefix`. */
const INDEXED_LETTERS = 3
/** What the index folds to nothing but lower case. */
const PLAIN = /^[0-9a-z]+$/i
/**
 * Words with a beginning that are looked up, for all that was typed. Each takes tens of microseconds: most beginnings with more
 * words are sooner put together, since few texts have each of these.
 */
const MAX_ENDINGS = 16

/**
 * All words must be there, in any order; `word*` also finds what begins so. Every word is quoted, so nothing that is typed is
 * an operator or an error. A word of mere punctuation says nothing; undefined: nothing is said at all, and nothing found.
 */
export function searchExpression(typed: string, vocabulary: Vocabulary): string | undefined {
  const words = spaced(typed.replaceAll('\0', ' '))
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}\p{Co}]/u.test(word))
    .slice(0, MAX_WORDS)
  const most = Math.floor(MAX_ENDINGS / Math.max(words.filter(isBeginning).length, 1))
  return words.length === 0 ? undefined : words.map((word) => termOf(word, vocabulary, most)).join(' AND ')
}

const isBeginning = (word: string): boolean => word.endsWith('*')

/**
 * For a beginning the index puts all that begins so together first, whatever part of it is asked for; for words it does not.
 * So a longer beginning becomes the words that there are, where these are few.
 */
function termOf(word: string, vocabulary: Vocabulary, most: number): string {
  if (!isBeginning(word)) return quoted(word)
  const beginning = word.slice(0, -1)
  if (beginning.length <= INDEXED_LETTERS || !PLAIN.test(beginning)) return `${quoted(beginning)}*`
  const endings = wordsBeginning(vocabulary, beginning.toLowerCase(), most) ?? []
  return endings.length === 0 ? `${quoted(beginning)}*` : `(${endings.map(quoted).join(' OR ')})`
}

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`

/** Scripts without blanks between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu

/** Each character of such a script as a word of its own, in what is indexed and in what is looked for. */
export const spaced = (text: string): string => text.replaceAll(UNSPACED, ' $& ')
