import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { MAX_EVENT_BYTES } from '../../../contract/events.ts'
import { Problem } from '../../../kernel/problem.ts'
import { BeadIds } from './ids.ts'
import { wireBead } from './record.ts'
import { type BeadChange, type BeadDraft, BeadStore } from './store.ts'

const change = (city: WorkStore, id: string, what: BeadChange) =>
  city.store.db.write((tx) => city.beads.change(tx, id, what, 'test'))
const needs = (city: WorkStore, id: string, depends_on_id: string, type = 'blocks') =>
  change(city, id, { add_edges: [{ depends_on_id, type }] })
const remove = (city: WorkStore, id: string, cascade = false) =>
  city.store.db.write((tx) => city.beads.remove(tx, id, 'test', cascade))

async function refusal(doing: Promise<unknown>): Promise<Problem> {
  const thrown: unknown = await doing.then(
    () => undefined,
    (error) => error,
  )
  assert.ok(thrown instanceof Problem, String(thrown))
  return thrown
}

test('a change that changes nothing writes nothing and tells nobody', async () => {
  using city = openWorkStore()
  await city.bead('al-1', { labels: ['a', 'b'], metadata: { k: 'v' }, description: 'text', priority: 1 })
  const { head } = city.store.log
  const before = city.beads.need('al-1')
  const same = { title: 'al-1', labels: ['b', 'a', 'b'], metadata: { k: 'v' }, priority: 1, description: 'text' }
  city.clock.step(60_000)
  assert.deepEqual(await change(city, 'al-1', same), before)
  assert.deepEqual(await change(city, 'al-1', {}), before)
  assert.equal(city.store.log.head, head)
})

test('an event says what differs, with the bead as it is then', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const { head } = city.store.log
  await change(city, 'al-1', { title: 'new', labels: ['x'], metadata: { k: '' }, work_branch: 'b', priority: 0 })
  assert.deepEqual(city.events(head), [['bead.updated', 'al-1', ['title', 'priority', 'metadata', 'labels']]])
  const bead = city.beads.need('al-1')
  assert.equal(bead.revision, 2)
  const { events } = city.store.log.scan({}, { after: head, upTo: head + 1 }, 'asc', 1)
  const { payload } = JSON.parse(events[0]?.envelope ?? '')
  assert.deepEqual(payload.bead, JSON.parse(JSON.stringify(wireBead(bead))))
  assert.deepEqual(payload.bead.metadata, { k: '', 'svc.work_branch': 'b' })
})

test('whatever closes a bead, the log says closed; whatever opens it again, reopened', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const { head } = city.store.log
  await change(city, 'al-1', { status: 'closed', close_reason: 'done' })
  await change(city, 'al-1', { status: 'open' })
  assert.deepEqual(city.events(head), [
    ['bead.closed', 'al-1', ['status', 'closed_at', 'close_reason']],
    ['bead.updated', 'al-1', ['status', 'closed_at', 'close_reason']],
    ['bead.reopened', 'al-1'],
  ])
})

test('closing frees what waited for it and only then, reopening and deleting block it again, and each flip is told once', async () => {
  using city = openWorkStore()
  for (const id of ['al-a', 'al-b', 'al-c']) await city.bead(id)
  await needs(city, 'al-c', 'al-a')
  await needs(city, 'al-c', 'al-b', 'waits-for')
  await needs(city, 'al-c', 'al-b', 'parent-child')
  const flips = () =>
    city
      .events()
      .filter(([type, id, changed]) => type === 'bead.updated' && id === 'al-c' && changed?.includes('is_blocked'))
      .length
  assert.equal(city.beads.need('al-c').blockers, 2)
  assert.equal(flips(), 1)
  await change(city, 'al-a', { status: 'closed' })
  assert.equal(city.beads.need('al-c').blockers, 1)
  assert.equal(flips(), 1)
  const { revision } = city.beads.need('al-c')
  await change(city, 'al-b', { status: 'closed' })
  assert.equal(city.beads.need('al-c').blockers, 0)
  assert.equal(flips(), 2)
  assert.equal(city.beads.need('al-c').revision, revision, 'what others do spoils no If-Match')
  await change(city, 'al-b', { status: 'open' })
  assert.equal(flips(), 3)
  await change(city, 'al-c', { remove_edges: [{ depends_on_id: 'al-b', type: 'waits-for' }] })
  assert.equal(city.beads.need('al-c').blockers, 0)
  assert.equal(city.beads.need('al-c').parent, 'al-b')
})

