/** Streams against a naive model: whatever commits, joins, leaves, blocks and drains, each subscriber gets exactly its events. */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../../test/support/manual-clock.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { Clock } from '../clock.ts'
import { parseComposite } from '../cursor.ts'
import { migrationsOf } from '../database.ts'
import { type EventFilter, eventMatches, type StoredEvent } from '../event-log.ts'
import type { Attachment, Feed, Sink } from '../feed.ts'
import { openStore, STORE_SCHEMA, type Store } from '../store.ts'
import { type Backlog, Channel, type Framing } from './hub.ts'
import { LogStream } from './log-stream.ts'
import { type LogSource, MergedLog } from './merged-log.ts'
import { startReplay, stopReplay } from './replays.ts'

interface Delivered {
  readonly id: string
  readonly city: string
  readonly seq: number
}

const framing: Framing = {
  frame: ({ id, event, city }) => `${JSON.stringify({ id, city, seq: event.seq } satisfies Delivered)}\n`,
  batch: (frames) => Buffer.from(frames.join('')),
}

/** One on which every delivery takes long, so that each is followed by a pause (H5), which ends with the turn. */
class SlowClock extends ManualClock {
  #reading = 0

  override monotonic(): number {
    this.#reading += 3
    return this.#reading
  }

  override after(_ms: number, work: () => void): () => void {
    const pause = setImmediate(work)
    return () => clearImmediate(pause)
  }
}

/** A client: takes `room` batches, then blocks until it is drained. */
class Client implements Sink {
  readonly got: Delivered[] = []
  ended = false
  room: number
  #attachment: Attachment | undefined
  /** What is written while it is blocked breaks the contract of a sink. */
  overrun = 0

  constructor(feed: Feed, room: number) {
    this.room = room
    this.#attachment = feed.attach(this)
  }

  write(batch: Buffer): boolean {
    if (this.room < 0) this.overrun++
    for (const line of batch.toString().split('\n').filter(Boolean)) this.got.push(JSON.parse(line))
    this.room--
    if (this.room >= 0) return true
    return false
  }

  end(): void {
    this.ended = true
  }

  drain(room: number): void {
    if (this.room >= 0) return
    this.room = room
    this.#attachment?.drained()
  }

  leave(): void {
    this.#attachment?.detach()
    this.#attachment = undefined
  }
}

const methodsOf = (clock: ManualClock): Clock => ({
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  after: (ms, work) => clock.after(ms, work),
})

const open = (directory: string, name: string): Store =>
  openStore({
    path: join(directory, `${name}.db`),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: name,
    clock: new ManualClock(),
  })

const TYPES = ['a.one', 'a.two', 'b.one']
const append = (store: Store, count: number, from: number, size = 0): Promise<void> =>
  store.db.write((tx) => {
    for (let i = 0; i < count; i++) {
      const payload = size === 0 ? {} : { padding: 'x'.repeat(size) }
      store.log.appendCustom(tx, {
        type: TYPES[(from + i) % TYPES.length] ?? 'a.one',
        actor: i % 2 === 0 ? 'ann' : 'bob',
        payload,
      })
    }
  })
const matching = (store: Store, filter: EventFilter, after: number): readonly number[] =>
  store.log
    .scan({}, { after, upTo: store.log.head }, 'asc', 1e6)
    .events.filter((event: StoredEvent) => eventMatches(filter, event))
    .map(({ seq }) => seq)

const FILTERS: readonly EventFilter[] = [
  {},
  { types: ['a.*'] },
  { types: ['b.one'] },
  { actor: 'bob' },
  { types: ['none.*'] },
]
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('commit' as const), log: fc.nat(2), count: fc.integer({ min: 1, max: 4 }) }),
  },
  // More than the ring keeps: whoever is blocked then is fed from the log.
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flood' as const), log: fc.nat(2), count: fc.constant(2_300) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('open' as const),
      filter: fc.nat(FILTERS.length - 1),
      from: fc.integer({ min: -1, max: 40 }),
      room: fc.nat(3),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('drain' as const), client: fc.nat(5), room: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('resume' as const), client: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
)

