/** Where a character of a TOML text stands in its file: quotes, escapes and line breaks are counted. */
import type { Place } from '../files/issues.ts'

/** The place of the character `offset` of the text whose value stands at `at` of `file`. */
export function placeInText(file: string, at: Place, offset: number): Place {
  if (at.line === 0) return at
  let from = lineStart(file, at.line) + at.column - 1
  const quote = file[from]
  if (quote !== '"' && quote !== "'") return at
  const long = file.startsWith(quote.repeat(3), from)
  from += long ? 3 : 1
  // A line break right behind three quotes is no part of the text.
  if (long) from += file.startsWith('\r\n', from) ? 2 : file[from] === '\n' ? 1 : 0
  let left = offset
  while (left > 0 && from < file.length) {
    const { length, made } = quote === '"' ? basicCharacter(file, from) : plainCharacter(file, from)
    from += length
    left -= made
  }
  return placeAt(file, from, at)
}

/** A line break of two characters is one in the value. */
const plainCharacter = (file: string, from: number) => ({ length: file.startsWith('\r\n', from) ? 2 : 1, made: 1 })

/** One character of a basic text: how much of the file it takes, and how many characters of the value it makes. */
function basicCharacter(file: string, from: number): { length: number; made: number } {
  if (file[from] !== '\\') return plainCharacter(file, from)
  const short = /^\\u[0-9a-fA-F]{4}/.exec(file.slice(from, from + 6))
  if (short !== null) return { length: 6, made: 1 }
  const long = /^\\U([0-9a-fA-F]{8})/.exec(file.slice(from, from + 10))
  if (long !== null) return { length: 10, made: Number.parseInt(long[1] ?? '', 16) > 0xffff ? 2 : 1 }
  // A backslash at the end of a line takes the white space up to the next text with it.
  const joined = /^\\[ \t]*\r?\n\s*/.exec(file.slice(from, from + 4_096))
  return joined === null ? { length: 2, made: 1 } : { length: joined[0].length, made: 0 }
}

function lineStart(file: string, line: number): number {
  let start = 0
  for (let seen = 1; seen < line; seen++) start = file.indexOf('\n', start) + 1
  return start
}

function placeAt(file: string, offset: number, { file: name, layer }: Place): Place {
  const before = file.slice(0, offset)
  const line = before.split('\n').length
  return { file: name, line, column: offset - before.lastIndexOf('\n'), layer }
}
