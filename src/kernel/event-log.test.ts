import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { fc } from '../../test/support/random.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { migrationsOf } from './database.ts'
import {
  type CustomEventDraft,
  type EventFilter,
  type EventLog,
  eventMatches,
  type Range,
  type StoredEvent,
  typeMatches,
} from './event-log.ts'
import { openStore, STORE_SCHEMA, type Store, tidy } from './store.ts'

const open = (directory: string, clock = new ManualClock()): Store =>
  openStore({
    path: join(directory, 'log.db'),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: 'a test',
    clock,
  })

const append = (store: Store, ...drafts: readonly Partial<CustomEventDraft>[]): Promise<readonly number[]> =>
  store.db.write((tx) =>
    drafts.map((draft) => store.log.appendCustom(tx, { type: 'a.one', actor: 'test', payload: {}, ...draft })),
  )

const everything = (log: EventLog): readonly StoredEvent[] =>
  log.scan({}, { after: 0, upTo: log.head }, 'asc', 1_000_000).events
const seqs = (events: readonly StoredEvent[]) => events.map(({ seq }) => seq)

const optional = <T>(...values: readonly T[]) => fc.constantFrom(undefined, ...values)
const draftOf = fc
  .record({
    type: fc.constantFrom('a.one', 'a.two', 'a.two.deep', 'b.one', 'a'),
    actor: fc.constantFrom('ann', 'bob'),
    subject: optional('s1', 's2'),
    city: optional('alpha', 'beta'),
    payload: fc.constantFrom({}, { n: 1 }, { n: 2, in: { side: 'x' } }),
  })
  .map(
    ({ subject, city, ...rest }): Partial<CustomEventDraft> => ({
      ...rest,
      ...(subject === undefined ? {} : { subject }),
      ...(city === undefined ? {} : { city }),
    }),
  )
const filterOf = fc
  .record({
    types: optional<readonly string[]>(['a.one'], ['a.*'], ['a.two', 'b.one'], ['a.*', 'b.one'], ['never'], ['a']),
    actor: optional('ann', 'bob', 'nobody'),
    subject: optional('s1', 's2', 'none'),
    city: optional('alpha', 'beta'),
    payload: optional([{ key: 'n', value: '1' }], [{ key: 'in.side', value: 'x' }], [{ key: 'n', value: '3' }]),
  })
  .map((filter): EventFilter => Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined)))

/** Goes on from where each scan stopped, as pages and replays do. */
function scanAll(
  log: EventLog,
  filter: EventFilter,
  range: Range,
  order: 'asc' | 'desc',
  limit: number,
): readonly number[] {
  const found: number[] = []
  for (let at = range; ; ) {
    const { events, reached, complete } = log.scan(filter, at, order, limit)
    found.push(...seqs(events))
    if (complete) return found
    at = order === 'asc' ? { ...at, after: reached } : { ...at, upTo: reached - 1 }
  }
}

function totalOf(log: EventLog, filter: EventFilter, range: Range, cap: number) {
  const { total, capped } = log.count(filter, range, cap)
  return { total, capped }
}

test('scan and count agree with a filter over all events: every filter, range, order and limit', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const { log } = store
  await fc.assert(
    fc.asyncProperty(
      fc.array(draftOf, { maxLength: 8 }),
      filterOf,
      fc.nat(60),
      fc.nat(60),
      fc.constantFrom('asc', 'desc'),
      fc.integer({ min: 1, max: 9 }),
      async (drafts, filter, a, b, order, limit) => {
        await append(store, ...drafts)
        const range = { after: Math.min(a, b), upTo: Math.max(a, b) }
        const expected = everything(log).filter(
          (event) => event.seq > range.after && event.seq <= range.upTo && eventMatches(filter, event),
        )
        const inOrder = order === 'asc' ? seqs(expected) : seqs(expected).reverse()
        assert.deepEqual(scanAll(log, filter, range, order, limit), inOrder)
        // A count looks at no payload.
        if (filter.payload !== undefined) return
        assert.deepEqual(totalOf(log, filter, range, 1_000), { total: expected.length, capped: false })
        // Unfiltered, and by type alone, there are counters: exact whatever the cap.
        const { total, capped } = log.count(filter, range, 3)
        assert.equal(total, capped ? 3 : expected.length)
        assert.ok(!capped || expected.length > 3)
      },
    ),
    { numRuns: 200 },
  )
  store.db.close()
})