/** Until nobody is given anything more for a while; how many turns of the loop that takes is nobody's business. */
async function drainAll(clients: readonly Client[]): Promise<void> {
  const given = () => clients.reduce((sum, { got }) => sum + got.length, 0)
  for (let [round, last] = [0, -1]; round < 20; round++) {
    if (given() !== last) [round, last] = [0, given()]
    for (const client of clients) client.drain(1_000)
    await settled()
  }
}

test('one log: each subscriber gets exactly the matching events after its cursor, in order, whatever it does', {
  timeout: 120_000,
}, async () => {
  using directory = temporaryDirectory()
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
      const store = open(directory.path, `one-${++run}`)
      const stream = new LogStream(store.log, framing, run % 2 === 0 ? new SlowClock() : new ManualClock())
      const clients: { readonly client: Client; readonly filter: EventFilter; readonly after: number }[] = []
      const start = (filter: EventFilter, after: number | undefined, room: number) => {
        clients.push({
          client: new Client(stream.follow(filter, after), room),
          filter,
          after: Math.min(after ?? store.log.head, store.log.head),
        })
      }
      for (const one of steps) {
        if (one.do === 'commit' || one.do === 'flood') await append(store, one.count, store.log.head)
        else if (one.do === 'open') start(FILTERS[one.filter] ?? {}, one.from < 0 ? undefined : one.from, one.room)
        else if (one.do === 'turn') await settled()
        else {
          const found = clients[one.client % Math.max(clients.length, 1)]
          if (found === undefined) continue
          if (one.do === 'drain') found.client.drain(one.room)
          else {
            // Gone, and back with the id of what it saw last.
            found.client.leave()
            const last = found.client.got.at(-1)
            start(found.filter, last === undefined ? found.after : Number(last.id), 2)
          }
        }
      }
      stream.end()
      await drainAll(clients.map(({ client }) => client))
      for (const { client, filter, after } of clients) {
        const all = matching(store, filter, after)
        const left = !client.ended
        assert.deepEqual(
          client.got.map(({ seq }) => seq),
          left ? all.slice(0, client.got.length) : all,
        )
        assert.ok(client.got.every(({ id, seq }) => id === String(seq)))
        assert.equal(client.overrun, 0, 'nothing is written to a client that is blocked')
      }
      stream.close()
      store.db.close()
    }),
    { numRuns: 60 },
  )
})

interface Member {
  readonly source: LogSource
  readonly store: Store
}

test('a reader whose next page was kept before a flood reads on, and does not take that page for ever', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'kept')
  const log = store.log
  await append(store, 10, 0)
  let reads = 0
  // As a log whose place before and behind its last page is the same: nothing in it matched.
  const kept = (): Backlog => ({
    place: 'here',
    read: () => {
      reads++
      const at = channel.head + 1
      return { events: [], resume: { at, id: String(at - 1) }, fence: at, positions: [], parts: [] }
    },
    follow: () => true,
  })
  const channel: Channel = new Channel(
    framing,
    log.head,
    { openBacklog: () => kept(), headId: () => String(channel.head) },
    new ManualClock(),
  )
  // Somebody else replays all the time, so that pages are kept.
  const other = { replayPage: () => true }
  startReplay(other, false)
  try {
    new Client(channel.subscribe({}, '10', kept()), 1_000).leave()
    const early = new Client(channel.subscribe({}, '10', kept()), 1_000)
    await settled()
    early.leave()
    channel.skip(5_000)
    const late = new Client(channel.subscribe({}, '10', kept()), 1_000)
    for (let turn = 0; turn < 20; turn++) await settled()
    channel.publish(
      log.scan({}, { after: 9, upTo: 10 }, 'asc', 1).events.map((event) => ({ id: '10', event, city: '', log: '' })),
    )
    assert.equal(late.got.length, 1, 'it is live')
    assert.ok(reads <= 4, `${reads} reads`)
    late.leave()
  } finally {
    stopReplay(other)
    store.db.close()
  }
})

