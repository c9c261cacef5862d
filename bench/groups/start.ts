/** How soon is a supervisor there, with long logs, after a crash; and what does it cost to do nothing? */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RunningSupervisor, startSupervisor } from '../../test/support/supervisor.ts'
import {
  adopt,
  allRunning,
  type Bench,
  childrenOf,
  cpuSeconds,
  type Group,
  memoryOf,
  post,
  proportionalMiB,
  supervisorWith,
  until,
} from '../bench.ts'
import { Child } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { emptyProgramMs } from './cli.ts'
import { sizesOf } from './logs.ts'

const MAX_HEALTH_MS = 600
const MAX_RUNNING_MS = 2_000
const MAX_CRASH_MS = 3_000
const MANY_CITIES = 50
const MAX_IDLE_CORE = 0.01
const MAX_IDLE_MIB = 130
const IDLE_STREAMS = 5

const healthy = (url: string) =>
  until('/health answers', async () => ((await fetch(`${url}/health`)).ok ? true : undefined), 2)

export const start: Group = async (bench) => {
  const { dirs, events } = await bigCities(bench)
  const home = join(bench.dir, 'start', 'home')
  await using first = await startSupervisor({ home })
  await adopt(first.url, dirs)
  await allRunning(first.url, dirs.length)
  await first.kill('SIGTERM')
  const health: number[] = []
  const running: number[] = []
  const empty: number[] = []
  for (let round = 0; round < (bench.quick ? 3 : 5); round++) {
    const began = performance.now()
    await using supervisor = await startSupervisor({ home })
    await healthy(supervisor.url)
    health.push(performance.now() - began)
    await allRunning(supervisor.url, dirs.length)
    running.push(performance.now() - began)
    await supervisor.kill('SIGTERM')
    empty.push(await emptyProgramMs())
  }
  const what = `with ${dirs.length} cities of ${events} events`
  const base = { unit: 'ms', floor: 'node -e 0', floorValue: median(empty) }
  return [
    {
      ...base,
      name: `start to /health ${what}`,
      ours: median(health),
      ratio: median(health) / median(empty),
      budget: `≤ ${MAX_HEALTH_MS} ms`,
      pass: median(health) <= MAX_HEALTH_MS,
    },
    {
      ...base,
      name: `start to every city running ${what}`,
      ours: median(running),
      ratio: median(running) / median(empty),
      budget: `≤ ${MAX_RUNNING_MS} ms`,
      pass: median(running) <= MAX_RUNNING_MS,
    },
    ...(await idleRows(bench, home, dirs)),
  ]
}

async function bigCities(bench: Bench) {
  const events = sizesOf(bench).at(-1) ?? 0
  const count = bench.quick ? 5 : 10
  await using logs = new Child('logs')
  const dirs = Array.from({ length: count }, (_, index) => join(bench.dir, 'start', `big-${index}`))
  bench.say(`making ${count} logs of ${events} events`)
  const [original = '', ...others] = dirs
  await logs.ask('make', { dir: original, name: 'big-0', events })
  for (const [index, dir] of others.entries()) await logs.ask('copy', { from: original, dir, name: `big-${index + 1}` })
  return { dirs, events }
}

async function idleRows(bench: Bench, home: string, dirs: readonly string[]): Promise<Row[]> {
  const seconds = bench.quick ? 10 : 30
  await using supervisor = await startSupervisor({ home })
  await allRunning(supervisor.url, dirs.length)
  await using readers = new Child('readers')
  await readers.ask('subscribe', { url: `${supervisor.url}/v0/events/stream`, count: IDLE_STREAMS })
  bench.say(`idling for ${seconds} s`)
  await sleep(2_000)
  const headBefore = await headOf(supervisor)
  const before = cpuSeconds(supervisor.pid)
  await sleep(seconds * 1_000)
  const core = (cpuSeconds(supervisor.pid) - before) / seconds
  const { residentMiB, anonymousMiB } = memoryOf(supervisor.pid)
  const pss = proportionalMiB(supervisor.pid)
  const children = childrenOf(supervisor.pid)
  const written = (await headOf(supervisor)) === headBefore ? 0 : 1
  const what = `idle, ${dirs.length} cities, ${IDLE_STREAMS} streams`
  return [
    { name: `${what}: CPU`, unit: '% of a core', ours: core * 100, budget: '< 1 %', pass: core < MAX_IDLE_CORE },
    {
      name: `${what}: memory (PSS)`,
      unit: 'MiB',
      ours: pss,
      budget: `≤ ${MAX_IDLE_MIB} MiB`,
      pass: pss <= MAX_IDLE_MIB,
      note: `resident: ${residentMiB.toFixed(0)} MiB, of it anonymous ${anonymousMiB.toFixed(0)} MiB`,
    },
    { name: `${what}: child processes`, unit: '', ours: children, budget: '0', pass: children === 0 },
    { name: `${what}: logs that grew`, unit: '', ours: written, budget: '0', pass: written === 0 },
  ]
}

/** The composite cursor: the head of every log in one word. */
async function headOf({ url }: RunningSupervisor): Promise<string> {
  return /"event_cursor":"([^"]*)"/.exec(await (await fetch(`${url}/v0/events?limit=1`)).text())?.[1] ?? ''
}

export const crash: Group = async (bench) => {
  const cities = Array.from({ length: MANY_CITIES }, (_, index) => `city-${index}`)
  bench.say(`making ${MANY_CITIES} cities`)
  await using first = await supervisorWith(bench, 'crash', cities)
  await Promise.all(
    cities.map((name) =>
      post(`${first.url}/v0/city/${name}/events`, { type: 'bench.crash', actor: 'bench', payload: {} }),
    ),
  )
  await first.kill('SIGKILL')
  const slowest: number[] = []
  const soonest: number[] = []
  const empty: number[] = []
  for (let round = 0; round < (bench.quick ? 3 : 5); round++) {
    const began = performance.now()
    await using supervisor = await startSupervisor({ home: join(bench.dir, 'crash', 'home') })
    const answered = async (name: string) => {
      await until(
        `${name} answers`,
        async () => ((await fetch(`${supervisor.url}/v0/city/${name}/status`)).ok ? true : undefined),
        20,
      )
      return performance.now() - began
    }
    const times = await Promise.all(cities.map(answered))
    slowest.push(Math.max(...times))
    soonest.push(Math.min(...times))
    await supervisor.kill('SIGKILL')
    empty.push(await emptyProgramMs())
  }
  const last = median(slowest)
  return [
    {
      name: `start after kill -9 until every one of ${MANY_CITIES} cities answers`,
      unit: 'ms',
      ours: last,
      floor: 'node -e 0',
      floorValue: median(empty),
      ratio: last / median(empty),
      budget: `≤ ${MAX_CRASH_MS} ms`,
      pass: last <= MAX_CRASH_MS,
      note: `the first city answers after ${median(soonest).toFixed(0)} ms`,
    },
  ]
}
