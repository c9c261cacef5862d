/**
 * `kill -9` under a load of every kind of edit: what was acknowledged is there, the log and the beads tell the same story,
 * and what is kept beside the beads (blockers, parents, counts, words and how far they are indexed) fits them.
 *
 *   SVC_SEED=123 n26 --test test/crash/beads.test.ts     the same choices again
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { LINES_TYPE } from '../../src/contract/base/operation.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { asMap, at, type Fields } from '../support/document.ts'
import { type Answer, eventually } from '../support/http.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const KILLS = process.env['SVC_SOAK'] === undefined ? 4 : 60
const EDITORS = 8
const PEOPLE = ['ann', 'bob', 'eve']
const TYPES = ['blocks', 'waits-for', 'parent-child', 'relates-to']

type Edit = readonly [method: string, path: string, body?: object]

/** What the editors know, whatever happens to the supervisor. */
class Ledger {
  /** The highest revision that was answered. */
  readonly acknowledged = new Map<string, number>()
  /** A delete was sent; it may have been done without an answer. */
  readonly perhapsGone = new Set<string>()
  answers = 0

  get ids(): readonly string[] {
    return [...this.acknowledged.keys()]
  }

  note(answer: Answer): void {
    this.answers++
    if (answer.status >= 300) return
    const body = asMap(answer.body)
    const { id, revision } = asMap(body['bead'] ?? body)
    if (typeof revision !== 'number') return
    const before = this.acknowledged.get(String(id)) ?? 0
    this.acknowledged.set(String(id), Math.max(before, revision))
  }
}

function nextEdit(random: Random, ledger: Ledger): Edit {
  const id = random.pick(ledger.ids.slice(-40)) ?? ''
  const other = random.pick(ledger.ids.slice(-40)) ?? ''
  const assignee = random.pick(PEOPLE)
  const needs = other === '' || random.chance(0.5) ? [] : [other]
  const create: Edit = [
    'POST',
    '',
    { title: `work ${random.between(1, 99)}`, labels: ['a'], metadata: { k: 'v' }, needs },
  ]
  if (id === '' || random.chance(0.25)) return create
  if (random.chance(0.05)) return ['DELETE', `/${id}`]
  const edits: readonly Edit[] = [
    ['PATCH', `/${id}`, { title: `other ${random.between(1, 99)}`, priority: random.between(0, 4) }],
    ['PATCH', `/${id}`, { parent: random.chance(0.7) ? other : null, metadata: { k: null, n: 'x' } }],
    ['POST', `/${id}/close`, { reason: 'done' }],
    ['POST', `/${id}/reopen`],
    ['POST', `/${id}/claim`, { assignee }],
    ['POST', `/${id}/release`],
    ['POST', `/${id}/deps`, { depends_on_id: other, type: random.pick(TYPES) }],
    ['DELETE', `/${id}/deps/${other}`],
    ['PUT', `/${id}/labels/l${random.between(1, 3)}`],
    ['DELETE', `/${id}/labels/a`],
    ['POST', `/${id}/comments`, { text: 'well' }],
  ]
  return random.pick(edits) ?? create
}

/** Looks for words until the connection breaks: each time what is behind is indexed, so that kills meet that too. */
async function search(city: ConfigCity, random: Random): Promise<void> {
  for (;;) {
    try {
      const answer = await city.api.call('GET', `${city.base}/beads?all=true&limit=1000&q=work`)
      assert.equal(answer.status, 200)
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      return
    }
    await sleep(random.between(1, 20))
  }
}

/** Edits until the connection breaks. */
async function edit(city: ConfigCity, random: Random, ledger: Ledger): Promise<void> {
  for (;;) {
    const [method, path, body] = nextEdit(random, ledger)
    if (method === 'DELETE') ledger.perhapsGone.add(path.slice(1))
    try {
      const answer = await city.api.call(method, `${city.base}/beads${path}`, body === undefined ? {} : { body })
      ledger.note(answer)
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      return
    }
  }
}

/** The beads as the log tells of them, event by event. */
class Story {
  readonly beads = new Map<string, Fields>()
  #read = 0

  async follow(city: ConfigCity): Promise<void> {
    for (;;) {
      const { body } = await city.get(`/events?type=bead.*&order=asc&limit=1000&after_seq=${this.#read}`)
      const items = at(body, 'items')
      assert.ok(Array.isArray(items))
      if (items.length === 0) return
      for (const item of items) this.#tell(asMap(item))
      this.#read = Number(at(items.at(-1), 'seq'))
    }
  }

  #tell({ type, subject, payload }: Fields): void {
    const id = String(subject)
    const { bead, changed } = asMap(payload)
    if (bead === undefined) return
    const before = this.beads.get(id)
    const revision = Number(at(bead, 'revision'))
    if (type === 'bead.created') assert.deepEqual([before, revision], [undefined, 1])
    else {
      const isFlip = Array.isArray(changed) && changed.length === 1 && changed[0] === 'is_blocked'
      const step = type === 'bead.deleted' || (isFlip && revision === before?.['revision']) ? 0 : 1
      assert.equal(
        revision,
        Number(before?.['revision']) + step,
        `${String(type)} of ${id}: ${JSON.stringify(changed)}`,
      )
    }
    if (type === 'bead.deleted') this.beads.delete(id)
    else this.beads.set(id, asMap(bead))
  }
}