test('merged logs: each subscriber gets every event of every log once, in the order of its log, with ids that resume', {
  timeout: 120_000,
}, async () => {
  using directory = temporaryDirectory()
  let run = 0
  const mergedStep = fc.oneof(
    { weight: 6, arbitrary: step },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('join' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), log: fc.integer({ min: 1, max: 3 }) }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(mergedStep, { minLength: 3, maxLength: 16 }), async (steps) => {
      run++
      const merged = new MergedLog(framing, run % 2 === 0 ? new SlowClock() : new ManualClock())
      const members: Member[] = []
      const gone = new Set<string>()
      const supervisor = open(directory.path, `merged-${run}-s`)
      const join = async (name: string, store: Store) => {
        // As a registration does it: in the write, before its event is heard.
        const own = name === SUPERVISOR_SOURCE
        await supervisor.db.write((tx) => {
          const registeredAt = own ? 0 : supervisor.log.appendCustom(tx, { type: 'a.one', actor: 'ann', payload: {} })
          tx.afterCommit(() => {
            const source = {
              name,
              uid: name,
              log: store.log,
              registeredAt,
              startHead: store.log.head,
              knownHead: 0,
              previousUid: undefined,
            }
            members.push({ source, store })
            merged.put(source)
          })
        })
      }
      await join(SUPERVISOR_SOURCE, supervisor)
      await join('city1', open(directory.path, `merged-${run}-1`))
      const clients: {
        client: Client
        readonly filter: EventFilter
        readonly starts: Map<string, number>
        left: boolean
      }[] = []
      const start = (filter: EventFilter, cursor: string | undefined, room: number, starts: Map<string, number>) => {
        clients.push({ client: new Client(merged.follow(filter, cursor), room), filter, starts, left: false })
      }
      const heads = () =>
        new Map(
          members
            .filter(({ source }) => !gone.has(source.name))
            .map(({ source, store }) => [source.name, store.log.head]),
        )
      for (const one of steps) {
        const member = 'log' in one ? members[one.log % members.length] : undefined
        if (one.do === 'commit' || one.do === 'flood') {
          if (member !== undefined) await append(member.store, one.count, member.store.log.head)
        } else if (one.do === 'join') {
          const store = open(directory.path, `merged-${run}-${members.length}`)
          // A log that has a past of its own, which no stream gets.
          await append(store, 3, 0)
          await join(`city${members.length}`, store)
        } else if (one.do === 'remove') {
          if (member === undefined || member.source.name === SUPERVISOR_SOURCE || member.source.name === 'city1')
            continue
          gone.add(member.source.name)
          merged.remove(member.source.name)
        } else if (one.do === 'open') {
          const filter = FILTERS[one.filter] ?? {}
          if (one.from < 0) start(filter, undefined, one.room, heads())
          else if (one.from < 20) start(filter, '0', one.room, new Map([...heads().keys()].map((name) => [name, 0])))
          else start(filter, merged.head(), one.room, heads())
        } else if (one.do === 'turn') await settled()
        else {
          const found = clients[one.client % Math.max(clients.length, 1)]
          if (found === undefined || found.left) continue
          if (one.do === 'drain') found.client.drain(one.room)
          else {
            const last = found.client.got.at(-1)
            if (last === undefined) continue
            found.left = true
            found.client.leave()
            // What it saw before counts for it; what it sees again would be a second time.
            const starts = new Map(found.starts)
            for (const { city, seq } of found.client.got) starts.set(city, seq)
            start(found.filter, last.id, 2, starts)
          }
        }
      }
      await drainAll(clients.filter(({ left }) => !left).map(({ client }) => client))
      for (const { client, filter, starts, left } of clients) {
        assert.equal(client.overrun, 0)
        for (const { source, store } of members) {
          const seen = client.got.filter(({ city }) => city === source.name).map(({ seq }) => seq)
          const all = matching(store, filter, starts.get(source.name) ?? source.startHead)
          const partial = left || gone.has(source.name) || client.ended
          assert.deepEqual(
            seen,
            partial ? all.slice(0, seen.length) : all,
            `${source.name} of ${JSON.stringify(client.got.at(-1))}`,
          )
        }
        for (const { id, city, seq } of client.got) assert.equal(parseComposite(id)?.get(city), seq, id)
      }
      for (const { store } of members) store.db.close()
    }),
    { numRuns: 60 },
  )
})

