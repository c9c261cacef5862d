import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import type { SqlValue } from '../../../kernel/database.ts'
import { PAGE_BYTES } from '../../../kernel/page.ts'
import { Problem } from '../../../kernel/problem.ts'
import { countDemand } from '../store/ready.ts'
import type { BeadRecord } from '../store/record.ts'
import { listQuery, readyQuery, spokenQuery } from './filters.ts'
import { readGraph } from './graph.ts'
import { type BeadPage, type Order, READY, readPage, readRecords } from './pages.ts'
import type { Bounds } from './plan.ts'
import { allOf, anyOf, not, type Query } from './query.ts'

const TYPES = ['task', 'bug', 'epic', 'step', 'message', 'convoy']
const UNWORKABLE = new Set(['step', 'message', 'convoy'])
// The last three stand in JSON as they are not, or as what stands between two others.
const LABELS = ['ui', 'urgent', 'hold:mayor', 'order-tracking', ',', 'say "ui"', '\\']
const PEOPLE = ['ann', 'bob', 'shop/worker']
const WORDS = ['cache', 'cached', 'avatar', 'page']
const BLOCKING = new Set(['blocks', 'waits-for', 'conditional-blocks'])

const aBead = fc.record(
  {
    title: fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 3 }).map((words) => words.join(' ')),
    description: fc.constantFrom(...WORDS),
    issue_type: fc.constantFrom(...TYPES),
    priority: fc.nat(4),
    created_at: fc.integer({ min: 1_000, max: 1_010 }),
    assignee: fc.constantFrom(...PEOPLE),
    routed_to: fc.constantFrom(...PEOPLE),
    rig: fc.constantFrom('shop', 'barn'),
    ephemeral: fc.boolean(),
    attempt: fc.nat(3),
    // Of the test's clock: some are due, some are not.
    defer_until: fc.integer({ min: -5, max: 5 }),
    labels: fc.uniqueArray(fc.constantFrom(...LABELS), { maxLength: 3 }),
    metadata: fc.dictionary(fc.constantFrom('team', 'n'), fc.constantFrom('', 'a', 'ab'), { noNullPrototype: true }),
    status: fc.constantFrom('open' as const, 'open' as const, 'in_progress' as const, 'closed' as const),
    close_reason: fc.constantFrom('done well', 'no'),
  },
  { requiredKeys: ['title'], noNullPrototype: true },
)
const anEdge = fc.record({
  from: fc.nat(),
  to: fc.nat(),
  type: fc.constantFrom('blocks', 'waits-for', 'relates-to', 'parent-child'),
})

const of = <T extends string>(...values: readonly T[]) => fc.constantFrom(...values)
const leaf: fc.Arbitrary<Query> = fc.oneof(
  fc.record({
    kind: of('one-of'),
    field: of('status'),
    values: fc.subarray(['open', 'in_progress', 'closed'], { minLength: 1 }),
  }),
  fc.record({
    kind: of('one-of'),
    field: of('issue_type'),
    values: fc.subarray(TYPES, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ kind: of('one-of'), field: of('assignee', 'routed_to'), values: fc.subarray(PEOPLE, { minLength: 1 }) }),
  fc.record({ kind: of('one-of'), field: of('title', 'description'), values: fc.subarray(WORDS, { minLength: 1 }) }),
  fc.record({ kind: of('one-of'), field: of('id', 'parent'), values: fc.constant(['al-1', 'al-2']) }),
  fc.record({ kind: of('one-of'), field: of('close_reason'), values: fc.constant(['no']) }),
  fc.record({ kind: of('contains'), field: of('assignee', 'id', 'close_reason'), text: of('N', '-1', 'o', '%') }),
  fc.record({
    kind: of('number'),
    field: of('priority', 'attempt'),
    op: of('=', '<', '<=', '>', '>='),
    value: fc.nat(4),
  }),
  fc.record({
    kind: of('time'),
    field: of('created_at', 'updated_at', 'closed_at', 'defer_until'),
    op: of('=', '<', '<=', '>', '>='),
    value: fc.integer({ min: 1_000, max: 1_010 }).map((at_ms) => ({ at_ms })),
  }),
  fc.record({
    kind: of('has'),
    what: of('assignee', 'priority', 'label', 'rig', 'closed_at', 'parent', 'close_reason', 'description'),
  }),
  fc.record({ kind: of('label'), label: of(...LABELS) }),
  fc.record({ kind: of('metadata'), key: of('team', 'n'), values: fc.subarray(['', 'a', 'ab'], { minLength: 1 }) }),
  fc.record({ kind: of('metadata'), key: of('svc.attempt'), values: fc.constant(['1', '2']) }),
  fc.record({ kind: of('metadata-contains'), key: of('team'), text: of('B', 'a') }),
  fc.record({ kind: of('has-metadata'), key: of('team', 'svc.routed_to') }),
  fc.record({ kind: of('edge'), edge: of('blocked-by', 'blocks', 'child-of'), id: of('al-1', 'al-2', 'al-3') }),
  fc.record({ kind: of('state'), state: of('blocked', 'ready', 'claimed', 'deferred', 'ephemeral') }),
  fc.record({
    kind: of('words'),
    field: of('text', 'title', 'description'),
    text: of('cache', 'CACHE avatar', 'av', 'page'),
    open: fc.boolean(),
  }),
)
const { query } = fc.letrec<{ query: Query }>((tie) => ({
  query: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'query' },
    leaf,
    tie('query').map(not),
    fc.array(tie('query'), { minLength: 1, maxLength: 3 }).map(allOf),
    fc.array(tie('query'), { minLength: 1, maxLength: 3 }).map(anyOf),
  ),
}))

