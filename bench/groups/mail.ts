/** Mail of a city that has had 200,000 messages: is it listed, counted, found and sent as fast as in a new one? */
import { join } from 'node:path'
import { startSupervisor } from '../../test/support/supervisor.ts'
import { allRunning, type Bench, compare, type Group, listening, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'

const MAX_READ_MS = 10
const MAX_SEARCH_MS = 8
const MAX_SEND_MS = 20
const SENDERS = 64

interface Read {
  readonly name: string
  readonly path: string
  readonly kind: 'list' | 'count' | 'search'
}
const search = (name: string, query: string): Read => ({ name: `search: ${name}`, path: `?${query}`, kind: 'search' })
const READS: readonly Read[] = [
  { name: 'inbox of an agent', path: '?agent=agent7', kind: 'list' },
  { name: 'newest page of everything', path: '?status=all', kind: 'list' },
  { name: 'archive of an agent', path: '?agent=agent7&status=archived', kind: 'list' },
  { name: 'count of an agent', path: '/count?agent=agent7', kind: 'count' },
  search('a word of one message', 'q=number4711'),
  search('a word of every message', 'q=deploy'),
  search('a word of every message, in one mailbox', 'q=deploy&agent=agent7'),
  search('a word of every message, unread', 'q=deploy&status=unread'),
  search('two words', 'q=word1+word7'),
  search('the beginning of a word', 'q=wor*'),
  search('more letters of a word', 'q=deplo*'),
  search('one letter', 'q=w*'),
  search('nothing', 'q=deploy+nowhere'),
]

const of = (numbers: Numbers, name: string): number => numbers[name] ?? Number.NaN

export const mail: Group = async (bench) => {
  const messages = bench.quick ? 20_000 : 200_000
  const path = join(bench.dir, 'mail', 'alpha', '.svc', 'city.db')
  await using bare = new Child('mail')
  {
    await using empty = await supervisorWith(bench, 'mail', ['alpha'])
    await empty.kill('SIGTERM')
  }
  bench.say(`${messages} messages`)
  await bare.ask('fill', { path, messages })
  await using supervisor = await startSupervisor({ home: join(bench.dir, 'mail', 'home') })
  await allRunning(supervisor.url, 1)
  await using load = new Child('load')
  const url = `${supervisor.url}/v0/city/alpha/mail`
  const rows: Row[] = []
  for (const one of READS) rows.push(await readRow(bench, one, { url, path, messages, load, bare }))
  return [...rows, await sendRow(bench, url, messages, load)]
}

interface Place {
  readonly url: string
  readonly path: string
  readonly messages: number
  readonly load: Child
  readonly bare: Child
}

async function readRow(bench: Bench, { name, path, kind }: Read, place: Place): Promise<Row> {
  const ms = bench.quick ? 300 : 1_000
  const p99: number[] = []
  const ours = async () => {
    const numbers = await place.load.ask('run', { url: `${place.url}${path}`, connections: 1, warmMs: 200, ms })
    if (of(numbers, 'bad') !== 0) throw new Error(`GET ${path} failed`)
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'p50')
  }
  const floor = async () => of(await place.bare.ask('read', { path: place.path, kind, ms }), 'p50')
  const found = await compare(3, ours, [floor])
  const most = kind === 'search' ? MAX_SEARCH_MS : MAX_READ_MS
  return {
    name: `mail, ${name}, ${place.messages.toLocaleString('en-US')} messages`,
    unit: 'ms',
    ours: found.ours,
    p99: median(p99),
    floor: 'bare better-sqlite3, a page of this kind, in process',
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    budget: `p99 ≤ ${most} ms`,
    pass: median(p99) <= most,
  }
}

async function sendRow(bench: Bench, url: string, messages: number, load: Child): Promise<Row> {
  const ms = bench.quick ? 500 : 2_000
  await using floors = new Child('floors')
  const node = await listening(floors, 'http', { bytes: 400 })
  const body = JSON.stringify({ to: 'human', subject: 'Deploy is done', body: 'A few words about it. '.repeat(10) })
  const p99: number[] = []
  const options = { connections: SENDERS, warmMs: 200, ms, method: 'POST', body }
  const ours = async () => {
    const numbers = await load.ask('run', { url, ...options })
    if (of(numbers, 'bad') !== 0) throw new Error('POST of a mail failed')
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'perSecond')
  }
  const found = await compare(3, ours, [async () => of(await load.ask('run', { url: node, ...options }), 'perSecond')])
  return {
    name: `mail, POST on ${SENDERS} connections, behind ${messages.toLocaleString('en-US')} messages`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor: 'the same POST to a bare node:http',
    floorValue: found.floors[0] ?? 0,
    ratio: found.ratios[0] ?? 0,
    budget: `p99 ≤ ${MAX_SEND_MS} ms`,
    pass: median(p99) <= MAX_SEND_MS,
  }
}
