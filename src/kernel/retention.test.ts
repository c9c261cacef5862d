import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { migrationsOf } from './database.ts'
import { RetentionRounds, type Sweep, sweepOfRows } from './retention.ts'
import { openStore, STORE_SCHEMA } from './store.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000

/** A store with rows that go after a day, or whatever `keptMs` says. */
class World implements Disposable {
  readonly #directory = temporaryDirectory()
  readonly clock = new ManualClock()
  readonly store = openStore({
    path: join(this.#directory.path, 'log.db'),
    migrations: migrationsOf('test', `${STORE_SCHEMA}CREATE TABLE things (id INTEGER PRIMARY KEY, at INTEGER) STRICT;`),
    owner: 'a test',
    clock: this.clock,
  })
  readonly warned: unknown[] = []
  keptMs: number | undefined = DAY_MS

  rounds(...more: readonly Sweep[]): RetentionRounds {
    const { db, log } = this.store
    const sweep = sweepOfRows(db, this.clock, {
      name: 'things',
      keptMs: () => this.keptMs,
      has: (before) => db.get('SELECT 1 FROM things WHERE at < ? LIMIT 1', before) !== undefined,
      remove: (tx, before, limit) =>
        tx.run('DELETE FROM things WHERE id IN (SELECT id FROM things WHERE at < ? LIMIT ?)', before, limit),
    })
    const logger = { warn: (entry: unknown) => void this.warned.push(entry) }
    return new RetentionRounds({ city: 'alpha', db, log, clock: this.clock, logger, sweeps: [...more, sweep] })
  }

  async add(count: number): Promise<void> {
    await this.store.db.write((tx) => {
      for (let n = 0; n < count; n++) tx.run('INSERT INTO things (at) VALUES (?)', this.clock.now())
    })
  }

  get left(): number {
    return Number(this.store.db.get('SELECT count(*) AS n FROM things')?.n)
  }

  get told(): number {
    return this.store.log.countOfType('retention.swept')
  }

  /** Lets a round end: its writes take turns. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms)
    for (let turn = 0; turn < 20; turn++) await settled()
  }

  [Symbol.dispose](): void {
    this.store.db.close()
    this.#directory[Symbol.dispose]()
  }
}

test('retention: a round says in one event how much of what went, and a second one is silent', async () => {
  using world = new World()
  await world.add(120)
  await world.clock.advance(DAY_MS / 2)
  await world.add(3)
  await world.clock.advance(DAY_MS / 2 + 1)
  const runs = { name: 'sessions', run: () => Promise.resolve({ runs: 2, run_bytes: 100, closed_sessions: 0 }) }
  const rounds = world.rounds(runs)
  const none = { closed_sessions: 0, delivery_texts: 0, text_bytes: 0 }
  assert.deepEqual(await rounds.round(), { runs: 2, run_bytes: 100, ...none, other: { things: 120 } })
  assert.deepEqual([world.left, world.told], [3, 1])
  const silent = world.rounds()
  assert.equal(await silent.round(), undefined)
  assert.equal(world.told, 1)
})

test('retention: a sweep that fails keeps no other from running', async () => {
  using world = new World()
  await world.add(1)
  await world.clock.advance(DAY_MS + 1)
  const broken = { name: 'broken', run: () => Promise.reject(new Error('EIO')) }
  await world.rounds(broken).round()
  assert.deepEqual([world.left, world.warned.length], [0, 1])
})

test('retention: a clock that jumps forward takes nothing away for its age', async () => {
  using world = new World()
  await world.add(1)
  world.store.log.agesCount()
  world.clock.step(400 * DAY_MS)
  await world.rounds().round()
  assert.equal(world.left, 1)
})

test('retention: a changed setting acts after a moment in which a slip can be taken back', async () => {
  using world = new World()
  world.keptMs = undefined
  await world.add(1)
  const rounds = world.rounds()
  rounds.start()
  await world.advance(2 * MINUTE_MS)
  rounds.reconfigured()
  await world.advance(10_000)
  assert.equal(world.left, 1, 'nothing was changed')
  world.keptMs = MINUTE_MS
  rounds.reconfigured()
  assert.equal(world.left, 1)
  await world.advance(5_000)
  assert.equal(world.left, 0)
  await rounds.stop()
  assert.equal(world.clock.pending, 0)
})
