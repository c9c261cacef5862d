/** What does it cost to reach a service through us, and what do open connections to it? */
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type Bench, compare, cpuSeconds, type Group, memoryOf, supervisorWith, until } from '../bench.ts'
import { Child } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { lengthOf } from './post.ts'

const CONNECTIONS = 32
const MIN_GET_RATIO = 0.25
const MIN_POST_RATIO = 0.12
const IDLE = 1_000
/** Garbage that is not collected yet, however long the body. */
const MAX_GROWTH_MIB = 96
const BODY = JSON.stringify({ a: 'x'.repeat(92) })
const PROGRAM = join(import.meta.dirname, '..', 'programs', 'service.ts')
const MEBIBYTE = 1024 * 1024
const FLOOR = 'the same program on the same kind of socket, asked without us'

interface Place {
  readonly bench: Bench
  /** The service behind us. */
  readonly ours: string
  /** A socket of the bare one. */
  readonly socket: string
  readonly pid: number
  readonly barePid: number
  readonly load: Child
}

export const proxy: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'proxy', ['alpha'])
  const city = `${supervisor.url}/v0/city/alpha`
  const command = JSON.stringify([process.execPath, PROGRAM])
  appendFileSync(
    join(bench.dir, 'proxy', 'alpha', 'city.toml'),
    `\n[[service]]\nname = "web"\nprocess.command = ${command}\n`,
  )
  const ours = `${city}/svc/web`
  await until('the service answers', async () => ((await fetch(`${ours}/x`)).ok ? true : undefined))
  const socket = join(bench.dir, 'bare.sock')
  const bare = spawn(process.execPath, [PROGRAM, socket], { stdio: 'ignore' })
  try {
    await using load = new Child('load')
    const place = { bench, ours, socket, pid: supervisor.pid, barePid: bare.pid ?? 0, load }
    await until('the bare service answers', () => answers(socket))
    // First: the memory of an earlier load would hide it.
    const sockets = await idle(place)
    return [
      await rate(place, 'GET', MIN_GET_RATIO),
      await rate(place, 'POST', MIN_POST_RATIO),
      await latency(place, 'GET'),
      await latency(place, 'POST'),
      ...(await bytes(place)),
      sockets,
    ]
  } finally {
    bare.kill('SIGKILL')
    await fetch(`${city}/services/web/suspend`, { method: 'POST', headers: { 'X-SVC-Request': 'bench' } })
  }
}

const answers = (path: string): Promise<true | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ path })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(undefined))
    socket.once('connect', () => socket.destroy())
  })

/** Asks the service behind us, or the bare one. */
async function loaded({ bench, ours, socket, load }: Place, isOurs: boolean, method: string, connections: number) {
  const numbers = await load.ask('run', {
    url: `${ours}/x`,
    ...(isOurs ? {} : { socket }),
    method,
    body: BODY,
    connections,
    ...lengthOf(bench),
  })
  if (numbers['bad'] !== 0) throw new Error(`${numbers['bad']} requests failed`)
  return numbers
}

async function rate(place: Place, method: 'GET' | 'POST', minimum: number): Promise<Row> {
  place.bench.say(`${method} through the proxy`)
  const p99: number[] = []
  const [work, bareWork]: [number[], number[]] = [[], []]
  const run = (isOurs: boolean) => async () => {
    const pid = isOurs ? place.pid : place.barePid
    const before = cpuSeconds(pid)
    const numbers = await loaded(place, isOurs, method, CONNECTIONS)
    ;(isOurs ? work : bareWork).push(((cpuSeconds(pid) - before) * 1e6) / (numbers['sent'] ?? Number.NaN))
    if (isOurs) p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const found = await compare(place.bench.quick ? 3 : 5, run(true), [run(false)])
  const ratio = found.ratios[0] ?? 0
  return {
    name: `${method} of a service, ${CONNECTIONS} connections`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor: FLOOR,
    floorValue: found.floors[0] ?? 0,
    ratio,
    budget: `≥ ${minimum} ×`,
    pass: ratio >= minimum,
    note: `processor time of a request: ${Math.round(median(work))} µs in the supervisor, ${Math.round(median(bareWork))} µs in the bare service`,
  }
}

/** One request after the other: what is added is ours less the floor. */
async function latency(place: Place, method: 'GET' | 'POST'): Promise<Row> {
  place.bench.say(`${method} through the proxy, one at a time`)
  const [p99, floorP99]: [number[], number[]] = [[], []]
  const run = (isOurs: boolean) => async () => {
    const numbers = await loaded(place, isOurs, method, 1)
    ;(isOurs ? p99 : floorP99).push(numbers['p99'] ?? Number.NaN)
    return numbers['p50'] ?? 0
  }
  const found = await compare(place.bench.quick ? 3 : 5, run(true), [run(false)])
  return {
    name: `${method} of a service, one at a time`,
    unit: 'ms',
    ours: found.ours,
    p99: median(p99),
    floor: FLOOR,
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    budget: 'reported',
    note: `added: ${(found.ours - (found.floors[0] ?? 0)).toFixed(2)} ms at the median, ${(median(p99) - median(floorP99)).toFixed(2)} ms at p99`,
  }
}

/** Bodies in both directions, and what our memory grows by. */
async function bytes(place: Place): Promise<Row[]> {
  const { bench, ours, socket, load, pid } = place
  const size = (bench.quick ? 128 : 1024) * MEBIBYTE
  const rows: Row[] = []
  for (const direction of ['upload', 'download']) {
    bench.say(`${direction} through the proxy`)
    const before = memoryOf(pid).residentMiB
    let most = 0
    const look = setInterval(() => {
      most = Math.max(most, memoryOf(pid).residentMiB - before)
    }, 20)
    const run = (isOurs: boolean) => async () => {
      const path = isOurs ? {} : { socket }
      const { seconds = Number.NaN } = await load.ask(direction, { url: `${ours}/${direction}`, ...path, bytes: size })
      return size / MEBIBYTE / seconds
    }
    const found = await compare(bench.quick ? 2 : 3, run(true), [run(false)])
    clearInterval(look)
    rows.push({
      name: `${direction} of ${size / MEBIBYTE} MiB`,
      unit: 'MiB/s',
      ours: found.ours,
      floor: FLOOR,
      floorValue: found.floors[0] ?? 0,
      ratio: found.ratios[0] ?? 0,
      budget: `memory ≤ ${MAX_GROWTH_MIB} MiB more`,
      pass: most <= MAX_GROWTH_MIB,
      note: `the supervisor grew by at most ${Math.round(most)} MiB`,
    })
  }
  return rows
}

async function idle({ bench, ours, pid }: Place): Promise<Row> {
  bench.say(`${IDLE} idle WebSockets through the proxy`)
  const before = memoryOf(pid).residentMiB
  const url = new URL(ours)
  const sockets = await Promise.all(Array.from({ length: IDLE }, () => upgraded(url)))
  const grown = memoryOf(pid).residentMiB - before
  for (const socket of sockets) socket.destroy()
  return {
    name: `${IDLE} idle WebSockets of a service, memory of each`,
    unit: 'KiB',
    ours: (grown * 1024) / IDLE,
    budget: 'reported',
    note: 'both connections of each, in the supervisor alone',
  }
}

function upgraded(url: URL): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: url.hostname, port: Number(url.port) })
    socket.once('error', reject).once('data', () => resolve(socket))
    socket.write(
      `GET ${url.pathname}/ws HTTP/1.1\r\nHost: ${url.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    )
  })
}
