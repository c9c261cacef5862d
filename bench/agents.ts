/** Sessions of the agent for measurements (programs/agent.ts), and the same program without us. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { type Bench, until } from './bench.ts'
import { machineMicros } from './numbers.ts'

export const AGENT = join(import.meta.dirname, 'programs', 'agent.ts')

export interface City {
  readonly bench: Bench
  readonly pid: number
  /** Of the city. */
  readonly url: string
}

export async function send(url: string, method: string, body: object): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url, {
    method,
    headers: { 'Content-Type': 'application/json', 'X-SVC-Request': 'bench' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${text}`)
  return JSON.parse(text)
}

/** Starts sessions of a program of ours; their ids once they take messages. `prompt`: `omit` is told nothing by us. */
export async function start(
  { url }: City,
  name: string,
  args: readonly string[],
  { count = 1, prompt = 'omit' }: { readonly count?: number; readonly prompt?: 'omit' | 'none' } = {},
): Promise<readonly string[]> {
  await send(`${url}/providers`, 'POST', {
    name,
    command: process.execPath,
    args: [AGENT, ...args],
    delivery: 'line',
    prompt_mode: prompt,
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

export const linesIn = (file: string): number[] =>
  existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean).map(Number) : []

/** How late lines are that are written into the same pty. */
export async function bareMessages(file: string, messages: number): Promise<number[]> {
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