type BeadOf = typeof aBead extends fc.Arbitrary<infer B> ? B : never
type EdgeOf = typeof anEdge extends fc.Arbitrary<infer E> ? E : never

async function fill(city: WorkStore, beads: readonly BeadOf[], edges: readonly EdgeOf[]): Promise<void> {
  for (const [index, { defer_until: days, ...bead }] of beads.entries()) {
    const defer_until = days === undefined ? null : city.clock.now() + days * 1_000
    const closed_at = bead.status === 'closed' ? 1_005 : null
    await city.bead(`al-${index}`, { ...bead, defer_until, closed_at })
  }
  for (const { from, to, type } of edges) {
    const id = `al-${from % beads.length}`
    // One more than there are: edges may lead to what is not there.
    const depends_on_id = `al-${to % (beads.length + 1)}`
    try {
      await city.store.db.write((tx) => city.beads.change(tx, id, { add_edges: [{ depends_on_id, type }] }, 'test'))
    } catch (error) {
      // A cycle, or the bead itself.
      assert.ok(error instanceof Problem, String(error))
    }
  }
}

/** What a query means, bead by bead, without a database. */
class Model {
  readonly beads: readonly BeadRecord[]
  readonly #now: number

  constructor(beads: readonly BeadRecord[], now: number) {
    this.beads = beads
    this.#now = now
  }

  found(asked: Query, order: Order): readonly string[] {
    return this.beads
      .filter((bead) => this.#holds(asked, bead))
      .sort((a, b) => compare(a, b, order))
      .map(({ id }) => id)
  }

  isReady(bead: BeadRecord): boolean {
    const due = bead.defer_until === null || bead.defer_until <= this.#now
    return bead.status === 'open' && this.#isWork(bead) && due && !this.#isBlocked(bead)
  }

  #isWork({ issue_type, labels }: BeadRecord): boolean {
    return !UNWORKABLE.has(issue_type) && !labels.includes('order-tracking')
  }

