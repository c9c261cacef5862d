import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import type { Logger } from '../../../kernel/log.ts'
import { READY, readPage } from '../query/pages.ts'
import { deferralsOf } from './deferrals.ts'

const MANY = 600
const silent: Logger = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }

const ready = (city: WorkStore) =>
  readPage(city.store.db, READY, 'ready', { limit: 1_000 }, { now: city.clock.now(), identities: (name) => [name] })
const waiting = (city: WorkStore) => Number(city.store.db.get('SELECT count(*) AS n FROM beads WHERE deferred = 1')?.n)

test('what was put off is ready from its date on, soon as cheaply as all else, and nobody is told again', async () => {
  using city = openWorkStore()
  const { db, log } = city.store
  const deferrals = deferralsOf({ db, clock: city.clock, log: silent })
  await deferrals.start()
  const date = city.clock.now() + 10_000
  await db.write((tx) => {
    for (let n = 0; n < MANY; n++)
      city.beads.insert(tx, { id: `al-${n}`, title: 'x', created_at: n, defer_until: date }, 'test')
    city.beads.insert(tx, { id: 'al-past', title: 'x', defer_until: 5 }, 'test')
  })
  deferrals.noticed(date)
  assert.deepEqual([ready(city).ids, waiting(city)], [['al-past'], MANY])
  const head = log.head
  city.clock.step(10_000)
  assert.equal(ready(city).total, MANY + 1, 'the date alone says so')
  // What comes late waits a second more, for whoever could not be heard.
  await city.clock.advance(11_000)
  await eventually('nothing is compared with the time any more', () => (waiting(city) === 0 ? true : undefined))
  assert.deepEqual([ready(city).total, ready(city).ids[0]], [MANY + 1, 'al-0'])
  assert.equal(log.head, head)
  assert.equal(city.beads.need('al-0').defer_until, date)
  city.clock.step(-20_000)
  assert.deepEqual(ready(city).ids, ['al-past'], 'also where the clock is set back')
  await deferrals.stop()
  assert.equal(city.clock.pending, 0)
})
