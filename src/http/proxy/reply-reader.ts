/**
 * Reads what a service replies, as it comes: the head as it was written, the body without its framing.
 *
 * Node's own client is four times as slow, and cannot be told to leave a request as it is: it frames one that has no body, and
 * what a service answered before it closed is lost with the failed write (decisions 169, 178, 179).
 *
 * R1  Nothing is told of a head before all of it is there; what breaks HTTP is told of nobody and throws `BadReply`.
 * R2  A body is complete only where its framing says so; without any, where the service closes its side (RFC 9112 §6.3).
 * R3  What is kept is bounded: a head, the line of a chunk, the trailers.
 */

const MAX_HEAD_BYTES = 256 * 1024
const MAX_LINE_BYTES = 16 * 1024

export interface ReplyHead {
  readonly status: number
  readonly message: string
  /** Of HTTP/1. */
  readonly minor: number
  /** Names and values in turn, in their order. */
  readonly headers: readonly string[]
  readonly body: 'none' | 'length' | 'chunked' | 'close'
}

export interface ReplySink {
  /** A status below 200 that does not end the reply. */
  informed(head: ReplyHead): void
  /** A whole head; what follows are its data. */
  begun(head: ReplyHead): void
  /** `isLast`: `whole` follows at once. */
  data(chunk: Buffer, isLast: boolean): void
  /** The reply is whole; `isReusable`: the connection takes another request. */
  whole(trailers: readonly string[], isReusable: boolean): void
  /** The connection speaks another protocol from here on; these bytes of it have come already. */
  switched(head: ReplyHead, rest: Buffer): void
}

export class BadReply extends Error {}

const EMPTY: Buffer = Buffer.alloc(0)
const NOTHING: readonly string[] = []
const CR = 13
const LF = 10

type State = 'head' | 'length' | 'close' | 'size' | 'chunk' | 'chunk-end' | 'trailers' | 'over'

export class ReplyReader {
  readonly #method: string
  readonly #sink: ReplySink
  #state: State = 'head'
  /** What of a head or a line has come. */
  #kept = EMPTY
  /** Bytes to come of the body, or of the chunk. */
  #left = 0
  #isReusable = false
  #trailers: string[] = []
  #trailerBytes = 0

  constructor(method: string, sink: ReplySink) {
    this.#method = method
    this.#sink = sink
  }

  /** Reads on; throws `BadReply`. */
  read(bytes: Buffer): void {
    let rest = bytes
    while (rest.length > 0 && this.#state !== 'over') rest = this.#step(rest)
  }

  /** The service has closed its side: true where that ends the reply. */
  close(): boolean {
    if (this.#state !== 'close') return false
    this.#end(false)
    return true
  }

  #step(bytes: Buffer): Buffer {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes)
      case 'length':
      case 'chunk':
        return this.#readData(bytes)
      case 'close':
        this.#sink.data(bytes, false)
        return EMPTY
      default:
        return this.#readLine(bytes)
    }
  }

  #readHead(bytes: Buffer): Buffer {
    const all = this.#kept.length === 0 ? bytes : Buffer.concat([this.#kept, bytes])
    const end = endOfHead(all)
    if (end < 0 ? all.length > MAX_HEAD_BYTES : end > MAX_HEAD_BYTES)
      throw new BadReply(`its head is larger than ${MAX_HEAD_BYTES} bytes`)
    if (end < 0) {
      this.#kept = all
      return EMPTY
    }
    this.#kept = EMPTY
    const head = parseHead(all.toString('latin1', 0, end), this.#method)
    const rest = all.subarray(end)
    if (head.status === 101) {
      this.#state = 'over'
      this.#sink.switched(head, rest)
      return EMPTY
    }
    if (head.status < 200) this.#sink.informed(head)
    else this.#begin(head, rest.length)
    return rest
  }

  #begin(head: ReplyHead, follow: number): void {
    const isKept = keepsConnection(head) && head.body !== 'close'
    this.#isReusable = isKept
    this.#left = head.body === 'length' ? lengthOf(head.headers) : 0
    this.#state = head.body === 'chunked' ? 'size' : head.body === 'none' ? 'over' : head.body
    this.#sink.begun(head)
    if (head.body === 'none' || (head.body === 'length' && this.#left === 0)) this.#end(isKept && follow === 0)
  }

  #readData(bytes: Buffer): Buffer {
    const isWhole = bytes.length >= this.#left
    const chunk = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes
    this.#left -= chunk.length
    const isLast = isWhole && this.#state === 'length'
    this.#sink.data(chunk, isLast)
    if (isLast) this.#end(this.#isReusable && bytes.length === chunk.length)
    else if (isWhole) this.#state = 'chunk-end'
    return bytes.length === chunk.length ? EMPTY : bytes.subarray(chunk.length)
  }

