import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled } from '../../../../test/support/manual-clock.ts'
import { LEASE_MS, openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { Slice } from '../../../kernel/due.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Claimant } from './claim.ts'
import { leaseTimer } from './lease.ts'

const SILENT = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }

const claim = (city: WorkStore, id: string, claimant: Claimant) =>
  city.store.db.write((tx) => city.claims.claim(tx, id, claimant))

async function claimed(city: WorkStore, id: string, claimant: Claimant) {
  const outcome = await claim(city, id, claimant)
  assert.ok(outcome.claimed)
  return outcome
}

/** A city whose leases lapse by a timer, as in a running one. */
function withTimer(refuse: () => boolean = () => false, lives?: (sessionId: string) => boolean) {
  const city = openWorkStore((expiresAt) => timer.noticed(expiresAt), lives)
  const { db } = city.store
  const timer = leaseTimer({
    db: {
      countDue: () => {},
      write: (change) => (refuse() ? Promise.reject(problem('unavailable', 'no')) : db.write(change)),
    },
    claims: city.claims,
    clock: city.clock,
    log: SILENT,
  })
  return { city, timer }
}

test('of many who claim at once one gets it, and the others are told who', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const names = Array.from({ length: 20 }, (_, n) => `w${n}`)
  const outcomes = await Promise.all(names.map((assignee) => claim(city, 'al-1', { assignee })))
  assert.equal(outcomes.filter((outcome) => outcome.claimed).length, 1)
  const holder = city.beads.need('al-1').assignee
  for (const outcome of outcomes) {
    if (outcome.claimed) continue
    assert.equal(outcome.refusal.detail, `conflict: ${holder} has al-1`)
    assert.equal(outcome.refusal.options.errors?.[0]?.value, holder)
  }
  assert.equal(city.store.log.countOfType('bead.claim_rejected'), 19)
  assert.equal(city.store.log.countOfType('bead.claimed'), 1)
})

test('who has it may claim it again: that renews the lease, and only another session is news', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const first = await claimed(city, 'al-1', { assignee: 'ann', session_id: 's1', session_name: 'one', branch: 'b' })
  assert.deepEqual([first.how, first.bead.lease_expires_at], ['claimed', city.clock.now() + LEASE_MS])
  const { head } = city.store.log
  city.clock.step(1_000)
  const again = await claimed(city, 'al-1', { assignee: 'ann', session_id: 's1' })
  assert.deepEqual(
    [again.how, again.bead.lease_expires_at, again.bead.revision, again.bead.work_branch],
    ['renewed', city.clock.now() + LEASE_MS, first.bead.revision, 'b'],
  )
  assert.equal(again.bead.session_name, 'one', 'the same session has the name it had')
  // The name is the session's own: it is the same one after a crash.
  const other = await claimed(city, 'al-1', { assignee: 'ann', session_id: 's2', session_name: 'ann' })
  assert.equal(other.bead.session_id, 's2')
  assert.equal(city.events(head).filter(([type]) => type === 'bead.claimed').length, 1)
})

test('of the sessions of one pool only the one that has a bead may claim it again, until its lease ends', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  await claimed(city, 'al-1', { assignee: 'pool', session_id: 's1' })
  const { head } = city.store.log
  const claim = (session_id: string) =>
    city.store.db.write((tx) => city.claims.claim(tx, 'al-1', { assignee: 'pool', session_id }))
  const late = await claim('s2')
  assert.ok(!late.claimed)
  assert.equal(late.refusal.detail, 'conflict: pool has al-1, in session s1')
  assert.deepEqual(late.refusal.options.errors, [
    { location: 'body.session_id', message: 'is not the session that has it', value: 's1' },
  ])
  assert.deepEqual(
    city.events(head).map(([type]) => type),
    ['bead.claim_rejected'],
  )
  assert.ok((await claim('s1')).claimed)
  city.clock.step(LEASE_MS)
  await city.store.db.write((tx) => city.claims.expire(tx, new Slice(city.clock)))
  assert.ok((await claim('s2')).claimed)
})