/** Without what changes unsaid: the lease, and whether a closed bead would be blocked. */
function told({ lease_expires_at: _lease, is_blocked, ...bead }: Fields): Fields {
  return bead['status'] === 'closed' ? bead : { ...bead, is_blocked }
}

async function allBeads(city: ConfigCity): Promise<ReadonlyMap<string, Fields>> {
  const beads = new Map<string, Fields>()
  for (let cursor = ''; ; ) {
    const { body } = await city.get(`/beads?all=true&limit=1000${cursor}`)
    const { items, next_cursor: next } = asMap(body)
    assert.ok(Array.isArray(items))
    for (const item of items) beads.set(String(at(item, 'id')), asMap(item))
    if (next === undefined) return beads
    cursor = `&cursor=${encodeURIComponent(String(next))}`
  }
}

const titlesOf = (beads: ReadonlyMap<string, Fields>, word: string): readonly string[] =>
  [...beads].flatMap(([id, { title }]) => (String(title).startsWith(`${word} `) ? [id] : [])).sort()

/** Ids of the beads with a word in their title, as a search finds them. */
async function titled(city: ConfigCity, word: string): Promise<readonly string[]> {
  const ids: string[] = []
  for (let cursor = ''; ; ) {
    const { body } = await city.get(`/beads/query?all=true&limit=1000&q=title~${word}${cursor}`)
    const { items, next_cursor: next } = asMap(body)
    assert.ok(Array.isArray(items))
    ids.push(...items.map((item) => String(at(item, 'id'))))
    if (next === undefined) return ids.sort()
    cursor = `&cursor=${encodeURIComponent(String(next))}`
  }
}

const MISFITS = {
  blockers: `SELECT b.id FROM beads b WHERE b.blockers <> (SELECT count(*) FROM bead_deps d LEFT JOIN beads t
    ON t.id = d.depends_on_id WHERE d.issue_id = b.id AND d.type IN ('blocks', 'waits-for', 'conditional-blocks')
    AND (t.id IS NULL OR t.status <> 'closed'))`,
  parents: `SELECT b.id FROM beads b WHERE b.parent IS NOT (SELECT max(depends_on_id) FROM bead_deps d
    WHERE d.issue_id = b.id AND d.type = 'parent-child')`,
  'edges of nobody': 'SELECT issue_id FROM bead_deps WHERE issue_id NOT IN (SELECT id FROM beads)',
  'edges to nobody': 'SELECT issue_id FROM bead_deps WHERE depends_on_id NOT IN (SELECT id FROM beads)',
  counts: `SELECT * FROM (SELECT status, issue_type, rig, priority, count(*) AS beads FROM beads GROUP BY 1, 2, 3, 4
    EXCEPT SELECT * FROM bead_counts)`,
  'counts of nothing': `SELECT * FROM (SELECT * FROM bead_counts EXCEPT
    SELECT status, issue_type, rig, priority, count(*) FROM beads GROUP BY 1, 2, 3, 4)`,
  'metadata of nobody': 'SELECT bead FROM bead_metadata WHERE bead NOT IN (SELECT id FROM beads)',
  'comments of nobody': 'SELECT bead FROM bead_comments WHERE bead NOT IN (SELECT id FROM beads)',
  'words not indexed':
    'SELECT n FROM beads WHERE n <= (SELECT n FROM bead_words_upto) AND n NOT IN (SELECT rowid FROM bead_words)',
  'words of nobody': 'SELECT rowid FROM bead_words WHERE rowid NOT IN (SELECT n FROM beads)',
  'words indexed before their turn': 'SELECT rowid FROM bead_words WHERE rowid > (SELECT n FROM bead_words_upto)',
  'labels not found': `SELECT b.n FROM beads b, json_each(b.labels) l WHERE b.n <= (SELECT n FROM bead_words_upto)
    AND b.n NOT IN (SELECT rowid FROM bead_words WHERE bead_words MATCH 'labels : "' || hex(l.value) || '"')`,
  'titles not found': `SELECT b.n FROM beads b WHERE b.n <= (SELECT n FROM bead_words_upto)
    AND b.n NOT IN (SELECT rowid FROM bead_words WHERE bead_words MATCH '{title} : "' || b.title || '"')`,
}

/** The file itself, while nobody has it open. */
function assertFits(dir: string): void {
  const db = new BetterSqlite3(join(dir, '.svc', 'city.db'))
  try {
    for (const [what, sql] of Object.entries(MISFITS)) assert.deepEqual(db.prepare(sql).all(), [], what)
  } finally {
    db.close()
  }
}

