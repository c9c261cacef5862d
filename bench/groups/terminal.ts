/** How late is the echo of a key at who sits at a terminal, and a byte of its program? */
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { type Group, post, supervisorWith, until } from '../bench.ts'
import { machineMicros, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const AGENT = join(import.meta.dirname, '..', 'programs', 'agent.ts')
/** A person who types fast, and a program that prints now and then. */
const KEY_PAUSE_MS = 25
const MAX_ECHO_MS = 20
const STAMP = /S(\d+)/g

/** Where keys are sent to and what comes of them is read from. */
interface Ends {
  readonly stream: string
  readonly input: string
  readonly key: (seq: number, text: string) => object
}

export const terminal: Group = async (bench) => {
  const { quick } = bench
  await using supervisor = await supervisorWith(bench, 'terminal', ['alpha'])
  const city = `${supervisor.url}/v0/city/alpha`
  const seat = async (name: string, command: string, args: readonly string[]): Promise<Ends> => {
    await post(`${city}/providers`, { name, command, args, delivery: 'line', prompt_mode: 'omit' })
    await post(`${city}/sessions`, { kind: 'provider', name, runtime: 'subprocess', alias: name })
    const base = `${city}/sessions/${name}`
    await until(`${name} runs`, async () => {
      const answer = await (await fetch(base)).text()
      return answer.includes('"state":"active"') ? true : undefined
    })
    const key = (seq: number, text: string) => ({ viewer: 'bench', seq, text })
    return { stream: `${base}/terminal?viewer=bench`, input: `${base}/terminal/input`, key }
  }
  const keys = quick ? 60 : 400
  bench.say('a key → its echo')
  const echo = await echoes(await seat('echoing', 'cat', []), keys)
  const [bare, pty] = [await bareServer(keys), await barePty(keys)]
  bench.say('a byte of the program → the frame of its terminal')
  const late = await ticks(await seat('ticking', process.execPath, [AGENT, 'tick', '50']), quick ? 50 : 200)
  return [
    {
      ...row('key → echo at who sits at the terminal', echo),
      floor: 'a bare node:http POST into a pty, and its SSE',
      floorValue: percentile(bare, 50),
      ratio: percentile(echo, 50) / percentile(bare, 50),
      budget: `p99 ≤ ${MAX_ECHO_MS} ms`,
      pass: percentile(echo, 99) <= MAX_ECHO_MS,
      note: `the p99 of the floor is ${percentile(bare, 99).toFixed(1)} ms; the pty alone echoes in ${percentile(pty, 50).toFixed(2)} ms; between are the supervisor, the host and its log on disk`,
    },
    {
      ...row('byte of the program → frame of its terminal', late),
      floor: 'the echo of the same pty',
      floorValue: percentile(pty, 50),
      ratio: percentile(late, 50) / percentile(pty, 50),
      budget: 'reported',
    },
  ]
}

const row = (name: string, times: readonly number[]): Pick<Row, 'name' | 'unit' | 'ours' | 'p99'> => ({
  name,
  unit: 'ms',
  ours: percentile(times, 50),
  p99: percentile(times, 99),
})

/** Output frames as they come, until the stream is destroyed. */
async function follow(url: string, onOutput: (text: string) => void): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest(url, resolve).on('error', reject).end()
  })
  let rest = ''
  response.setEncoding('utf8').on('error', () => undefined)
  response.on('data', (chunk: string) => {
    const frames = `${rest}${chunk}`.split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const data = /"data":"([^"]*)"/.exec(frame)?.[1]
      if (data !== undefined) onOutput(Buffer.from(data, 'base64').toString())
    }
  })
  return response
}

async function echoes({ stream, input, key }: Ends, keys: number): Promise<number[]> {
  const late: number[] = []
  let echoed = (_: string) => {}
  const response = await follow(stream, (text) => echoed(text))
  await sleep(500)
  for (let seq = 1; seq <= keys; seq++) {
    const letter = seq % 40 === 0 ? '\r' : 'k'
    const came = new Promise<void>((resolve) => {
      echoed = (text) => text.includes(letter === '\r' ? '\n' : letter) && resolve()
    })
    const sent = machineMicros()
    const answered = post(input, key(seq, letter))
    await came
    late.push((machineMicros() - sent) / 1000)
    await answered
    await sleep(KEY_PAUSE_MS)
  }
  response.destroy()
  return late
}

async function ticks({ stream }: Ends, wanted: number): Promise<number[]> {
  const late: number[] = []
  const opened = machineMicros()
  const response = await follow(stream, (text) => {
    const now = machineMicros()
    for (const [, at] of text.matchAll(STAMP)) if (Number(at) > opened) late.push((now - Number(at)) / 1000)
  })
  await until('enough was printed', async () => (late.length >= wanted ? true : undefined), 50)
  response.destroy()
  return late
}

/** Nothing but a pty behind a server: what the way over HTTP costs at least. */
async function bareServer(keys: number): Promise<number[]> {
  const pty = spawn('cat', [], {})
  const server = createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      pty.onData((text) => response.write(`data: {"data":"${Buffer.from(text).toString('base64')}"}\n\n`))
      return
    }
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk
    })
    request.on('end', () => {
      pty.write(String(JSON.parse(body).text))
      response.end('{}')
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  try {
    return await echoes({ stream: url, input: url, key: (seq, text) => ({ viewer: 'bench', seq, text }) }, keys)
  } finally {
    server.closeAllConnections()
    server.close()
    pty.kill()
  }
}

async function barePty(keys: number): Promise<number[]> {
  const pty = spawn('cat', [], {})
  const late: number[] = []
  let echoed = () => {}
  pty.onData(() => echoed())
  for (let count = 0; count < keys; count++) {
    const came = new Promise<void>((resolve) => {
      echoed = resolve
    })
    const sent = machineMicros()
    pty.write(count % 40 === 39 ? '\r' : 'k')
    await came
    late.push((machineMicros() - sent) / 1000)
    await sleep(KEY_PAUSE_MS)
  }
  pty.kill()
  return late
}