  #isBlocked({ dependencies }: BeadRecord): boolean {
    const isDone = (id: string) => this.beads.find((bead) => bead.id === id)?.status === 'closed'
    return dependencies.some(({ type, depends_on_id }) => BLOCKING.has(type) && !isDone(depends_on_id))
  }

  #holds(asked: Query, bead: BeadRecord): boolean {
    switch (asked.kind) {
      case 'and':
        return asked.parts.every((part) => this.#holds(part, bead))
      case 'or':
        return asked.parts.some((part) => this.#holds(part, bead))
      case 'not':
        return !this.#holds(asked.part, bead)
      case 'one-of': {
        const value = bead[asked.field]
        return value !== null && asked.values.includes(value)
      }
      case 'contains':
        return (bead[asked.field] ?? '').toLowerCase().includes(asked.text.toLowerCase())
      case 'number':
        return compares(bead[asked.field], asked.op, asked.value)
      case 'time':
        return 'at_ms' in asked.value && compares(bead[asked.field], asked.op, asked.value.at_ms)
      case 'has':
        if (asked.what === 'label') return bead.labels.length > 0
        return bead[asked.what] !== null && bead[asked.what] !== ''
      case 'label':
        return bead.labels.includes(asked.label)
      case 'metadata':
        return asked.values.includes(metadataOf(bead, asked.key) ?? 'none')
      case 'metadata-contains':
        return (metadataOf(bead, asked.key) ?? '').toLowerCase().includes(asked.text.toLowerCase())
      case 'has-metadata':
        return (metadataOf(bead, asked.key) ?? '') !== ''
      case 'edge':
        return this.#hasEdge(asked.edge, asked.id, bead)
      case 'state':
        return this.#isIn(asked.state, bead)
      case 'words': {
        const texts = asked.field === 'text' ? [bead.title, bead.description ?? ''] : [bead[asked.field] ?? '']
        const end = asked.open && (asked.text.split(' ').at(-1) ?? '').length >= 3 ? '' : '\\b'
        return texts.some((text) => new RegExp(`\\b${asked.text}${end}`, 'i').test(text))
      }
    }
  }

  #hasEdge(edge: string, id: string, bead: BeadRecord): boolean {
    if (edge === 'child-of') return bead.parent === id
    const [own, other] = edge === 'blocked-by' ? [bead.id, id] : [id, bead.id]
    const { dependencies = [] } = this.beads.find((one) => one.id === own) ?? {}
    return dependencies.some(({ type, depends_on_id }) => BLOCKING.has(type) && depends_on_id === other)
  }

  #isIn(state: string, bead: BeadRecord): boolean {
    if (state === 'blocked') return this.#isBlocked(bead)
    if (state === 'ready') return this.isReady(bead)
    if (state === 'claimed') return bead.status === 'in_progress' && bead.assignee !== null
    if (state === 'deferred') return (bead.defer_until ?? 0) > this.#now
    return bead.ephemeral
  }
}

const metadataOf = (bead: BeadRecord, key: string): string | undefined => {
  if (key === 'svc.attempt') return bead.attempt === null ? undefined : String(bead.attempt)
  if (key === 'svc.routed_to') return bead.routed_to ?? undefined
  return bead.metadata[key]
}

function compares(value: number | null, op: string, other: number): boolean {
  if (value === null) return false
  if (op === '=') return value === other
  return op.startsWith('<')
    ? value < other || (op === '<=' && value === other)
    : value > other || (op === '>=' && value === other)
}

function compare(a: BeadRecord, b: BeadRecord, order: Order): number {
  const byPriority = order === 'ready' ? (a.priority ?? 2) - (b.priority ?? 2) : 0
  const byAge = byPriority || a.created_at - b.created_at || (a.id < b.id ? -1 : 1)
  return order === 'newest' ? -byAge : byAge
}

/** All pages, one after the other. */
async function walk(city: WorkStore, asked: Query, order: Order, limit: number, bounds?: Bounds) {
  await city.beads.words.settle()
  const meaning = { now: city.clock.now(), identities: city.people.identities }
  const ids: string[] = []
  let page: BeadPage = readPage(city.store.db, asked, order, { limit }, meaning, bounds)
  const { total, total_capped } = page
  let pages = 1
  for (; ; pages++) {
    ids.push(...page.ids)
    assert.equal(page.total, total)
    if (page.next_cursor === undefined) return { ids, total, capped: total_capped === true, pages }
    page = readPage(city.store.db, asked, order, { limit, cursor: page.next_cursor }, meaning, bounds)
  }
}

const worlds = [fc.array(aBead, { minLength: 1, maxLength: 14 }), fc.array(anEdge, { maxLength: 14 })] as const

test('a query finds the beads that it means, in order and over pages, whatever index it is read from', async () => {
  await fc.assert(
    fc.asyncProperty(...worlds, fc.array(query, { minLength: 20, maxLength: 20 }), async (beads, edges, queries) => {
      using city = openWorkStore()
      await fill(city, beads, edges)
      const model = new Model(recordsOf(city), city.clock.now())
      // As if they were very many: a window of few beads, and leaders that have fewer still.
      const bounds = { looks: 12, led: 2 }
      for (const asked of queries) {
        for (const order of ['newest', 'oldest', 'ready'] as const) {
          const expected = model.found(asked, order)
          const { ids, total, capped } = await walk(city, asked, order, 3)
          assert.deepEqual({ ids, total, capped }, { ids: expected, total: expected.length, capped: false })
          const bounded = await walk(city, asked, order, 3, bounds)
          assert.deepEqual(bounded.ids, expected)
          assert.ok(bounded.capped ? bounded.total <= expected.length : bounded.total === expected.length)
        }
      }
    }),
    { numRuns: 40 },
  )
})

