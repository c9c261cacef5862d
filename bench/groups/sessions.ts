/** How late is a message in the agent and its answer at the client, what do idle sessions cost, how fast is a long transcript? */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { type Bench, bytesOf, cpuSeconds, type Group, proportionalMiB, supervisorWith, until } from '../bench.ts'
import { machineMicros, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const AGENT = join(import.meta.dirname, '..', 'programs', 'agent.ts')
const MAX_TAIL_MS = 50
const MAX_IDLE_MIB = 2_048
const MEBIBYTE = 1024 * 1024

interface City {
  readonly bench: Bench
  readonly pid: number
  /** Of the city. */
  readonly url: string
}

export const sessions: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'sessions', ['alpha'])
  const city = { bench, pid: supervisor.pid, url: `${supervisor.url}/v0/city/alpha` }
  return [await messageRow(city), await outputRow(city), ...(await idleRows(city)), await tailRow(city)]
}

async function send(url: string, method: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, {
    method,
    headers: { 'Content-Type': 'application/json', 'X-SVC-Request': 'bench' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Starts a session of a program of ours; its id once it takes messages. */
async function start({ url }: City, name: string, args: readonly string[], count = 1): Promise<readonly string[]> {
  await send(`${url}/providers`, 'POST', {
    name,
    command: process.execPath,
    args: [AGENT, ...args],
    delivery: 'line',
    prompt_mode: 'omit',
  })
  const accepted = await Promise.all(
    Array.from({ length: count }, () =>
      send(`${url}/sessions`, 'POST', { kind: 'provider', name, runtime: 'subprocess' }),
    ),
  )
  const ids = accepted.map(({ session_id }) => String(session_id))
  for (const id of ids) {
    await until(`session ${id} runs`, async () => {
      const text = await (await fetch(`${url}/sessions/${id}`)).text()
      return text.includes('"state":"active"') ? true : undefined
    })
  }
  return ids
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

const linesIn = (file: string): number[] =>
  existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(Number) : []

async function bareMessages(file: string, messages: number): Promise<number[]> {
  const agent = spawn(process.execPath, [AGENT, 'listen', file], {})
  // Its first line is only to know that it listens.
  await until('the bare agent listens', async () => {
    agent.write(`T${machineMicros()}\r`)
    await sleep(100)
    return linesIn(file).length > 0 ? true : undefined
  })
  const before = linesIn(file).length
  for (let count = 1; count <= messages; count++) {
    agent.write(`T${machineMicros()}\r`)
    await sleep(50)
  }
  await until('the last bare message is there', async () =>
    linesIn(file).length >= before + messages ? true : undefined,
  )
  agent.kill()
  return linesIn(file)
    .slice(before)
    .map((micros) => micros / 1000)
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
  const count = city.bench.quick ? 20 : 100
  city.bench.say(`${count} idle sessions`)
  const before = cpuSeconds(city.pid)
  const rest = city.bench.quick ? 5_000 : 20_000
  await start(city, 'idler', ['idle'], count)
  await sleep(3_000)
  const hosts = hostsBelow(city.bench.dir)
  const began = cpuSeconds(city.pid) + sum(hosts.map(cpuSeconds))
  await sleep(rest)
  const used = cpuSeconds(city.pid) + sum(hosts.map(cpuSeconds)) - began
  const mib = sum(hosts.map(proportionalMiB))
  return [
    {
      name: `${count} idle sessions: hosts and supervisor, processor`,
      unit: '% of a core',
      ours: (used / rest) * 100_000,
      budget: 'reported',
      note: `${(began - before).toFixed(1)} s to start them all`,
    },
    {
      name: `${count} idle sessions: memory of the hosts (PSS)`,
      unit: 'MiB',
      ours: mib,
      budget: `≤ ${MAX_IDLE_MIB} MiB for 100`,
      pass: (mib / count) * 100 <= MAX_IDLE_MIB,
      note: `${hosts.length} processes of ours, ${(mib / Math.max(1, hosts.length)).toFixed(1)} MiB each`,
    },
  ]
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