test('an edge to a bead that is not there blocks until it is there and closed', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  await needs(city, 'al-1', 'al-later')
  await needs(city, 'al-1', 'al-done')
  assert.equal(city.beads.need('al-1').blockers, 2)
  await city.bead('al-later')
  assert.equal(city.beads.need('al-1').blockers, 2)
  await city.bead('al-done', { status: 'closed', closed_at: 1 })
  assert.equal(city.beads.need('al-1').blockers, 1)
  await change(city, 'al-later', { status: 'closed' })
  assert.equal(city.beads.need('al-1').blockers, 0)
})

test('between two beads there is one edge, whose type another replaces, and a parent-child edge beside it', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-2', 'al-3']) await city.bead(id)
  await needs(city, 'al-1', 'al-2')
  await needs(city, 'al-1', 'al-2', 'relates-to')
  assert.deepEqual(city.beads.need('al-1').dependencies, [
    { issue_id: 'al-1', depends_on_id: 'al-2', type: 'relates-to' },
  ])
  assert.equal(city.beads.need('al-1').blockers, 0)
  await change(city, 'al-1', { parent: 'al-2' })
  await change(city, 'al-1', { parent: 'al-3' })
  assert.deepEqual(
    city.beads.need('al-1').dependencies.map(({ depends_on_id, type }) => [depends_on_id, type]),
    [
      ['al-2', 'relates-to'],
      ['al-3', 'parent-child'],
    ],
  )
  const { head } = city.store.log
  await needs(city, 'al-1', 'al-2', 'relates-to')
  await change(city, 'al-1', { remove_edges: [{ depends_on_id: 'al-9' }] })
  assert.equal(city.store.log.head, head, 'adding it again and removing what is not there change nothing')
  await change(city, 'al-1', { parent: null })
  assert.equal(city.beads.need('al-1').parent, null)
})

test('a bead has one parent: of several that are named at once the last one, whether it is new or not', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-2', 'al-3']) await city.bead(id)
  const parents = ['al-1', 'al-2'].map((depends_on_id) => ({ depends_on_id, type: 'parent-child' }))
  await city.bead('al-new', { parent: 'al-3', edges: parents })
  await change(city, 'al-3', { add_edges: parents })
  for (const id of ['al-new', 'al-3']) {
    const { parent, dependencies } = city.beads.need(id)
    assert.equal(parent, 'al-2')
    assert.deepEqual(dependencies, [{ issue_id: id, depends_on_id: 'al-2', type: 'parent-child' }])
  }
})

test('no bead depends on itself, in no way at all', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  for (const type of ['blocks', 'parent-child', 'tracks', 'relates-to']) {
    const { code, options } = await refusal(needs(city, 'al-1', 'al-1', type))
    assert.deepEqual([code, options.errors?.[0]?.value], ['dependency-cycle', ['al-1', 'al-1']])
  }
})

test('a cycle is refused with its whole path, also a cycle of parents and of one bead alone', async () => {
  using city = openWorkStore()
  for (const id of ['al-a', 'al-b', 'al-c']) await city.bead(id)
  await needs(city, 'al-a', 'al-b')
  await needs(city, 'al-b', 'al-c', 'waits-for')
  const { head } = city.store.log
  const refused = await refusal(needs(city, 'al-c', 'al-a', 'conditional-blocks'))
  assert.equal(refused.detail, 'conflict: dependency cycle: al-c -> al-a -> al-b -> al-c')
  assert.deepEqual(refused.options.errors?.[0]?.value, ['al-c', 'al-a', 'al-b', 'al-c'])
  assert.equal((await refusal(needs(city, 'al-a', 'al-a'))).detail, 'conflict: dependency cycle: al-a -> al-a')
  assert.equal(city.store.log.head, head)
  await needs(city, 'al-c', 'al-a', 'relates-to')
  await change(city, 'al-b', { parent: 'al-a' })
  await change(city, 'al-c', { parent: 'al-b' })
  const circle = await refusal(change(city, 'al-a', { parent: 'al-c' }))
  assert.equal(circle.detail, 'conflict: dependency cycle: al-a -> al-c -> al-b -> al-a')
})

