/** How soon is the next step there, and does that depend on how many molecules live? */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Group } from '../bench.ts'
import { BareRows, chainOf, MoleculeStore } from '../molecule-data.ts'
import { median, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const NEXT_MS = 25
const START_MS = 20
/** No write holds the loop longer. */
const HELD_MS = 50
const STEPS = 1_000
/** Starts that share a write while molecules are made. */
const AT_ONCE = 200

export const molecules: Group = async (bench) => {
  const rows: Row[] = []
  for (const live of bench.quick ? [1, 1_000] : [1, 1_000, 10_000]) rows.push(...(await measured(bench, live)))
  return rows
}

async function measured(bench: Bench, live: number): Promise<readonly Row[]> {
  const dir = join(bench.dir, `molecules-${live}`)
  mkdirSync(dir)
  const all: number[] = []
  {
    await using made = new MoleculeStore(dir)
    await made.run()
    bench.say(`${live} live ones are made`)
    const plan = chainOf(500)
    while (all.length < live) {
      const some = Array.from({ length: Math.min(AT_ONCE, live - all.length) }, () =>
        made.start(live === 1 ? plan : chainOf(20)),
      )
      for (const { n } of await Promise.all(some)) all.push(n)
    }
  }
  const boot = await timeOf(async () => {
    await using again = new MoleculeStore(dir)
    await again.run()
  })
  await using store = new MoleculeStore(dir)
  await store.run()
  using bare = new BareRows(dir)
  const rounds = bench.quick ? 100 : 400
  const next = await times(rounds, (at) => store.close(all[(at * 7_919) % all.length] ?? 1))
  const floor = await times(rounds, () => bare.close())
  const plan = chainOf(STEPS)
  const started: string[] = []
  const start = await times(20, async () => void started.push((await store.start(plan)).id))
  const bareStart = await times(20, () => bare.start(STEPS))
  const cancel = await times(20, (at) => store.cancel(started[at] ?? ''))
  const wide: string[] = []
  for (let at = 0; at < 5; at++) wide.push(await store.startWide(STEPS))
  const held: number[] = []
  const cancelWide = await times(wide.length, async (at) => void held.push(await store.cancel(wide[at] ?? '')))
  const list = await times(rounds, () => void store.store.db.all(LIST))
  const name = (what: string) => `${what}, ${live.toLocaleString('en-US')} live`
  return [
    row(
      name('close → next bead'),
      next,
      floor,
      'the same rows, bare',
      `p99 ≤ ${NEXT_MS} ms`,
      percentile(next, 99) <= NEXT_MS,
    ),
    row(
      name('start of 1,000 steps'),
      start,
      bareStart,
      'the same rows, bare',
      `≤ ${START_MS} ms`,
      median(start) <= START_MS,
    ),
    {
      name: name('cancel of 1,000 steps'),
      unit: 'ms',
      ours: median(cancel),
      p99: percentile(cancel, 99),
      budget: 'reported',
    },
    {
      name: name('cancel of 1,000 open beads'),
      unit: 'ms',
      ours: median(cancelWide),
      p99: percentile(cancelWide, 99),
      budget: 'reported',
    },
    {
      name: name('its first write'),
      unit: 'ms',
      ours: median(held),
      p99: percentile(held, 99),
      budget: `≤ ${HELD_MS} ms`,
      pass: median(held) <= HELD_MS,
    },
    {
      name: name('page of 50, waiting'),
      unit: 'ms',
      ours: median(list),
      p99: percentile(list, 99),
      budget: '≤ 10 ms',
      pass: percentile(list, 99) <= 10,
    },
    { name: name('engine opens'), unit: 'ms', ours: boot, budget: 'reported' },
  ]
}

const LIST = `SELECT * FROM molecules WHERE status = 'waiting' ORDER BY n DESC LIMIT 50`

function row(
  name: string,
  ours: readonly number[],
  floor: readonly number[],
  is: string,
  budget: string,
  pass: boolean,
): Row {
  const [mine, theirs] = [median(ours), median(floor)]
  const p99 = percentile(ours, 99)
  return { name, unit: 'ms', ours: mine, p99, floor: is, floorValue: theirs, ratio: mine / theirs, budget, pass }
}

async function times(rounds: number, work: (round: number) => unknown): Promise<readonly number[]> {
  const taken: number[] = []
  for (let round = 0; round < rounds; round++) taken.push(await timeOf(() => work(round)))
  return taken
}

async function timeOf(work: () => unknown): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}