test('what is ready is what a plain look at every bead and its dependencies says, and demand of a pool agrees', async () => {
  await fc.assert(
    fc.asyncProperty(...worlds, async (beads, edges) => {
      using city = openWorkStore()
      await fill(city, beads, edges)
      const model = new Model(recordsOf(city), city.clock.now())
      const { ids, total } = await walk(city, READY, 'ready', 2)
      assert.deepEqual(ids, model.found(READY, 'ready'))
      assert.equal(total, ids.length)
      for (const pool of PEOPLE) {
        const waiting = model.beads.filter(
          (bead) =>
            model.isReady(bead) &&
            bead.assignee === null &&
            bead.routed_to === pool &&
            bead.issue_type !== 'epic' &&
            !bead.labels.includes('hold:mayor'),
        )
        assert.equal(countDemand(city.store.db, pool, city.clock.now()), waiting.length)
      }
    }),
    { numRuns: 60 },
  )
})

const recordsOf = (city: WorkStore): readonly BeadRecord[] =>
  city.beads.load(city.store.db.all('SELECT id FROM beads').map(({ id }) => String(id)))

const hasRig = (name: string) => name === 'shop'
const refusal = (status: number, location?: string) => (error: unknown) => {
  assert.ok(error instanceof Problem, String(error))
  assert.equal(error.status, status, error.detail)
  assert.equal(error.options.errors?.[0]?.location, location)
  return true
}

test('closed beads are left out of a list and of a query that do not speak of them', async () => {
  using city = openWorkStore()
  await city.bead('al-1', { created_at: 1 })
  await city.bead('al-2', { status: 'closed', closed_at: 5, created_at: 2 })
  const found = async (asked: Query) => (await walk(city, asked, 'oldest', 10)).ids.join()
  assert.equal(await found(listQuery({}, hasRig)), 'al-1')
  assert.equal(await found(listQuery({ all: true }, hasRig)), 'al-1,al-2')
  assert.equal(await found(listQuery({ status: ['closed'] }, hasRig)), 'al-2')
  assert.equal(await found(listQuery({ closed_after: '1970-01-01T00:00:00Z' }, hasRig)), 'al-2')
  assert.equal(await found(spokenQuery('id~al', false)), 'al-1')
  assert.equal(await found(spokenQuery('id~al', true)), 'al-1,al-2')
  assert.equal(await found(spokenQuery('NOT is:open', false)), 'al-2')
  assert.equal(await found(spokenQuery('closed<1h', false)), 'al-2')
})

test('an edge to a bead that is not there is no bead that is found', async () => {
  using city = openWorkStore()
  await city.bead('al-1', { edges: [{ depends_on_id: 'al-none', type: 'blocks' }] })
  const { ids, total } = await walk(city, spokenQuery('blocks:al-1', true), 'newest', 10)
  assert.deepEqual({ ids, total }, { ids: [], total: 0 })
})

test('filters that cannot be meant are refused with the field', () => {
  assert.throws(() => listQuery({ rig: 'none' }, hasRig), refusal(404, 'query.rig'))
  assert.throws(() => readyQuery({ rig: 'none' }, hasRig), refusal(404, 'query.rig'))
  // Times that the schema takes, and that are none: a leap second, and one after the last year that can be said.
  for (const time of ['2016-12-31T23:59:60Z', '9999-12-31T23:59:59-01:00'])
    assert.throws(() => listQuery({ closed_after: time }, hasRig), refusal(422, 'query.closed_after'))
  assert.throws(() => listQuery({ metadata: ['=x'] }, hasRig), refusal(422, 'query.metadata'))
  assert.throws(() => listQuery({ q: '"" --' }, hasRig), refusal(422, 'query.q'))
  assert.throws(() => listQuery({ q: 'a '.repeat(40) }, hasRig), refusal(422, 'query.q'))
})

test('what is typed into q is looked for and never understood', async () => {
  using city = openWorkStore()
  await city.bead('al-1', { title: 'He said "log in" AND left', description: 'NEAR(x) col:on' })
  const found = async (q: string) => (await walk(city, listQuery({ q }, hasRig), 'oldest', 10)).ids.length
  for (const q of [
    'log AND',
    '"log in" lef',
    'NEAR(x',
    'col:on',
    '-log',
    'log*',
    'lo\u0000g in',
    "' OR 1=1 log",
    'in)(',
  ])
    assert.ok((await found(q)) <= 1, q)
  assert.equal(await found('"log in" lef'), 1)
  assert.equal(await found('lef log'), 0)
  assert.equal(await found('"in log"'), 0)
})

