/** Work in cities of growing size: does anything get slower because much was done before? */
import { join } from 'node:path'
import { type Bench, compare, type Group, supervisorWith } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'
import type { Row } from '../rows.ts'
import { ROOT } from '../work-data.ts'

/** Their ids begin with `al`, as those of the data do. */
const CITIES = ['alpha', 'alto', 'album']
const CREATORS = 64
const CLAIMERS = 16
const MAX_READ_P99_MS = 50
const MAX_WRITE_P99_MS = 20
/** A curve is flat where the figure of the largest city is within this factor of that of the smallest. */
const FLAT = 2
const CREATE_BODY = JSON.stringify({
  title: 'Something that is to be done',
  description: 'In a few sentences of ordinary length: where to look, what to change. '.repeat(3),
  labels: ['area-1', 'label-1'],
  priority: 2,
})

const READS = [
  { kind: 'ready', name: 'ready, 100 of them', path: '/ready', flat: false },
  { kind: 'list', name: 'newest page of what is not closed', path: '', flat: false },
  { kind: 'all', name: 'newest page of everything', path: '?all=true', flat: false },
  {
    kind: 'query',
    name: 'query priority<2 AND label=area-0',
    path: `/query?q=${encodeURIComponent('priority<2 AND label=area-0')}`,
    flat: false,
  },
  { kind: 'graph', name: 'graph of 1,000', path: `/graph/${ROOT}`, flat: true },
] as const

const sizesOf = ({ quick }: Bench): readonly number[] => (quick ? [1_000, 20_000] : [1_000, 20_000, 200_000])
const of = (numbers: Numbers, name: string): number => numbers[name] ?? Number.NaN

interface Place {
  readonly bench: Bench
  readonly beads: number
  /** `…/beads` of the city. */
  readonly url: string
  readonly load: Child
  readonly bare: Child
}

export const work: Group = async (bench) => {
  const sizes = sizesOf(bench)
  await using supervisor = await supervisorWith(bench, 'work', CITIES.slice(0, sizes.length))
  await using load = new Child('load')
  const found: Row[][] = []
  for (const [at, beads] of sizes.entries()) {
    await using bare = new Child('work')
    const url = `${supervisor.url}/v0/city/${CITIES[at]}/beads`
    const place = { bench, beads, url, load, bare }
    const rows = [await importRow(place)]
    for (const one of READS) rows.push(await readRow(place, one))
    rows.push(...(await writeRows(place)))
    found.push(rows)
  }
  return judged(found)
}

async function importRow({ bench, beads, url, bare }: Place): Promise<Row> {
  bench.say(`an import of ${beads} beads`)
  await using filler = new Child('work')
  const ours = of(await filler.ask('fill', { url: `${url}/import`, beads }), 'perSecond')
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

async function readRow(
  { bench, beads, url, load, bare }: Place,
  { kind, name, path }: (typeof READS)[number],
): Promise<Row> {
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
    budget: `p99 ≤ ${MAX_READ_P99_MS} ms`,
    pass: median(p99) <= MAX_READ_P99_MS,
  }
}

async function writeRows({ bench, beads, url, load, bare }: Place): Promise<readonly Row[]> {
  const ids = await readyIds(url)
  const claimed = await measure(
    async () => load.ask('claims', { url, ids, ms: bench.quick ? 500 : 1_500 }),
    async () => bare.ask('claim', { ids, ms: bench.quick ? 500 : 1_500 }),
  )
  const count = bench.quick ? 1_000 : 3_000
  const created = await measure(
    async () => load.ask('times', { url, body: CREATE_BODY, connections: CREATORS, count }),
    async () => bare.ask('create', { count, group: CREATORS }),
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
  ]
}

type Measured = Awaited<ReturnType<typeof measure>>

/** Rates in turn; the latencies of ours on the way. */
async function measure(ours: () => Promise<Numbers>, floor: () => Promise<Numbers>) {
  const p99: number[] = []
  const rate = async () => {
    const numbers = await ours()
    if (of(numbers, 'bad') !== 0) throw new Error(`${of(numbers, 'bad')} requests failed`)
    p99.push(of(numbers, 'p99'))
    return of(numbers, 'perSecond')
  }
  const compared = await compare(3, rate, [async () => of(await floor(), 'perSecond')])
  return { ...compared, p99: median(p99) }
}

async function readyIds(url: string): Promise<string> {
  const { items }: { readonly items: readonly { readonly id: string }[] } = JSON.parse(
    await (await fetch(`${url}/ready?limit=${CLAIMERS}`)).text(),
  )
  return items.map(({ id }) => id).join(',')
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

const isFlat = ({ name }: Row): boolean =>
  name.startsWith('create') || name.startsWith('claim') || READS.some((read) => read.flat && name.startsWith(read.name))
