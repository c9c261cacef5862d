import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { type Agent, OWNER } from '../../../kernel/caller.ts'
import { heldAbove } from '../store/deps.ts'
import type { WorkCity } from './city.ts'
import { closerOf, freeSubject, openParts } from './closing.ts'

const ALICE: Agent = {
  kind: 'agent',
  city: 'alpha',
  session: 's-alice',
  name: 'calc/alice',
  api: 'work',
  isSelf: (handle) => handle === 's-alice',
  goesBy: (name) => name === 'calc/alice',
}

/** A bug with a live molecule `al-m`, whose step is with alice. */
async function openBug(city: WorkStore): Promise<{ readonly city: WorkCity; readonly canceled: string[] }> {
  const canceled: string[] = []
  await city.bead('al-bug')
  await city.bead('al-step', { root_bead_id: 'al-m' })
  await city.store.db.write((tx) => city.claims.claim(tx, 'al-step', { assignee: 'calc/alice', session_id: 's-alice' }))
  const live = { bead: 'al-bug', molecule: 'al-m', is: 'subject', live: true, whole: true } as const
  return {
    canceled,
    city: {
      ...city,
      steps: {
        of: () => undefined,
        ties: (beads) => (beads.includes('al-bug') && canceled.length === 0 ? [live] : []),
        cancel: (_, molecule) => void canceled.push(molecule),
      },
    },
  }
}

test('close: what a live molecule is about is refused, and the refusal names the way', async () => {
  using store = openWorkStore()
  const { city, canceled } = await openBug(store)
  const free = (said: Partial<Parameters<typeof freeSubject>[3]>) =>
    store.store.db.write(
      (tx) => freeSubject(tx, city, city.beads.need('al-bug'), { caller: OWNER, actor: 'api', ...said }).id,
    )
  for (const said of [{}, { session: 's-bob' }, { caller: { ...ALICE, session: 's-2', name: 'calc/bob' } }])
    await assert.rejects(free(said), { code: 'molecule-live', message: /svcctl bead close al-bug --cancel/ })
  // Whoever works on a step may close it: that can be the work.
  assert.equal(await free({ session: 's-alice' }), 'al-bug')
  assert.equal(await free({ caller: ALICE }), 'al-bug')
  assert.deepEqual(canceled, [])
  assert.equal(await free({ cancel: true }), 'al-bug')
  assert.deepEqual(canceled, ['al-m'])
  assert.equal(await free({}), 'al-bug')
})

test('close: the actor is the session that says so, under the name that its claim has', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  await city.store.db.write((tx) => city.claims.claim(tx, 'al-1', { assignee: 'calc/alice', session_id: 's-alice' }))
  const bead = city.beads.need('al-1')
  const people = { ...city.people, canonical: (name: string) => (name === 's-bob' ? 'calc/bob' : name) }
  const closer = (session: string | undefined, actor = 'api') =>
    closerOf(people, bead, { caller: OWNER, actor, session })
  assert.deepEqual(
    [closer('s-alice'), closer('s-bob'), closer('s-x'), closer(undefined), closer(''), closer('s-bob', 'token:ci')],
    ['calc/alice', 'calc/bob', 's-x', 'api', 'api', 'token:ci'],
  )
})

test('close: parts that stay open are named, at most five of them', async () => {
  using city = openWorkStore()
  await city.bead('al-epic')
  for (let part = 0; part < 7; part++)
    await city.bead(`al-p${part}`, { parent: 'al-epic', ...(part === 0 ? { status: 'closed' } : {}) })
  assert.deepEqual(openParts(city.store.db, city.beads.need('al-epic')), [
    'al-epic is closed, and parts of it are not: al-p1, al-p2, al-p3, al-p4, al-p5, others',
  ])
  assert.deepEqual(openParts(city.store.db, city.beads.need('al-p1')), [])
})

test('get: a bead below a deferred, blocked or closed one says so', async () => {
  using city = openWorkStore()
  const until = city.clock.now() + 60_000
  await city.bead('al-blocker')
  await city.bead('al-top', { edges: [{ depends_on_id: 'al-blocker', type: 'blocks' }] })
  await city.bead('al-epic', { parent: 'al-top', defer_until: until })
  await city.bead('al-child', { parent: 'al-epic' })
  const held = (now = city.clock.now()) => heldAbove(city.beads, city.store.db, city.beads.need('al-child'), now)
  assert.deepEqual(held(), [
    `its parent al-epic is deferred until ${new Date(until).toISOString()}`,
    'al-top, above its parent, is blocked: it waits for al-blocker (open)',
  ])
  await city.store.db.write((tx) => city.beads.change(tx, 'al-blocker', { status: 'closed' }, 'test'))
  assert.deepEqual(held(until + 1), [])
  await city.store.db.write((tx) => city.beads.change(tx, 'al-epic', { status: 'closed' }, 'test'))
  assert.deepEqual(held(until + 1), ['its parent al-epic is closed'])
})