test('a bead that open ones refer to is not deleted, and the refusal names them', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-dep', 'al-kid', 'al-convoy', 'al-done', 'al-related']) await city.bead(id)
  await needs(city, 'al-dep', 'al-1')
  await change(city, 'al-kid', { parent: 'al-1' })
  await needs(city, 'al-convoy', 'al-1', 'tracks')
  await needs(city, 'al-related', 'al-1', 'relates-to')
  await needs(city, 'al-done', 'al-1')
  await change(city, 'al-done', { status: 'closed' })
  const refused = await refusal(remove(city, 'al-1'))
  assert.equal(refused.code, 'still-referenced')
  assert.deepEqual(
    refused.options.errors?.map(({ message }) => message),
    ['al-convoy is a convoy that tracks it', 'al-dep depends on it (blocks)', 'al-kid is a child of it'],
  )
  const { head } = city.store.log
  assert.deepEqual(await remove(city, 'al-1', true), ['al-1', 'al-kid'])
  assert.equal(city.beads.need('al-dep').blockers, 0)
  assert.deepEqual(city.beads.need('al-convoy').dependencies, [])
  assert.deepEqual(
    city
      .events(head)
      .filter(([type]) => type === 'bead.deleted')
      .map(([, id]) => id),
    ['al-kid', 'al-1'],
  )
  await change(city, 'al-done', { status: 'open' })
  assert.equal(city.beads.need('al-done').blockers, 0, 'opened again it waits for nothing that is gone')
})

test('a bead that waits for several that are deleted at once changes once', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-kid', 'al-dep']) await city.bead(id)
  await change(city, 'al-kid', { parent: 'al-1' })
  await needs(city, 'al-dep', 'al-1')
  await needs(city, 'al-dep', 'al-kid', 'waits-for')
  const { revision } = city.beads.need('al-dep')
  const { head } = city.store.log
  await remove(city, 'al-1', true)
  assert.deepEqual(
    city.events(head).map(([type, id]) => [type, id]),
    [
      ['bead.updated', 'al-dep'],
      ['bead.deleted', 'al-kid'],
      ['bead.deleted', 'al-1'],
    ],
  )
  const after = city.beads.need('al-dep')
  assert.deepEqual([after.revision, after.blockers, after.dependencies], [revision + 1, 0, []])
})

test('an id is never given out twice, not even one that only an edge names', async () => {
  using city = openWorkStore()
  const heads = ['a', 'a', 'b', 'b', 'b', 'aa', 'w']
  // Tails in their order: no draw moves any.
  const ids = new BeadIds(
    () => heads.shift() ?? 'end',
    (limit) => limit - 1,
  )
  const beads = new BeadStore({ db: city.store.db, log: city.store.log, clock: city.clock, ids })
  const make = (more = {}) =>
    city.store.db.write((tx) => beads.insert(tx, { title: 'x', prefix: 'al', ...more }, 'test').id)
  await city.bead('al-x', { edges: [{ depends_on_id: 'al-a02', type: 'blocks' }] })
  assert.equal(await make(), 'al-a00')
  assert.equal(await make(), 'al-a01')
  await city.store.db.write((tx) => beads.remove(tx, 'al-a00', 'test', false))
  assert.equal(await make(), 'al-a03', 'after the one that an edge waits for')
  for (const id of ['al-a04', 'al-a05', 'al-a06', 'al-b00', 'al-b01', 'al-b02']) await city.bead(id)
  assert.equal(await make(), 'al-aa00', 'three heads whose ids an import has taken: the next is longer')
  assert.equal(await make({ ephemeral: true }), 'al-wisp-w00')
})

test('a city that starts again, and one that needs very many ids, gives each out once and keeps them short', async () => {
  using city = openWorkStore()
  const { db, log } = city.store
  const made = new Set<string>()
  for (let start = 0; start < 4; start++) {
    const beads = new BeadStore({ db, log, clock: city.clock })
    await db.write((tx) => {
      for (let n = 0; n < 1_500; n++) made.add(beads.insert(tx, { title: 'x', prefix: 'al' }, 'test').id)
    })
  }
  assert.equal(made.size, 6_000)
  assert.ok([...made].every((id) => id.length <= 'al-'.length + 4))
})

test('an event is never too large for the log, however large the bead', async () => {
  using city = openWorkStore()
  const text = '\u0001'.repeat(200_000)
  await city.bead('al-1', { description: text, metadata: { k: text.slice(0, 60_000) } })
  assert.equal(city.beads.need('al-1').description, text)
  const { events } = city.store.log.scan({}, { after: 0, upTo: 1 }, 'asc', 1)
  assert.ok(Buffer.byteLength(events[0]?.envelope ?? '') <= MAX_EVENT_BYTES)
  assert.equal(JSON.parse(events[0]?.envelope ?? '').payload.bead.title, 'al-1')
})