test('a heartbeat keeps a claim and is no change of the bead; without a claim there is nothing to keep', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const beat = (assignee?: string) => city.store.db.write((tx) => city.claims.heartbeat(tx, 'al-1', assignee))
  await assert.rejects(beat(), { code: 'conflict-wrong-state' })
  await city.store.db.write((tx) => city.beads.change(tx, 'al-1', { status: 'in_progress', assignee: 'ann' }, 'api'))
  await assert.rejects(beat(), { code: 'conflict-wrong-state' })
  const { bead } = await claimed(city, 'al-1', { assignee: 'ann' })
  const { head } = city.store.log
  city.clock.step(60_000)
  const kept = await beat('ann')
  assert.equal(kept.lease_expires_at, city.clock.now() + LEASE_MS)
  assert.equal(kept.revision, bead.revision)
  assert.equal(city.store.log.head, head)
  await assert.rejects(beat('bob'), { code: 'conflict-claimed' })
})

test('a release opens it for anybody, and is refused to who does not have it', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const release = (assignee?: string) => city.store.db.write((tx) => city.claims.release(tx, 'al-1', assignee))
  await assert.rejects(release(), { code: 'conflict-wrong-state' })
  await claimed(city, 'al-1', { assignee: 'ann', session_id: 's1', branch: 'b' })
  await assert.rejects(release('bob'), { code: 'conflict-claimed' })
  const { head } = city.store.log
  const open = await release('ann')
  assert.deepEqual(
    [open.status, open.assignee, open.session_id, open.lease_expires_at, open.work_branch],
    ['open', null, null, null, 'b'],
  )
  assert.deepEqual(
    city.events(head).map(([type]) => type),
    ['bead.updated', 'bead.released'],
  )
})

test('open siblings of a continuation group are handed over with the first, and stay open', async () => {
  using city = openWorkStore()
  const group = (name: string) => ({
    root_bead_id: 'al-r',
    routed_to: 'pool',
    metadata: { 'svc.continuation_group': name },
  })
  await city.bead('al-1', group('g'))
  await city.bead('al-2', group('g'))
  await city.bead('al-3', { ...group('g'), assignee: 'bob' })
  await city.bead('al-4', group('h'))
  await city.bead('al-5', { ...group('g'), routed_to: 'elsewhere' })
  const { continuation } = await claimed(city, 'al-1', { assignee: 'ann' })
  assert.deepEqual(continuation, ['al-2'])
  const next = city.beads.need('al-2')
  assert.deepEqual([next.status, next.assignee, next.lease_expires_at], ['open', 'ann', null])
  assert.equal((await claimed(city, 'al-2', { assignee: 'ann' })).how, 'claimed')
})

test('the claims of a session are renewed and given back together', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-2', 'al-3']) await city.bead(id)
  await claimed(city, 'al-1', { assignee: 'ann', session_id: 's1' })
  await claimed(city, 'al-2', { assignee: 'ann', session_id: 's1' })
  await claimed(city, 'al-3', { assignee: 'bob', session_id: 's2' })
  const before = city.beads.need('al-3').lease_expires_at
  city.clock.step(5_000)
  await city.store.db.write((tx) => city.claims.renewForSession(tx, 's1'))
  assert.equal(city.beads.need('al-1').lease_expires_at, city.clock.now() + LEASE_MS)
  assert.equal(city.beads.need('al-3').lease_expires_at, before)
  const ids = await city.store.db.write((tx) => city.claims.releaseForSession(tx, 's1', 'session_closed'))
  assert.deepEqual(ids, ['al-1', 'al-2'])
  assert.equal(city.beads.need('al-2').assignee, null)
})

test('what nobody renews is open again when its lease ends, not sooner, and no timer is left', async () => {
  const { city, timer } = withTimer()
  using _ = city
  await timer.start()
  await city.bead('al-1')
  await city.bead('al-2')
  await claimed(city, 'al-1', { assignee: 'ann' })
  await city.clock.advance(LEASE_MS - 1_000)
  await claimed(city, 'al-2', { assignee: 'bob' })
  await city.clock.advance(999)
  assert.equal(city.beads.need('al-1').status, 'in_progress')
  const { head } = city.store.log
  await city.clock.advance(1)
  const lapsed = city.beads.need('al-1')
  assert.deepEqual([lapsed.status, lapsed.assignee, lapsed.lease_expires_at], ['open', null, null])
  assert.equal(city.beads.need('al-2').status, 'in_progress')
  assert.deepEqual(
    city.events(head).map(([type, id]) => [type, id]),
    [
      ['bead.updated', 'al-1'],
      ['bead.lease_expired', 'al-1'],
    ],
  )
  await city.clock.advance(LEASE_MS)
  assert.equal(city.beads.need('al-2').status, 'open')
  assert.equal(city.clock.pending, 0)
  await timer.stop()
})

