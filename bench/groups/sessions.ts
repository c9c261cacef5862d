/** How late is a message in the agent and its answer at the client, what do idle sessions cost, how fast is a long transcript? */
import { spawn as spawnProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { AGENT, bareMessages, type City, linesIn, send, start } from '../agents.ts'
import { bytesOf, cpuSeconds, type Group, proportionalMiB, supervisorWith, until } from '../bench.ts'
import { machineMicros, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const MAX_TAIL_MS = 50
const MAX_HOST_MIB = 15
/** Of a core, for twenty sessions. */
const MAX_IDLE_PERCENT = 1
const MEBIBYTE = 1024 * 1024

export const sessions: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'sessions', ['alpha'])
  const city = { bench, pid: supervisor.pid, url: `${supervisor.url}/v0/city/alpha` }
  return [await messageRow(city), await outputRow(city), ...(await idleRows(city)), await tailRow(city)]
}

async function messageRow(city: City): Promise<Row> {
  city.bench.say('message → the agent’s stdin')
  const file = join(city.bench.dir, 'late')
  const [id] = await start(city, 'listener', ['listen', file])
  const messages = city.bench.quick ? 10 : 40
  for (let count = 1; count <= messages; count++) {
    await send(`${city.url}/sessions/${id}/messages`, 'POST', { message: `T${machineMicros()}` })
    await until('the message is there', async () => (linesIn(file).length >= count ? true : undefined))
    // A turn ends after a quarter of a second of quiet; waiting for that is not what is measured.
    await sleep(600)
  }
  const ours = linesIn(file).map((micros) => micros / 1000)
  const floor = await bareMessages(join(city.bench.dir, 'bare'), messages)
  return {
    name: 'POST of a message → in the agent’s stdin',
    unit: 'ms',
    ours: percentile(ours, 50),
    p99: percentile(ours, 99),
    floor: 'a write into the same pty',
    floorValue: percentile(floor, 50),
    ratio: percentile(ours, 50) / percentile(floor, 50),
    budget: 'reported',
    note: 'with the request, two commits and the journal of the host, each on disk',
  }
}

const STAMP = /S(\d+)/g

async function outputRow(city: City): Promise<Row> {
  city.bench.say('the agent’s byte → the stream')
  const [id] = await start(city, 'ticker', ['tick', '50'])
  const wanted = city.bench.quick ? 50 : 200
  const late: number[] = []
  const aborter = new AbortController()
  const response = await fetch(`${city.url}/sessions/${id}/stream?format=raw`, { signal: aborter.signal })
  const decoder = new TextDecoder()
  // What was there before the stream came is in its first frame.
  const opened = machineMicros()
  for await (const bytes of response.body ?? []) {
    const now = machineMicros()
    for (const [, at] of decoder.decode(bytes, { stream: true }).matchAll(STAMP))
      if (Number(at) > opened) late.push((now - Number(at)) / 1000)
    if (late.length >= wanted) break
  }
  aborter.abort()
  const floor = await bareTicks(wanted)
  return {
    name: 'byte of the agent → frame of its stream',
    unit: 'ms',
    ours: percentile(late, 50),
    p99: percentile(late, 99),
    floor: 'the same pty read directly',
    floorValue: percentile(floor, 50),
    ratio: percentile(late, 50) / percentile(floor, 50),
    budget: 'reported',
  }
}

async function bareTicks(wanted: number): Promise<number[]> {
  const late: number[] = []
  const agent = spawn(process.execPath, [AGENT, 'tick', '50'], {})
  agent.onData((text) => {
    const now = machineMicros()
    for (const [, at] of text.matchAll(STAMP)) late.push((now - Number(at)) / 1000)
  })
  await until(
    'the bare agent has told the time often enough',
    async () => (late.length >= wanted ? true : undefined),
    50,
  )
  agent.kill()
  return late
}

async function idleRows(city: City): Promise<readonly Row[]> {
  const rows: Row[] = []
  let there = 0
  for (const count of city.bench.quick ? [20] : [20, 100]) {
    city.bench.say(`${count} idle sessions`)
    await start(city, `idler-${count}`, ['idle'], { count: count - there })
    there = count
    rows.push(...(await idleRowsOf(city, count)))
  }
  return rows
}

