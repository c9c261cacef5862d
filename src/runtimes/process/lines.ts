/** Cuts a byte stream into lines, with a bound. Bytes stay bytes: a line may be no UTF-8 and still is what came. */

const NEWLINE = 0x0a

export interface LineSplitter {
  /** The lines that `chunk` completes, each with its newline. Throws `LineTooLong` once, and is of no more use then. */
  push(chunk: Buffer): Buffer[]
  /** What came after the last newline. */
  rest(): Buffer
  /** The same, to look at: it stays. */
  begun(): Buffer
}

export class LineTooLong extends Error {
  constructor(limit: number) {
    super(`a line of more than ${limit} bytes`)
    this.name = 'LineTooLong'
  }
}

export function lineSplitter(limit: number): LineSplitter {
  let parts: Buffer[] = []
  let length = 0
  const keep = (part: Buffer) => {
    length += part.length
    if (length > limit) throw new LineTooLong(limit)
    if (part.length > 0) parts.push(part)
  }
  const take = () => {
    const [first] = parts
    const line = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts, length)
    parts = []
    length = 0
    return line
  }
  return {
    push(chunk) {
      const lines: Buffer[] = []
      let from = 0
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
        keep(chunk.subarray(from, at + 1))
        lines.push(take())
        from = at + 1
      }
      keep(chunk.subarray(from))
      return lines
    },
    rest: take,
    begun: () => Buffer.concat(parts),
  }
}
