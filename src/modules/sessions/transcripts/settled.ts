/** How much of the output of a terminal can be read by itself, so that what is cut there joins again (pure). */

/** A sequence that is longer is read in pieces: no more than this is ever held back. */
export const MAX_HELD_BYTES = 256
/** The beginning of an escape sequence that has not ended: of a control sequence, of a string (a title), or of any other. */
const [ESCAPE, BELL] = ['\u001b', '\u0007']
const OPEN_ESCAPE = new RegExp(`${ESCAPE}(?:\\[[0-?]*[ -/]*|[\\]PX^_][^${BELL}${ESCAPE}]*${ESCAPE}?|[ -/]*)$`)
const CARRIAGE_RETURN = 13

/**
 * How many of the bytes: behind them is the beginning of a character or of an escape sequence, or a carriage return, of
 * which only what follows tells whether it ends the line or goes back in it.
 */
export function settledLength(bytes: Buffer): number {
  const from = Math.max(0, bytes.length - MAX_HELD_BYTES)
  const open = OPEN_ESCAPE.exec(bytes.toString('latin1', from))
  let length = open === null ? wholeCharacters(bytes) : from + open.index
  while (length > from && bytes[length - 1] === CARRIAGE_RETURN) length -= 1
  return length
}

/** A character of UTF-8 has at most four bytes. */
function wholeCharacters(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= 0 && at > bytes.length - 4; at -= 1) {
    const byte = bytes[at] ?? 0
    if (byte < 0x80) return bytes.length
    if (byte < 0xc0) continue
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return at + needs > bytes.length ? at : bytes.length
  }
  return bytes.length
}

/** True for output that goes back to the beginning of the line that it goes on with. */
export const rewinds = (bytes: Buffer): boolean => /^\r+[^\r\n]/.test(bytes.toString('latin1', 0, MAX_HELD_BYTES))