/** Beside as many programs that do nothing: what a host has, it has above those. */
async function idleRowsOf(city: City, count: number): Promise<readonly Row[]> {
  const rest = city.bench.quick ? 5_000 : 20_000
  using bare = bareProcesses(count)
  await sleep(3_000)
  const hosts = hostsBelow(city.bench.dir)
  const began = { ours: sum(hosts.map(cpuSeconds)), all: cpuSeconds(city.pid), bare: sum(bare.pids.map(cpuSeconds)) }
  await sleep(rest)
  const percent = (seconds: number) => (seconds / rest) * 100_000
  const ours = percent(sum(hosts.map(cpuSeconds)) - began.ours)
  const each = sum(hosts.map(proportionalMiB)) / Math.max(1, hosts.length)
  const floor = sum(bare.pids.map(proportionalMiB)) / count
  const budget = (count / 20) * MAX_IDLE_PERCENT
  return [
    {
      name: `${count} idle sessions: processor of their hosts`,
      unit: '% of a core',
      ours,
      floor: 'as many processes that do nothing',
      floorValue: percent(sum(bare.pids.map(cpuSeconds)) - began.bare),
      budget: `< ${budget} %`,
      pass: ours < budget,
      note: `the supervisor itself ${percent(cpuSeconds(city.pid) - began.all).toFixed(1)} %`,
    },
    {
      name: `${count} idle sessions: memory of a host (PSS)`,
      unit: 'MiB',
      ours: each,
      floor: 'a process that does nothing',
      floorValue: floor,
      ratio: each / floor,
      budget: `≤ ${MAX_HOST_MIB} MiB`,
      pass: each <= MAX_HOST_MIB,
      note: `${hosts.length} processes of ours`,
    },
  ]
}

function bareProcesses(count: number): Disposable & { readonly pids: readonly number[] } {
  const children = Array.from({ length: count }, () =>
    spawnProcess(process.execPath, ['-e', 'setInterval(() => {}, 1e8)'], { stdio: 'ignore' }),
  )
  return {
    pids: children.map(({ pid }) => pid ?? 0),
    [Symbol.dispose]() {
      for (const child of children) child.kill('SIGKILL')
    },
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Hosts of sessions whose directory is below `directory`. */
function hostsBelow(directory: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => /runtimes\/host\/host\.(ts|js)/.test(commandLine(name)) && commandLine(name).includes(directory))
    .map(Number)
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

async function tailRow(city: City): Promise<Row> {
  const size = (city.bench.quick ? 40 : 200) * MEBIBYTE
  city.bench.say(`a transcript of ${size / MEBIBYTE} MiB`)
  await send(`${city.url}/providers`, 'POST', {
    name: 'flood',
    command: 'sh',
    args: ['-c', `yes "a line of an agent that has a lot to say" | head -c ${size}; sleep 3600`],
    delivery: 'line',
    prompt_mode: 'omit',
  })
  const { session_id: id } = await send(`${city.url}/sessions`, 'POST', {
    kind: 'provider',
    name: 'flood',
    runtime: 'subprocess',
  })
  const url = `${city.url}/sessions/${String(id)}/transcript`
  let last = ''
  await until(
    'the flood is over',
    async () => {
      const at = /"id":"(\d+-\d+)"[^{]*\}\]/.exec(await (await fetch(url)).text())?.[1] ?? ''
      const over = at !== '' && at === last && Number(at.split('-')[1]) > size * 0.9
      last = at
      return over ? true : undefined
    },
    500,
  )
  const times: number[] = []
  for (let round = 0; round < 15; round++) {
    const began = performance.now()
    await bytesOf(url)
    times.push(performance.now() - began)
  }
  const p50 = percentile(times, 50)
  return {
    name: `newest page of a transcript of ${size / MEBIBYTE} MiB`,
    unit: 'ms',
    ours: p50,
    p99: percentile(times, 99),
    budget: `≤ ${MAX_TAIL_MS} ms`,
    pass: p50 <= MAX_TAIL_MS,
  }
}