test('text is found in any case of any letter, and words of scripts without spaces by one letter or two', async () => {
  using city = openWorkStore()
  await city.bead('al-1', { assignee: 'Émile', title: 'Перенести склад', metadata: { owner: 'ΟΔΟΣ' } })
  await city.bead('al-2', { assignee: 'emile', title: '東京都の天気を調べる', labels: ['天気'] })
  await city.bead('al-3', { assignee: 'a[b]*é?', title: '서울에서 만나요', description: 'カード (x) 中文' })
  const found = async (q: string) => (await walk(city, spokenQuery(q, true), 'oldest', 10)).ids.join()
  const typed = async (q: string) => (await walk(city, listQuery({ q }, hasRig), 'oldest', 10)).ids.join()
  for (const text of ['émile', 'ÉMILE', 'Émil']) assert.equal(await found(`assignee~${text}`), 'al-1', text)
  assert.equal(await found('assignee~MILE'), 'al-1,al-2')
  assert.equal(await found('assignee~"[b]*É?"'), 'al-3')
  assert.equal(await found('assignee~"b*É"'), '')
  for (const text of ['οδος', 'οδοσ', 'Οδός'.normalize('NFD').replaceAll('\u0301', '')])
    assert.equal(await found(`metadata.owner~${text}`), 'al-1', text)
  for (const text of ['СКЛАД', 'перенести']) assert.equal(await typed(text), 'al-1', text)
  for (const text of ['東京', '京都', '天', '天気 調べ', '"都の天"']) assert.equal(await typed(text), 'al-2', text)
  assert.equal(await typed('天都'), '', 'letters in a row, not somewhere')
  for (const text of ['서울', '울에', '中文', 'カー', '文']) assert.equal(await typed(text), 'al-3', text)
  assert.equal(await found('title~京 AND NOT description~中'), 'al-2')
  assert.equal(await found('title="東京都の天気を調べる"'), 'al-2')
  assert.equal(await found('label=天気'), 'al-2')
  assert.equal(await typed('東'.repeat(100)), '', 'a sentence is not too many words')
  await assert.rejects(typed('東'.repeat(200)), refusal(422, 'query.q'))
})

test('a label is found whatever stands around it, and by nothing that merely looks like it', async () => {
  using city = openWorkStore()
  const labels = ['ui', ',', 'a,', 'b', 'x"ui', ',"ui', '[', '\\', 'say "ui"', 'é', 'Ui']
  for (const [n, label] of labels.entries()) await city.bead(`al-${n}`, { labels: [label, 'zz'] })
  await city.bead('al-many', { labels })
  const bounds = { looks: 40_000, led: 5 }
  for (const [n, label] of labels.entries())
    for (const given of [undefined, bounds]) {
      const { ids } = await walk(city, listQuery({ label: [label] }, hasRig), 'newest', 10, given)
      assert.deepEqual(ids.toSorted(), [`al-${n}`, 'al-many'], label)
    }
})

test('a cursor belongs to the filters and the order that it was made with', async () => {
  using city = openWorkStore()
  for (const id of ['al-1', 'al-2', 'al-3']) await city.bead(id)
  const meaning = { now: 0, identities: city.people.identities }
  const { next_cursor: cursor = '' } = readPage(city.store.db, listQuery({}, hasRig), 'newest', { limit: 1 }, meaning)
  const read = (asked: Query, order: Order, token: string) => () =>
    readPage(city.store.db, asked, order, { limit: 1, cursor: token }, meaning)
  read(listQuery({}, hasRig), 'newest', cursor)()
  assert.throws(read(listQuery({ all: true }, hasRig), 'newest', cursor), refusal(400, 'query.cursor'))
  assert.throws(read(listQuery({}, hasRig), 'oldest', cursor), refusal(400, 'query.cursor'))
  assert.throws(read(READY, 'ready', cursor), refusal(400, 'query.cursor'))
  assert.throws(read(listQuery({}, hasRig), 'newest', 'v1:AAAA'), refusal(400, 'query.cursor'))
})