test('events of one commit about a log that joined in it name its position, so a cursor among them loses nothing', async () => {
  using directory = temporaryDirectory()
  const supervisor = open(directory.path, 's')
  const city = open(directory.path, 'c')
  const merged = new MergedLog(framing, new ManualClock())
  const source = (name: string, store: Store, registeredAt: number): LogSource => ({
    name,
    uid: name,
    log: store.log,
    registeredAt,
    startHead: store.log.head,
    knownHead: 0,
    previousUid: undefined,
  })
  merged.put(source(SUPERVISOR_SOURCE, supervisor, 0))
  merged.put(source('other', open(directory.path, 'o'), 0))
  const client = new Client(merged.follow({}, undefined), 100)
  const event = { type: 'a.one', actor: 'ann', payload: {} }
  // Two writes in one group: a registration, and an event of the supervisor after it.
  await Promise.all([
    supervisor.db.write((tx) => {
      const registeredAt = supervisor.log.appendCustom(tx, event)
      tx.afterCommit(() => merged.put(source('late', city, registeredAt)))
    }),
    supervisor.db.write((tx) => supervisor.log.appendCustom(tx, event)),
  ])
  client.leave()
  await append(city, 2, 0)
  const resumed = new Client(merged.follow({}, client.got.at(-1)?.id), 100)
  await settled()
  assert.deepEqual(
    resumed.got.map(({ city: name, seq }) => `${name}:${seq}`),
    ['late:1', 'late:2'],
  )
  resumed.leave()
})

test('a replay of all logs goes on when one of them leaves, and ends where one that is still there cannot be read', async () => {
  for (const leaves of [true, false]) {
    using directory = temporaryDirectory()
    const merged = new MergedLog(framing, new ManualClock())
    const [stays, goes] = [open(directory.path, 'stays'), open(directory.path, 'goes')]
    for (const [name, store] of Object.entries({ stays, goes }))
      merged.put({
        name,
        uid: name,
        log: store.log,
        registeredAt: 0,
        startHead: 0,
        knownHead: 0,
        previousUid: undefined,
      })
    await append(goes, 2, 0)
    await append(stays, 2, 0)
    const client = new Client(merged.follow({}, '0'), 100)
    goes.db.close()
    if (leaves) merged.remove('goes')
    await settled()
    assert.equal(client.ended, !leaves)
    if (leaves) await append(stays, 1, 2)
    await settled()
    assert.deepEqual(
      client.got.map(({ city, seq }) => `${city}:${seq}`),
      leaves ? ['stays:1', 'stays:2', 'stays:3'] : [],
    )
    client.leave()
  }
})

