import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import type { Tx } from '../../kernel/database.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { REACTIONS_SCHEMA, Reactions } from '../../kernel/reactions.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { convoyBeads } from '../../supervisor/views/convoys.ts'
import { BEADS_SCHEMA } from '../beads/store/schema.ts'
import { type BeadDraft, BeadStore } from '../beads/store/store.ts'
import { closeConvoy, convoyReaction, removeConvoy, sweepConvoys } from './completion.ts'
import { CONVOYS_SCHEMA } from './schema.ts'

/** Beads, convoys and the reaction to them, on a real store, without a server. */
class World implements AsyncDisposable {
  readonly #directory = temporaryDirectory()
  readonly #clock = new ManualClock()
  readonly store = openStore({
    path: join(this.#directory.path, 'city.db'),
    migrations: migrationsOf('test', STORE_SCHEMA, ...BEADS_SCHEMA, CONVOYS_SCHEMA, REACTIONS_SCHEMA),
    owner: 'a test',
    clock: this.#clock,
  })
  readonly beads = new BeadStore({ db: this.store.db, log: this.store.log, clock: this.#clock })
  readonly deps = {
    db: this.store.db,
    log: this.store.log,
    beads: convoyBeads({
      store: this.store,
      beads: this.beads,
      config: () => ({ prefix: 'al', rigs: [], agents: [], named_sessions: [], beads: {} }),
    }),
  }
  #reactions: Reactions | undefined

  async react(): Promise<void> {
    await this.stop()
    this.#reactions = new Reactions({
      db: this.store.db,
      log: this.store.log,
      clock: this.#clock,
      logger: { error: fail, warn: fail, info() {}, debug() {}, isLevelEnabled: () => false },
      reactions: [convoyReaction(this.deps)],
      skipped: fail,
    })
    await this.#reactions.start()
  }

  stop = async (): Promise<void> => this.#reactions?.stop()
  write = async (change: (tx: Tx) => unknown): Promise<void> => {
    await this.store.db.write((tx) => void change(tx))
    for (let round = 0; round < 10; round++) await settled()
  }
  bead = (tx: Tx, id: string, more: Partial<BeadDraft> = {}) =>
    this.beads.insert(tx, { id, title: id, ...more }, 'test')
  /** As any client makes one: by a bead of the type. */
  convoy = (tx: Tx, id: string, members: readonly string[], more: Partial<BeadDraft> = {}) =>
    this.bead(tx, id, {
      issue_type: 'convoy',
      edges: members.map((member) => ({ depends_on_id: member, type: 'tracks' })),
      ...more,
    })
  close = (tx: Tx, id: string) => this.beads.change(tx, id, { status: 'closed' }, 'test')
  status = (id: string) => this.beads.need(id).status

  /** What the log says of the ends of convoys: type, subject, and members closed of all. */
  said(): readonly string[] {
    return this.#events(['convoy.created', 'convoy.closed']).map(
      ({ type, subject, payload }) => `${type} ${subject} ${payload.closed}/${payload.total}`,
    )
  }
  /** Of their members: subject, who came and who went. */
  moved(): readonly string[] {
    return this.#events(['convoy.updated']).map(
      ({ subject, payload }) => `${subject} +${payload.added} -${payload.removed}`,
    )
  }

  #events(types: readonly string[]) {
    const { log } = this.store
    const { events } = log.scan({ types }, { after: 0, upTo: log.head }, 'asc', 10_000)
    return events.map(({ type, subject, envelope }) => ({ type, subject, payload: JSON.parse(envelope).payload }))
  }

  async [Symbol.asyncDispose]() {
    await this.stop()
    this.store.db.close()
    this.#directory[Symbol.dispose]()
  }
}

const fail = (...said: readonly unknown[]): never => assert.fail(JSON.stringify(said))

test('a convoy closes with its last member, says so once, and takes along what tracks it', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => [
    world.bead(tx, 'al-a'),
    world.bead(tx, 'al-b'),
    world.convoy(tx, 'al-in', ['al-a', 'al-b']),
    world.convoy(tx, 'al-out', ['al-in']),
  ])
  await world.write((tx) => world.close(tx, 'al-a'))
  assert.equal(world.status('al-in'), 'open')
  await world.write((tx) => world.close(tx, 'al-b'))
  assert.equal(world.status('al-in'), 'closed')
  assert.equal(world.beads.need('al-in').close_reason, 'all children closed')
  assert.equal(world.status('al-out'), 'closed')
  assert.deepEqual(world.said(), [
    'convoy.created al-in 0/2',
    'convoy.created al-out 0/1',
    'convoy.closed al-in 2/2',
    'convoy.closed al-out 1/1',
  ])
})

test('what was closed while nothing reacted is done when reactions start again, once', async () => {
  await using world = new World()
  await world.write((tx) => [world.bead(tx, 'al-a'), world.convoy(tx, 'al-c', ['al-a'])])
  await world.write((tx) => world.close(tx, 'al-a'))
  assert.equal(world.status('al-c'), 'open')
  await world.react()
  await world.write(() => {})
  await world.react()
  await world.write(() => {})
  assert.equal(world.status('al-c'), 'closed')
  assert.deepEqual(world.said(), ['convoy.created al-c 1/1', 'convoy.closed al-c 1/1'])
})