test('a scan that may not look at everything goes on from where it stopped, and loses nothing', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const { log } = store
  // 45,000 events of one subject, one in 9,000 by the actor that is asked for: no index answers both.
  for (let block = 0; block < 45; block++) {
    await append(
      store,
      ...Array.from({ length: 1_000 }, (_, index) => ({
        subject: 's',
        actor: (block * 1_000 + index) % 9_000 === 17 ? 'rare' : 'common',
      })),
    )
  }
  const filter = { subject: 's', actor: 'rare' }
  const expected = [18, 9_018, 18_018, 27_018, 36_018]
  const whole = { after: 0, upTo: log.head }
  const first = log.scan(filter, whole, 'desc', 10)
  assert.equal(first.complete, false, 'one scan is bounded')
  assert.deepEqual(scanAll(log, filter, whole, 'desc', 10), expected.toReversed())
  assert.deepEqual(scanAll(log, filter, whole, 'asc', 2), expected)
  assert.equal(log.count(filter, whole, 10_000).capped, true, 'a count that looked at a part only says so')
  store.db.close()
})

test('a page of few characters is cut by size, and goes on', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await append(store, ...Array.from({ length: 20 }, (_, index) => ({ payload: { index, padding: 'x'.repeat(500) } })))
  const first = store.log.scan({}, { after: 0, upTo: 20 }, 'asc', 100, 1_500)
  assert.ok(first.events.length >= 2 && first.events.length <= 4 && !first.complete)
  assert.equal(first.reached, first.events.at(-1)?.seq)
  store.db.close()
})

test('a prefix that stands for more types than the engine takes in a union is answered too', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await append(
    store,
    ...Array.from({ length: 700 }, (_, index) => ({
      type: `many.t${index}`,
      subject: index % 7 === 0 ? 'seven' : 'other',
    })),
  )
  await append(store, { type: 'few.one' })
  const whole = { after: 0, upTo: store.log.head }
  assert.equal(scanAll(store.log, { types: ['many.*'] }, whole, 'asc', 100).length, 700)
  assert.equal(scanAll(store.log, { types: ['many.*'], subject: 'seven' }, whole, 'desc', 9).length, 100)
  assert.deepEqual(totalOf(store.log, { types: ['many.*'] }, whole, 10_000), { total: 700, capped: false })
  assert.deepEqual(totalOf(store.log, { types: ['many.*'] }, { after: 10, upTo: 400 }, 10_000), {
    total: 390,
    capped: false,
  })
  store.db.close()
})

test('a type whose first write was undone leaves no number that another type gets after a restart', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await append(store, { type: 'first.type' })
  await assert.rejects(
    store.db.write((tx) => {
      store.log.appendCustom(tx, { type: 'undone.type', actor: 'test', payload: {} })
      throw new Error('undone')
    }),
  )
  await append(store, { type: 'second.type' })
  store.db.close()
  const again = open(directory.path)
  await append(again, { type: 'third.type' }, { type: 'undone.type' })
  assert.deepEqual(
    everything(again.log).map(({ type }) => type),
    ['first.type', 'second.type', 'third.type', 'undone.type'],
  )
  again.db.close()
  const last = open(directory.path)
  assert.deepEqual(
    everything(last.log).map(({ type }) => type),
    ['first.type', 'second.type', 'third.type', 'undone.type'],
  )
  assert.deepEqual(
    ['first.type', 'second.type', 'third.type', 'undone.type'].map((type) => last.log.countOfType(type)),
    [1, 1, 1, 1],
  )
  last.db.close()
})

