import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import type { Tx } from './database.ts'
import { migrationsOf } from './database.ts'
import type { StoredEvent } from './event-log.ts'
import type { Logger } from './log.ts'
import { REACTIONS_SCHEMA, type Reaction, Reactions } from './reactions.ts'
import { openStore, STORE_SCHEMA, tidy } from './store.ts'

const SCHEMA = `${STORE_SCHEMA}${REACTIONS_SCHEMA}CREATE TABLE seen (reaction TEXT, seq INTEGER, n INTEGER) STRICT;`

/** A store on disk that can be closed and opened again, with reactions that note in it what they saw. */
class World implements AsyncDisposable {
  readonly #directory = temporaryDirectory()
  readonly clock = new ManualClock()
  readonly skipped: string[] = []
  commits = 0
  store = this.#open()
  reactions: Reactions | undefined

  #open() {
    const path = join(this.#directory.path, 'log.db')
    const watch = {
      committed: () => {
        this.commits++
      },
      hookFailed: (error: unknown) => assert.fail(String(error)),
      due: () => {},
    }
    return openStore({ path, migrations: migrationsOf('test', SCHEMA), owner: 'a test', clock: this.clock, watch })
  }

  async start(...reactions: readonly Reaction[]): Promise<void> {
    this.reactions = new Reactions({
      db: this.store.db,
      log: this.store.log,
      clock: this.clock,
      logger: silent,
      reactions,
      skipped: (name) => this.skipped.push(name),
    })
    await this.reactions.start()
  }

  async again(): Promise<void> {
    await this.reactions?.stop()
    this.store.db.close()
    this.store = this.#open()
  }

  emit = (...types: readonly string[]): Promise<readonly number[]> =>
    this.store.db.write((tx) => types.map((type) => this.append(tx, type)))

  append = (tx: Tx, type: string): number => this.store.log.appendCustom(tx, { type, actor: 'test', payload: {} })

  /** A reaction that notes each event. */
  noting = (name: string, more: Partial<Reaction> = {}): Reaction => ({
    name,
    types: ['a.one'],
    since: 'start',
    react: (tx, { seq }) => note(tx, name, seq),
    ...more,
  })

  seen = (reaction: string): readonly number[] =>
    this.store.db.all('SELECT seq FROM seen WHERE reaction = ? ORDER BY seq', reaction).map(({ seq }) => Number(seq))

  cursor = (reaction: string): number | undefined => {
    const row = this.store.db.get('SELECT seq FROM reaction_cursors WHERE name = ?', reaction)
    return row === undefined ? undefined : Number(row.seq)
  }

  async [Symbol.asyncDispose]() {
    await this.reactions?.stop()
    this.store.db.close()
    this.#directory[Symbol.dispose]()
  }
}

const silent: Logger = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }
const note = (tx: Tx, reaction: string, seq: number) =>
  tx.run('INSERT INTO seen (reaction, seq, n) VALUES (?, ?, 1)', reaction, seq)

async function until(what: string, done: () => boolean): Promise<void> {
  for (let turn = 0; turn < 10_000; turn++) {
    if (done()) return
    await settled()
  }
  assert.fail(`never: ${what}`)
}
const same = (found: readonly number[], wanted: readonly number[]) => found.join() === wanted.join()

test('every event of its types is reacted to once, in order, over any number of restarts', async () => {
  await using world = new World()
  await world.emit('a.one', 'b.one', 'a.one')
  await world.start(world.noting('one'), world.noting('all', { types: ['a.*', 'b.one'] }))
  await until('the old events', () => same(world.seen('one'), [1, 3]) && same(world.seen('all'), [1, 2, 3]))
  await world.emit('a.one')
  await until('the new event', () => same(world.seen('one'), [1, 3, 4]))
  await world.again()
  await world.emit('a.two', 'a.one')
  await world.start(world.noting('one'), world.noting('all', { types: ['a.*', 'b.one'] }))
  await until('what came meanwhile', () => same(world.seen('one'), [1, 3, 4, 6]))
  await until('and for the other', () => same(world.seen('all'), [1, 2, 3, 4, 5, 6]))
})

test('a new reaction begins at the head where it says so, also if it is stopped before anything happens', async () => {
  await using world = new World()
  const late = () => world.noting('late', { since: 'head' })
  await world.emit('a.one', 'a.one')
  await world.start(late())
  await world.again()
  await world.emit('a.one')
  await world.start(late())
  await until('the event after the head', () => same(world.seen('late'), [3]))
})

test('what a reaction did and its cursor are one write: a write that fails leaves neither', async () => {
  await using world = new World()
  let failures = 2
  await world.start(
    world.noting('one', {
      react(tx, { seq }) {
        note(tx, 'one', seq)
        world.append(tx, 'b.consequence')
        if (failures-- > 0) throw new Error('not now')
      },
    }),
  )
  await world.emit('a.one')
  await settled()
  assert.deepEqual(world.seen('one'), [])
  assert.equal(world.cursor('one'), undefined)
  await world.clock.advance(500)
  await until('the retry', () => same(world.seen('one'), [1]))
  assert.equal(world.cursor('one'), 1)
  assert.equal(world.store.log.countOfType('b.consequence'), 1)
})

