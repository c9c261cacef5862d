/** Chats: does a long transcript make anything slower, and how many messages a second go out? */
import { type Bench, compare, type Group, listening, post, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { lengthOf } from './post.ts'

const CONNECTIONS = 64
const BATCH = 500
const MAX_READ_P99_MS = 20
const MAX_SEARCH_P99_MS = 8
const CONVERSATION = { provider: 'bench', account_id: 'bench', conversation_id: '#long', kind: 'room' }
const BODY = JSON.stringify({
  text: 'Deployed, and all checks are green: see the log of the run for what was skipped.',
})

/** A beginning that more words have than are looked up; the index puts them together. */
const PUT_TOGETHER = '?q=needle*&order=desc'
const READS: readonly (readonly [string, string])[] = [
  ['newest page of 100', '?order=desc'],
  ['a page of 100 in the middle', '?after_sequence=5000'],
  ['search for a word of 1 in 1,000', '?q=needle7&order=desc'],
  ['search for two words of every entry', '?q=line+checks&order=desc'],
  ['search for one letter', '?q=n*&order=desc'],
  ['search for the beginning of a word', '?q=deploy*&order=desc'],
  ['search for a beginning that 1,000 words have', PUT_TOGETHER],
]

interface Place {
  readonly bench: Bench
  readonly load: Child
  /** Of the transcript. */
  readonly url: string
  readonly health: string
  readonly entries: number
}

export const chat: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'chat', ['alpha'])
  await using load = new Child('load')
  await using floors = new Child('floors')
  const bare = `${await listening(floors, 'http', { bytes: 700 })}/x`
  const city = `${supervisor.url}/v0/city/alpha`
  const entries = bench.quick ? 20_000 : 200_000
  await post(`${city}/adapters`, { provider: 'bench', account_id: 'bench', transport: 'stream' })
  const filled = await fill(bench, city, entries)
  const health = `${supervisor.url}/health`
  const place: Place = { bench, load, url: `${city}/transcripts/${await transcriptOf(city)}/entries`, health, entries }
  const rows: Row[] = [filled]
  for (const [name, query] of READS) rows.push(await readRow(place, name, query))
  return [...rows, ...(await publishRows(place, bare))]
}

async function transcriptOf(city: string): Promise<string> {
  const found = await (await fetch(`${city}/transcripts?conversation_id=%23long`)).text()
  return /"transcript_id":"(cv-[0-9a-f]{32})"/.exec(found)?.[1] ?? ''
}

async function fill(bench: Bench, city: string, entries: number): Promise<Row> {
  bench.say(`${entries} messages of history come in`)
  const began = performance.now()
  for (let from = 0; from < entries; from += BATCH) {
    const messages = Array.from({ length: BATCH }, (_, n) => ({
      provider_message_id: `m-${from + n}`,
      conversation: CONVERSATION,
      actor: { id: `u-${n % 20}`, display_name: `Person ${n % 20}`, is_bot: false },
      text: `line ${from + n} needle${(from + n) % 1_000}: all checks are green, and the deployment goes on as planned`,
      received_at: new Date().toISOString(),
    }))
    await post(`${city}/adapters/bench/bench/inbound`, { messages, provenance: 'hydrated' })
  }
  return {
    name: `history of ${entries} messages, ${BATCH} in a request`,
    unit: 'messages/s',
    ours: entries / ((performance.now() - began) / 1000),
    budget: 'reported',
  }
}

async function readRow({ bench, load, url, health, entries }: Place, name: string, query: string): Promise<Row> {
  bench.say(name)
  const p99: number[] = []
  const asked = (to: string) => async () => {
    const numbers = await run(bench, load, { url: to, connections: 1 })
    if (to !== health) p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const found = await compare(3, asked(`${url}${query}`), [asked(health)])
  const most = query.includes('q=') ? MAX_SEARCH_P99_MS : MAX_READ_P99_MS
  return {
    name: `transcript of ${entries}: ${name}`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor: 'GET of a static route of the same server',
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    ...(query === PUT_TOGETHER
      ? {
          budget: 'reported',
          note: 'four letters or more that more than 16 words begin with are put together from them all',
        }
      : { budget: `p99 ≤ ${most} ms`, pass: median(p99) <= most }),
  }
}

async function publishRows({ bench, load, url, health, entries }: Place, bare: string): Promise<readonly Row[]> {
  bench.say('messages go out')
  const p99: number[] = []
  const ours = async () => {
    const numbers = await run(bench, load, { url, method: 'POST', body: BODY, connections: CONNECTIONS })
    p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const floor = (to: string, method: string) => async () =>
    (await run(bench, load, { url: to, method, body: BODY, connections: CONNECTIONS }))['perSecond'] ?? 0
  const found = await compare(3, ours, [floor(health, 'GET'), floor(bare, 'POST')])
  const names = ['GET of a static route of the same server', 'the same POST to a bare node:http']
  return names.map((name, index) => ({
    name: `publish into a transcript of ${entries}, ${CONNECTIONS} connections`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor: name,
    floorValue: found.floors[index] ?? 0,
    ratio: found.ratios[index] ?? 0,
    budget: 'reported',
    note: 'each is an entry with its search words, a delivery and an event, on disk when it is answered; the adapter takes it from the stream',
  }))
}

async function run(bench: Bench, load: Child, what: object): Promise<Numbers> {
  const numbers = await load.ask('run', { ...what, ...lengthOf(bench) })
  if (numbers['bad'] !== 0) throw new Error(`${numbers['bad']} requests failed: ${JSON.stringify(what)}`)
  return numbers
}