test('types are forgotten with their last event: 2,000 that nobody has any more cost no later read', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  const types = () => Number(store.db.get('SELECT count(*) AS n FROM event_types')?.n)
  await append(store, ...Array.from({ length: 2_000 }, (_, index) => ({ type: `once.t${index}` })))
  await clock.advance(3_600_000)
  await append(store, { type: 'kept.one' }, { type: 'once.t7' })
  assert.equal(types(), 2_001)
  // In one commit with a prune that takes the last event of its type: it is there again.
  const pruned = tidy(store, { maxAgeMs: 60_000, maxBytes: 1e9 })
  await append(store, { type: 'once.t1999' })
  await pruned
  await tidy(store, { maxAgeMs: 60_000, maxBytes: 1e9 })
  const kept = ['kept.one', 'once.t7', 'once.t1999']
  assert.equal(types(), 3)
  assert.deepEqual(
    everything(store.log).map(({ type }) => type),
    kept,
  )
  assert.deepEqual(
    kept.map((type) => store.log.countOfType(type)),
    [1, 1, 1],
  )
  await append(store, { type: 'once.t3' })
  store.db.close()
  const again = open(directory.path, clock)
  assert.deepEqual(
    everything(again.log).map(({ type }) => type),
    [...kept, 'once.t3'],
  )
  assert.equal(scanAll(again.log, { types: ['once.*'] }, { after: 0, upTo: again.log.head }, 'asc', 10).length, 3)
  again.db.close()
})

test('sequence numbers have no gap where a write was undone, and none after a restart (I1)', async () => {
  using directory = temporaryDirectory()
  let store = open(directory.path)
  const expected: number[] = []
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('append', 'undo', 'reopen'), { minLength: 1, maxLength: 6 }),
      async (steps) => {
        const writes: Promise<unknown>[] = []
        for (const step of steps) {
          if (step === 'reopen') {
            await Promise.all(writes)
            store.db.close()
            store = open(directory.path)
          } else if (step === 'append') {
            expected.push(expected.length + 1)
            writes.push(append(store, {}))
          } else {
            writes.push(
              assert.rejects(
                store.db.write((tx) => {
                  store.log.appendCustom(tx, { type: 'a.one', actor: 'test', payload: {} })
                  throw new Error('undone')
                }),
              ),
            )
          }
        }
        await Promise.all(writes)
        assert.deepEqual(seqs(everything(store.log)), expected)
        assert.equal(store.log.head, expected.length)
      },
    ),
    { numRuns: 40 },
  )
  store.db.close()
})

test('listeners get each batch once, after it is on disk, in order (I2)', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const heard: number[] = []
  const stop = store.log.onCommit((events) => {
    assert.equal(store.log.head, events.at(-1)?.seq)
    heard.push(...seqs(events))
  })
  await Promise.all([append(store, {}, {}), append(store, {})])
  await assert.rejects(
    store.db.write((tx) => {
      store.log.appendCustom(tx, { type: 'a.one', actor: 'test', payload: {} })
      throw new Error('undone')
    }),
  )
  stop()
  await append(store, {})
  assert.deepEqual(heard, [1, 2, 3])
  store.db.close()
})

