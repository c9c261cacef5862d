/** Texts for chats that take only short ones, in one line each. */

const encoder = new TextEncoder()
const size = (text: string): number => encoder.encode(text).length

const CONTROLS = /[\p{Cc}--[\t\n]]/gv

/**
 * Lines of at most `bytes` bytes of UTF-8, without control characters and never empty. They break at a blank where there is
 * one, and never inside of what is seen as one character.
 */
export function linesOf(text: string, bytes: number): readonly string[] {
  const lines = text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(CONTROLS, '')
    .replaceAll('\t', ' ')
    .split(/[\n\u2028\u2029]/)
  return lines.flatMap((line) => [...broken(line.trimEnd(), bytes)])
}

function* broken(line: string, bytes: number): Iterable<string> {
  let rest = line
  while (size(rest) > bytes) {
    const end = endWithin(rest, bytes)
    const blank = rest.lastIndexOf(' ', end)
    const cut = rest[end] === ' ' || blank <= end / 2 ? end : blank
    const head = rest.slice(0, cut).trimEnd()
    if (head !== '') yield head
    rest = rest.slice(cut).trimStart()
  }
  if (rest.trim() !== '') yield rest
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** How many UTF-16 units fit, whole characters only; one that does not fit by itself is cut at a code point. */
function endWithin(text: string, bytes: number): number {
  // No more units than bytes can fit: what is behind them need not be looked at.
  const head = text.slice(0, bytes)
  let used = 0
  let end = 0
  for (const { segment, index } of graphemes.segment(head)) {
    used += size(segment)
    if (used > bytes) break
    end = index + segment.length
  }
  if (end > 0) return end
  for (const point of head) {
    if (size(head.slice(0, end + point.length)) > bytes) break
    end += point.length
  }
  return Math.max(end, 1)
}

/** At most `most` lines; the last one then says how many there are no more of. */
export function bounded(lines: readonly string[], most: number): readonly string[] {
  if (lines.length <= most) return lines
  return [...lines.slice(0, most - 1), `… and ${lines.length - most + 1} more lines: the whole is in the transcript`]
}
