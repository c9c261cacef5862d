/**
 * Loads one HTTP route over kept-alive connections, one request in flight on each. Speaks HTTP on bare sockets: a client
 * library costs more than the server that is measured, and there are only two cores.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'

/** One connection; one exchange at a time. */
class Connection {
  readonly #socket: Socket
  #answered: (ok: boolean) => void = () => {}
  #rest: Buffer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk: Buffer) => this.#take(chunk))
    socket.on('error', () => this.#answered(false))
    socket.on('close', () => this.#answered(false))
  }

  /** `path`: a socket of this machine, instead of what the address says. */
  static open(url: URL, path = ''): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = open(url, path)
      socket.once('connect', () => resolve(new Connection(socket))).once('error', reject)
    })
  }

  /** True for a 2xx. */
  exchange(request: Buffer): Promise<boolean> {
    return new Promise((resolve) => {
      this.#answered = resolve
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    const all = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    const end = all.indexOf('\r\n\r\n')
    const length = end < 0 ? undefined : contentLength(all.toString('latin1', 0, end))
    if (length === undefined || all.length < end + 4 + length) {
      this.#rest = all
      return
    }
    this.#rest = undefined
    this.#answered(all[9] === '2'.charCodeAt(0))
  }
}

const open = (url: URL, path: string): Socket =>
  path === '' ? connect({ host: url.hostname, port: Number(url.port), noDelay: true }) : connect({ path })

function contentLength(head: string): number {
  const at = head.search(/content-length:/i)
  if (at < 0) throw new Error(`an answer without Content-Length: ${head}`)
  return Number.parseInt(head.slice(at + 15), 10)
}

function requestBytes(url: URL, method: string, body: string): Buffer {
  const head = [`${method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`]
  if (method === 'GET') return Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
  head.push('X-SVC-Request: bench', 'Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const eventBytes = (url: URL, type: string, payload: object): Buffer =>
  requestBytes(url, 'POST', JSON.stringify({ type, actor: 'bench', subject: 's-1', payload }))

const spread = (micros: readonly number[]) => ({
  p50: percentile(micros, 50) / 1000,
  p99: percentile(micros, 99) / 1000,
})

let counted = 0

/** The same each time; or, where `{n}` stands in the body, another one each time, to one after the other of `{of}` places. */
function requests(options: Options): () => Buffer {
  const [url, method, body] = [text(options, 'url'), text(options, 'method') || 'GET', text(options, 'body')]
  if (!body.includes('{n}')) {
    const request = requestBytes(new URL(url), method, body)
    return () => request
  }
  const places = number(options, 'places')
  return () => {
    const n = counted++
    const to = url.replaceAll('{of}', `${n % places}`)
    return requestBytes(new URL(to), method, body.replaceAll('{n}', `${n}`))
  }
}

/** As many requests as go through in `ms`, after `warmMs` that do not count. */
async function run(options: Options) {
  const url = new URL(text(options, 'url'))
  const next = requests(options)
  const connections = await Promise.all(
    Array.from({ length: number(options, 'connections') }, () => Connection.open(url, text(options, 'socket'))),
  )
  const from = machineMicros() + number(options, 'warmMs') * 1000
  const until = from + number(options, 'ms') * 1000
  const latencies: number[] = []
  let bad = 0
  let sent = 0
  const work = async (connection: Connection) => {
    for (let now = machineMicros(); now < until; ) {
      const sentAt = now
      const ok = await connection.exchange(next())
      sent++
      now = machineMicros()
      if (!ok) bad++
      else if (sentAt >= from && now <= until) latencies.push(now - sentAt)
    }
    connection.close()
  }
  await Promise.all(connections.map(work))
  return {
    perSecond: (latencies.length * 1e6) / (until - from),
    ...spread(latencies),
    bad,
    count: latencies.length,
    sent,
  }
}

/** The same with a connection for each request, and its opening in the time. */
async function short(options: Options) {
  const url = new URL(text(options, 'url'))
  const request = requestBytes(url, 'GET', '')
  const from = machineMicros() + number(options, 'warmMs') * 1000
  const until = from + number(options, 'ms') * 1000
  const latencies: number[] = []
  let bad = 0
  const work = async () => {
    for (let now = machineMicros(); now < until; ) {
      const sentAt = now
      const connection = await Connection.open(url)
      const ok = await connection.exchange(request)
      connection.close()
      now = machineMicros()
      if (!ok) bad++
      else if (sentAt >= from && now <= until) latencies.push(now - sentAt)
    }
  }
  await Promise.all(Array.from({ length: number(options, 'connections') }, work))
  return { perSecond: (latencies.length * 1e6) / (until - from), ...spread(latencies), bad }
}

/** POSTs events at a steady rate; each carries the moment it was sent, for the readers to compare with. */
async function emit(options: Options) {
  const url = new URL(text(options, 'url'))
  const gapMs = 1000 / number(options, 'rate')
  const count = Math.round(number(options, 'ms') / gapMs)
  const idle: Connection[] = await Promise.all(Array.from({ length: 8 }, () => Connection.open(url)))
  const latencies: number[] = []
  const pending: Promise<void>[] = []
  const post = async () => {
    const connection = idle.pop() ?? (await Connection.open(url))
    const sentAt = machineMicros()
    await connection.exchange(eventBytes(url, 'bench.tick', { t: sentAt }))
    latencies.push(machineMicros() - sentAt)
    idle.push(connection)
  }
  const started = performance.now()
  for (let i = 0; i < count; i++) {
    const wait = started + i * gapMs - performance.now()
    if (wait > 0) await sleep(wait)
    pending.push(post())
  }
  await Promise.all(pending)
  for (const connection of idle) connection.close()
  return { ...spread(latencies), count }
}

/** GETs at a steady rate, each waited for however late it is: their times are from when they were due. */
async function ask(options: Options) {
  const url = new URL(text(options, 'url'))
  const request = requestBytes(url, 'GET', '')
  const gapMs = 1000 / number(options, 'rate')
  const count = Math.round(number(options, 'ms') / gapMs)
  const idle: Connection[] = []
  const latencies: number[] = []
  let bad = 0
  const get = async () => {
    const dueAt = machineMicros()
    const connection = idle.pop() ?? (await Connection.open(url))
    if (!(await connection.exchange(request))) bad++
    latencies.push(machineMicros() - dueAt)
    idle.push(connection)
  }
  const pending: Promise<void>[] = []
  const started = performance.now()
  for (let i = 0; i < count; i++) {
    const wait = started + i * gapMs - performance.now()
    if (wait > 0) await sleep(wait)
    pending.push(get())
  }
  await Promise.all(pending)
  for (const connection of idle) connection.close()
  return { ...spread(latencies), bad, count }
}

/** `count` events over `connections`, then one that ends the burst and carries `mark`. Answers with when it began. */
async function burst(options: Options) {
  const url = new URL(text(options, 'url'))
  const request = eventBytes(url, 'bench.burst', { fill: 'x'.repeat(64) })
  const connections = await Promise.all(
    Array.from({ length: number(options, 'connections') }, () => Connection.open(url)),
  )
  let left = number(options, 'count')
  const began = machineMicros()
  await Promise.all(
    connections.map(async (connection) => {
      while (left-- > 0) await connection.exchange(request)
    }),
  )
  await connections[0]?.exchange(eventBytes(url, 'bench.last', { mark: number(options, 'mark') }))
  for (const connection of connections) connection.close()
  return { began }
}

/** `count` requests, however long they take. */
async function times(options: Options) {
  const url = new URL(text(options, 'url'))
  const request = requestBytes(url, 'POST', text(options, 'body'))
  const connections = await Promise.all(
    Array.from({ length: number(options, 'connections') }, () => Connection.open(url)),
  )
  const latencies: number[] = []
  let left = number(options, 'count')
  let bad = 0
  const began = machineMicros()
  await Promise.all(
    connections.map(async (connection) => {
      while (left-- > 0) {
        const sentAt = machineMicros()
        if (!(await connection.exchange(request))) bad++
        latencies.push(machineMicros() - sentAt)
      }
      connection.close()
    }),
  )
  return { perSecond: (latencies.length * 1e6) / (machineMicros() - began), ...spread(latencies), bad }
}

/** On each connection one bead is claimed and released in turn; only claims count. */
async function claims(options: Options) {
  const ids = text(options, 'ids').split(',')
  const until = machineMicros() + number(options, 'ms') * 1000
  const began = machineMicros()
  const latencies: number[] = []
  let bad = 0
  const work = async (id: string) => {
    const url = new URL(`${text(options, 'url')}/${id}`)
    const body = JSON.stringify({ assignee: `bench-${id}` })
    const claim = requestBytes(new URL(`${url}/claim`), 'POST', body)
    const release = requestBytes(new URL(`${url}/release`), 'POST', body)
    const connection = await Connection.open(url)
    while (machineMicros() < until) {
      const sentAt = machineMicros()
      if (!(await connection.exchange(claim))) bad++
      latencies.push(machineMicros() - sentAt)
      if (!(await connection.exchange(release))) bad++
    }
    connection.close()
  }
  await Promise.all(ids.map(work))
  return { perSecond: (latencies.length * 1e6) / (machineMicros() - began), ...spread(latencies), bad }
}

const UPLOADED = Buffer.alloc(256 * 1024, 120)

/** One body of `bytes`, as fast as it is taken. */
async function upload(options: Options) {
  const url = new URL(text(options, 'url'))
  const socket = open(url, text(options, 'socket'))
  let left = number(options, 'bytes')
  const began = machineMicros()
  socket.write(
    `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nX-SVC-Request: bench\r\nContent-Length: ${left}\r\n\r\n`,
  )
  const answered = new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject))
  for (; left > 0; left -= UPLOADED.length)
    if (!socket.write(UPLOADED)) await new Promise((resolve) => socket.once('drain', resolve))
  await answered
  socket.destroy()
  return { seconds: (machineMicros() - began) / 1e6 }
}

async function download(options: Options) {
  const url = new URL(text(options, 'url'))
  const bytes = number(options, 'bytes')
  const socket = open(url, text(options, 'socket'))
  const began = machineMicros()
  socket.write(`GET ${url.pathname}?${bytes} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
  await new Promise<void>((resolve, reject) => {
    let taken = 0
    socket.on('data', (chunk: Buffer) => {
      taken += chunk.length
      if (taken > bytes) resolve()
    })
    socket.once('close', () => reject(new Error(`closed after ${taken} bytes`)))
  })
  socket.destroy()
  return { seconds: (machineMicros() - began) / 1e6 }
}

serveCommands({ upload, download, ask, run, short, emit, burst, times, claims })