test('convoys that are owned, empty, or have a member that is not there do not close by themselves', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => [
    world.bead(tx, 'al-a'),
    world.bead(tx, 'al-b'),
    world.convoy(tx, 'al-owned', ['al-a'], { labels: ['owned'] }),
    world.convoy(tx, 'al-empty', []),
    world.convoy(tx, 'al-gap', ['al-a', 'al-nobody']),
  ])
  await world.write((tx) => [world.close(tx, 'al-a'), world.close(tx, 'al-b')])
  assert.deepEqual(['al-owned', 'al-empty', 'al-gap'].map(world.status), ['open', 'open', 'open'])
  await world.write((tx) => world.beads.change(tx, 'al-owned', { labels: [] }, 'test'))
  assert.equal(world.status('al-owned'), 'closed', 'nobody owns it any more')
  await world.write((tx) => world.bead(tx, 'al-nobody', { status: 'closed' }))
  assert.equal(world.status('al-gap'), 'closed', 'what was missing came, and was done')
})

test('removing or deleting the last open member completes a convoy', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => [
    world.bead(tx, 'al-a'),
    world.bead(tx, 'al-b'),
    world.bead(tx, 'al-x'),
    world.convoy(tx, 'al-1', ['al-a', 'al-b']),
    world.convoy(tx, 'al-2', ['al-a', 'al-x']),
  ])
  await world.write((tx) => world.close(tx, 'al-a'))
  await world.write((tx) =>
    world.beads.change(tx, 'al-1', { remove_edges: [{ depends_on_id: 'al-b', type: 'tracks' }] }, 'test'),
  )
  assert.equal(world.status('al-1'), 'closed')
  await world.write((tx) => world.beads.remove(tx, 'al-x', 'test', true))
  assert.equal(world.status('al-2'), 'closed')
})

test('children are members: the last one that closes, leaves or goes completes their convoy', async () => {
  await using world = new World()
  await world.react()
  const child = (tx: Tx, id: string, parent: string) => world.bead(tx, id, { parent })
  await world.write((tx) => {
    for (const id of ['al-closes', 'al-leaves', 'al-goes']) world.convoy(tx, id, [])
    for (const id of ['al-closes', 'al-leaves', 'al-goes']) {
      child(tx, `${id}.1`, id)
      child(tx, `${id}.2`, id)
    }
  })
  await world.write((tx) => {
    for (const id of ['al-closes', 'al-leaves', 'al-goes']) world.close(tx, `${id}.1`)
  })
  assert.deepEqual(['al-closes', 'al-leaves', 'al-goes'].map(world.status), ['open', 'open', 'open'])
  await world.write((tx) => world.close(tx, 'al-closes.2'))
  await world.write((tx) => world.beads.change(tx, 'al-leaves.2', { parent: null }, 'test'))
  await world.write((tx) => world.beads.remove(tx, 'al-goes.2', 'test', false))
  assert.deepEqual(['al-closes', 'al-leaves', 'al-goes'].map(world.status), ['closed', 'closed', 'closed'])
  assert.deepEqual(world.said().slice(3), [
    'convoy.closed al-closes 2/2',
    'convoy.closed al-leaves 1/1',
    'convoy.closed al-goes 1/1',
  ])
})

test('the log says who came and who went, whatever did it, and whatever was down meanwhile; not of a new convoy', async () => {
  await using world = new World()
  await world.react()
  const parent = (tx: Tx, id: string, to: string | null) => world.beads.change(tx, id, { parent: to }, 'test')
  const track = (tx: Tx, convoy: string, member: string) =>
    world.beads.change(tx, convoy, { add_edges: [{ depends_on_id: member, type: 'tracks' }] }, 'test')
  await world.write((tx) => {
    for (const id of ['al-a', 'al-b', 'al-d']) world.bead(tx, id)
    world.bead(tx, 'al-epic')
    world.convoy(tx, 'al-1', ['al-a'])
    world.convoy(tx, 'al-2', [])
    parent(tx, 'al-d', 'al-1')
  })
  assert.deepEqual(world.moved(), [], 'that they are in it is said as it is created')
  await world.write((tx) => parent(tx, 'al-d', 'al-2'))
  await world.write((tx) => track(tx, 'al-2', 'al-d'))
  await world.write((tx) => parent(tx, 'al-d', 'al-epic'))
  await world.write((tx) => parent(tx, 'al-b', 'al-epic'))
  assert.deepEqual(world.moved(), ['al-1 + -al-d', 'al-2 +al-d -'])
  await world.stop()
  await world.write((tx) => track(tx, 'al-1', 'al-b'))
  await world.write((tx) => track(tx, 'al-2', 'al-b'))
  await world.write((tx) => world.beads.remove(tx, 'al-b', 'test', true))
  await world.write((tx) => track(tx, 'al-1', 'al-epic'))
  await world.write((tx) => world.beads.remove(tx, 'al-a', 'test', true))
  await world.react()
  await world.write(() => {})
  assert.deepEqual(world.moved().slice(2), ['al-1 +al-epic -al-a'], 'who came and went again is no news')
  await world.write((tx) => world.beads.remove(tx, 'al-1', 'test', true))
  assert.equal(world.moved().length, 3)
})