test('an event that a reaction cannot handle is passed over after a few tries, and delays nobody else', async () => {
  await using world = new World()
  let tries = 0
  await world.start(
    world.noting('sick', {
      react(tx, { seq }) {
        if (seq === 3) tries++
        if (seq === 3) throw new Error('never')
        note(tx, 'sick', seq)
      },
    }),
    world.noting('well'),
  )
  await world.emit('a.one', 'a.one', 'a.one', 'a.one', 'a.one')
  await until('the other reaction', () => same(world.seen('well'), [1, 2, 3, 4, 5]))
  await until('those before it', () => same(world.seen('sick'), [1, 2]))
  await world.clock.advance(60_000)
  await until('those after it', () => same(world.seen('sick'), [1, 2, 4, 5]))
  // One more where its write shared a commit with another's, which then ran without it.
  assert.ok(tries === 6 || tries === 7, String(tries))
  assert.deepEqual(world.skipped, ['sick'])
  assert.equal(world.cursor('sick'), 5)
  assert.equal(world.clock.pending, 0)
})

test('nothing is written while nothing is to be done', async () => {
  await using world = new World()
  await world.start(
    world.noting('one', { concerns: ({ seq }) => seq === 1 }),
    world.noting('other', { types: ['b.one'] }),
  )
  await world.emit('a.one')
  await until('the first', () => same(world.seen('one'), [1]))
  const before = world.commits
  for (let i = 0; i < 20; i++) await world.emit('a.one', 'c.one')
  await settled()
  assert.equal(world.commits - before, 20)
  assert.equal(world.cursor('one'), 1)
  assert.equal(world.cursor('other'), undefined)
})

test('events that are passed by are not looked at again for ever after each restart', async () => {
  await using world = new World()
  let looks = 0
  const lazy = () =>
    world.noting('lazy', {
      concerns() {
        looks++
        return false
      },
    })
  for (let i = 0; i < 12; i++) await world.emit(...Array.from({ length: 100 }, () => 'a.one'))
  await world.start(lazy())
  await until('a look at all', () => looks === 1_200)
  await settled()
  await world.again()
  looks = 0
  await world.start(lazy())
  await until('a look at the rest', () => looks > 0)
  await settled()
  assert.equal(looks, 200)
})

test('retention keeps what a reaction has still to look at', async () => {
  await using world = new World()
  let sick = true
  await world.start(
    world.noting('one', {
      react(tx, { seq }) {
        if (sick) throw new Error('not now')
        note(tx, 'one', seq)
      },
    }),
  )
  await world.emit('b.one', 'a.one', 'b.one', 'b.one')
  await settled()
  world.clock.step(10_000)
  await tidy(world.store, { maxAgeMs: 1, maxBytes: 1e9 })
  assert.equal(world.store.log.oldest, 1)
  sick = false
  await world.clock.advance(5_000)
  await until('the retry', () => same(world.seen('one'), [2]))
  await settled()
  await tidy(world.store, { maxAgeMs: 1, maxBytes: 1e9 })
  assert.equal(world.store.log.oldest, 4)
})

test('a reaction may lead to events that it reacts to, until there is nothing left to do', async () => {
  await using world = new World()
  await world.start(
    world.noting('cascade', {
      react(tx, event) {
        note(tx, 'cascade', event.seq)
        if (event.seq < 40) world.append(tx, 'a.one')
      },
    }),
  )
  await world.emit('a.one')
  await until('the end of the cascade', () => world.seen('cascade').length === 40)
  await settled()
  assert.equal(world.store.log.head, 40)
  assert.deepEqual(world.skipped, [])
})

test('a reaction that answers itself for ever is cut, and goes on with the next event', async () => {
  await using world = new World()
  let deaf = false
  await world.start(
    world.noting('endless', {
      react(tx, event) {
        if (deaf) note(tx, 'endless', event.seq)
        else world.append(tx, 'a.one')
      },
    }),
  )
  await world.emit('a.one')
  await until('the cut', () => world.skipped.length === 1)
  await settled()
  const head = world.store.log.head
  assert.ok(head > 500 && head <= 1_001, String(head))
  deaf = true
  await world.emit('a.one')
  await until('the next event', () => same(world.seen('endless'), [head + 1]))
})

test('a store that takes no writes is waited for; no event is passed over', async () => {
  await using world = new World()
  await world.start(world.noting('one'))
  await settled()
  const { emit } = world
  await emit('a.one')
  world.store.db.tenure = 'moving'
  await settled()
  await world.clock.advance(120_000)
  assert.deepEqual(world.seen('one'), [])
  world.store.db.tenure = 'owned'
  await world.clock.advance(10_000)
  await until('the write', () => same(world.seen('one'), [1]))
  assert.deepEqual(world.skipped, [])
})

test('once it is stopped nothing reacts any more, and no timer is left', async () => {
  await using world = new World()
  const events: StoredEvent[] = []
  await world.start(
    world.noting('one', {
      react(_tx, event) {
        events.push(event)
        throw new Error('not now')
      },
    }),
  )
  await world.emit('a.one')
  await settled()
  await world.reactions?.stop()
  const count = events.length
  assert.ok(count > 0)
  await world.emit('a.one')
  await world.clock.advance(60_000)
  assert.equal(events.length, count)
  assert.equal(world.clock.pending, 0)
})

test('a long backlog is taken in many writes, so that other writers do not wait for all of it', async () => {
  await using world = new World()
  for (let i = 0; i < 5; i++) await world.emit(...Array.from({ length: 100 }, () => 'a.one'))
  const before = world.commits
  await world.start(
    world.noting('slow', {
      react(tx, { seq }) {
        note(tx, 'slow', seq)
        void world.clock.advance(5)
      },
    }),
  )
  await until('all of it', () => world.seen('slow').length === 500)
  assert.ok(world.commits - before >= 100, String(world.commits - before))
})