test('a walk meets every bead once although others are created and closed beside it', async () => {
  using city = openWorkStore()
  for (let n = 0; n < 20; n++) await city.bead(`al-${n}`, { created_at: 1_000 + (n % 3) })
  const meaning = { now: 0, identities: city.people.identities }
  const asked = listQuery({ all: true }, hasRig)
  const seen: string[] = []
  let cursor: string | undefined
  for (let round = 0; ; round++) {
    const page = readPage(
      city.store.db,
      asked,
      'newest',
      { limit: 3, ...(cursor === undefined ? {} : { cursor }) },
      meaning,
    )
    assert.equal(page.total, 20)
    seen.push(...page.ids)
    cursor = page.next_cursor
    if (cursor === undefined) break
    await city.bead(`al-new-${round}`, { created_at: 2_000 + round })
    await city.store.db.write((tx) => city.beads.change(tx, `al-${round}`, { status: 'closed' }, 'test'))
  }
  assert.equal(seen.length, 20)
  assert.equal(new Set(seen).size, 20)
})

test('among very many beads a page looks at a bounded number, and the walk still meets all', async () => {
  using city = openWorkStore()
  const MANY = 60_000
  await city.store.db.write((tx) => {
    tx.run(
      `INSERT INTO beads (id, title, status, issue_type, created_at, updated_at, closed_at)
        WITH RECURSIVE k (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM k WHERE k < ?)
        SELECT 'al-' || k, 'x', 'closed', 'task', k, k, k FROM k`,
      MANY,
    )
    tx.run(`INSERT INTO bead_counts (status, issue_type, rig, beads) VALUES ('closed', 'task', '', ?)`, MANY)
    tx.run(`UPDATE beads SET labels = iif(n % 20000 <> 7, '["all","some"]', '["some"]')`)
  })
  const { ids, capped, pages } = await walk(city, spokenQuery('NOT label:all AND label:some', true), 'newest', 100)
  assert.deepEqual(ids, ['al-40007', 'al-20007', 'al-7'])
  assert.ok(capped && pages > 1, `${pages} pages`)
  const alone = await walk(city, listQuery({ all: true, label: ['some'] }, hasRig), 'newest', 1_000)
  assert.deepEqual([alone.total, alone.capped], [1_000, true])
  assert.equal(new Set(alone.ids).size, MANY)
})

test('words that all of very many beads have are looked up for the page only, and the walk still meets all', async () => {
  using city = openWorkStore()
  const MANY = 60_000
  await city.store.db.write((tx) => {
    // Numbers run against the order of lists in parts: what a page looks at is not one run of numbers.
    tx.run(
      `INSERT INTO beads (id, title, status, issue_type, created_at, updated_at, closed_at)
        WITH RECURSIVE k (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM k WHERE k < ?)
        SELECT 'al-' || k, iif(k % 20000 = 7, 'cache avatar', 'cache'), 'closed', 'task', k / 1000 * 1000 - k % 1000, k, k FROM k`,
      MANY,
    )
    tx.run(`INSERT INTO bead_counts (status, issue_type, rig, beads) VALUES ('closed', 'task', '', ?)`, MANY)
    tx.run(`UPDATE beads SET labels = '["some"]' WHERE n % 20000 IN (7, 8)`)
  })
  // One that comes as they all do: the others are indexed before it.
  await city.bead('al-end')
  await city.beads.words.settle()
  await city.store.db.write((tx) => city.beads.remove(tx, 'al-end', 'test', false))
  const sparse = { kind: 'metadata-contains', key: 'team', text: 'a' } as const
  for (const order of ['newest', 'oldest'] as const) {
    const found = await walk(city, allOf([...wordsOf('cache'), not(sparse)]), order, 1_000)
    assert.ok(found.capped)
    assert.equal(new Set(found.ids).size, MANY)
    const none = await walk(city, allOf([...wordsOf('cache'), sparse]), order, 1_000)
    assert.ok(none.ids.length === 0 && none.pages > 1, `${none.pages} pages`)
    const few = await walk(city, listQuery({ all: true, q: 'cache', label: ['some'] }, hasRig), order, 10)
    assert.equal(few.ids.length, 6)
  }
})

