/** How many durable events a second over HTTP, and do readers slow the writers down? */
import { type Bench, compare, type Group, listening, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'

const CONNECTIONS = 64
const SUBSCRIBERS = 100
const BODY = JSON.stringify({ type: 'bench.post', actor: 'bench', subject: 's-1', payload: { fill: 'x'.repeat(64) } })
const MIN_OF_NODE = 0.45
const MIN_WITH_READERS = 0.5
const MAX_P99_MS = 20

export const post: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'post', ['alpha'])
  await using load = new Child('load')
  await using floorNode = new Child('floors')
  const city = `${supervisor.url}/v0/city/alpha`
  const bytes = 40
  const bare = await listening(floorNode, 'http', { bytes })
  const p99: number[] = []
  const run = async (url: string, method: string): Promise<Numbers> => {
    const numbers = await load.ask('run', { url, method, body: BODY, connections: CONNECTIONS, ...lengthOf(bench) })
    if (numbers['bad'] !== 0) throw new Error(`${numbers['bad']} requests of ${url} failed`)
    return numbers
  }
  const rate =
    (url: string, method = 'POST') =>
    async () =>
      (await run(url, method))['perSecond'] ?? 0
  const emit = async () => {
    const numbers = await run(`${city}/events`, 'POST')
    p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const rounds = bench.quick ? 3 : 5
  const alone = await compare(rounds, emit, [rate(`${city}/health`, 'GET'), rate(`${bare}/x`)])
  const base = {
    name: `POST events, ${CONNECTIONS} connections`,
    unit: 'requests/s',
    ours: alone.ours,
    p99: median(p99),
  }
  const row = (index: number, floor: string, least?: number): Row => {
    const ratio = alone.ratios[index] ?? 0
    const verdict = least === undefined ? { budget: 'reported' } : { budget: `≥ ${least} ×`, pass: ratio >= least }
    return { ...base, floor, floorValue: alone.floors[index] ?? 0, ratio, ...verdict }
  }
  const rows: Row[] = [
    row(0, 'GET of a static route of the same server'),
    row(1, 'the same POST to a bare node:http', MIN_OF_NODE),
    {
      name: 'POST events, p99',
      unit: 'ms',
      ours: median(p99),
      budget: `≤ ${MAX_P99_MS} ms`,
      pass: median(p99) <= MAX_P99_MS,
    },
  ]
  await using readers = new Child('readers')
  // Without and with readers in turn, so that the streams must come and go.
  const withReaders = async () => {
    await readers.ask('subscribe', { url: `${city}/events/stream`, count: SUBSCRIBERS, stamps: 0 })
    const found = await emit()
    await readers.ask('close')
    return found
  }
  const shared = await compare(rounds, withReaders, [emit])
  const ratio = shared.ratios[0] ?? 0
  rows.push({
    name: `POST events while ${SUBSCRIBERS} subscribers listen`,
    unit: 'requests/s',
    ours: shared.ours,
    floor: 'the same without subscribers',
    floorValue: shared.floors[0] ?? 0,
    ratio,
    budget: `≥ ${MIN_WITH_READERS} ×`,
    pass: ratio >= MIN_WITH_READERS,
    note: 'the process of the subscribers takes one of the two cores together with the load generator',
  })
  return rows
}

export const lengthOf = ({ quick }: Bench) => (quick ? { warmMs: 300, ms: 900 } : { warmMs: 500, ms: 2_000 })