test('a delivery that took long is followed by a pause: what is committed in it goes out in one batch, and who joins has it once', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'pausing')
  const clock = new ManualClock()
  let reading = 0
  const stream = new LogStream(store.log, framing, { ...methodsOf(clock), monotonic: () => (reading += 5) })
  const writes: number[] = []
  const watcher = (): number[] => {
    const seqs: number[] = []
    stream.follow({}, undefined).attach({
      write(batch) {
        const lines = batch.toString().split('\n').filter(Boolean)
        writes.push(lines.length)
        for (const line of lines) seqs.push(JSON.parse(line).seq)
        return true
      },
      end: () => {},
    })
    return seqs
  }
  const first = watcher()
  await append(store, 1, 0)
  assert.deepEqual(writes, [1], 'the first goes out at once')
  await append(store, 2, 1)
  await append(store, 1, 3)
  assert.deepEqual(writes, [1])
  await clock.advance(5)
  assert.deepEqual(writes, [1, 3])
  await append(store, 1, 4)
  const second = watcher()
  assert.deepEqual(first, [1, 2, 3, 4, 5], 'who joins has what the others have')
  await append(store, 1, 5)
  stream.end()
  assert.deepEqual([first, second], [[1, 2, 3, 4, 5, 6], [6]], 'an end comes after everything')
  assert.equal(clock.pending, 0)
  store.db.close()
})

test('a subscriber whose log is closed under it is ended, not left hanging', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'closing')
  const stream = new LogStream(store.log, framing, new ManualClock())
  await append(store, 5_000, 0, 200)
  const slow = new Client(stream.follow({}, 0), 0)
  const live = new Client(stream.follow({}, undefined), 10)
  await settled()
  stream.close()
  store.db.close()
  slow.drain(100)
  await settled()
  assert.deepEqual([slow.ended, live.ended], [true, true])
})

test('a reader that retention overtook is ended, so that its cursor answers 410 instead of leaving a gap', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'overtaken')
  const stream = new LogStream(store.log, framing, new ManualClock())
  await append(store, 4_000, 0, 600)
  const slow = new Client(stream.follow({}, 0), 0)
  await settled()
  const had = slow.got.length
  assert.ok(had > 0 && had < 2_000)
  while ((await store.db.write((tx) => store.log.prune(tx, { maxAgeMs: -1, maxBytes: 0 }))) > 0);
  slow.drain(100)
  await settled()
  assert.equal(slow.got.length, had)
  assert.equal(slow.ended, true)
  assert.throws(() => stream.follow({}, had), { code: 'cursor-expired' })
  assert.ok(stream.follow({}, 0))
  store.db.close()
})

test('clients that left leave nothing behind', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'leaving')
  const merged = new MergedLog(framing, new ManualClock())
  merged.put({
    name: SUPERVISOR_SOURCE,
    uid: 's',
    log: store.log,
    registeredAt: 0,
    startHead: 0,
    knownHead: 0,
    previousUid: undefined,
  })
  merged.put({
    name: 'alpha',
    uid: 'a',
    log: undefined,
    registeredAt: 0,
    startHead: 0,
    knownHead: 4,
    previousUid: undefined,
  })
  await append(store, 3_000, 0)
  const clients = Array.from(
    { length: 20 },
    (_, index) => new Client(merged.follow({ types: [`a.t${index}`] }, '0'), index % 3),
  )
  for (const client of clients) client.leave()
  await settled()
  assert.equal(merged.streams, 0)
  assert.ok(clients.every(({ got }) => got.length === 0))
  assert.equal(merged.head(), '__supervisor__:3000,alpha:4', 'a log that cannot be read keeps its place')
  store.db.close()
})

/** How often a log is read. */
function countReads(store: Store): { reads: number } {
  const counted = { reads: 0 }
  const scan = store.log.scanEnvelopes.bind(store.log)
  store.log.scanEnvelopes = (...given) => {
    counted.reads++
    return scan(...given)
  }
  return counted
}

test('fifty readers that start again at the same place cost the log as many reads as one', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path, 'herd')
  const stream = new LogStream(store.log, framing, new ManualClock())
  await append(store, 6_000, 0)
  const counted = countReads(store)
  const alone = new Client(stream.follow({}, 0), 1_000)
  await eventuallyGot(alone, 6_000)
  const { reads } = counted
  assert.ok(reads >= 6)
  const herd = Array.from({ length: 50 }, () => new Client(stream.follow({}, 0), 1_000))
  // One comes later, in the middle of it, and one asks for something else.
  await new Promise((resolve) => setImmediate(resolve))
  herd.push(new Client(stream.follow({}, 0), 1_000))
  const other = new Client(stream.follow({ actor: 'bob' }, 0), 1_000)
  for (const client of herd) await eventuallyGot(client, 6_000)
  await eventuallyGot(other, 3_000)
  for (const client of herd) assert.deepEqual(client.got, alone.got)
  assert.ok(counted.reads <= 3 * reads, `${counted.reads - reads} reads of 51 readers, ${reads} of one`)
  await append(store, 1, 0)
  for (const client of herd) assert.equal(client.got.at(-1)?.seq, 6_001, 'and then they are live')
  stream.end()
  store.db.close()
})

