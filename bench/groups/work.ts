/** Work in cities of growing size: does anything get slower because much was done before? */
import { join } from 'node:path'
import { type Bench, compare, cpuSeconds, type Group, listening, post, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { ROOT, TREE_ROOT } from '../work-data.ts'

/** Their ids begin with `al`, as those of the data do. */
const CITIES = ['alpha', 'alto', 'album']
/** One beside them, for what is looked at once. */
const ASIDE = 'alps'
const CREATORS = 64
const CLAIMERS = 16
const MAX_READ_P99_MS = 10
const MAX_GRAPH_P99_MS = 50
const MAX_WRITE_P99_MS = 20
const MAX_HEALTH_P99_MS = 50
const MIN_OF_NODE = 0.2
/** Pages that a commit of 64 new beads may write: of such that have a title, and of such that have everything. */
const MAX_PAGES = { minimal: 75, full: 175 }
/** A curve is flat where the figure of the largest city is within this factor of that of the smallest. */
const FLAT = 2
const CREATE_BODY = JSON.stringify({
  title: 'Something that is to be done',
  description: 'In a few sentences of ordinary length: where to look, what to change. '.repeat(3),
  labels: ['area-1', 'label-1'],
  priority: 2,
})

interface Read {
  /** The floor: a page of this kind. */
  readonly kind: 'ready' | 'list' | 'all' | 'query' | 'graph'
  readonly name: string
  readonly path: string
}
const asked = (q: string, name = q): Read => ({ kind: 'all', name, path: `/query?q=${encodeURIComponent(q)}` })

const READS: readonly Read[] = [
  { kind: 'ready', name: 'ready, 100 of them', path: '/ready' },
  { kind: 'list', name: 'newest page of what is not closed', path: '' },
  { kind: 'all', name: 'newest page of everything', path: '?all=true' },
  { ...asked('priority<2 AND label=area-0'), kind: 'query' },
  { kind: 'graph', name: 'graph of 1,000', path: `/graph/${ROOT}` },
  // Broad ones: what they ask for is in very many beads, or in none of those that are looked through.
  asked('label=area-1'),
  asked('status=closed AND label=area-1'),
  asked('status=closed AND assignee=worker-3 AND priority=1'),
  asked('status=closed AND metadata.team=team-3'),
  asked('status=closed AND metadata.team~nowhere'),
  asked('status=closed AND title="Number 77 of the things that are to be done in bug"', 'status=closed AND title="…"'),
  asked('status=closed AND NOT "things that are"', 'status=closed AND NOT "…", an empty page'),
  asked('status=closed AND "to be done" AND label=area-2', 'status=closed AND "…" AND label'),
  asked(
    'status=closed AND (priority=4 OR assignee~ORKER-1) AND NOT label=area-5',
    'status=closed AND (… OR …) AND NOT label',
  ),
]
const isGraph = (name: string): boolean => name.startsWith('graph')

const sizesOf = ({ quick }: Bench): readonly number[] => (quick ? [1_000, 20_000] : [1_000, 20_000, 200_000])
const of = (numbers: Numbers, name: string): number => numbers[name] ?? Number.NaN

interface Place {
  readonly bench: Bench
  readonly beads: number
  /** `…/beads` of the city. */
  readonly url: string
  readonly load: Child
  readonly bare: Child
  /** A bare server that answers as many bytes as a create does. */
  readonly node: string
}

export const work: Group = async (bench) => {
  const sizes = sizesOf(bench)
  await using supervisor = await supervisorWith(bench, 'work', [...CITIES.slice(0, sizes.length), ASIDE])
  await using load = new Child('load')
  await using floor = new Child('floors')
  const node = await listening(floor, 'http', { bytes: 400 })
  const found: Row[][] = []
  for (const [at, beads] of sizes.entries()) {
    await using bare = new Child('work')
    const url = `${supervisor.url}/v0/city/${CITIES[at]}/beads`
    const place = { bench, beads, url, load, bare, node }
    const rows = [await importRow(place)]
    for (const one of READS) rows.push(await readRow(place, one))
    rows.push(...(await writeRows(place)))
    found.push(rows)
  }
  const aside = { bench, load, url: `${supervisor.url}/v0/city/${ASIDE}/beads`, health: `${supervisor.url}/health` }
  return [
    ...judged(found),
    await deferredRow(aside),
    await cascadeRow(aside, supervisor.pid),
    ...(await pageRows(bench)),
  ]
}

async function importRow({ bench, beads, url, bare }: Place): Promise<Row> {
  bench.say(`an import of ${beads} beads`)
  await using filler = new Child('work')
  const ours = of(await filler.ask('fill', { url: `${url}/import`, kind: 'work', beads }), 'perSecond')
  const floor = of(await bare.ask('make', { path: join(bench.dir, `bare-${beads}.db`), beads }), 'perSecond')
  return {
    name: `import into an empty city, ${beads} beads`,
    unit: 'beads/s',
    ours,
    floor: 'bare better-sqlite3, the rows that it leaves',
    floorValue: floor,
    ratio: ours / floor,
    budget: 'reported',
  }
}

async function readRow({ bench, beads, url, load, bare }: Place, { kind, name, path }: Read): Promise<Row> {
  const ms = bench.quick ? 400 : 1_000
  const p99: number[] = []
  const ours = async () => {
    const numbers = await load.ask('run', { url: `${url}${path}`, connections: 1, warmMs: 200, ms })
    if (of(numbers, 'bad') !== 0) throw new Error(`GET ${path} failed`)
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'p50')
  }
  const floor = async () => of(await bare.ask('read', { kind, ms }), 'p50')
  const compared = await compare(3, ours, [floor])
  return {
    name: `${name}, ${beads} beads`,
    unit: 'ms',
    ours: compared.ours,
    p99: median(p99),
    floor: 'bare better-sqlite3, same statements, in process',
    floorValue: compared.floors[0] ?? 0,
    ratio: compared.ratios[0] ?? 0,
    budget: `p99 ≤ ${isGraph(name) ? MAX_GRAPH_P99_MS : MAX_READ_P99_MS} ms`,
    pass: median(p99) <= (isGraph(name) ? MAX_GRAPH_P99_MS : MAX_READ_P99_MS),
  }
}

