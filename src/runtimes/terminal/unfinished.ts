/** Output that stops in the middle of a letter or an escape sequence: a screen cannot show that part yet. */

/** No sequence that matters is longer; of a longer one the rest is taken for what it says. */
export const LONGEST_SEQUENCE = 512

const ESC = 0x1b

/** How many bytes at the end belong to something that goes on. `bytes`: the end of what came, at most so much. */
export function unfinishedBytes(bytes: Uint8Array): number {
  const from = Math.max(0, bytes.length - LONGEST_SEQUENCE)
  const at = bytes.lastIndexOf(ESC)
  if (at >= from && !isWhole(bytes.subarray(at))) return bytes.length - startOf(bytes, at)
  return halfLetter(bytes)
}

/** A string that is being ended by `ESC \` began at an escape before that one. */
function startOf(bytes: Uint8Array, at: number): number {
  if (bytes.length !== at + 1) return at
  const before = bytes.subarray(0, at).lastIndexOf(ESC)
  return before >= 0 && isString(bytes[before + 1]) && !isWhole(bytes.subarray(before, at)) ? before : at
}

const isString = (byte: number | undefined): boolean =>
  byte === 0x5d || byte === 0x50 || byte === 0x5f || byte === 0x5e || byte === 0x58

/** Begins with an escape. */
function isWhole(sequence: Uint8Array): boolean {
  const kind = sequence[1]
  if (kind === undefined) return false
  // CSI: parameters and intermediates, then one letter.
  if (kind === 0x5b) return sequence.subarray(2).some((byte) => byte >= 0x40 || byte < 0x20)
  // OSC, DCS, APC, PM, SOS: ended by BEL here, by `ESC \` as a sequence of its own.
  if (isString(kind)) return sequence.some((byte) => byte === 0x07 || byte === 0x18 || byte === 0x1a)
  // Intermediates, then one letter.
  return sequence.subarray(1).some((byte) => byte >= 0x30 || byte < 0x20)
}

/** How many bytes at the end are the beginning of a letter. Of UTF-8: a first byte that promises more than follow. */
export function halfLetter(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return 0
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? back : 0
  }
  return 0
}
