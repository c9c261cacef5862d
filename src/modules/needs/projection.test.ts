import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../../kernel/database.ts'
import type { NeedDraft, NeedSource } from '../../kernel/needs.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { Projection } from './projection.ts'
import { compareNeeds, countNeeds, keyOf, NEEDS_SCHEMA, type NeedKey, type NeedRow, pageOfNeeds } from './rows.ts'

/** A store with one source, whose needs are what a test puts into `things`. */
class World implements Disposable {
  readonly #directory = temporaryDirectory()
  readonly clock = new ManualClock()
  readonly store = openStore({
    path: join(this.#directory.path, 'city.db'),
    migrations: migrationsOf('test', `${STORE_SCHEMA}${NEEDS_SCHEMA}`),
    owner: 'a test',
    clock: this.clock,
  })
  /** Undefined: nothing can be told of the thing. */
  readonly things = new Map<string, readonly NeedDraft[] | undefined>()
  readonly source: NeedSource = {
    name: 'things',
    types: ['thing.*'],
    subjectsOf: ({ subject }) => (subject === undefined ? [] : [subject]),
    subjects: () => [...this.things.keys()],
    needsOf: (_, subject) => (this.things.has(subject) ? this.things.get(subject) : []),
  }
  readonly projection = new Projection({
    city: 'alpha',
    store: this.store,
    clock: this.clock,
    sources: () => [this.source],
  })

  look = (subject: string): Promise<void> => this.store.db.write((tx) => this.projection.look(tx, this.source, subject))

  list = (): readonly NeedRow[] => pageOfNeeds(this.store.db, {}, { after: undefined, limit: 1_000 })

  events(): readonly string[] {
    const { log } = this.store
    return log.scan({}, { after: 0, upTo: log.head }, 'asc', 1_000).events.map(({ type }) => type)
  }

  [Symbol.dispose](): void {
    this.projection.close()
    this.store.db.close()
    this.#directory[Symbol.dispose]()
  }
}

const draft = (key: string, more: Partial<NeedDraft> = {}): NeedDraft => ({
  key,
  kind: 'gate',
  subject: { kind: 'bead', id: key, name: key },
  title: `gate ${key}`,
  ...more,
})

suite('needs', () => {
  test('a need opens, changes and clears with one event each, under one id', async () => {
    using world = new World()
    world.things.set('a', [draft('g')])
    await world.look('a')
    const [opened] = world.list()
    await world.look('a')
    assert.deepEqual(world.events(), ['need.opened'], 'a second look at the same state is no news')
    world.things.set('a', [draft('g', { holdsUp: 3 })])
    await world.look('a')
    assert.deepEqual([world.list()[0]?.id, world.list()[0]?.holdsUp], [opened?.id, 3])
    world.things.set('a', [])
    await world.look('a')
    assert.deepEqual(world.list(), [])
    assert.deepEqual(world.events(), ['need.opened', 'need.changed', 'need.cleared'])
  })

  test('an event that changes no need asks for no write', async () => {
    using world = new World()
    const event = { seq: 1, at: 0, city: undefined, envelope: '{}', type: 'thing.seen', actor: 'a', subject: 'a' }
    const concerns = () => world.projection.reaction().concerns?.(event)
    assert.equal(concerns(), false, 'a thing without needs')
    world.things.set('a', [draft('g')])
    assert.equal(concerns(), true, 'a need is to be opened')
    await world.look('a')
    assert.equal(concerns(), false, 'it is known already')
    world.things.set('a', [draft('g', { title: 'other' })])
    assert.equal(concerns(), true, 'it has changed')
  })

  test('the start of a city looks at everything: what happened while it was down is reported', async () => {
    using world = new World()
    world.things.set('gone', [draft('g')])
    await world.look('gone')
    world.things.clear()
    world.things.set('new', [draft('n')])
    await world.projection.open(AbortSignal.timeout(60_000))
    assert.deepEqual(
      world.list().map(({ key }) => key),
      ['n'],
    )
  })

  test('a thing that cannot be looked at yet keeps its needs, for a minute', async () => {
    using world = new World()
    world.things.set('a', [draft('g')])
    await world.look('a')
    world.things.set('a', undefined)
    await world.look('a')
    assert.equal(world.list().length, 1)
    await world.clock.advance(30_000)
    assert.equal(world.list().length, 1, 'nothing is known of it, so nothing is over')
    await world.clock.advance(60_000)
    assert.deepEqual(world.list(), [], 'after a minute it counts as without needs')
    assert.equal(world.clock.pending, 0)
  })

  test('a snoozed need is left out until its time, and comes back when it changes', async () => {
    using world = new World()
    world.things.set('a', [draft('g')])
    await world.look('a')
    const [need] = world.list()
    assert.ok(need)
    const until = world.clock.now() + 60_000
    await world.store.db.write((tx) => world.projection.change(tx, { ...need, snoozedUntil: until }, 'ann'))
    const awake = () => countNeeds(world.store.db, { awakeAt: world.clock.now() })
    assert.equal(awake(), 0)
    world.clock.step(60_000)
    assert.equal(awake(), 1)
    world.clock.step(-60_000)
    world.things.set('a', [draft('g', { title: 'another question' })])
    await world.look('a')
    assert.equal(awake(), 1)
  })

  test('content is cut at 64 KiB, between characters, and the list says so', async () => {
    using world = new World()
    world.things.set('a', [draft('g', { content: '😀'.repeat(20_000) })])
    await world.look('a')
    const { content = '', content_cut } = world.list()[0]?.body ?? {}
    assert.equal(content_cut, true)
    assert.ok(content.isWellFormed() && Buffer.byteLength(content) <= 64 * 1024)
    assert.equal(content.endsWith('😀'), true)
  })

  test('pages of any size give the whole list once, in its order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ holdsUp: fc.nat(3), since: fc.nat(3), act: fc.boolean() }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 7 }),
        async (needs, limit) => {
          using world = new World()
          const drafts = needs.map(({ holdsUp, since, act }, at) =>
            draft(String(at), { holdsUp, since, severity: act ? 'act' : 'watch' }),
          )
          world.things.set('a', drafts)
          await world.look('a')
          const walked: NeedRow[] = []
          for (let after: NeedKey | undefined; ; ) {
            const page = pageOfNeeds(world.store.db, {}, { after, limit })
            walked.push(...page)
            const last = page.at(-1)
            if (last === undefined) break
            after = keyOf(last)
          }
          assert.equal(walked.length, needs.length)
          assert.deepEqual(walked, walked.toSorted(compareNeeds))
          assert.equal(new Set(walked.map(({ id }) => id)).size, needs.length)
        },
      ),
      { numRuns: 30 },
    )
  })
})