test('the lease of a session that lives is renewed when its time comes, and lapses once it is dead', async () => {
  const living = new Set(['s1'])
  const { city, timer } = withTimer(undefined, (session) => living.has(session))
  using _ = city
  await timer.start()
  for (const id of ['al-1', 'al-2', 'al-3']) await city.bead(id)
  await claimed(city, 'al-1', { assignee: 'ann', session_id: 's1' })
  await claimed(city, 'al-2', { assignee: 'ann', session_id: 's1' })
  await claimed(city, 'al-3', { assignee: 'bob', session_id: 's2' })
  // Handed over to somebody of whom nothing is known.
  await city.store.db.write((tx) => city.beads.change(tx, 'al-2', { assignee: 'eve' }, 'api'))
  const { head } = city.store.log
  await city.clock.advance(LEASE_MS)
  const statuses = () => ['al-1', 'al-2', 'al-3'].map((id) => city.beads.need(id).status)
  assert.deepEqual(statuses(), ['in_progress', 'open', 'open'])
  assert.equal(city.beads.need('al-1').lease_expires_at, city.clock.now() + LEASE_MS)
  assert.equal(city.events(head).filter(([, id]) => id === 'al-1').length, 0)
  living.clear()
  await city.clock.advance(LEASE_MS)
  assert.deepEqual(statuses(), ['open', 'open', 'open'])
  await timer.stop()
})

test('after a restart leases run in full again, and so they do after the machine slept', async () => {
  const { city, timer } = withTimer()
  using _ = city
  await timer.start()
  await city.bead('al-1')
  await claimed(city, 'al-1', { assignee: 'ann' })
  await timer.stop()
  city.clock.step(10 * LEASE_MS)
  const next = leaseTimer({ db: city.store.db, claims: city.claims, clock: city.clock, log: SILENT })
  await next.start()
  assert.equal(city.beads.need('al-1').lease_expires_at, city.clock.now() + LEASE_MS)
  // The wall clock goes on while timers stand still.
  city.clock.step(8 * 3_600_000)
  await city.clock.advance(30_000)
  assert.equal(city.beads.need('al-1').status, 'in_progress')
  assert.equal(city.beads.need('al-1').lease_expires_at, city.clock.now() + LEASE_MS)
  await city.clock.advance(LEASE_MS)
  assert.equal(city.beads.need('al-1').status, 'open')
  await next.stop()
})

test('a store that takes no writes for a while delays the end of a lease, and does not lose it', async () => {
  let refusing = false
  const { city, timer } = withTimer(() => refusing)
  using _ = city
  await timer.start()
  await city.bead('al-1')
  await claimed(city, 'al-1', { assignee: 'ann' })
  refusing = true
  await city.clock.advance(LEASE_MS)
  assert.equal(city.beads.need('al-1').status, 'in_progress')
  refusing = false
  await city.clock.advance(5_000)
  await settled()
  assert.equal(city.beads.need('al-1').status, 'open')
  await timer.stop()
})

test('lease: a pause of the process does not count, and a renewal that waited in the socket is heard first', async () => {
  const { city, timer } = withTimer()
  using _ = city
  await timer.start()
  await city.bead('al-1')
  await claimed(city, 'al-1', { assignee: 'ann' })
  await city.clock.advance(LEASE_MS - 10_000)
  city.clock.pause(25_000)
  await city.clock.advance(0)
  assert.equal(city.beads.need('al-1').status, 'in_progress', 'its time was over for 15 s')
  await city.store.db.write((tx) => city.claims.heartbeat(tx, 'al-1', 'ann'))
  await city.clock.advance(LEASE_MS - 1)
  assert.equal(city.beads.need('al-1').status, 'in_progress')
  await city.clock.advance(2)
  assert.equal(city.beads.need('al-1').status, 'open')
  await timer.stop()
})

test('lease: a clock that is set back a day makes no lease longer than it is', async () => {
  const { city, timer } = withTimer()
  using _ = city
  await timer.start()
  await city.bead('al-1')
  await claimed(city, 'al-1', { assignee: 'ann' })
  city.clock.step(-86_400_000)
  await city.clock.advance(LEASE_MS + 31_000)
  assert.equal(city.beads.need('al-1').status, 'open')
  await timer.stop()
})
