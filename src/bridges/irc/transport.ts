/**
 * The socket below `irc-framework`: its own would keep whatever a server sends until a line feed comes, and send whatever
 * it is given. Here a line in has a longest length, and a line out is one line.
 */
import { EventEmitter } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** 8,191 bytes of tags, 512 of message, and some for servers that count otherwise. */
const BREAKS = /[\0\r\n]/g
const LONGEST_LINE = 16 * 1024
/** What is not sent after this much was handed over: the server does not read any more. */
const MOST_UNSENT = 1024 * 1024

export interface ServerPlace {
  readonly host: string
  readonly port: number
  readonly tls: boolean
}

/** Events: `open`, `line` (text), `close` (error or false). The shape is that of the framework's transports. */
export class LineTransport extends EventEmitter {
  readonly #place: ServerPlace
  #socket: Socket | undefined
  #rest: Buffer = Buffer.alloc(0)
  #error: Error | false = false

  constructor({ host, port, tls }: ServerPlace) {
    super()
    this.#place = { host, port, tls }
  }

  connect(): void {
    const { host, port, tls } = this.#place
    const socket = tls
      ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connect({ host, port })
    this.#socket = socket
    socket.setNoDelay(true)
    socket.once(tls ? 'secureConnect' : 'connect', () => this.emit('open'))
    socket.on('data', (data: Buffer) => this.#read(data))
    socket.on('error', (error) => {
      this.#error = error
    })
    socket.once('close', () => this.emit('close', this.#error))
  }

  /** Why it broke, where it did. */
  get error(): Error | undefined {
    return this.#error === false ? undefined : this.#error
  }

  isConnected(): boolean {
    return this.#socket?.readyState === 'open'
  }

  writeLine(line: string, done?: () => void): void {
    const socket = this.#socket
    if (socket === undefined || !this.isConnected()) {
      if (done !== undefined) process.nextTick(done)
      return
    }
    // Everything is made so that it cannot have them; if something has, it must not become a second command.
    socket.write(`${line.replaceAll(BREAKS, ' ')}\r\n`, done)
    if (socket.writableLength > MOST_UNSENT) this.#break('the server does not read what is sent')
  }

  close(force: boolean): void {
    if (force) this.#socket?.destroy()
    else this.#socket?.end()
  }

  disposeSocket(): void {
    this.#socket?.destroy()
  }

  /** Only UTF-8, and what is none is read as Windows reads it. */
  setEncoding(encoding: string): boolean {
    return encoding === 'utf8'
  }

  #read(data: Buffer): void {
    let bytes = this.#rest.length === 0 ? data : Buffer.concat([this.#rest, data])
    for (let end = bytes.indexOf(0x0a); end !== -1 && end <= LONGEST_LINE; end = bytes.indexOf(0x0a)) {
      this.emit('line', decode(bytes.subarray(0, end)))
      bytes = bytes.subarray(end + 1)
    }
    this.#rest = bytes
    if (bytes.length > LONGEST_LINE) this.#break('the server sends a line that is too long')
  }

  #break(why: string): void {
    this.#error = new Error(why)
    this.#socket?.destroy()
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const windows = new TextDecoder('windows-1252')

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    return windows.decode(bytes)
  }
}
