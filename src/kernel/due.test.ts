import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock, settled } from '../../test/support/manual-clock.ts'
import { SEED, seededRandom } from '../../test/support/random.ts'
import { Due, type DueOptions, type TimeChange } from './due.ts'

const DAY_MS = 86_400_000
const YEAR_MS = 365 * DAY_MS

interface Row {
  setAt: number
  readonly waitMs: number
}

/** Rows in memory, as a family has them in its store. */
class World {
  readonly clock = new ManualClock()
  readonly rows = new Set<Row>()
  readonly done: number[] = []
  readonly changes: TimeChange[] = []
  readonly counted: string[] = []
  warnings = 0
  fails = 0
  readonly due: Due

  constructor(options: Partial<DueOptions> = {}) {
    this.due = new Due({
      name: 'test rows',
      db: { countDue: (_, outcome) => this.counted.push(outcome) },
      clock: this.clock,
      log: { warn: () => this.warnings++ },
      next: () => [...this.rows].map(dueAt).sort((a, b) => a - b)[0],
      work: (now) => this.#work(now),
      adjust: (change) => this.#adjust(change),
      ...options,
    })
  }

  add(waitMs: number): void {
    const row = { setAt: this.clock.now(), waitMs }
    this.rows.add(row)
    this.due.noticed(dueAt(row))
  }

  #work(now: number): void {
    if (this.fails > 0) {
      this.fails--
      throw new Error('the disk is full')
    }
    for (const row of this.rows) {
      if (dueAt(row) > now) continue
      this.rows.delete(row)
      this.done.push(this.clock.monotonic())
    }
  }

  #adjust(change: TimeChange): void {
    this.changes.push(change)
    for (const row of this.rows) row.setAt = Math.min(row.setAt, this.clock.now())
  }
}

const dueAt = ({ setAt, waitMs }: Row): number => setAt + waitMs

test('due: work begins when the earliest row is due, whatever the order they came in', async () => {
  const world = new World()
  await world.due.start()
  for (const ms of [90_000, 10_000, 45_000]) world.add(ms)
  await world.clock.advance(9_999)
  assert.deepEqual(world.done, [])
  await world.clock.advance(100_000)
  assert.deepEqual(world.done, [10_000, 45_000, 90_000])
  assert.deepEqual(world.counted, ['done', 'done', 'done'])
  assert.equal(world.clock.pending, 0, 'without rows there is no timer')
})

test('due: rows that passed while the machine slept are done within half a minute of waking', async () => {
  const world = new World()
  await world.due.start()
  world.add(2 * 3_600_000)
  await world.clock.advance(60_000)
  world.clock.step(3 * 3_600_000)
  await world.clock.advance(32_000)
  assert.equal(world.done.length, 1)
})

test('due: a clock that is set back a day is reported, and a wait of 10 s stays one of 10 s', async () => {
  const world = new World()
  await world.due.start()
  world.add(10_000)
  world.clock.step(-DAY_MS)
  await world.clock.advance(45_000)
  assert.equal(world.done.length, 1)
  assert.ok(world.changes.some(({ stepMs }) => stepMs === -DAY_MS))
})

test('due: after a pause of the process nothing lapses before its holders were heard', async () => {
  const world = new World()
  await world.due.start()
  world.add(10_000)
  world.clock.pause(40_000)
  await world.clock.advance(0)
  assert.deepEqual(world.changes, [{ stepMs: 0, pausedMs: 40_000 }])
  assert.deepEqual(world.done, [], 'they have a second')
  await world.clock.advance(1_000)
  assert.deepEqual(world.done, [41_000])
})

test('due: a machine that is always late still gets its work done', async () => {
  const world = new World()
  await world.due.start()
  world.add(1_000)
  for (let round = 0; round < 3; round++) {
    world.clock.pause(10_000)
    await world.clock.advance(0)
  }
  assert.equal(world.done.length, 1)
})

test('due: work that fails is tried again after 1 s, doubled up to a minute, and nobody hurries it', async () => {
  const world = new World()
  await world.due.start()
  world.fails = 8
  world.add(0)
  const tries: number[] = []
  for (let second = 0; second <= 260; second++) {
    const before = world.warnings
    await world.clock.advance(second === 0 ? 0 : 1_000)
    if (world.warnings > before) tries.push(second)
    world.due.noticed(world.clock.now())
  }
  assert.deepEqual(tries, [0, 1, 3, 7, 15, 31, 61, 91].slice(0, tries.length))
  assert.equal(tries.length, 8)
  assert.equal(world.done.length, 1)
})

test('due: work that can do nothing yet does not spin', async () => {
  let asked = 0
  const world = new World({
    work: () => {
      asked++
      return false
    },
  })
  await world.due.start()
  world.add(0)
  await world.clock.advance(2_000)
  assert.equal(asked, 2)
})

test('due: stop waits for what is under way, and nothing begins afterwards', async () => {
  let finish: () => void = () => {}
  const world = new World({ work: () => new Promise<void>((resolve) => (finish = resolve)) })
  await world.due.start()
  world.add(0)
  await world.clock.advance(0)
  let stopped = false
  const stopping = world.due.stop().then(() => {
    stopped = true
  })
  await settled()
  assert.equal(stopped, false)
  finish()
  await stopping
  world.due.noticed(0)
  assert.equal(world.clock.pending, 0)
})

test('due: random rows under clocks that jump up to two years either way are all done in time', async () => {
  for (let seed = SEED; seed < SEED + 60; seed++) {
    const chance = seededRandom(seed)
    const world = new World()
    await world.due.start()
    for (let move = 0; move < 40; move++) {
      const what = chance.next()
      if (what < 0.5) world.add(chance.between(0, 120_000))
      else if (what < 0.65) world.clock.step(chance.between(-2 * YEAR_MS, 2 * YEAR_MS))
      else if (what < 0.8) world.clock.pause(chance.between(0, 90_000))
      else await world.clock.advance(chance.between(0, 60_000))
    }
    // The longest wait, one cap to notice the clock, one more until it fires, and a second for who is heard.
    await world.clock.advance(120_000 + 2 * 30_000 + 2_000)
    assert.equal(world.rows.size, 0, `seed ${seed}`)
    assert.equal(world.clock.pending, 0, `seed ${seed}`)
  }
})