async function writeRows({ bench, beads, url, load, bare, node }: Place): Promise<readonly Row[]> {
  const ids = await readyIds(url)
  const claimed = await measure(
    async () => load.ask('claims', { url, ids, ms: bench.quick ? 500 : 1_500 }),
    async () => bare.ask('claim', { ids, ms: bench.quick ? 500 : 1_500 }),
  )
  // A thousand are over in a tenth of a second: their slowest hundredth would be the opening of the connections.
  const count = bench.quick ? 5_000 : 20_000
  const created = await measure(
    async () => load.ask('times', { url, body: CREATE_BODY, connections: CREATORS, count }),
    async () => bare.ask('create', { count, group: CREATORS }),
    async () => load.ask('times', { url: node, body: CREATE_BODY, connections: CREATORS, count }),
  )
  const row = (name: string, unit: string, group: number, { ours, p99, floors, ratios }: Measured): Row => ({
    name: `${name}, ${beads} beads`,
    unit,
    ours,
    p99,
    floor: `bare better-sqlite3, same statements, ${group} in a transaction`,
    floorValue: floors[0] ?? 0,
    ratio: ratios[0] ?? 0,
    budget: `p99 ≤ ${MAX_WRITE_P99_MS} ms`,
    pass: p99 <= MAX_WRITE_P99_MS,
  })
  return [
    row(`claim, each released again, ${CLAIMERS} connections`, 'claims/s', CLAIMERS, claimed),
    row(`create, ${CREATORS} connections`, 'beads/s', CREATORS, created),
    {
      name: `POST of a bead, ${CREATORS} connections, ${beads} beads`,
      unit: 'requests/s',
      ours: created.ours,
      floor: 'the same POST to a bare node:http',
      floorValue: created.floors[1] ?? 0,
      ratio: created.ratios[1] ?? 0,
      budget: `≥ ${MIN_OF_NODE} ×`,
      pass: (created.ratios[1] ?? 0) >= MIN_OF_NODE,
    },
  ]
}

type Measured = Awaited<ReturnType<typeof measure>>

/** Rates in turn; the latencies of ours on the way. */
async function measure(ours: () => Promise<Numbers>, ...floors: readonly (() => Promise<Numbers>)[]) {
  const p99: number[] = []
  const rate = async () => {
    const numbers = await ours()
    if (of(numbers, 'bad') !== 0) throw new Error(`${of(numbers, 'bad')} requests failed`)
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'perSecond')
  }
  const compared = await compare(
    3,
    rate,
    floors.map((floor) => async () => of(await floor(), 'perSecond')),
  )
  return { ...compared, p99: median(p99) }
}

async function readyIds(url: string): Promise<string> {
  const { items }: { readonly items: readonly { readonly id: string }[] } = JSON.parse(
    await (await fetch(`${url}/ready?limit=${CLAIMERS}`)).text(),
  )
  return items.map(({ id }) => id).join(',')
}

interface Aside {
  readonly bench: Bench
  readonly load: Child
  readonly url: string
  readonly health: string
}

