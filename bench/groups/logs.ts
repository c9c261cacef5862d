/** Long logs: how fast does a stream catch up, and do pages stay fast however long the log is? */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSupervisor } from '../../test/support/supervisor.ts'
import { adopt, allRunning, type Bench, bytesOf, compare, type Group, listening, memoryOf } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'

const MIN_REPLAY = 150_000
const MAX_FIRST_MS = 10
const MAX_GROWTH_MIB = 64
const MAX_LIST_P99_MS = 5

export const sizesOf = ({ quick }: Bench): readonly number[] => (quick ? [1_000, 100_000] : [1_000, 100_000, 1_000_000])

/** Directories of cities with logs of these sizes. */
async function makeLogs(bench: Bench): Promise<readonly string[]> {
  await using logs = new Child('logs')
  const dirs: string[] = []
  for (const events of sizesOf(bench)) {
    const dir = join(bench.dir, 'logs', `size-${events}`)
    bench.say(`making a log of ${events} events`)
    await logs.ask('make', { dir, name: `size-${events}`, events })
    dirs.push(dir)
  }
  return dirs
}

export const replay: Group = async (bench) => {
  const events = sizesOf(bench).at(-1) ?? 0
  const dirs = await makeLogs({ ...bench, dir: join(bench.dir, 'replay') })
  const dir = dirs.at(-1) ?? ''
  await using logs = new Child('logs')
  const copied = join(bench.dir, 'replay-floor')
  await logs.ask('copy', { from: dir, dir: copied, name: 'floor' })
  await using supervisor = await startSupervisor({ home: join(bench.dir, 'replay', 'home') })
  await adopt(supervisor.url, [dir])
  await allRunning(supervisor.url, 1)
  await using floor = new Child('floors')
  const bare = await listening(floor, 'replay', { path: join(copied, '.svc', 'city.db') })
  const rows: Row[] = []
  const last = `"seq":${events},`
  const scopes = [
    { name: 'city', url: `${supervisor.url}/v0/city/size-${events}/events/stream?after_seq=0` },
    { name: 'supervisor', url: `${supervisor.url}/v0/events/stream?after_cursor=0` },
  ]
  for (const scope of scopes) {
    const runs: Numbers[] = []
    const growth: number[] = []
    const rate = (url: string, mine: boolean) => async () => {
      await using readers = new Child('readers')
      const before = memoryOf(supervisor.pid).anonymousMiB
      const numbers = await watching(supervisor.pid, readers.ask('replay', { url, last }))
      if (mine) {
        runs.push(numbers.result)
        growth.push(numbers.peakMiB - before)
      }
      return events / ((numbers.result['ms'] ?? 0) / 1000)
    }
    const found = await compare(3, rate(scope.url, true), [rate(`${bare}/`, false)])
    const first = median(runs.map((run) => run['firstMs'] ?? Number.NaN))
    rows.push(
      {
        name: `replay of ${events} events, ${scope.name} scope`,
        unit: 'events/s',
        ours: found.ours,
        floor: 'bare better-sqlite3 → socket, same frames',
        floorValue: found.floors[0] ?? 0,
        ratio: found.ratios[0] ?? 0,
        budget: `≥ ${MIN_REPLAY.toLocaleString('en-US')}/s`,
        pass: found.ours >= MIN_REPLAY,
      },
      {
        name: `first frame of a replay, ${scope.name} scope`,
        unit: 'ms',
        ours: first,
        budget: `≤ ${MAX_FIRST_MS} ms`,
        pass: first <= MAX_FIRST_MS,
      },
      {
        name: `memory growth during a replay, ${scope.name} scope`,
        unit: 'MiB',
        ours: Math.max(...growth),
        budget: `≤ ${MAX_GROWTH_MIB} MiB`,
        pass: Math.max(...growth) <= MAX_GROWTH_MIB,
        note: 'anonymous memory of the server, most of it garbage not yet collected; independent of the length of the log',
      },
    )
  }
  return rows
}

/** The peak of a process's memory while something goes on. */
async function watching(pid: number, work: Promise<Numbers>) {
  let peakMiB = 0
  let over = false
  const done = work.finally(() => {
    over = true
  })
  while (!over) {
    peakMiB = Math.max(peakMiB, memoryOf(pid).anonymousMiB)
    await Promise.race([sleep(20), done.catch(() => {})])
  }
  return { result: await done, peakMiB }
}

export const lists: Group = async (bench) => {
  const dirs = await makeLogs({ ...bench, dir: join(bench.dir, 'lists') })
  await using supervisor = await startSupervisor({ home: join(bench.dir, 'lists', 'home') })
  await adopt(supervisor.url, dirs)
  await allRunning(supervisor.url, dirs.length)
  await using load = new Child('load')
  const rows: Row[] = []
  const questions = [
    { name: 'head (limit=1)', query: 'limit=1' },
    { name: 'newest page', query: 'limit=100' },
    { name: 'latest of a type that never occurred', query: 'type=never.occurred&limit=1' },
  ]
  for (const { name, query } of questions) {
    let small = 0
    for (const size of sizesOf(bench)) {
      await using floor = new Child('floors')
      const url = `${supervisor.url}/v0/city/size-${size}/events?${query}`
      const bare = await listening(floor, 'http', { bytes: await bytesOf(url) })
      const runs: Numbers[] = []
      const p50 = (target: string) => async () => {
        const numbers = await load.ask('run', {
          url: target,
          connections: 1,
          warmMs: 200,
          ms: bench.quick ? 400 : 1_000,
        })
        if (target === url) runs.push(numbers)
        return numbers['p50'] ?? Number.NaN
      }
      const found = await compare(3, p50(url), [p50(`${bare}/x`)])
      const p99 = median(runs.map((run) => run['p99'] ?? Number.NaN))
      if (small === 0) small = found.ours
      rows.push({
        name: `${name}, log of ${size} events`,
        unit: 'ms',
        ours: found.ours,
        p99,
        floor: 'bare node:http, as many bytes',
        floorValue: found.floors[0] ?? 0,
        ratio: found.ratios[0] ?? 0,
        budget: `p99 ≤ ${MAX_LIST_P99_MS} ms, ≤ 2 × that of 1,000`,
        pass: p99 <= MAX_LIST_P99_MS && found.ours <= 2 * small,
      })
    }
  }
  return rows
}
