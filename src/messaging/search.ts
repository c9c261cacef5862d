/** What people type to search, as an expression of FTS5 (decision 135). */

/** More of them no text has in common with what somebody looks for. */
const MAX_WORDS = 64

/**
 * All words must be there, in any order; `word*` also finds what begins so. Every word is quoted, so nothing that is typed is
 * an operator or an error. A word of mere punctuation says nothing; undefined: nothing is said at all, and nothing found.
 */
export function searchExpression(typed: string): string | undefined {
  const words = typed
    .replaceAll('\0', ' ')
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}\p{Co}]/u.test(word))
    .slice(0, MAX_WORDS)
  return words.length === 0 ? undefined : words.map(quoted).join(' ')
}

function quoted(word: string): string {
  const begins = word.endsWith('*')
  const text = (begins ? word.slice(0, -1) : word).replaceAll('"', '""')
  return begins ? `"${text}"*` : `"${text}"`
}

/** Scripts without blanks between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/gu

/** Each character of such a script as a word of its own, in what is indexed and in what is looked for. */
export const spaced = (text: string): string => text.replaceAll(UNSPACED, ' $& ')
