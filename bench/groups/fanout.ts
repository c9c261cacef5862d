/** How late is a frame, and how many go out when events come in bursts? */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bench, commits, type Group, listening, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'

const MAX_P50_MS = new Map([
  [1, 3],
  [100, 5],
  [1_000, 15],
])
const MAX_P99_MS = 25
const MAX_LAST_MS = 100
const MIN_OF_LOOP = 0.7
const CONNECTIONS = 64
/** Frames a second that a reader process on a shared core can take in without being the bottleneck itself. */
const READER_FRAMES = 60_000

interface Setting {
  readonly bench: Bench
  readonly url: string
  readonly load: Child
  readonly readers: Child
  readonly loop: Child
  readonly loopReaders: Child
}

export const fanout: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'fanout', ['alpha'])
  const rows: Row[] = []
  for (const count of [1, 100, 1_000, 5_000]) {
    bench.say(`fan-out to ${count}`)
    await using load = new Child('load')
    await using readers = new Child('readers')
    await using loopReaders = new Child('readers')
    await using loop = new Child('floors')
    const loopUrl = await listening(loop, 'sockets')
    const setting = { bench, url: `${supervisor.url}/v0/city/alpha/events`, load, readers, loop, loopReaders }
    await readers.ask('subscribe', { url: `${setting.url}/stream`, count })
    await loopReaders.ask('subscribe', { url: `${loopUrl}/`, count })
    // The streams' set-up must not count.
    await sleep(200)
    rows.push(...(await lagRows(setting, count, Math.min(50, READER_FRAMES / count))))
    if (count === 1_000) rows.push(await lastRow(setting, supervisor.url, count))
    rows.push(await burstRow(setting, supervisor.url, count))
  }
  return rows
}

async function lagRows(setting: Setting, count: number, rate: number): Promise<Row[]> {
  const { ours, floor } = await lagAt(setting, rate)
  const most = MAX_P50_MS.get(count)
  const p50 = ours['p50'] ?? Number.NaN
  const p99 = ours['p99'] ?? Number.NaN
  const floorValue = floor['p50'] ?? Number.NaN
  return [
    {
      name: `emit → frame, ${count} subscribers, ${rate} events/s`,
      unit: 'ms',
      ours: p50,
      p99,
      floor: 'loop over bare sockets: write → frame',
      floorValue,
      ratio: p50 / floorValue,
      ...(most === undefined
        ? { budget: 'reported' }
        : { budget: `p50 ≤ ${most} ms, p99 ≤ ${MAX_P99_MS} ms`, pass: p50 <= most && p99 <= MAX_P99_MS }),
    },
  ]
}

async function lagAt({ bench, url, load, readers, loop, loopReaders }: Setting, rate: number) {
  const ours: Numbers[] = []
  const floor: Numbers[] = []
  for (let round = 0; round < (bench.quick ? 2 : 3); round++) {
    const options = { rate, ms: bench.quick ? 1_000 : 2_500 }
    await load.ask('emit', { url, ...options })
    await sleep(300)
    ours.push(await readers.ask('lag'))
    await loop.ask('tick', { ...options, bytes: (ours[0]?.['bytes'] ?? 0) / (ours[0]?.['events'] ?? 1) })
    await sleep(300)
    floor.push(await loopReaders.ask('lag'))
  }
  return { ours: medians(ours), floor: medians(floor) }
}

async function lastRow(setting: Setting, base: string, count: number): Promise<Row> {
  const before = await commits(base)
  const { ours, floor } = await lagAt(setting, 200)
  const groups = (await commits(base)) - before
  const last = ours['lastP99'] ?? Number.NaN
  const floorValue = floor['lastP99'] ?? Number.NaN
  return {
    name: `last of ${count} subscribers, 200 events/s, p99`,
    unit: 'ms',
    ours: last,
    floor: 'loop over bare sockets',
    floorValue,
    ratio: last / floorValue,
    budget: `≤ ${MAX_LAST_MS} ms`,
    pass: last <= MAX_LAST_MS,
    note: `${groups} commits; the loop writes every event by itself, ours those of a commit together`,
  }
}

const medians = (all: readonly Numbers[]): Numbers =>
  Object.fromEntries(Object.keys(all[0] ?? {}).map((name) => [name, median(all.map((one) => one[name] ?? Number.NaN))]))

let marks = 0

/** Frames a second from the first POST of a burst until the last subscriber has its last frame. */
async function burstRow(
  { bench, url, load, readers, loop, loopReaders }: Setting,
  base: string,
  count: number,
): Promise<Row> {
  const ours: number[] = []
  const floor: number[] = []
  const events = Math.max(64, Math.min(20_000, Math.round((bench.quick ? 300_000 : 1_000_000) / count)))
  for (let round = 0; round < (bench.quick ? 3 : 5); round++) {
    const mark = ++marks
    const before = await commits(base)
    await readers.ask('expect', { mark })
    const { began = 0 } = await load.ask('burst', { url, count: events, connections: CONNECTIONS, mark })
    const { at = 0, bytes = 0 } = await readers.ask('report')
    const pieces = (await commits(base)) - before
    ours.push((count * events) / ((at - began) / 1e6))
    await loopReaders.ask('expect', { mark })
    const run = await loop.ask('burst', { pieces, bytes, mark })
    const end = await loopReaders.ask('report')
    floor.push((count * events) / (((end['at'] ?? 0) - (run['began'] ?? 0)) / 1e6))
  }
  const ratio = median(ours.map((value, round) => value / (floor[round] ?? Number.NaN)))
  const judged = count === 1_000
  return {
    name: `burst of ${events} events to ${count} subscribers`,
    unit: 'frames/s',
    ours: median(ours),
    floor: 'loop over bare sockets, same bytes in as many writes',
    floorValue: median(floor),
    ratio,
    ...(judged ? { budget: `≥ ${MIN_OF_LOOP} ×`, pass: ratio >= MIN_OF_LOOP } : { budget: 'reported' }),
  }
}
