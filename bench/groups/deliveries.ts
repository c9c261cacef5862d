/** What is said to chats: how fast is it taken by a bridge that claims, and by a callback, next to a static route? */
import { Agent, createServer, request } from 'node:http'
import { allRunning, type Bench, compare, type Group, supervisorWith } from '../bench.ts'
import { Child } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'

const ROOMS = 32

/** A client of a city. */
class Client {
  readonly #base: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 128 })

  constructor(url: string) {
    this.#base = `${url}/v0/city/alpha`
  }

  close(): void {
    this.#agent.destroy()
  }

  post(path: string, body: object = {}): Promise<Readonly<Record<string, unknown>>> {
    const text = JSON.stringify(body)
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      'x-svc-request': '1',
    }
    return new Promise((resolve, reject) => {
      const sent = request(`${this.#base}${path}`, { method: 'POST', agent: this.#agent, headers }, (response) => {
        let answer = ''
        response.setEncoding('utf8').on('data', (piece: string) => {
          answer += piece
        })
        response.on('end', () => {
          if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(answer))
          else reject(new Error(`POST ${path}: ${response.statusCode} ${answer.slice(0, 200)}`))
        })
      })
      sent.on('error', reject)
      sent.end(text)
    })
  }
}

/** Paths of the entries of as many conversations. */
async function roomsOf(client: Client, account: string): Promise<readonly string[]> {
  const rooms = Array.from({ length: ROOMS }, (_, index) => `#room-${index}`)
  return Promise.all(
    rooms.map(async (room) => {
      const conversation = { provider: 'bench', account_id: account, conversation_id: room, kind: 'room' }
      const { transcript_id: id } = await client.post('/transcripts', { conversation })
      return `/transcripts/${String(id)}/entries`
    }),
  )
}

/** Says things in all rooms at once and waits for each to be delivered; messages in a second, and the latencies. */
async function say(client: Client, rooms: readonly string[], ms: number, latencies: number[]): Promise<number> {
  const begun = performance.now()
  let count = 0
  await Promise.all(
    rooms.map(async (room) => {
      while (performance.now() - begun < ms) {
        const since = performance.now()
        const { delivery_status: status } = await client.post(`${room}?wait=30s`, { text: 'Deploy is done.' })
        if (status !== 'delivered') throw new Error(`a message is ${String(status)}`)
        latencies.push(performance.now() - since)
        count++
      }
    }),
  )
  return (count * 1_000) / (performance.now() - begun)
}

/** Takes whatever there is until it is told to end. */
async function bridge(client: Client, path: string, ended: () => boolean): Promise<void> {
  while (!ended()) {
    const { items } = await client.post(`${path}/claim`, { wait: '1s' })
    const ids = (Array.isArray(items) ? items : []).map((item) => String(Reflect.get(Object(item), 'delivery_id')))
    await Promise.all(ids.map((id) => client.post(`${path}/${id}/ack`, { receipt: { message_id: id } })))
  }
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? 0

export const deliveries: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'deliveries', ['alpha'])
  await allRunning(supervisor.url, 1)
  const client = new Client(supervisor.url)
  await using load = new Child('load')
  const callback = createServer((incoming, response) => {
    incoming.resume().on('end', () => response.end('{"delivered":true,"message_id":"m"}'))
  })
  await new Promise<void>((resolve) => callback.listen(0, '127.0.0.1', resolve))
  const address = callback.address()
  const port = typeof address === 'object' ? address?.port : undefined
  let over = false
  try {
    await client.post('/adapters', { provider: 'bench', account_id: 'pull' })
    await client.post('/adapters', { provider: 'bench', account_id: 'call', callback_url: `http://127.0.0.1:${port}` })
    const bridging = bridge(client, '/adapters/bench/pull/deliveries', () => over)
    const rows = [
      await sendRow(bench, 'a bridge that claims', client, await roomsOf(client, 'pull'), load, supervisor.url),
      await sendRow(bench, 'a callback', client, await roomsOf(client, 'call'), load, supervisor.url),
    ]
    over = true
    await bridging
    return [...rows, await claimRow(bench, client, load, supervisor.url)]
  } finally {
    over = true
    client.close()
    callback.close()
  }
}

const staticRoute = async (load: Child, url: string, ms: number): Promise<number> => {
  const { perSecond = Number.NaN } = await load.ask('run', {
    url: `${url}/health`,
    connections: ROOMS,
    warmMs: 100,
    ms,
  })
  return perSecond
}

async function sendRow(
  bench: Bench,
  by: string,
  client: Client,
  rooms: readonly string[],
  load: Child,
  url: string,
): Promise<Row> {
  const ms = bench.quick ? 700 : 3_000
  const latencies: number[] = []
  const found = await compare(3, () => say(client, rooms, ms, latencies), [() => staticRoute(load, url, ms / 2)])
  const p99 = percentile(latencies, 0.99)
  return {
    name: `chat, said in ${ROOMS} conversations until ${by} has it, p50 ${percentile(latencies, 0.5).toFixed(1)} ms`,
    unit: 'messages/s',
    ours: found.ours,
    p99,
    floor: 'GET of a static route of the same server',
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    budget: 'reported',
  }
}

/** One claim of what waits in all conversations, and as many acknowledgements at once. */
async function claimRow(bench: Bench, client: Client, load: Child, url: string): Promise<Row> {
  const rooms = await roomsOf(client, 'pull')
  const claims: number[] = []
  const round = async (): Promise<number> => {
    await Promise.all(rooms.map((room) => client.post(`${room}?wait=0s`, { text: 'Deploy is done.' })))
    const begun = performance.now()
    const { items } = await client.post('/adapters/bench/pull/deliveries/claim')
    claims.push(performance.now() - begun)
    const ids = (Array.isArray(items) ? items : []).map((item) => String(Reflect.get(Object(item), 'delivery_id')))
    if (ids.length !== ROOMS) throw new Error(`${ids.length} were claimed`)
    await Promise.all(ids.map((id) => client.post(`/adapters/bench/pull/deliveries/${id}/ack`)))
    return (ids.length * 1_000) / (performance.now() - begun)
  }
  const ours = async () => {
    const rates: number[] = []
    for (let index = 0; index < (bench.quick ? 10 : 40); index++) rates.push(await round())
    return median(rates)
  }
  const found = await compare(3, ours, [() => staticRoute(load, url, bench.quick ? 300 : 1_000)])
  return {
    name: `chat, claim of ${ROOMS} and their acks at once, the claim p50 ${percentile(claims, 0.5).toFixed(1)} ms`,
    unit: 'messages/s',
    ours: found.ours,
    p99: percentile(claims, 0.99),
    floor: 'GET of a static route of the same server',
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    budget: 'reported',
  }
}
