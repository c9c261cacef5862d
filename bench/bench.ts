/** What every group of measurements needs: the length of the run, a place for files, and rounds in alternation. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FAULTS_VARIABLE, UNHELD } from '../test/support/held.ts'
import { type RunningSupervisor, startSupervisor } from '../test/support/supervisor.ts'
import type { Child } from './child.ts'
import { median } from './numbers.ts'
import type { Row } from './rows.ts'

export interface Bench {
  readonly quick: boolean
  /** Removed by the run. */
  readonly dir: string
  /** Progress, for whoever waits. */
  say(text: string): void
}

export type Group = (bench: Bench) => Promise<readonly Row[]>

// Servers that are measured do not hold their replies against the contract.
process.env[FAULTS_VARIABLE] = UNHELD

/** Of Linux, whatever the machine. */
const CLOCK_TICKS = 100
const CITY_DEADLINE_MS = 30_000

/** Calls `work` until it gives something; the deadline is a failure of the benchmark. */
export async function until<T>(what: string, work: () => Promise<T | undefined>, everyMs = 10): Promise<T> {
  const deadline = performance.now() + CITY_DEADLINE_MS
  for (;;) {
    const found = await work().catch(() => undefined)
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`${what} did not happen in time`)
    await sleep(everyMs)
  }
}

interface Compared {
  readonly ours: number
  readonly floors: readonly number[]
  readonly ratios: readonly number[]
}

/** Measures ours and its floors in turn, `rounds` times: a ratio is between neighbours, so a busy minute hits both. */
export async function compare(
  rounds: number,
  ours: () => Promise<number>,
  floors: readonly (() => Promise<number>)[],
): Promise<Compared> {
  const mine: number[] = []
  const theirs: number[][] = floors.map(() => [])
  for (let round = 0; round < rounds; round++) {
    mine.push(await ours())
    for (const [index, floor] of floors.entries()) theirs[index]?.push(await floor())
  }
  return {
    ours: median(mine),
    floors: theirs.map(median),
    ratios: theirs.map((values) => median(values.map((value, round) => (mine[round] ?? Number.NaN) / value))),
  }
}

/** A supervisor in the bench's directory, with cities that are running. */
export async function supervisorWith(
  bench: Bench,
  home: string,
  cities: readonly string[],
): Promise<RunningSupervisor> {
  const supervisor = await startSupervisor({ home: join(bench.dir, home, 'home') })
  for (const name of cities)
    await post(`${supervisor.url}/v0/city`, { dir: join(bench.dir, home, name), name, provider: 'shell' })
  await allRunning(supervisor.url, cities.length)
  return supervisor
}

export async function adopt(url: string, dirs: readonly string[]): Promise<void> {
  for (const path of dirs) await post(`${url}/v0/cities`, { path })
}

export async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-SVC-Request': 'bench' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`)
  await response.arrayBuffer()
}

export const allRunning = (url: string, count: number): Promise<true> =>
  until('every city runs', async () => {
    const text = await (await fetch(`${url}/v0/cities?limit=1000`)).text()
    return text.split('"running":true').length - 1 === count ? true : undefined
  })

/** Commits since the start, from the metrics. */
export async function commits(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^svc_commit_seconds_count(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1] ?? 0)
}

export async function bytesOf(url: string): Promise<number> {
  return (await (await fetch(url)).arrayBuffer()).byteLength
}

/** Figures of the kernel about a process, in MiB. */
export function memoryOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return { residentMiB: mib(status, 'VmRSS'), anonymousMiB: mib(status, 'RssAnon') }
}

/** Resident memory, with what is shared counted by its share: dear to read. */
export const proportionalMiB = (pid: number): number => mib(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'), 'Pss')

const mib = (text: string, key: string): number =>
  Number(new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) / 1024

/** Seconds of processor time that a process has used; unlike a rate, hardly disturbed by what else runs here. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS
}

export function childrenOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim())
    .filter((text) => text !== '')
    .flatMap((text) => text.split(' ')).length
}

/** A floor that listens; answers its base address. */
export async function listening(
  child: Child,
  command: string,
  options: Readonly<Record<string, string | number>> = {},
): Promise<string> {
  const { port } = await child.ask(command, options)
  return `http://127.0.0.1:${port}`
}