test('words that never stand together, and beginnings that all have, are looked for among a bounded number of beads', async () => {
  using city = openWorkStore()
  const MANY = 60_000
  await city.store.db.write((tx) => {
    tx.run(
      `INSERT INTO beads (id, title, status, issue_type, created_at, updated_at, closed_at)
        WITH RECURSIVE k (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM k WHERE k < ?)
        SELECT 'al-' || k, iif(k % 20000 = 7, 'avatar cache', 'cache of avatar'), 'closed', 'task', k, k, k FROM k`,
      MANY,
    )
    tx.run(`INSERT INTO bead_counts (status, issue_type, rig, beads) VALUES ('closed', 'task', '', ?)`, MANY)
  })
  await city.bead('al-end')
  await city.beads.words.settle()
  await city.store.db.write((tx) => city.beads.remove(tx, 'al-end', 'test', false))
  const asked: string[] = []
  const db = new Proxy(city.store.db, {
    get: (target, name) => {
      if (name !== 'rows') return Reflect.get(target, name, target)
      return (text: string, ...values: readonly SqlValue[]) => {
        asked.push(`${text} ${values.join(' ')}`)
        return target.rows(text, ...values)
      }
    },
  })
  const meaning = { now: city.clock.now(), identities: city.people.identities }
  for (const order of ['newest', 'oldest'] as const) {
    const found = await walk(city, spokenQuery('"avatar cache"', true), order, 100)
    assert.deepEqual(found.ids.toSorted(), ['al-20007', 'al-40007', 'al-7'])
    assert.ok(found.capped && found.pages > 1, `${found.pages} pages`)
    const many = await walk(city, listQuery({ all: true, q: 'cach' }, hasRig), order, 1_000)
    assert.equal(new Set(many.ids).size, MANY)
    asked.length = 0
    readPage(db, listQuery({ all: true, q: 'avatar cach' }, hasRig), order, {}, meaning)
    readPage(db, allOf([...wordsOf('avatar cache'), ...wordsOf('of cache')]), order, {}, meaning)
    const unbounded = asked.filter(
      (sql) => sql.includes('MATCH') && (sql.includes(' *') || !/BETWEEN|OFFSET/.test(sql)),
    )
    assert.deepEqual(unbounded, [])
  }
})

const wordsOf = (text: string): readonly Query[] => [{ kind: 'words', field: 'text', text, open: false }]

test('very large beads make shorter pages, which meet each of them once, and a graph that says that it is cut', async () => {
  using city = openWorkStore()
  const description = 'x'.repeat(262_144)
  // What a bead has beside its description takes some of the room.
  const fitting = PAGE_BYTES / description.length - 1
  await city.bead('al-root')
  const ids = Array.from({ length: 2 * fitting + 1 }, (_, n) => `al-${String(n).padStart(4, '0')}`)
  for (const [n, id] of ids.entries()) await city.bead(id, { description, created_at: n, parent: 'al-root' })
  const meaning = { now: city.clock.now(), identities: (name: string) => [name] }
  for (const order of ['oldest', 'ready'] as const) {
    const met: string[] = []
    const sizes: number[] = []
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = { limit: 1_000, ...(cursor === undefined ? {} : { cursor }) }
      const found = readRecords(city, listQuery({ parent: 'al-root' }, hasRig), order, page, meaning)
      assert.equal(found.total, ids.length)
      met.push(...found.items.map(({ id }) => id))
      sizes.push(found.items.length)
      cursor = found.next_cursor
    }
    assert.deepEqual(met, ids)
    assert.deepEqual(sizes, [fitting, fitting, 1])
  }
  const graph = readGraph(city.beads, city.store.db, 'al-root')
  assert.equal(graph.truncated, true)
  assert.ok(graph.beads.some(({ id }) => id === 'al-root'))
})

test('a bead is never larger than an answer can be: its metadata has a limit', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const value = 'x'.repeat(65_536)
  const metadata = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, value]))
  await assert.rejects(
    city.store.db.write((tx) => city.beads.change(tx, 'al-1', { metadata }, 'api')),
    (error: unknown) => error instanceof Problem && error.options.errors?.[0]?.location === 'body.metadata',
  )
})

test('the graph of a convoy with members that are gone is whole', async () => {
  using city = openWorkStore()
  await city.bead('al-1')
  const edges = ['al-1', 'al-gone'].map((depends_on_id) => ({ depends_on_id, type: 'tracks' }))
  await city.bead('al-2', { issue_type: 'convoy', edges })
  const { beads, truncated } = readGraph(city.beads, city.store.db, 'al-2')
  assert.deepEqual([beads.map(({ id }) => id), truncated], [['al-1', 'al-2'], undefined])
})
