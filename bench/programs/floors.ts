/** What our figures are held against: the least that a program on the same runtime must do for the same bytes. */
import { createServer as createHttpServer, type Server } from 'node:http'
import { createServer, type Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros } from '../numbers.ts'

const portOf = (server: Server | NetServer): number => {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const listen = (server: Server | NetServer): Promise<void> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve()))

/** `node:http` that reads the body, if any, and answers `bytes` bytes of JSON. */
async function http(options: Options) {
  const body = jsonOf(number(options, 'bytes'))
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  const server = createHttpServer((request, response) => {
    const answer = () => response.writeHead(200, headers).end(body)
    if (request.method === 'GET') return answer()
    request.on('data', () => {}).on('end', answer)
  })
  await listen(server)
  return { port: portOf(server) }
}

const jsonOf = (bytes: number): string => JSON.stringify({ a: 'x'.repeat(Math.max(0, bytes - 8)) })

const subscribers = new Set<Socket>()

/** Takes subscribers as ours does, and then only writes to their sockets. */
async function sockets() {
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('close', () => subscribers.delete(socket))
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      subscribers.add(socket)
    })
  })
  await listen(server)
  return { port: portOf(server) }
}

/** Frames of `bytes` bytes at a steady rate, each with the moment its round of writes began. */
async function tick(options: Options) {
  const gapMs = 1000 / number(options, 'rate')
  const count = Math.round(number(options, 'ms') / gapMs)
  const fill = 'x'.repeat(Math.max(0, number(options, 'bytes') - 30))
  const started = performance.now()
  for (let i = 0; i < count; i++) {
    const wait = started + i * gapMs - performance.now()
    if (wait > 0) await sleep(wait)
    const frame = Buffer.from(`${fill}{"t":${machineMicros()}}\n\n`)
    for (const socket of subscribers) socket.write(frame)
  }
  return {}
}

/** The bytes of a burst in as many pieces as ours had, the last of them with the mark. */
async function burst(options: Options) {
  const pieces = Math.max(1, number(options, 'pieces'))
  const piece = Buffer.alloc(Math.max(1, Math.round(number(options, 'bytes') / pieces)), 120)
  const last = Buffer.concat([piece, Buffer.from(`{"mark":${number(options, 'mark')}}`)])
  const began = machineMicros()
  for (let i = 1; i <= pieces; i++) {
    const full: Socket[] = []
    for (const socket of subscribers) if (!socket.write(i === pieces ? last : piece)) full.push(socket)
    await nextTurn()
    if (i < pieces) await Promise.all(full.filter(({ writableNeedDrain }) => writableNeedDrain).map(drained))
  }
  return { began }
}

const drained = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once('drain', () => resolve()))

/** Reads a log with the bare driver and writes its frames to whoever connects. */
async function replay(options: Options) {
  const path = text(options, 'path')
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => void send(path, socket))
  })
  await listen(server)
  return { port: portOf(server) }
}

async function send(path: string, socket: Socket): Promise<void> {
  const db = new BetterSqlite3(path, { readonly: true })
  socket.write('HTTP/1.1 200 OK\r\n\r\n')
  let frames = ''
  for (const row of db.prepare('SELECT seq, envelope FROM events ORDER BY seq').raw().iterate()) {
    if (!Array.isArray(row)) continue
    frames += `id: ${row[0]}\nevent: event\ndata: ${row[1]}\n\n`
    if (frames.length < 256 * 1024) continue
    const free = socket.write(frames)
    frames = ''
    if (!free) await drained(socket)
  }
  socket.end(frames)
  db.close()
}

serveCommands({ http, sockets, tick, burst, replay })
