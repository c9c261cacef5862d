/** What does the surface cost on a read that has nothing to do? */
import { type Bench, bytesOf, compare, type Group, listening, supervisorWith } from '../bench.ts'
import { Child } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { lengthOf } from './post.ts'

const CONNECTIONS = 32
const MIN_RATIO = 0.75
const MIN_SHORT_RATIO = 0.5

export const get: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'get', ['alpha', 'beta', 'gamma'])
  await using load = new Child('load')
  const rows: Row[] = []
  for (const path of ['/health', '/v0/cities', '/v0/city/alpha/status']) {
    await using floor = new Child('floors')
    const url = `${supervisor.url}${path}`
    const bytes = await bytesOf(url)
    const bare = await listening(floor, 'http', { bytes })
    const p99: number[] = []
    const run = (target: string) => async () => {
      const numbers = await load.ask('run', { url: target, connections: CONNECTIONS, ...lengthOf(bench) })
      if (target === url) p99.push(numbers['p99'] ?? Number.NaN)
      return numbers['perSecond'] ?? 0
    }
    const found = await compare(bench.quick ? 3 : 5, run(url), [run(`${bare}/x`)])
    const ratio = found.ratios[0] ?? 0
    rows.push({
      name: `GET ${path}, ${CONNECTIONS} connections`,
      unit: 'requests/s',
      ours: found.ours,
      p99: median(p99),
      floor: 'bare node:http, as many bytes',
      floorValue: found.floors[0] ?? 0,
      ratio,
      budget: `≥ ${MIN_RATIO} ×`,
      pass: ratio >= MIN_RATIO,
    })
  }
  rows.push(await shortConnections(bench, supervisor.url, load))
  return rows
}

/** A connection for each request: who is at its other end is asked once for each. */
async function shortConnections(bench: Bench, server: string, load: Child): Promise<Row> {
  await using floor = new Child('floors')
  const url = `${server}/health`
  const bare = await listening(floor, 'http', { bytes: await bytesOf(url) })
  const p99: number[] = []
  const run = (target: string) => async () => {
    const numbers = await load.ask('short', { url: target, connections: CONNECTIONS, ...lengthOf(bench) })
    if (numbers['bad'] !== 0) throw new Error(`${numbers['bad']} requests of ${target} failed`)
    if (target === url) p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const found = await compare(bench.quick ? 3 : 5, run(url), [run(`${bare}/x`)])
  const ratio = found.ratios[0] ?? 0
  return {
    name: `GET /health, a connection each, ${CONNECTIONS} at a time`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor: 'bare node:http, as many bytes',
    floorValue: found.floors[0] ?? 0,
    ratio,
    budget: `≥ ${MIN_SHORT_RATIO} ×`,
    pass: ratio >= MIN_SHORT_RATIO,
  }
}