test('a time range is exact while the clock of the machine goes back and forth (I4)', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock(1_000_000)
  const store = open(directory.path, clock)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: -3_000, max: 5_000 }), { maxLength: 5 }),
      fc.integer({ min: -9_000, max: 9_000 }),
      fc.integer({ min: -9_000, max: 9_000 }),
      async (steps, fromOffset, toOffset) => {
        for (const step of steps) {
          clock.step(step)
          await append(store, {})
        }
        const [fromMs, toMs] = [clock.now() + fromOffset, clock.now() + toOffset + 0.5]
        const { after, upTo } = store.log.rangeOfTime(fromMs, toMs)
        const events = everything(store.log)
        assert.ok(events.every(({ at }, index) => index === 0 || at >= (events[index - 1]?.at ?? 0)))
        assert.deepEqual(
          seqs(events).filter((seq) => seq > after && seq <= upTo),
          seqs(events.filter(({ at }) => at >= fromMs && at <= toMs)),
        )
      },
    ),
    { numRuns: 100 },
  )
  assert.deepEqual(store.log.rangeOfTime(undefined, undefined), { after: 0, upTo: store.log.head })
  store.db.close()
})

test('an event larger than an event may be is refused, and costs no number', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await assert.rejects(append(store, { payload: { text: 'x'.repeat(8_000_000) } }), { code: 'payload-too-large' })
  assert.deepEqual(await append(store, {}), [1])
  store.db.close()
})

test('retention by age keeps what is young enough and always the newest event', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  for (let hour = 0; hour < 10; hour++) {
    await append(store, { type: `hour.h${hour}` })
    clock.step(3_600_000)
  }
  await tidy(store, { maxAgeMs: 3 * 3_600_000 + 1, maxBytes: 1e9 })
  assert.deepEqual(seqs(everything(store.log)), [8, 9, 10])
  assert.equal(store.log.oldest, 8)
  await tidy(store, { maxAgeMs: 0, maxBytes: 1e9 })
  assert.deepEqual(seqs(everything(store.log)), [10])
  assert.equal(store.log.needsPruning({ maxAgeMs: 0, maxBytes: 0 }), false)
  assert.deepEqual(await append(store, {}), [11])
  store.db.close()
})

test('a clock that jumps forward by years and back deletes nothing; one that stays there does after a day', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(directory.path, clock)
  const retention = { maxAgeMs: 30 * 86_400_000, maxBytes: 1e9 }
  await append(store, {}, {}, {})
  clock.step(20 * 365 * 86_400_000)
  await append(store, {}, {})
  await tidy(store, retention)
  await clock.advance(3_600_000)
  await tidy(store, retention)
  assert.deepEqual(seqs(everything(store.log)), [1, 2, 3, 4, 5])
  clock.step(-20 * 365 * 86_400_000)
  await clock.advance(2 * 86_400_000)
  await append(store, {})
  await tidy(store, retention)
  assert.equal(store.log.oldest, 1)
  store.db.close()
  // It jumped while nobody looked.
  clock.step(20 * 365 * 86_400_000)
  const again = open(directory.path, clock)
  clock.step(86_400_000 * 2)
  await tidy(again, retention)
  assert.equal(again.log.oldest, 1)
  await clock.advance(25 * 3_600_000)
  await tidy(again, retention)
  assert.ok(again.log.oldest > 1, 'in the end it is believed')
  again.db.close()
})

test('retention by bytes goes as far as it must and no further, and never past a pin', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  await append(store, ...Array.from({ length: 100 }, () => ({ payload: { padding: 'x'.repeat(1_000) } })))
  const each = store.log.bytes / 100
  store.log.pin('reaction', 30)
  await tidy(store, { maxAgeMs: 1e12, maxBytes: each * 50 + 10 })
  assert.equal(store.log.oldest, 31, 'the pinned reader has had 30, and needs 31')
  assert.deepEqual(store.log.holders, ['reaction'])
  store.log.pin('reaction', 30)
  assert.deepEqual(store.log.holders, ['reaction'])
  store.log.pin('reaction', undefined)
  assert.deepEqual(store.log.holders, [])
  await tidy(store, { maxAgeMs: 1e12, maxBytes: each * 50 + 50 })
  assert.equal(store.log.oldest, 51)
  assert.equal(everything(store.log).length, 50)
  store.db.close()
})