test('readers of all logs share what they read too, with the ids that each would have made', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const merged = new MergedLog(framing, clock)
  const stores = [SUPERVISOR_SOURCE, 'alpha', 'beta'].map((name) => ({ name, store: open(directory.path, name) }))
  for (const { name, store } of stores) {
    merged.put(sourceOf(name, store))
    await append(store, 2_000, 0)
  }
  const counts = stores.map(({ store }) => countReads(store))
  const reads = () => counts.reduce((sum, one) => sum + one.reads, 0)
  const alone = new Client(merged.follow({}, '0'), 1_000)
  await eventuallyGot(alone, 6_000)
  const before = reads()
  const herd: Client[] = []
  for (let count = 0; count < 50; count++) {
    herd.push(new Client(merged.follow({}, '0'), 1_000))
    // They do not come at the same moment, and meanwhile life goes on.
    if (count % 10 === 9) await append(stores[count % 3]?.store ?? assert.fail(), 1, count)
  }
  for (const client of herd) await eventuallyGot(client, 6_005)
  for (const client of herd) {
    assert.deepEqual(client.got.slice(0, 4_000), alone.got.slice(0, 4_000))
    assert.equal(new Set(client.got.map(({ city, seq }) => `${city} ${seq}`)).size, 6_005)
  }
  assert.ok(reads() - before <= 4 * before, `${reads() - before} reads of 50 readers, ${before} of one`)
  for (const client of [alone, ...herd]) client.leave()
  for (const { store } of stores) store.db.close()
})

test('a slow reader of all logs that retention overtook is ended too, instead of being led past the gap', async () => {
  using directory = temporaryDirectory()
  const merged = new MergedLog(framing, new ManualClock())
  const supervisor = open(directory.path, 'supervisor')
  const alpha = open(directory.path, 'alpha')
  merged.put(sourceOf(SUPERVISOR_SOURCE, supervisor))
  merged.put(sourceOf('alpha', alpha))
  await append(supervisor, 3, 0)
  await append(alpha, 3, 0)
  const slow = new Client(merged.follow({}, undefined), 0)
  const whole = new Client(merged.follow({ actor: 'bob' }, '0'), 1_000)
  await append(alpha, 1, 0)
  await settled()
  assert.equal(slow.got.length, 1)
  // More than is kept in memory, and then less than is kept on disk.
  for (let block = 0; block < 5; block++) await append(alpha, 1_000, 0)
  while ((await alpha.db.write((tx) => alpha.log.prune(tx, { maxAgeMs: -1, maxBytes: 0 }))) > 0);
  slow.drain(1_000)
  await settled()
  assert.deepEqual([slow.ended, slow.got.length], [true, 1])
  assert.throws(() => merged.follow({}, slow.got[0]?.id), { code: 'cursor-expired' })
  assert.equal(whole.ended, false, 'who was quick has everything')
  whole.leave()
  supervisor.db.close()
  alpha.db.close()
})

function sourceOf(name: string, store: Store): LogSource {
  return { name, uid: name, log: store.log, registeredAt: 0, startHead: 0, knownHead: 0, previousUid: undefined }
}

async function eventuallyGot(client: Client, count: number): Promise<void> {
  for (let turns = 0; client.got.length < count; turns++) {
    assert.ok(turns < 100_000, `${client.got.length} of ${count}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
