/**
 * Where the message stands in a line of an agent (pure). Terminal code that an agent loads may hide the cursor, colour
 * or name the window on the same output, and some begin with a byte order mark: that belongs to no message.
 */

/** Marks, controls and escape sequences, none of which can begin a JSON text. Each alternative stops where the next begins: linear. */
const AROUND =
  '(?:\\uFEFF|\\u001b\\[[0-?]*[ -/]*[@-~]|\\u001b[\\]P_^X][^\\u0007\\u001b\\uFFFD]*(?:\\u0007|\\u001b\\\\)|\\u001b[ -/]*[0-OQ-WYZ\\\\`-~]|[\\u0000-\\u001a\\u001c-\\u0020\\u007f-\\u009f])'
const BEFORE = new RegExp(`^${AROUND}+`, 'u')
const ONLY_AROUND = new RegExp(`^${AROUND}*$`, 'u')
/** A JSON text has no other control characters, not even in its strings. */
const BLANKS = new Set([0x09, 0x0a, 0x0d])
const SPACE = 0x20
const NEWLINE = 0x0a

/** Of a line that is no JSON: what stood before the message, the message, what stood behind it; undefined where it has none. */
export function framed(line: Buffer): readonly Buffer[] | undefined {
  const start = Buffer.byteLength(BEFORE.exec(line.toString('utf8'))?.[0] ?? '')
  const control = line.subarray(start).findIndex((byte) => byte < SPACE && !BLANKS.has(byte))
  const end = control < 0 ? line.length : start + control
  const behind = line.subarray(end)
  if (!ONLY_AROUND.test(behind.toString('utf8'))) return undefined
  const message = line.subarray(start, end)
  if (parseJson(message.toString('utf8')) === undefined) return undefined
  return [line.subarray(0, start), message, behind].filter((part) => part.toString('utf8').trim() !== '').map(asLine)
}

const asLine = (part: Buffer): Buffer => (part.at(-1) === NEWLINE ? part : Buffer.concat([part, Buffer.from('\n')]))

export function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