test('counters are the same recounted, after any mixture of appends, prunes and restarts', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  let store = open(directory.path, clock)
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(draftOf, fc.constantFrom('prune', 'reopen')), { minLength: 1, maxLength: 10 }),
      async (steps) => {
        for (const step of steps) {
          clock.step(1_000)
          if (step === 'reopen') {
            store.db.close()
            store = open(directory.path, clock)
          } else if (step === 'prune') await tidy(store, { maxAgeMs: 6_000, maxBytes: 2_000 })
          else await append(store, step)
        }
        const events = everything(store.log)
        assert.equal(
          store.log.bytes,
          events.reduce((sum, { envelope }) => sum + Buffer.byteLength(envelope), 0),
        )
        assert.equal(store.log.oldest, events[0]?.seq ?? 0)
        for (const type of ['a.one', 'a.two', 'a.two.deep', 'b.one', 'a']) {
          assert.equal(store.log.countOfType(type), events.filter((event) => event.type === type).length, type)
        }
      },
    ),
    { numRuns: 60 },
  )
  store.db.close()
})

test('a pattern means the type itself or everything below its prefix', () => {
  assert.equal(typeMatches('bead.created', 'bead.created'), true)
  assert.equal(typeMatches('bead.*', 'bead.created'), true)
  assert.equal(typeMatches('bead.*', 'bead.a.b'), true)
  assert.equal(typeMatches('bead.*', 'bead'), false)
  assert.equal(typeMatches('bead.*', 'beads.created'), false)
  assert.equal(typeMatches('bead', 'bead.created'), false)
})

test('events written while the clock was two years ahead are brought back, and later ones keep their time', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const year = 365 * 86_400_000
  const store = open(directory.path, clock)
  await append(store, {}, {})
  clock.step(2 * year)
  await append(store, {}, {})
  clock.step(-2 * year)
  await clock.advance(86_400_000)
  const before = clock.now()
  assert.deepEqual(store.log.rangeOfTime(before, undefined), { after: 2, upTo: 4 }, 'they stand in the future')
  await append(store, {})
  const times = everything(store.log).map(({ at }) => at)
  assert.deepEqual(times.slice(2), [before, before, before])
  assert.equal(store.log.newestAt, before)
  await clock.advance(60_000)
  assert.deepEqual(store.log.rangeOfTime(clock.now() - 30_000, undefined), { after: 5, upTo: 5 })
  store.db.close()
})

test('a log whose clock was ahead before a restart is brought back by housekeeping', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const first = open(directory.path, clock)
  clock.step(2 * 365 * 86_400_000)
  await append(first, {}, {})
  first.db.close()
  clock.step(-2 * 365 * 86_400_000)
  const store = open(directory.path, clock)
  await tidy(store, { maxAgeMs: 86_400_000, maxBytes: 1e9 })
  assert.equal(store.log.newestAt, clock.now())
  assert.deepEqual(
    everything(store.log).map(({ at }) => at),
    [clock.now(), clock.now()],
  )
  store.db.close()
})

test('random clock jumps of two years either way: times of a log never go backwards, and end at the clock', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.oneof(fc.constant(0), fc.integer({ min: -6.3e10, max: 6.3e10 })), { minLength: 1, maxLength: 12 }),
      async (steps) => {
        using directory = temporaryDirectory()
        const clock = new ManualClock()
        const store = open(directory.path, clock)
        for (const step of steps) {
          clock.step(step)
          await append(store, {}, {})
          const times = everything(store.log).map(({ at }) => at)
          assert.deepEqual(
            times,
            [...times].sort((a, b) => a - b),
          )
          const newest = times.at(-1) ?? 0
          assert.ok(newest <= clock.now() + 60_000, `${newest - clock.now()} ms ahead`)
          assert.equal(store.log.newestAt, newest)
        }
        store.db.close()
      },
    ),
    { numRuns: 40 },
  )
})
