/**
 * Streamed bodies of lines of JSON.
 *
 * L1  At most one line and one chunk are in memory.
 * L2  A line that is too long, or is not UTF-8, is reported as such and the lines after it are read.
 */
import { isUtf8 } from 'node:buffer'
import type { BodyLine, BodyLines } from '../../kernel/call.ts'
import type { RequestBytes } from './bytes.ts'

export const MAX_LINE_BYTES = 1024 * 1024

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = '\ufeff'
const BLANK = /^[ \t\r]*$/

/** A body of lines. */
export class RequestLines implements BodyLines {
  readonly #bytes: RequestBytes

  constructor(bytes: RequestBytes) {
    this.#bytes = bytes
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<BodyLine> {
    const splitter = new LineSplitter()
    for await (const chunk of this.#bytes) yield* splitter.take(chunk)
    yield* splitter.rest()
  }
}

/** Bytes into lines; a line may come in any number of pieces. */
class LineSplitter {
  readonly #parts: Buffer[] = []
  #length = 0
  #tooLong = false
  #line = 0;

  *take(chunk: Buffer): Generator<BodyLine> {
    let from = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      this.#keep(chunk.subarray(from, end))
      from = end + 1
      const line = this.#finish()
      if (line !== undefined) yield line
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from))
  }

  /** What stands after the last line feed. */
  *rest(): Generator<BodyLine> {
    if (this.#length === 0 && !this.#tooLong) return
    const line = this.#finish()
    if (line !== undefined) yield line
  }

  #keep(part: Buffer): void {
    this.#length += part.length
    // One more for a carriage return, which is not part of the line.
    if (this.#length > MAX_LINE_BYTES + 1) {
      this.#tooLong = true
      this.#parts.length = 0
    } else if (part.length > 0) {
      this.#parts.push(part)
    }
  }

  /** The line that is complete now; undefined where it is blank. */
  #finish(): BodyLine | undefined {
    const [first] = this.#parts
    const whole = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts)
    const bytes = whole.at(-1) === CARRIAGE_RETURN ? whole.subarray(0, -1) : whole
    const tooLong = this.#tooLong || bytes.length > MAX_LINE_BYTES
    this.#parts.length = 0
    this.#length = 0
    this.#tooLong = false
    this.#line++
    const line = this.#line
    if (tooLong) return { line, fault: `the line is longer than ${MAX_LINE_BYTES} bytes` }
    if (!isUtf8(bytes)) return { line, fault: 'the line is not UTF-8' }
    const text = bytes.toString('utf8')
    const bare = line === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text
    return BLANK.test(bare) ? undefined : { line, text: bare }
  }
}
