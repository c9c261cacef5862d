/**
 * Many subscribers of one stream in one process. It looks at as little of the bytes as it can: what it costs is part of
 * every figure, ours and the floor's alike.
 */
import { connect, type Socket } from 'node:net'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'

const TAIL_BYTES = 400
/** After the last event of a log come a few of the city's start. */
const REPLAY_TAIL_BYTES = 16 * 1024
const OPENING_AT_ONCE = 100
const STAMP = Buffer.from('"t":')

interface Reader {
  readonly socket: Socket
  /** The last bytes that came, in which a mark is looked for. */
  tail: Buffer
  bytes: number
}

let readers: Reader[] = []
/** One per frame with a stamp. */
let lags: number[] = []
/** Of each stamp, when the last subscriber so far had it. */
let lastSeen = new Map<number, number>()
let stamping = true
let awaited: { readonly mark: Buffer; left: number; readonly done: () => void } | undefined

function open(url: URL): Promise<Reader> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port) })
    const reader: Reader = { socket, tail: Buffer.alloc(0), bytes: 0 }
    let head = ''
    const onHead = (chunk: Buffer) => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(`a stream was refused: ${head}`))
      socket.removeListener('data', onHead)
      socket.on('data', (data: Buffer) => take(reader, data))
      resolve(reader)
    }
    socket.on('error', reject).on('data', onHead)
    socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: text/event-stream\r\n\r\n`)
  })
}

function take(reader: Reader, data: Buffer): void {
  reader.bytes += data.length
  if (stamping) readStamps(data)
  if (awaited === undefined) return
  reader.tail =
    data.length >= TAIL_BYTES
      ? data.subarray(data.length - TAIL_BYTES)
      : Buffer.concat([reader.tail, data]).subarray(-TAIL_BYTES)
  if (!reader.tail.includes(awaited.mark)) return
  reader.tail = Buffer.alloc(0)
  awaited.left--
  if (awaited.left === 0) awaited.done()
}

function readStamps(data: Buffer): void {
  for (let at = data.indexOf(STAMP); at >= 0; at = data.indexOf(STAMP, at)) {
    at += STAMP.length
    let sentAt = 0
    for (let digit = data[at] ?? 0; digit >= 48 && digit <= 57; digit = data[++at] ?? 0)
      sentAt = sentAt * 10 + digit - 48
    const now = machineMicros()
    lags.push(now - sentAt)
    lastSeen.set(sentAt, now - sentAt)
  }
}

async function subscribe(options: Options) {
  const url = new URL(text(options, 'url'))
  stamping = options['stamps'] !== 0
  const count = number(options, 'count')
  while (readers.length < count) {
    readers.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(OPENING_AT_ONCE, count - readers.length) }, () => open(url)),
      )),
    )
  }
  return {}
}

let marked: Promise<number> | undefined

/** Starts to wait for `"mark":N` on every subscriber; `report` answers when the last one has it. */
function expect(options: Options) {
  const { promise, resolve } = Promise.withResolvers<number>()
  const mark = Buffer.from(`"mark":${number(options, 'mark')}}`)
  awaited = { mark, left: readers.length, done: () => resolve(machineMicros()) }
  for (const reader of readers) reader.bytes = 0
  marked = promise
  return {}
}

async function report() {
  const at = (await marked) ?? 0
  awaited = undefined
  return { at, bytes: readers[0]?.bytes ?? 0 }
}

function lag() {
  const lasts = [...lastSeen.values()]
  const answer = {
    frames: lags.length,
    events: lastSeen.size,
    p50: percentile(lags, 50) / 1000,
    p99: percentile(lags, 99) / 1000,
    lastP50: percentile(lasts, 50) / 1000,
    lastP99: percentile(lasts, 99) / 1000,
    bytes: readers[0]?.bytes ?? 0,
  }
  lags = []
  lastSeen = new Map()
  for (const reader of readers) reader.bytes = 0
  return answer
}

function close() {
  for (const { socket } of readers) socket.destroy()
  readers = []
  lags = []
  lastSeen = new Map()
  return {}
}

/** One stream from its cursor until the frame of `last` has come: how long, and how long to the first frame. */
function replay(options: Options) {
  stamping = false
  return replayed(new URL(text(options, 'url')), Buffer.from(text(options, 'last')))
}

/** As many at once; the time of the slowest. */
async function herd(options: Options) {
  const url = new URL(text(options, 'url'))
  const end = Buffer.from(text(options, 'last'))
  const all = await Promise.all(Array.from({ length: number(options, 'count') }, () => replayed(url, end)))
  return { ms: Math.max(...all.map(({ ms }) => ms)) }
}

async function replayed(url: URL, end: Buffer) {
  const began = machineMicros()
  const socket = connect({ host: url.hostname, port: Number(url.port) })
  let bytes = 0
  let first = 0
  let tail: Buffer = Buffer.alloc(0)
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject).on('close', () => reject(new Error('the stream ended early')))
    socket.on('data', (data: Buffer) => {
      bytes += data.length
      if (first === 0 && data.includes('\nevent: ')) first = machineMicros()
      tail =
        data.length >= REPLAY_TAIL_BYTES
          ? data.subarray(data.length - REPLAY_TAIL_BYTES)
          : Buffer.concat([tail, data]).subarray(-REPLAY_TAIL_BYTES)
      if (tail.includes(end)) resolve()
    })
    socket.write(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
  })
  const ms = (machineMicros() - began) / 1000
  socket.removeAllListeners('close').destroy()
  return { ms, firstMs: (first - began) / 1000, bytes }
}

serveCommands({ subscribe, expect, report, lag, close, replay, herd })
