import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../database.ts'
import { type EventFilter, type EventLog, eventMatches, type StoredEvent } from '../event-log.ts'
import { openStore, STORE_SCHEMA, type Store } from '../store.ts'
import { EventPages, type ListedLog, type PageKey, type PageQuery } from './event-pages.ts'

const open = (path: string, clock: ManualClock): Store =>
  openStore({ path, migrations: migrationsOf('store', STORE_SCHEMA), owner: 'a test', clock })

const append = (store: Store, actor: string, payload: object = {}) =>
  store.db.write((tx) => store.log.appendCustom(tx, { type: 'a.one', actor, payload }))

const stored = (log: EventLog): readonly StoredEvent[] =>
  log.scan({}, { after: 0, upTo: log.head }, 'asc', 1_000_000).events

const listed = (name: string, log: EventLog, filter: EventFilter): ListedLog => ({
  name,
  log,
  filter,
  after: 0,
  upTo: log.head,
})

/** Every page of a walk, each read to its end; a step that never ends fails the test. */
function walk(logs: readonly ListedLog[], query: Omit<PageQuery, 'beyond'>): EventPages[] {
  const pages: EventPages[] = []
  for (let beyond: PageKey | undefined; ; ) {
    const page = new EventPages(logs, { ...query, beyond }, () => 0)
    for (let steps = 0; !page.step(); steps++) assert.ok(steps < 10_000)
    pages.push(page)
    if (page.next === undefined) return pages
    assert.notDeepEqual(page.next, beyond, 'each page goes on')
    beyond = page.next
  }
}

const idsOf = (pages: readonly EventPages[]) =>
  pages.flatMap(({ events }) => events.map(({ event, source }) => `${source}:${event.seq}`))

test('pages over many logs hold every matching event once, in order, whatever the filter, the times and the limit', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const start = clock.now()
  const names = ['alpha', 'beta', 'gamma', 'quiet']
  const stores = names.map((name) => ({ name, store: open(join(directory.path, `${name}.db`), clock) }))
  for (let count = 0; count < 150; count++) {
    const { store } = stores[(count * 7) % 3] ?? assert.fail()
    if (count % 4 === 0) await clock.advance(1_000)
    await append(store, count % 5 === 0 ? 'ann' : 'bob', { n: count % 10 })
  }
  await fc.assert(
    fc.property(
      fc.constantFrom<EventFilter>({}, { actor: 'ann' }, { payload: [{ key: 'n', value: '3' }] }, { actor: 'nobody' }),
      fc.constantFrom('asc', 'desc'),
      fc.integer({ min: 1, max: 60 }),
      fc.option(fc.integer({ min: 0, max: 40_000 }), { nil: undefined }),
      fc.option(fc.integer({ min: 0, max: 40_000 }), { nil: undefined }),
      (filter, order, limit, from, to) => {
        const fromMs = from === undefined ? undefined : start + from
        const toMs = to === undefined ? undefined : start + to
        const logs = stores.map(({ name, store }) => listed(name, store.log, filter))
        const expected = stores
          .flatMap(({ name, store }) => stored(store.log).map((event) => ({ name, event })))
          .filter(({ event }) => eventMatches(filter, event))
          .filter(({ event }) => event.at >= (fromMs ?? 0) && event.at <= (toMs ?? Number.POSITIVE_INFINITY))
          .sort(
            (a, b) =>
              a.event.at - b.event.at || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0) || a.event.seq - b.event.seq,
          )
          .map(({ name, event }) => `${name}:${event.seq}`)
        const pages = walk(logs, { fromMs, toMs, order, limit })
        assert.deepEqual(idsOf(pages), order === 'asc' ? expected : expected.reverse())
        for (const { total, capped } of pages) assert.ok(capped || total === expected.length)
      },
    ),
    { numRuns: 150 },
  )
  for (const { store } of stores) store.db.close()
})

test('a page of large events ends at 8 MiB and its cursor goes on', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(join(directory.path, 'large.db'), clock)
  const other = open(join(directory.path, 'other.db'), clock)
  for (let count = 0; count < 60; count++) {
    await append(store, 'ann', { padding: 'x'.repeat(250_000) })
    await append(other, 'bob')
  }
  const query = { fromMs: undefined, toMs: undefined, order: 'desc', limit: 1_000 } as const
  for (const logs of [
    [listed('large', store.log, {})],
    [listed('large', store.log, {}), listed('other', other.log, {})],
  ]) {
    const pages = walk(logs, query)
    assert.equal(pages.length, 2)
    assert.equal(new Set(idsOf(pages)).size, 60 * logs.length)
    for (const { events } of pages)
      assert.ok(events.reduce((sum, { event }) => sum + event.envelope.length, 0) <= 8 * 1024 * 1024)
  }
  store.db.close()
  other.db.close()
})

test('a hundred quiet logs are not looked at: the disk is asked as often as without them', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const quiet: Store[] = []
  for (let count = 0; count < 100; count++) {
    const store = open(join(directory.path, `quiet${count}.db`), clock)
    await append(store, 'ann')
    quiet.push(store)
  }
  await clock.advance(60_000)
  const busy = open(join(directory.path, 'busy.db'), clock)
  for (let count = 0; count < 200; count++) await append(busy, 'ann')
  let asked = 0
  for (const { db } of quiet) {
    const rows = db.rows.bind(db)
    db.rows = (...given) => {
      asked++
      return rows(...given)
    }
  }
  const logs = [...quiet, busy].map(({ log }, index) => listed(`log${index}`, log, {}))
  const page = new EventPages(
    logs,
    { fromMs: clock.now() - 30_000, toMs: undefined, order: 'desc', limit: 100, beyond: undefined },
    () => 0,
  )
  assert.equal(page.step(), true)
  assert.deepEqual([page.events.length, page.total, asked], [100, 200, 0])
  for (const { db } of [...quiet, busy]) db.close()
})

test('a payload that is rare is found behind 100,000 others, in bounded steps', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = open(join(directory.path, 'rare.db'), clock)
  await append(store, 'ann', { bead: { issue_type: 'bug' } })
  for (let block = 0; block < 100; block++) {
    await store.db.write((tx) => {
      for (let count = 0; count < 1_000; count++)
        store.log.appendCustom(tx, { type: 'a.one', actor: 'ann', payload: { bead: { issue_type: 'task' } } })
    })
  }
  const filter = { payload: [{ key: 'bead.issue_type', value: 'bug' }] }
  const query = { fromMs: undefined, toMs: undefined, order: 'desc', limit: 100 } as const
  const pages = walk([listed('rare', store.log, filter)], query)
  assert.deepEqual(idsOf(pages), ['rare:1'])
  assert.ok(pages.length >= 2, 'no request looks at everything')
  assert.equal(pages[0]?.capped, true)
  store.db.close()
})