  /** Of what frames a body in chunks. */
  #readLine(bytes: Buffer): Buffer {
    const at = bytes.indexOf(LF)
    const part = at < 0 ? bytes : bytes.subarray(0, at)
    if (this.#kept.length + part.length > MAX_LINE_BYTES) throw new BadReply('a line of its chunks is too long')
    if (at < 0) {
      this.#kept = this.#kept.length === 0 ? bytes : Buffer.concat([this.#kept, bytes])
      return EMPTY
    }
    const all = this.#kept.length === 0 ? part : Buffer.concat([this.#kept, part])
    this.#kept = EMPTY
    const text = all.toString('latin1', 0, all.at(-1) === CR ? all.length - 1 : all.length)
    const rest = bytes.subarray(at + 1)
    if (this.#state === 'chunk-end') {
      if (text !== '') throw new BadReply('a chunk does not end where it says')
      this.#state = 'size'
    } else if (this.#state === 'size') {
      this.#left = sizeOf(text)
      this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    } else if (text === '') this.#end(this.#isReusable && rest.length === 0)
    else this.#keepTrailer(text)
    return rest
  }

  #keepTrailer(line: string): void {
    this.#trailerBytes += line.length
    if (this.#trailerBytes > MAX_HEAD_BYTES) throw new BadReply('its trailers are too large')
    addField(this.#trailers, line)
  }

  #end(isReusable: boolean): void {
    this.#state = 'over'
    this.#sink.whole(this.#trailers.length === 0 ? NOTHING : this.#trailers, isReusable)
  }
}

/** Where what follows the head begins; -1 where it is not all there. Some servers end their lines without CR: so do we read them. */
function endOfHead(bytes: Buffer): number {
  const first = bytes.indexOf(LF)
  if (first < 0) return -1
  if (bytes[first - 1] === CR) {
    const end = bytes.indexOf('\r\n\r\n', first - 1, 'latin1')
    return end < 0 ? -1 : end + 4
  }
  const end = bytes.indexOf('\n\n', first, 'latin1')
  return end < 0 ? -1 : end + 2
}

const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: (.*))?$/

function parseHead(text: string, method: string): ReplyHead {
  const [first = '', ...lines] = text.split(/\r?\n/)
  const [, minor, code, message = ''] = STATUS_LINE.exec(first) ?? []
  const status = Number(code)
  if (code === undefined || status < 100) throw new BadReply('it does not begin with a status of HTTP/1')
  if (BAD_VALUE.test(message)) throw new BadReply('its status line has a control character')
  const headers: string[] = []
  for (const line of lines) if (line !== '') addField(headers, line)
  return { status, message, minor: Number(minor), headers, body: bodyOf(method, status, headers) }
}

const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*)$/s
/** As Node refuses to send them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/

function addField(fields: string[], line: string): void {
  const before = fields.length
  if (before > 0 && /^[ \t]/.test(line)) {
    // A value that goes on in the next line: one space stands for the fold (RFC 9112 §5.2).
    fields[before - 1] = `${fields[before - 1]} ${line.trim()}`
    return
  }
  const [, name, value] = FIELD.exec(line) ?? []
  if (name === undefined || value === undefined || BAD_VALUE.test(value))
    throw new BadReply('a line of its head is no header')
  fields.push(name, value.trimEnd())
}

function bodyOf(method: string, status: number, headers: readonly string[]): ReplyHead['body'] {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return 'none'
  const coding = valuesOf(headers, 'transfer-encoding')
  if (coding.length > 0) {
    if (coding.length > 1 || coding[0]?.toLowerCase() !== 'chunked')
      throw new BadReply('its transfer coding is not chunked')
    return 'chunked'
  }
  if (valuesOf(headers, 'content-length').length === 0) return 'close'
  lengthOf(headers)
  return 'length'
}

function lengthOf(headers: readonly string[]): number {
  const [first = '', ...others] = valuesOf(headers, 'content-length')
  if (!/^\d{1,15}$/.test(first) || others.some((other) => other !== first))
    throw new BadReply('its Content-Length is no length')
  return Number(first)
}

function sizeOf(line: string): number {
  const [, digits] = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i.exec(line) ?? []
  if (digits === undefined) throw new BadReply('the size of a chunk is none')
  return Number.parseInt(digits, 16)
}

function keepsConnection({ headers, minor }: ReplyHead): boolean {
  const options = valuesOf(headers, 'connection').join(',').toLowerCase()
  if (options === '') return minor === 1
  return minor === 1 ? !/\bclose\b/.test(options) : /\bkeep-alive\b/.test(options)
}

/** Of each line of a header, without the space around them. */
function valuesOf(fields: readonly string[], name: string): string[] {
  const values: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const field = fields[i] ?? ''
    if (field.length === name.length && field.toLowerCase() === name) values.push(fields[i + 1] ?? '')
  }
  return values
}