/** Ids of the beads that have a word, as the index of words says. */
const withWord = (city: WorkStore, word: string): readonly string[] =>
  city.store.db
    .all('SELECT b.id FROM bead_words w JOIN beads b ON b.n = w.rowid WHERE bead_words MATCH ? ORDER BY b.n', word)
    .map(({ id }) => String(id))

test('the words of a bead follow its title, text and labels, also where another takes its number', async () => {
  using city = openWorkStore()
  const { words } = city.beads
  await city.bead('al-1', { description: 'pears', labels: ['a'] })
  await change(city, 'al-1', { title: 'early' })
  await words.settle()
  assert.deepEqual([withWord(city, 'pears'), withWord(city, 'early')], [['al-1'], ['al-1']])
  await change(city, 'al-1', { description: 'plums', labels: ['b'] })
  assert.deepEqual([withWord(city, 'pears'), withWord(city, 'plums')], [[], ['al-1']])
  assert.deepEqual([withWord(city, 'labels : "61"'), withWord(city, 'labels : "62"')], [[], ['al-1']])
  await remove(city, 'al-1')
  await city.bead('al-2', { description: 'figs' })
  await words.settle()
  assert.deepEqual([withWord(city, 'plums'), withWord(city, 'figs')], [[], ['al-2']])
})

test('words are indexed in batches, and while somebody waits for some with every commit', async () => {
  using city = openWorkStore()
  const { words } = city.beads
  await city.bead('al-1', { description: 'pears' })
  assert.deepEqual(withWord(city, 'pears'), [], 'it can wait')
  {
    using _ = words.follow()
    await city.bead('al-2', { description: 'plums' })
    assert.deepEqual([withWord(city, 'pears'), withWord(city, 'plums')], [['al-1'], ['al-2']])
  }
  await city.bead('al-3', { description: 'figs' })
  assert.deepEqual(withWord(city, 'figs'), [])
  const { db, log } = city.store
  await assert.rejects(
    db.write((tx) => {
      city.beads.insert(tx, { id: 'al-4', title: 'undone' }, 'test')
      throw new Error('no')
    }),
  )
  const again = new BeadStore({ db, log, clock: city.clock })
  await again.words.settle()
  assert.deepEqual([withWord(city, 'figs'), withWord(city, 'undone')], [['al-3'], []])
})

test('a commit that the disk refuses leaves neither counts nor words behind, and the next one has its own', async () => {
  using city = openWorkStore()
  const { db } = city.store
  const { words } = city.beads
  const full = { is: false }
  db.join({
    mark: () => 0,
    undo: () => undefined,
    beforeCommit: () => {
      if (full.is) throw new Error('the disk is full')
    },
    committed: () => undefined,
  })
  using _ = words.follow()
  await city.bead('al-1', { description: 'pears' })
  full.is = true
  await assert.rejects(city.bead('al-2', { description: 'plums' }))
  await assert.rejects(change(city, 'al-1', { status: 'closed', description: 'figs' }))
  full.is = false
  await city.bead('al-3', { description: 'dates' })
  assert.deepEqual(
    ['pears', 'plums', 'figs', 'dates'].map((word) => withWord(city, word)),
    [['al-1'], [], [], ['al-3']],
  )
  assert.deepEqual(db.rows('SELECT status, beads FROM bead_counts'), [['open', 2]])
  assert.deepEqual(db.rows('SELECT n FROM bead_words_upto'), [[2]])
})

test('beads of a write that is undone are not counted, those beside it are', async () => {
  using city = openWorkStore()
  const { db } = city.store
  const write = (id: string, fails: boolean) =>
    db.write((tx) => {
      city.beads.insert(tx, { id, title: id }, 'test')
      city.beads.change(tx, id, { status: 'closed' }, 'test')
      if (fails) throw new Error('no')
    })
  const results = await Promise.allSettled([write('al-1', false), write('al-2', true), write('al-3', false)])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(db.rows('SELECT status, issue_type, beads FROM bead_counts'), [['closed', 'task', 2]])
})