/** Work that was put off and whose date has come, against as much that never was. */
async function deferredRow({ bench, load, url }: Aside): Promise<Row> {
  const beads = bench.quick ? 10_000 : 50_000
  bench.say(`${beads} beads whose date has come`)
  const ms = bench.quick ? 400 : 1_000
  const p99: number[] = []
  const ready = async () => {
    const numbers = await load.ask('run', { url: `${url}/ready?limit=1`, connections: 1, warmMs: 100, ms })
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'p50')
  }
  // Ready by itself first: what comes then is what a date costs.
  await post(url, { title: 'Ready by itself' })
  const floor = await ready()
  p99.length = 0
  await using filler = new Child('work')
  await filler.ask('fill', { url: `${url}/import`, kind: 'deferred', beads })
  const { ours } = await compare(3, ready, [])
  return {
    name: `ready?limit=1, ${beads} beads whose date has come`,
    unit: 'ms',
    ours,
    p99: median(p99),
    floor: 'the same of one bead that has no date',
    floorValue: floor,
    ratio: ours / floor,
    budget: `p99 ≤ ${MAX_READ_P99_MS} ms`,
    pass: median(p99) <= MAX_READ_P99_MS,
  }
}

/** What everybody else notices while very much is deleted. */
async function cascadeRow({ bench, load, url, health }: Aside, pid: number): Promise<Row> {
  const beads = bench.quick ? 3_000 : 10_000
  bench.say(`a cascade of ${beads}`)
  await using filler = new Child('work')
  await filler.ask('fill', { url: `${url}/import`, kind: 'tree', beads: beads + 1 })
  const look = async () => of(await load.ask('ask', { url: health, rate: 100, ms: bench.quick ? 1_000 : 2_000 }), 'p99')
  const floor = await look()
  const began = performance.now()
  const cpu = cpuSeconds(pid)
  const deleting = await fetch(`${url}/${TREE_ROOT}?cascade=true`, {
    method: 'DELETE',
    headers: { 'X-SVC-Request': 'bench' },
  })
  if (deleting.status !== 202) throw new Error(`a cascade answered ${deleting.status}`)
  const looked: number[] = []
  for (let there = true; there; ) {
    looked.push(await look())
    there = (await fetch(`${url}/${TREE_ROOT}`)).status !== 404
  }
  const ours = Math.max(...looked)
  return {
    name: `GET /health during a cascade of ${beads}, p99`,
    unit: 'ms',
    ours,
    floor: 'the same before it',
    floorValue: floor,
    ratio: ours / floor,
    budget: `≤ ${MAX_HEALTH_P99_MS} ms`,
    pass: ours <= MAX_HEALTH_P99_MS,
    note: `${((performance.now() - began) / 1_000).toFixed(1)} s at most, ${(cpuSeconds(pid) - cpu).toFixed(1)} s of processor time`,
  }
}

/** In process: what the disk and the processor have to do for a commit. Pages are the same however busy the machine is. */
async function pageRows(bench: Bench): Promise<readonly Row[]> {
  const beads = bench.quick ? 20_000 : 100_000
  bench.say(`a store of ${beads} beads, in process`)
  await using store = new Child('store')
  await store.ask('make', { path: join(bench.dir, 'store.db'), beads })
  const rows: Row[] = []
  for (const what of ['minimal', 'full'] as const) {
    const numbers = await store.ask('create', {
      full: Number(what === 'full'),
      count: CREATORS * (bench.quick ? 30 : 100),
    })
    rows.push({
      name: `pages written by a commit of ${CREATORS} new beads, ${what}, ${beads} beads`,
      unit: 'pages',
      ours: of(numbers, 'pages'),
      budget: `≤ ${MAX_PAGES[what]}`,
      pass: of(numbers, 'pages') <= MAX_PAGES[what],
      note: `${of(numbers, 'cpuMs').toFixed(1)} ms of processor time, ${Math.round(of(numbers, 'perSecond')).toLocaleString('en-US')} beads/s in process`,
    })
  }
  return rows
}

/** Where the size must not matter, the largest city is held against the smallest. */
function judged(found: readonly (readonly Row[])[]): readonly Row[] {
  const [smallest = []] = found
  return found.flatMap((rows) =>
    rows.map((row, at) => {
      const base = smallest[at]
      if (base === undefined || !isFlat(row)) return row
      const slower = row.unit === 'ms' ? row.ours / base.ours : base.ours / row.ours
      return {
        ...row,
        budget: `${row.budget}, within ${FLAT} × of the smallest`,
        pass: row.pass === true && slower <= FLAT,
      }
    }),
  )
}

const isFlat = ({ name }: Row): boolean => name.startsWith('create') || name.startsWith('claim') || isGraph(name)