test('edits of beads survive kills: none that was acknowledged is lost, and nothing contradicts the log', {
  timeout: KILLS * 30_000,
}, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city = await createCity(server, 'alpha')
  const ledger = new Ledger()
  const story = new Story()
  try {
    for (let kill = 1; kill <= KILLS; kill++) {
      const enough = ledger.answers + random.between(150, 400)
      const editing = Promise.all([
        search(city, random),
        ...Array.from({ length: EDITORS }, () => edit(city, random, ledger)),
      ])
      const failed = editing.then(
        () => false,
        () => true,
      )
      await eventually('some edits are done', () => (ledger.answers >= enough ? true : undefined))
      await server.kill('SIGKILL')
      if (await failed) await editing
      city.api.close()
      assertFits(city.dir)
      server = await startSupervisor({ home: first.home })
      city = await cityAgain(server, 'alpha')
      await story.follow(city)
      const beads = await allBeads(city)
      assert.deepEqual(await titled(city, 'work'), titlesOf(beads, 'work'))
      const plain = (all: ReadonlyMap<string, Fields>) =>
        Object.fromEntries([...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([id, bead]) => [id, told(bead)]))
      assert.deepEqual(plain(beads), plain(story.beads))
      for (const [id, revision] of ledger.acknowledged) {
        const bead = beads.get(id)
        if (bead === undefined) assert.ok(ledger.perhapsGone.has(id), `${id} is lost`)
        else assert.ok(Number(bead['revision']) >= revision, `${id} is older than what was acknowledged`)
      }
    }
    t.diagnostic(`${ledger.answers} answers, ${story.beads.size} beads`)
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

const TALL = 6_000

async function importing(city: ConfigCity, lines: readonly object[]): Promise<void> {
  const bytes = lines.map((line) => `${JSON.stringify({ title: 'one of many', ...line })}\n`).join('')
  const headers = { 'content-type': LINES_TYPE }
  const { body } = await city.api.call('POST', `${city.base}/beads/import`, { bytes, headers })
  assert.equal(at(body, 'created'), lines.length)
}

async function countOf(city: ConfigCity, path: string): Promise<number> {
  const { body } = await city.get(path)
  return Number(at(body, 'total'))
}

test('a deletion of thousands that is killed goes on with the next start: one end, each bead told of once', {
  timeout: 120_000,
}, async () => {
  await using first = await startSupervisor()
  let city = await createCity(first, 'alpha')
  const root = 'al-root'
  const below = Array.from({ length: TALL }, (_, n) => ({ id: `al-t${n}`, parent: n < 60 ? root : `al-t${n % 60}` }))
  await importing(city, [{ id: root }, ...below])
  const gone = () => countOf(city, '/events?type=bead.deleted&limit=1')
  const accepted = await city.api.call('DELETE', `${city.base}/beads/${root}?cascade=true`, {
    headers: { 'idempotency-key': 'fell' },
  })
  assert.equal(accepted.status, 202, accepted.text)
  await eventually('some are deleted', async () => ((await gone()) > 0 ? true : undefined))
  await first.kill('SIGKILL')
  city.api.close()
  await using second = await startSupervisor({ home: first.home })
  city = await cityAgain(second, 'alpha')
  const again = await city.api.call('DELETE', `${city.base}/beads/${root}?cascade=true`, {
    headers: { 'idempotency-key': 'fell' },
  })
  assert.deepEqual([again.status, again.body], [202, accepted.body])
  const ends = () => city.get('/events?type=request.*')
  const { body } = await eventually('the request ends', async () => {
    const found = await ends()
    return at(found.body, 'total') === 0 ? undefined : found
  })
  const { type, payload } = asMap(at(body, 'items', 0))
  assert.equal(type, 'request.result.bead.delete')
  assert.deepEqual(payload, { request_id: at(accepted.body, 'request_id'), bead_id: root, deleted: TALL + 1 })
  assert.equal(at(body, 'total'), 1)
  assert.equal(await gone(), TALL + 1)
  assert.equal(await countOf(city, '/beads?all=true&limit=1'), 0)
  await second.kill('SIGKILL')
  city.api.close()
  assertFits(city.dir)
})

test('what waits for a bead that closed before a kill is ready after it', { timeout: 120_000 }, async () => {
  await using first = await startSupervisor()
  let city = await createCity(first, 'alpha')
  const gate = 'al-gate'
  const edge = { depends_on_id: gate, type: 'blocks' }
  await importing(city, [
    { id: gate },
    ...Array.from({ length: TALL }, (_, n) => ({ id: `al-t${n}`, dependencies: [edge] })),
  ])
  await city.api.call('POST', `${city.base}/beads/${gate}/close`)
  await first.kill('SIGKILL')
  city.api.close()
  await using second = await startSupervisor({ home: first.home })
  city = await cityAgain(second, 'alpha')
  await eventually('all are ready', async () =>
    (await countOf(city, '/beads/ready?limit=1')) === TALL ? true : undefined,
  )
  await second.kill('SIGKILL')
  city.api.close()
  assertFits(city.dir)
})