/** What the counters must be, from nothing but edges and statuses. */
function assertCounters(city: WorkStore): void {
  const wrong =
    city.store.db.all(`SELECT b.id, b.blockers, (SELECT count(*) FROM bead_deps d LEFT JOIN beads t ON t.id = d.depends_on_id
    WHERE d.issue_id = b.id AND d.type IN ('blocks', 'waits-for', 'conditional-blocks') AND (t.id IS NULL OR t.status <> 'closed')) AS should
    FROM beads b WHERE b.blockers <> should`)
  assert.deepEqual(wrong, [])
  const parents =
    city.store.db.all(`SELECT b.id FROM beads b WHERE (b.parent IS NOT NULL) <> (SELECT count(*) FROM bead_deps d
    WHERE d.issue_id = b.id AND d.type = 'parent-child') OR (b.parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM bead_deps d
    WHERE d.issue_id = b.id AND d.type = 'parent-child' AND d.depends_on_id = b.parent))`)
  assert.deepEqual(parents, [])
}

const NAMES = ['al-0', 'al-1', 'al-2', 'al-3', 'al-4']
const name = fc.constantFrom(...NAMES)
const step = fc.oneof(
  fc.record({ kind: fc.constant('create' as const), id: name, closed: fc.boolean() }),
  fc.record({
    kind: fc.constant('status' as const),
    id: name,
    status: fc.constantFrom('open' as const, 'closed' as const, 'in_progress' as const),
  }),
  fc.record({
    kind: fc.constant('edge' as const),
    id: name,
    to: fc.constantFrom(...NAMES, 'al-none'),
    type: fc.constantFrom('blocks', 'waits-for', 'parent-child', 'tracks'),
  }),
  fc.record({ kind: fc.constant('unedge' as const), id: name, to: name }),
  fc.record({ kind: fc.constant('parent' as const), id: name, to: fc.option(name) }),
  fc.record({ kind: fc.constant('remove' as const), id: name, cascade: fc.boolean() }),
)

test('whatever is done in whatever order, blockers and parents are what the edges say, and no cycle stands', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      using city = openWorkStore()
      for (const one of steps) {
        const doing = () => {
          if (one.kind === 'create') return city.bead(one.id, one.closed ? { status: 'closed', closed_at: 1 } : {})
          if (one.kind === 'status') return change(city, one.id, { status: one.status })
          if (one.kind === 'edge') return needs(city, one.id, one.to, one.type)
          if (one.kind === 'unedge') return change(city, one.id, { remove_edges: [{ depends_on_id: one.to }] })
          if (one.kind === 'parent') return change(city, one.id, { parent: one.to })
          return remove(city, one.id, one.cascade)
        }
        const taken = one.kind === 'create' && city.beads.find(one.id) !== undefined
        if (!taken) await doing().catch((error: unknown) => assert.ok(error instanceof Problem, String(error)))
      }
      assertCounters(city)
      const edges = city.store.db.all(
        "SELECT issue_id, depends_on_id FROM bead_deps WHERE type IN ('blocks', 'waits-for')",
      )
      assert.ok(isAcyclic(edges.map((row) => [String(row.issue_id), String(row.depends_on_id)])))
    }),
    { numRuns: 30 },
  )
})

function isAcyclic(edges: readonly (readonly [string, string])[]): boolean {
  let rest = edges
  for (;;) {
    const leaves = new Set(rest.map(([, to]) => to).filter((to) => !rest.some(([from]) => from === to)))
    const next = rest.filter(([, to]) => !leaves.has(to))
    if (next.length === rest.length) return rest.length === 0
    rest = next
  }
}

test('what a change answers is what is read afterwards, also of text that the database does not keep as it is', async () => {
  using city = openWorkStore()
  const half = 'half a \ud83d pair'
  const make = (id: string, more: Partial<BeadDraft> = {}) =>
    city.store.db.write((tx) => city.beads.insert(tx, { id, title: id, ...more }, 'test'))
  assert.deepEqual(await make('al-1'), city.beads.need('al-1'))
  const all = {
    title: half,
    labels: ['b', half, 'a', 'b'],
    metadata: { [half]: half },
    needs: ['al-1'],
    ephemeral: true,
  }
  assert.deepEqual(
    await make('al-2', { ...all, edges: [{ depends_on_id: 'al-1', type: 'blocks' }] }),
    city.beads.need('al-2'),
  )
  for (const what of [
    { title: 'new', description: half, priority: 3, defer_until: 5 },
    { labels: ['z', half], metadata: {} },
    { lease_ms: 5, lease_expires_at: 7 },
    { status: 'in_progress', assignee: 'ann' },
    { status: 'closed', close_reason: half },
    { remove_edges: [{ depends_on_id: 'al-1' }] },
    { touched: ['comments'] },
  ] satisfies BeadChange[])
    assert.deepEqual(await change(city, 'al-2', what), city.beads.need('al-2'), JSON.stringify(what))
})