test('however a convoy is closed, the log says so once; reopened and closed again, once more', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => [world.bead(tx, 'al-a'), world.convoy(tx, 'al-c', ['al-a'])])
  await world.write((tx) => world.close(tx, 'al-c'))
  await world.write((tx) => world.beads.change(tx, 'al-c', { status: 'open' }, 'test'))
  await world.write((tx) => closeConvoy(world.deps, tx, 'al-c', 'enough', 'test'))
  await world.write((tx) => world.close(tx, 'al-c'))
  assert.deepEqual(world.said(), ['convoy.created al-c 0/1', 'convoy.closed al-c 0/1', 'convoy.closed al-c 0/1'])
})

test('a convoy that is imported as closed is no news of today', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => world.convoy(tx, 'al-old', [], { status: 'closed' }))
  assert.deepEqual(world.said(), ['convoy.created al-old 0/0'])
  // Made and closed before anybody looked: both are said.
  await world.write((tx) => [world.convoy(tx, 'al-new', []), world.close(tx, 'al-new')])
  assert.deepEqual(world.said().slice(1), ['convoy.created al-new 0/0', 'convoy.closed al-new 0/0'])
})

test('beads that are in no convoy cost no write of the reaction', async () => {
  await using world = new World()
  await world.react()
  await world.write((tx) => [world.bead(tx, 'al-a'), world.bead(tx, 'al-b'), world.convoy(tx, 'al-c', ['al-b'])])
  const cursor = () => world.store.db.get('SELECT seq FROM reaction_cursors')?.seq
  const before = cursor()
  await world.write((tx) => world.close(tx, 'al-a'))
  assert.equal(cursor(), before)
})

test('the sweep closes what came complete and what that completes, never owned or empty ones', async () => {
  await using world = new World()
  await world.write((tx) => {
    world.bead(tx, 'al-done', { status: 'closed' })
    for (let i = 0; i < 120; i++) world.convoy(tx, `al-c${i}`, ['al-done'])
    world.convoy(
      tx,
      'al-all',
      Array.from({ length: 120 }, (_, i) => `al-c${i}`),
    )
    world.convoy(tx, 'al-owned', ['al-done'], { labels: ['owned'] })
    world.convoy(tx, 'al-empty', [])
  })
  const { checked, closed, truncated } = await sweepConvoys(world.deps, 'api')
  assert.equal(checked, 123)
  assert.equal(closed.length, 121)
  assert.equal(closed.at(-1), 'al-all')
  assert.equal(truncated, false)
  const { head } = world.store.log
  assert.deepEqual(await sweepConvoys(world.deps, 'api'), { checked: 2, closed: [], truncated: false })
  assert.equal(world.store.log.head, head)
})

test('a convoy with thousands of children of its own is deleted a part at a time, closes on the way never, and they stay', async () => {
  await using world = new World()
  await world.react()
  const ids = Array.from({ length: 2_000 }, (_, n) => `al-${n}`)
  await world.write((tx) => {
    world.convoy(tx, 'al-x', [])
    for (const id of ids) world.bead(tx, id, { parent: 'al-x' })
    for (const id of ids.slice(0, 1_000)) world.close(tx, id)
  })
  const commits: number[] = []
  world.store.log.onCommit((events) => commits.push(events.filter(({ type }) => type === 'bead.updated').length))
  const { revision } = world.beads.need('al-x')
  await assert.rejects(removeConvoy(world.deps, 'al-x', `"${revision + 1}"`, 'ann'), { code: 'precondition-failed' })
  assert.equal(world.beads.need('al-0').parent, 'al-x')
  await removeConvoy(world.deps, 'al-x', `"${revision}"`, 'ann')
  assert.ok(Math.max(...commits) <= 150, `children in one write: ${Math.max(...commits)}`)
  assert.equal(world.beads.find('al-x'), undefined)
  assert.deepEqual(
    world.beads.load(ids).map(({ parent }) => parent),
    ids.map(() => null),
  )
  assert.deepEqual(world.said(), ['convoy.created al-x 1000/2000'])
})

test('a convoy that another one tracks is not deleted, and nothing of it leaves', async () => {
  await using world = new World()
  const ids = Array.from({ length: 400 }, (_, n) => `al-${n}`)
  await world.write((tx) => {
    world.convoy(tx, 'al-x', [])
    for (const id of ids) world.bead(tx, id, { parent: 'al-x' })
    world.convoy(tx, 'al-y', ['al-x'])
  })
  await assert.rejects(removeConvoy(world.deps, 'al-x', undefined, 'ann'), { code: 'still-referenced' })
  assert.ok(world.beads.load(ids).every(({ parent }) => parent === 'al-x'))
})
