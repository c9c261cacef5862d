/** What do 1,000 orders cost that wait, and how long does it take to list them? */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { adopt, allRunning, cpuSeconds, type Group, supervisorWith, until } from '../bench.ts'
import { median, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const ORDERS = 1_000
const MAX_IDLE_PERCENT = 1
const MAX_LIST_MS = 50

export const orders: Group = async (bench) => {
  bench.say(`${ORDERS} orders that wait`)
  await using many = await supervisorWith(bench, 'orders', [])
  await using none = await supervisorWith(bench, 'no-orders', [])
  const dir = join(bench.dir, 'orders', 'city')
  const bare = join(bench.dir, 'no-orders', 'city')
  for (const city of [dir, bare]) lay(city)
  layOrders(dir)
  await adopt(many.url, [dir])
  await adopt(none.url, [bare])
  await allRunning(many.url, 1)
  await allRunning(none.url, 1)
  const list = `${many.url}/v0/city/city/orders?limit=1000&trigger=cron&trigger=event`
  await until('all orders are known', async () => {
    const text = await (await fetch(list)).text()
    // The built-in pack has some of its own.
    const known = text.split('"scoped_name":"order-').length - 1
    return known === ORDERS && !text.includes('"valid":false') ? true : undefined
  })
  // What followed the start is over.
  await sleep(bench.quick ? 3_000 : 10_000)
  const seconds = bench.quick ? 5 : 30
  const before = [cpuSeconds(many.pid), cpuSeconds(none.pid)]
  await sleep(seconds * 1_000)
  const [ours = 0, floor = 0] = [many, none].map(
    ({ pid }, index) => ((cpuSeconds(pid) - (before[index] ?? 0)) / seconds) * 100,
  )
  const times: number[] = []
  for (let round = -3; round < (bench.quick ? 20 : 50); round++) {
    const began = performance.now()
    await (await fetch(list)).arrayBuffer()
    if (round >= 0) times.push(performance.now() - began)
  }
  const p99 = percentile(times, 99)
  const rows: Row[] = [
    {
      name: `a city with ${ORDERS} orders, idle`,
      unit: '% of a core',
      ours,
      floor: 'the same city without orders',
      floorValue: floor,
      budget: `≤ ${MAX_IDLE_PERCENT} %`,
      pass: ours <= MAX_IDLE_PERCENT,
      note: 'half of them wait for a time, half for an event',
    },
    {
      name: `list of ${ORDERS} orders with what each waits for`,
      unit: 'ms',
      ours: median(times),
      p99,
      budget: `p99 ≤ ${MAX_LIST_MS} ms`,
      pass: p99 <= MAX_LIST_MS,
    },
  ]
  return rows
}

function lay(dir: string): void {
  mkdirSync(join(dir, 'orders'), { recursive: true })
  writeFileSync(join(dir, 'pack.toml'), '[pack]\nname = "city"\nschema = 2\n')
  writeFileSync(join(dir, 'city.toml'), '[workspace]\nprovider = "shell"\n')
}

function layOrders(dir: string): void {
  for (let n = 0; n < ORDERS; n++) {
    const trigger =
      n % 2 === 0 ? `trigger = "cron"\nschedule = "${n % 60} 3 1 1 *"` : `trigger = "event"\non = "never.comes-${n}"`
    writeFileSync(join(dir, 'orders', `order-${n}.toml`), `[order]\n${trigger}\nexec = "true"\n`)
  }
}
