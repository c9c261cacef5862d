/**
 * Loads one HTTP route over kept-alive connections, one request in flight on each. Speaks HTTP on bare sockets: a client
 * library costs more than the server that is measured, and there are only two cores.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'

/** A connection that sends its request again as soon as it is answered. */
class Connection {
  readonly #socket: Socket
  readonly #onAnswer: (ok: boolean) => void
  #rest: Buffer | undefined

  constructor(socket: Socket, onAnswer: (ok: boolean) => void) {
    this.#socket = socket
    this.#onAnswer = onAnswer
    socket.on('data', (chunk) => this.#take(chunk))
    socket.on('error', () => this.#onAnswer(false))
  }

  send(request: Buffer): void {
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    const all = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    const end = all.indexOf('\r\n\r\n')
    const length = end < 0 ? undefined : contentLength(all.latin1Slice(0, end))
    if (length === undefined || all.length < end + 4 + length) {
      this.#rest = all
      return
    }
    this.#rest = undefined
    // '2' of a 2xx.
    this.#onAnswer(all[9] === 50)
  }
}

function contentLength(head: string): number {
  const at = head.search(/content-length:/i)
  if (at < 0) throw new Error(`an answer without Content-Length: ${head}`)
  return Number.parseInt(head.slice(at + 15), 10)
}

function open(url: URL): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    socket.once('connect', () => resolve(socket)).once('error', reject)
  })
}

function requestBytes(url: URL, method: string, body: string): Buffer {
  const head = [`${method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`]
  if (method !== 'GET') head.push('X-SVC-Request: bench', 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${method === 'GET' ? '' : body}`)
}

/** As many requests as go through in `ms`, after `warmMs` that do not count. */
async function run(options: Options) {
  const url = new URL(text(options, 'url'))
  const request = requestBytes(url, text(options, 'method') || 'GET', text(options, 'body'))
  const from = machineMicros() + number(options, 'warmMs') * 1000
  const until = from + number(options, 'ms') * 1000
  const latencies: number[] = []
  let bad = 0
  const loops = Array.from({ length: number(options, 'connections') }, async () => {
    const socket = await open(url)
    await new Promise<void>((done) => {
      let sentAt = 0
      const connection = new Connection(socket, (ok) => {
        const now = machineMicros()
        if (!ok) bad++
        else if (now >= from && now <= until) latencies.push(now - sentAt)
        if (now > until || !ok) {
          connection.close()
          return done()
        }
        sentAt = now
        connection.send(request)
      })
      sentAt = machineMicros()
      connection.send(request)
    })
  })
  await Promise.all(loops)
  return { perSecond: (latencies.length * 1e6) / (until - from), ...spread(latencies), bad, count: latencies.length }
}

const spread = (micros: readonly number[]) => ({ p50: percentile(micros, 50) / 1000, p99: percentile(micros, 99) / 1000 })

/** POSTs events at a steady rate; each carries the moment it was sent, for the readers to compare with. */
async function emit(options: Options) {
  const url = new URL(text(options, 'url'))
  const gapMs = 1000 / number(options, 'rate')
  const count = Math.round(number(options, 'ms') / gapMs)
  const idle: Connection[] = []
  const latencies: number[] = []
  const pending: Promise<void>[] = []
  const started = performance.now()
  for (let i = 0; i < count; i++) {
    await sleep(Math.max(0, started + i * gapMs - performance.now()))
    pending.push(post(url, idle, latencies))
  }
  await Promise.all(pending)
  for (const connection of idle) connection.close()
  return { ...spread(latencies), count }
}

async function post(url: URL, idle: Connection[], latencies: number[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = await open(url)
  const sentAt = machineMicros()
  const connection = new Connection(socket, () => {
    latencies.push(machineMicros() - sentAt)
    resolve()
  })
  idle.push(connection)
  connection.send(requestBytes(url, 'POST', JSON.stringify({ type: 'bench.tick', actor: 'bench', payload: { t: sentAt } })))
  await promise
}

/** `count` events over `connections`, then one that ends the burst and carries `mark`. Answers with when it began. */
async function burst(options: Options) {
  const url = new URL(text(options, 'url'))
  const body = JSON.stringify({ type: 'bench.burst', actor: 'bench', subject: 's-1', payload: { fill: 'x'.repeat(64) } })
  const request = requestBytes(url, 'POST', body)
  let left = number(options, 'count')
  const began = machineMicros()
  const loops = Array.from({ length: Math.min(number(options, 'connections'), left) }, async () => {
    const socket = await open(url)
    await new Promise<void>((done) => {
      const next = () => {
        if (left-- > 0) return connection.send(request)
        connection.close()
        done()
      }
      const connection = new Connection(socket, next)
      next()
    })
  })
  await Promise.all(loops)
  const idle: Connection[] = []
  const last = Promise.withResolvers<void>()
  const connection = new Connection(await open(url), () => last.resolve())
  idle.push(connection)
  connection.send(requestBytes(url, 'POST', JSON.stringify({ type: 'bench.last', actor: 'bench', payload: { mark: number(options, 'mark') } })))
  await last.promise
  connection.close()
  return { began }
}

serveCommands({ run, emit, burst })
