import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { WorkConfig } from './city.ts'
import { Expiry } from './expiry.ts'

const DAY_MS = 86_400_000
const silent: Logger = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }
const WEEK: WorkConfig['beads']['policies'] = { task: { delete_after_close: '7d' } }

async function expiryOf(city: WorkStore, policies: () => WorkConfig['beads']['policies'] = () => WEEK) {
  const { db, log } = city.store
  const expiry = new Expiry({
    db,
    events: log,
    beads: city.beads,
    steps: city.steps,
    clock: city.clock,
    log: silent,
    policies,
  })
  await expiry.start()
  return Object.assign(expiry, { [Symbol.dispose]: () => void expiry.stop() })
}
/** Days in which nothing wakes the process, and a few seconds in which it does what is due. */
async function pass({ clock }: WorkStore, ms: number): Promise<void> {
  clock.pause(ms - 5_000)
  await clock.advance(5_000)
}
const close = (city: WorkStore, ...ids: readonly string[]) =>
  city.store.db.write((tx) => {
    for (const id of ids) city.beads.change(tx, id, { status: 'closed' }, 'test')
  })
const left = (city: WorkStore) => city.store.db.all('SELECT id FROM beads ORDER BY id').map(({ id }) => String(id))
const becomes = (city: WorkStore, ids: readonly string[]) =>
  eventually(`what is left is ${ids.join(', ')}`, () => (left(city).join() === ids.join() ? true : undefined))

test('closed beads of a type are deleted when their time is over and not before, each is told of, others stay', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-2', 'al-open']) await city.bead(id)
  await city.bead('al-bug', { issue_type: 'bug' })
  using expiry = await expiryOf(city)
  await close(city, 'al-1', 'al-bug')
  await pass(city, 2 * DAY_MS)
  await close(city, 'al-2')
  await pass(city, 5 * DAY_MS - 1_000)
  assert.deepEqual(left(city), ['al-1', 'al-2', 'al-bug', 'al-open'])
  const head = city.store.log.head
  await city.clock.advance(2_000)
  await becomes(city, ['al-2', 'al-bug', 'al-open'])
  assert.deepEqual(city.events(head), [['bead.deleted', 'al-1']])
  await pass(city, 2 * DAY_MS)
  await becomes(city, ['al-bug', 'al-open'])
  await expiry.stop()
  assert.equal(city.clock.pending, 0)
})

test('a closed bead stays as long as something open is below it, waits for it or tracks it', async () => {
  using city = openWorkStore()
  for (const id of ['al-parent', 'al-needed', 'al-tracked', 'al-related']) await city.bead(id)
  await city.bead('al-child', { parent: 'al-parent', issue_type: 'bug' })
  await city.bead('al-waits', { issue_type: 'bug', edges: [{ depends_on_id: 'al-needed', type: 'waits-for' }] })
  await city.bead('al-x-convoy', { issue_type: 'convoy', edges: [{ depends_on_id: 'al-tracked', type: 'tracks' }] })
  await city.bead('al-x-other', { issue_type: 'bug', edges: [{ depends_on_id: 'al-related', type: 'related' }] })
  using _ = await expiryOf(city)
  await close(city, 'al-parent', 'al-needed', 'al-tracked', 'al-related')
  await pass(city, 8 * DAY_MS)
  const users = ['al-child', 'al-needed', 'al-parent', 'al-tracked', 'al-waits', 'al-x-convoy', 'al-x-other']
  await becomes(city, users)
  assert.deepEqual(city.beads.need('al-x-other').dependencies, [], 'what was only related is dropped')
  await close(city, 'al-child', 'al-waits', 'al-x-convoy')
  await pass(city, DAY_MS)
  await becomes(city, ['al-child', 'al-waits', 'al-x-convoy', 'al-x-other'])
  assert.equal(city.beads.need('al-child').parent, null, 'a closed child of another type stays, without its parent')
})

test('of a parent and a child that are closed together the child is deleted first', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  await city.bead('al-2', { parent: 'al-1' })
  using _ = await expiryOf(city)
  await close(city, 'al-1', 'al-2')
  const head = city.store.log.head
  await pass(city, 8 * DAY_MS)
  await becomes(city, [])
  assert.deepEqual(city.events(head), [
    ['bead.deleted', 'al-2'],
    ['bead.deleted', 'al-1'],
  ])
})

test('a policy that is set, changed or taken away acts at once', async () => {
  using city = openWorkStore()
  let policies: WorkConfig['beads']['policies']
  using expiry = await expiryOf(city, () => policies)
  assert.equal(city.clock.pending, 0, 'without a policy there is no timer')
  await city.bead('al-1')
  await close(city, 'al-1')
  await pass(city, DAY_MS)
  policies = WEEK
  expiry.configured()
  await city.clock.advance(5_000)
  assert.deepEqual(left(city), ['al-1'])
  policies = { task: { delete_after_close: 'off' }, bug: {} }
  expiry.configured()
  assert.equal(city.clock.pending, 0)
  await pass(city, 8 * DAY_MS)
  assert.deepEqual(left(city), ['al-1'])
  policies = { task: { delete_after_close: '1h' } }
  expiry.configured()
  await city.clock.advance(2_000)
  await becomes(city, [])
})

test('very many go a slice at a time, each once, also after a restart in the middle', async () => {
  using city = openWorkStore()
  const ids = Array.from({ length: 900 }, (_, n) => `al-${String(n).padStart(3, '0')}`)
  await city.store.db.write((tx) => {
    const parentOf = (n: number) => (n < 10 ? {} : { parent: ids[n % 10] ?? '' })
    for (const [n, id] of ids.entries()) city.beads.insert(tx, { id, title: 'x', ...parentOf(n) }, 'test')
  })
  await close(city, ...ids)
  const head = city.store.log.head
  {
    using first = await expiryOf(city)
    const { db } = city.store
    const stopped = new Promise<void>((done) => {
      const unlisten = city.store.log.onCommit((events) => {
        if (!events.some(({ type }) => type === 'bead.deleted')) return
        unlisten()
        void first.stop()
        done()
      })
    })
    await pass(city, 7 * DAY_MS + 2_000)
    await stopped
    const some = Number(db.get('SELECT count(*) AS n FROM beads')?.n)
    assert.ok(some > 0 && some < ids.length, `${some} are left`)
  }
  using _ = await expiryOf(city)
  await city.clock.advance(2_000)
  await becomes(city, [])
  const gone = city.events(head).filter(([type]) => type === 'bead.deleted')
  assert.equal(gone.length, ids.length)
  assert.equal(new Set(gone.map(([, id]) => id)).size, ids.length)
})

test('a clock that jumps by more than a day deletes nothing until it has been so for a day', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  using _ = await expiryOf(city)
  await close(city, 'al-1')
  city.clock.step(30 * DAY_MS)
  await pass(city, DAY_MS - 3_600_000)
  assert.deepEqual(left(city), ['al-1'])
  await pass(city, DAY_MS)
  await becomes(city, [])
})
