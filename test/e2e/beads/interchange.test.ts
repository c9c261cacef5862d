/** Import and export over HTTP, in the shape of the bd tool (decision 48). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import {
  type BeadImportResponse,
  getBead,
  importBeads,
  listBeads,
  listReadyBeads,
} from '../../../src/contract/beads.ts'
import { listCityEvents } from '../../../src/contract/events.ts'
import { type ConfigCity, cityAgain, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { fc } from '../../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
const cities: ConfigCity[] = []
before(async () => {
  supervisor = await startSupervisor()
})
after(async () => {
  for (const city of cities) city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

/** A city of its own with the rig `frontend`, whose ids begin with `fr`; its own begin with `wo`. */
async function newCity(): Promise<ConfigCity> {
  const city = await createCity(supervisor, `work${cities.length}`)
  cities.push(city)
  const rig = await city.post('/rigs', { name: 'frontend', path: 'frontend', prefix: 'fr' })
  assert.equal(rig.status, 201, rig.text)
  return city
}

type Line = Readonly<Record<string, unknown>>
const textOf = (lines: readonly Line[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('')
const send = (city: ConfigCity, bytes: string | Buffer, query = ''): Promise<BeadImportResponse> =>
  city.api.ask(importBeads, `${city.base}/beads/import${query}`, { bytes, headers: { 'content-type': LINES_TYPE } })
const exported = async (city: ConfigCity, query = ''): Promise<string> => {
  const answer = await city.get(`/beads/export${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.text
}
const parse = (text: string): Line[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => asMap(JSON.parse(line)))
const head = async (city: ConfigCity): Promise<number> =>
  Number((await city.get('/beads?limit=1')).headers['x-svc-index'])
const bead = (city: ConfigCity, id: string) => city.api.ask(getBead, `${city.base}/beads/${id}`)
const counts = ({ errors: _1, warnings: _2, ...rest }: BeadImportResponse) => rest
const NONE = { created: 0, updated: 0, unchanged: 0, skipped: 0, failed: 0 }

const BLOCKING = ['blocks', 'waits-for', 'conditional-blocks']
const TIMES = ['created_at', 'updated_at', 'closed_at', 'started_at', 'defer_until']

/** Decision 48: order of lines and keys, spelling of times, counts over blocking edges. */
function normalised(text: string): string {
  const lines = parse(text)
  const edges = lines.flatMap(({ dependencies }) => (Array.isArray(dependencies) ? dependencies.map(asMap) : []))
  const blocking = edges.filter(({ type }) => BLOCKING.includes(String(type)))
  return lines
    .map((line) => ({
      ...line,
      dependency_count: blocking.filter(({ issue_id }) => issue_id === line.id).length,
      dependent_count: blocking.filter(({ depends_on_id }) => depends_on_id === line.id).length,
      comment_count: Array.isArray(line.comments) ? line.comments.length : 0,
    }))
    .sort((a, b) => (String(at(a, 'id')) < String(at(b, 'id')) ? -1 : 1))
    .map((line) => JSON.stringify(inOrder(line)))
    .join('\n')
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([key, part]): [string, unknown] => [
    key,
    TIMES.includes(key) ? new Date(String(part)).toISOString() : inOrder(part),
  ])
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const SAMPLE = readFileSync(new URL('../../fixtures/interchange/bd-export.jsonl', import.meta.url), 'utf8')
const T1 = '2026-11-01T10:00:00Z'
const T2 = '2026-11-02T10:00:00Z'
const line = (id: string, more: Line = {}): Line => ({
  _type: 'issue',
  id,
  title: `About ${id}`,
  status: 'open',
  priority: 2,
  issue_type: 'task',
  created_at: T1,
  updated_at: T1,
  ...more,
})
const edge = (issue_id: string, depends_on_id: string, type = 'blocks') => ({
  issue_id,
  depends_on_id,
  type,
  created_at: T1,
  created_by: 'ann',
  metadata: '{}',
})

test('what bd wrote comes back as it went in, and a second import changes nothing', async () => {
  const city = await newCity()
  assert.deepEqual(await send(city, SAMPLE), { ...NONE, created: 5, warnings: [], errors: [] })
  assert.equal(normalised(await exported(city)), normalised(SAMPLE))
  const before = await head(city)
  assert.deepEqual(counts(await send(city, SAMPLE)), { ...NONE, unchanged: 5 })
  assert.equal(await head(city), before)
  // Sorted by id, keys in bd's order.
  const ids = parse(await exported(city)).map(({ id }) => id)
  assert.deepEqual(ids, ids.toSorted())
  const child = await bead(city, 'fr-lyp.1')
  assert.equal(child.parent, 'fr-lyp')
  assert.equal(child.rig, 'frontend')
  assert.equal(child.is_blocked, true)
  assert.deepEqual(child.metadata, { 'bd.owner': 'ann@example.com', 'bd.created_by': 'ann' })
  assert.equal((await bead(city, 'fr-s7m')).assignee, 'ann')
  const ready = await city.api.ask(listReadyBeads, `${city.base}/beads/ready`)
  assert.deepEqual(
    ready.items.map(({ id }) => id),
    ['fr-lyp'],
  )
})

test('our own export is taken in by another city as it is, and comes out the same', async () => {
  const [one, other] = [await newCity(), await newCity()]
  await send(one, SAMPLE)
  const made = await one.post('/beads', {
    title: 'Made here',
    rig: 'frontend',
    labels: ['b', 'a'],
    metadata: { k: 'v' },
  })
  const id = String(at(made.body, 'id'))
  await one.post(`/beads/${id}/comments`, { text: 'said here' })
  await one.post(`/beads/${id}/deps`, { depends_on_id: 'fr-s7m' })
  await one.post(`/beads/${id}/route`, { target: 'frontend/worker' })
  await one.api.call('PATCH', `${one.base}/beads/fr-s7m`, { body: { metadata: { 'bd.notes': 'three offers' } } })
  const text = await exported(one)
  assert.match(text, /"notes":"three offers"/)
  assert.equal((await send(other, text)).created, 6)
  assert.equal(await exported(other), text)
  assert.equal((await bead(other, id)).routed_to, 'frontend/worker')
})

test('20,000 beads in and out again, byte for byte after the normalisation, while others are served', async (t) => {
  const city = await newCity()
  const time = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString().replace('.000Z', 'Z')
  const lines = Array.from({ length: 20_000 }, (_, n): Line => {
    const id = `fr-${n.toString(36)}`
    const closed = n % 3 === 0
    const target = n - 1 - ((n * 7919) % 40)
    return line(id, {
      created_at: time(n),
      updated_at: time(n + 5),
      status: ['open', 'closed', 'in_progress', 'blocked'][closed ? 1 : n % 4 === 1 ? 0 : n % 4],
      ...(closed || n % 4 === 1 ? { closed_at: time(n + 5), close_reason: 'done' } : {}),
      owner: 'ann@example.com',
      labels: ['ui', `n${n % 9}`],
      description: `It is about "${n}", and – more.`,
      ...(n % 5 === 0 ? { metadata: { n, list: [n, { deep: true }], text: 'x' } } : {}),
      ...(n % 2 === 0 && target >= 0 ? { dependencies: [edge(id, `fr-${target.toString(36)}`)] } : {}),
      ...(n % 50 === 0
        ? { comments: [{ id: n, issue_id: id, author: 'ann', text: 'seen', created_at: time(n) }] }
        : {}),
    })
  })
  const text = textOf(lines.toReversed())
  const started = performance.now()
  let over = false
  const waits: number[] = []
  const reading = (async () => {
    while (!over) {
      const began = performance.now()
      assert.equal((await city.get('/beads?limit=10')).status, 200)
      waits.push(performance.now() - began)
    }
  })()
  const report = await send(city, text)
  over = true
  await reading
  const seconds = (performance.now() - started) / 1000
  waits.sort((a, b) => a - b)
  t.diagnostic(
    `${Math.round(20_000 / seconds)} beads/s; ${waits.length} lists meanwhile, the slowest ${Math.round(waits.at(-1) ?? 0)} ms`,
  )
  assert.deepEqual(report, { ...NONE, created: 20_000, warnings: [], errors: [] })
  assert.ok(waits.length > 10)
  assert.equal(hash(normalised20k(await exported(city))), hash(normalised20k(text)))
  const before = await head(city)
  assert.deepEqual(counts(await send(city, text)), { ...NONE, unchanged: 20_000 })
  assert.equal(await head(city), before)
})

/** As `normalised`, with the counts from one pass over all edges. */
function normalised20k(text: string): string {
  const lines = parse(text)
  const own = new Map<string, number>()
  const others = new Map<string, number>()
  for (const { dependencies } of lines) {
    for (const one of Array.isArray(dependencies) ? dependencies.map(asMap) : []) {
      if (!BLOCKING.includes(String(one.type))) continue
      own.set(String(one.issue_id), (own.get(String(one.issue_id)) ?? 0) + 1)
      others.set(String(one.depends_on_id), (others.get(String(one.depends_on_id)) ?? 0) + 1)
    }
  }
  return lines
    .map((one) => ({
      ...one,
      dependency_count: own.get(String(one.id)) ?? 0,
      dependent_count: others.get(String(one.id)) ?? 0,
      comment_count: Array.isArray(one.comments) ? one.comments.length : 0,
    }))
    .sort((a, b) => (String(at(a, 'id')) < String(at(b, 'id')) ? -1 : 1))
    .map((one) => JSON.stringify(inOrder(one)))
    .join('\n')
}
/** So that a difference is told in one line and not in twenty megabytes. */
const hash = (text: string): string => {
  const lines = text.split('\n')
  return `${lines.length} lines, ${lines.reduce((sum, one) => (sum * 31 + [...one].reduce((s, c) => (s * 33 + (c.codePointAt(0) ?? 0)) % 4_294_967_291, 7)) % 4_294_967_291, 1)}`
}

test('bad lines are reported by their numbers, and the others are imported', async () => {
  const city = await newCity()
  const text = [
    JSON.stringify(line('fr-1')),
    '{"id":"fr-2","title":"cut o',
    JSON.stringify(line('fr-3', { title: '' })),
    '',
    JSON.stringify(line('xy-4')),
    `{"id":"fr-5","title":"long","description":"${'x'.repeat(1024 * 1024)}"}`,
    JSON.stringify(line('fr-6', { description: 'y'.repeat(1000 * 1024) })),
    JSON.stringify(line('fr-7', { priority: 9 })),
    JSON.stringify(line('fr-8', { labels: Array.from({ length: 501 }, (_, n) => `l${n}`) })),
    JSON.stringify(line('fr-9', { status: 'tombstone' })),
    '{"_type":"memory","key":"x"}',
    JSON.stringify(line('fr-10')),
  ].join('\n')
  const bytes = Buffer.concat([
    Buffer.from(text),
    Buffer.from('\n'),
    Buffer.from([0xff]),
    Buffer.from('\n{"id":"fr-11","title":"last"}'),
  ])
  const report = await send(city, bytes)
  assert.deepEqual(counts(report), { ...NONE, created: 4, skipped: 2, failed: 7 })
  assert.deepEqual(
    report.errors.map(({ line: number, id, detail }) => [number, id, detail.slice(0, 32)]),
    [
      [2, undefined, 'not JSON: Unterminated string in'],
      [3, 'fr-3', 'title: is required'],
      [5, 'xy-4', 'the prefix of xy-4 is not wo or '],
      [6, undefined, 'the line is longer than 1048576 '],
      [8, 'fr-7', 'priority: must be a whole number'],
      [9, 'fr-8', 'labels: a bead has at most 500 l'],
      [13, undefined, 'the line is not UTF-8'],
    ],
  )
  assert.deepEqual(
    parse(await exported(city)).map(({ id }) => id),
    ['fr-1', 'fr-10', 'fr-11', 'fr-6'],
  )
  assert.equal((await bead(city, 'fr-6')).description?.length, 1000 * 1024)
})

test('errors beyond a thousand are counted', async () => {
  const city = await newCity()
  const report = await send(city, 'nonsense\n'.repeat(1500) + JSON.stringify(line('fr-1')))
  assert.deepEqual(counts(report), { ...NONE, created: 1, failed: 1500 })
  assert.equal(report.errors.length, 1000)
})

test('the newer version wins, of two that are as old the import, and an older one is left out', async () => {
  const city = await newCity()
  await send(city, textOf([line('fr-1', { updated_at: T2, labels: ['a'] })]))
  const { revision } = await bead(city, 'fr-1')
  assert.deepEqual(counts(await send(city, textOf([line('fr-1', { title: 'Old' })]))), { ...NONE, skipped: 1 })
  const same = textOf([
    line('fr-1', { updated_at: T2, title: 'Same time', labels: ['b'], dependencies: [edge('fr-1', 'fr-2')] }),
  ])
  assert.deepEqual(counts(await send(city, same)), { ...NONE, updated: 1 })
  const changed = await bead(city, 'fr-1')
  assert.equal(changed.title, 'Same time')
  assert.deepEqual(changed.labels, ['b'])
  assert.equal(changed.revision, revision + 1)
  const newer = textOf([line('fr-1', { updated_at: '2026-11-03T10:00:00Z', status: 'closed', close_reason: 'done' })])
  assert.deepEqual(counts(await send(city, newer)), { ...NONE, updated: 1 })
  const closed = await bead(city, 'fr-1')
  assert.equal(closed.status, 'closed')
  assert.equal(closed.close_reason, 'done')
  assert.equal(closed.dependencies, undefined)
  const events = await city.api.ask(listCityEvents, `${city.base}/events?subject=fr-1&order=asc`)
  assert.deepEqual(
    events.items.map(({ type }) => type),
    ['bead.created', 'bead.updated', 'bead.closed'],
  )
  // What was changed here since is newer than the file.
  await city.api.call('PATCH', `${city.base}/beads/fr-1`, { body: { title: 'Changed here' } })
  assert.deepEqual(counts(await send(city, newer)), { ...NONE, skipped: 1 })
})

test('the same id twice in a file: the second line is looked at after the first', async () => {
  const city = await newCity()
  const text = textOf([
    line('fr-1'),
    line('fr-1', { updated_at: T2, title: 'Newer' }),
    line('fr-1', { title: 'Older' }),
  ])
  assert.deepEqual(counts(await send(city, text, '?dry_run=true')), {
    ...NONE,
    dry_run: true,
    created: 1,
    updated: 1,
    skipped: 1,
  })
  assert.deepEqual(counts(await send(city, text)), { ...NONE, created: 1, updated: 1, skipped: 1 })
  assert.equal((await bead(city, 'fr-1')).title, 'Newer')
})

test('create refuses what exists, and a dry run writes nothing', async () => {
  const city = await newCity()
  await send(city, textOf([line('fr-1')]))
  const before = await head(city)
  const text = textOf([
    line('fr-1', { updated_at: T2 }),
    line('fr-2', { dependencies: [edge('fr-2', 'fr-3'), edge('fr-2', 'fr-9')] }),
    line('fr-3'),
  ])
  const dry = await send(city, text, '?dry_run=true')
  assert.deepEqual(counts(dry), { ...NONE, dry_run: true, created: 2, updated: 1 })
  assert.deepEqual(dry.warnings, [{ line: 2, id: 'fr-2', detail: 'it depends on fr-9, which is not there' }])
  assert.equal(await head(city), before)
  const report = await send(city, text, '?mode=create')
  assert.deepEqual(counts(report), { ...NONE, created: 2, failed: 1 })
  assert.deepEqual(report.errors, [{ line: 1, id: 'fr-1', detail: 'fr-1 exists already' }])
})

test('a dependency on something that is not there blocks, is warned about, and is settled when it comes', async () => {
  const city = await newCity()
  const report = await send(city, textOf([line('fr-1', { dependencies: [edge('fr-1', 'fr-2')] })]))
  assert.deepEqual(report.warnings, [{ line: 1, id: 'fr-1', detail: 'it depends on fr-2, which is not there' }])
  assert.equal((await bead(city, 'fr-1')).is_blocked, true)
  await send(city, textOf([line('fr-2', { status: 'closed' })]))
  assert.equal((await bead(city, 'fr-1')).is_blocked, false)
})

test('a line that closes a cycle is refused with the whole way, whatever the order, and the others stay', async () => {
  const city = await newCity()
  const ring = [1, 2, 3].map((n) => line(`fr-${n}`, { dependencies: [edge(`fr-${n}`, `fr-${(n % 3) + 1}`)] }))
  const report = await send(
    city,
    textOf([...ring, line('fr-4', { dependencies: [edge('fr-4', 'fr-4')] }), line('fr-5')]),
  )
  assert.deepEqual(counts(report), { ...NONE, created: 3, failed: 2 })
  assert.deepEqual(
    report.errors.map(({ line: number, detail }) => [number, detail]),
    [
      [3, 'dependency cycle: fr-3 -> fr-1 -> fr-2 -> fr-3'],
      [4, 'dependency cycle: fr-4 -> fr-4'],
    ],
  )
})

test('a dry run says what the import then does, cycles through lines that are far apart included', async () => {
  const city = await newCity()
  const id = fc.integer({ min: 1, max: 5 })
  const drawn = fc.record({
    id,
    to: fc.array(fc.tuple(id, fc.constantFrom('blocks', 'parent-child', 'relates-to')), { maxLength: 3 }),
    updated_at: fc.constantFrom(T1, T2),
    labels: fc.constantFrom(1, 501),
  })
  // Of several ways round either may be told.
  const wayless = ({ errors, ...report }: BeadImportResponse) => ({
    ...report,
    errors: errors.map(({ detail, ...error }) => ({ ...error, detail: detail.replace(/ -> .*/, '') })),
  })
  let round = 0
  const files = fc.array(fc.array(drawn, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 2 })
  await fc.assert(
    fc.asyncProperty(files, async (files) => {
      round++
      const name = (n: number) => `fr-${round}x${n}`
      for (const file of files) {
        const text = textOf(
          file.map(({ id: n, to, updated_at, labels }) =>
            line(name(n), {
              updated_at,
              dependencies: to.map(([other, type]) => edge(name(n), name(other), type)),
              labels: Array.from({ length: labels }, (_, at) => `l${at}`),
            }),
          ),
        )
        const { dry_run: dry, ...expected } = await send(city, text, '?dry_run=true')
        assert.equal(dry, true)
        assert.deepEqual(wayless(await send(city, text)), wayless(expected))
      }
    }),
    { numRuns: 60 },
  )
  // More lines than one write has.
  const ring = Array.from({ length: 450 }, (_, n) =>
    line(`fr-r${n}`, { dependencies: [edge(`fr-r${n}`, `fr-r${(n + 1) % 450}`)] }),
  )
  const { errors, created } = await send(city, textOf(ring), '?dry_run=true')
  assert.equal(created, 449)
  assert.match(String(errors[0]?.detail), /^dependency cycle: fr-r449 -> fr-r0 -> fr-r1 -> /)
})

test('ids of elsewhere get ids of ours, always the same, wherever they are named', async () => {
  const city = await newCity()
  const text = textOf([
    line('bd-1', { dependencies: [edge('bd-1', 'bd-2'), edge('bd-1', 'fr-7')] }),
    line('bd-2', { comments: [{ id: '01a1fd6e-8834-71a3-8d88-42bb1d65d84d', text: 'seen', created_at: T1 }] }),
    line('bd-2.1', { dependencies: [edge('bd-2.1', 'bd-2', 'parent-child')] }),
    line('fr-7'),
  ])
  assert.equal((await send(city, text)).failed, 3)
  assert.deepEqual(counts(await send(city, text, '?remap=true&rig=frontend')), { ...NONE, created: 3, unchanged: 1 })
  assert.deepEqual(counts(await send(city, text, '?remap=true&rig=frontend')), { ...NONE, unchanged: 4 })
  const { items } = await city.api.ask(listBeads, `${city.base}/beads`)
  const [first, second, child] = ['bd-1', 'bd-2', 'bd-2.1'].map((id) =>
    items.find(({ title }) => title === `About ${id}`),
  )
  assert.match(String(second?.id), /^fr-[a-z0-9]{8}$/)
  assert.equal(child?.id, `${second?.id}.1`)
  assert.equal(child?.parent, second?.id)
  assert.deepEqual(
    first?.dependencies?.map(({ depends_on_id }) => depends_on_id).sort(),
    [String(second?.id), 'fr-7'].sort(),
  )
  // Ids that stay keep the ids of their comments too.
  const own = textOf([
    line('fr-8', { comments: [{ id: '01a1fd6e-8834-71a3-8d88-42bb1d65d84e', text: 'seen', created_at: T1 }] }),
  ])
  await send(city, own)
  assert.deepEqual(counts(await send(city, own, '?remap=true')), { ...NONE, unchanged: 1 })
  // Into the city itself, beside those in the rig.
  assert.deepEqual(counts(await send(city, text, '?remap=true')), { ...NONE, created: 3, unchanged: 1 })
})

test('a rig takes its own ids only', async () => {
  const city = await newCity()
  const report = await send(city, textOf([line('wo-1'), line('fr-1')]), '?rig=frontend')
  assert.deepEqual(counts(report), { ...NONE, created: 1, failed: 1 })
  assert.equal(report.errors[0]?.detail, 'the prefix of wo-1 is not fr; `remap` gives it a new id')
  assertProblem(
    await city.api.call('POST', `${city.base}/beads/import?rig=none`, {
      bytes: '',
      headers: { 'content-type': LINES_TYPE },
    }),
    'rig-not-found',
    'not_found: there is no rig none',
  )
})

test('exports take the filters of lists; closed beads are in them, ephemeral ones only if asked', async () => {
  const city = await newCity()
  await send(
    city,
    textOf([
      line('fr-1', { labels: ['ui'] }),
      line('fr-2', { status: 'closed' }),
      line('wo-1', { ephemeral: true }),
      line('wo-2', { description: 'the needle' }),
    ]),
  )
  const ids = async (query: string) => parse(await exported(city, query)).map(({ id }) => id)
  assert.deepEqual(await ids(''), ['fr-1', 'fr-2', 'wo-2'])
  assert.deepEqual(await ids('?rig=frontend'), ['fr-1', 'fr-2'])
  assert.deepEqual(await ids('?status=closed'), ['fr-2'])
  assert.deepEqual(await ids('?label=ui'), ['fr-1'])
  assert.deepEqual(await ids('?q=needle'), ['wo-2'])
  assert.deepEqual(await ids('?ephemeral=include'), ['fr-1', 'fr-2', 'wo-1', 'wo-2'])
  assert.deepEqual(await ids('?ephemeral=only'), ['wo-1'])
  assertProblem(await city.get('/beads/export?rig=none'), 'rig-not-found')
  assertProblem(await city.get('/beads/export?limit=3'), 'validation-failed')
})

test('an upload that breaks off leaves what came before, and the whole file again puts in the rest', async () => {
  const city = await newCity()
  const lines = Array.from({ length: 1000 }, (_, n) => line(`fr-${n}`))
  const sent = request(`${city.api.url}${city.base}/beads/import`, {
    method: 'POST',
    headers: { 'x-svc-request': '1', 'content-type': LINES_TYPE, 'transfer-encoding': 'chunked' },
  })
  sent.on('error', () => {})
  sent.write(textOf(lines.slice(0, 500)))
  const total = async () => (await city.api.ask(listBeads, `${city.base}/beads?limit=1`)).total
  const arrived = await eventually('some lines', async () => ((await total()) >= 200 ? total() : undefined))
  sent.destroy()
  assert.ok(arrived <= 500)
  const before = await total()
  const report = await send(city, textOf(lines))
  assert.equal(report.failed, 0)
  assert.equal(report.created + report.unchanged, 1000)
  assert.ok(report.unchanged >= 200 && report.unchanged >= before)
  assert.equal(await total(), 1000)
})

test('a supervisor that is killed in the middle of an import: the whole file again puts in the rest, and nothing twice', async () => {
  await using first = await startSupervisor()
  const city = await createCity(first, 'work')
  await city.post('/rigs', { name: 'frontend', path: 'frontend', prefix: 'fr' })
  const text = textOf(
    Array.from({ length: 5000 }, (_, n) =>
      line(`fr-${n}`, n === 0 ? {} : { dependencies: [edge(`fr-${n}`, `fr-${n - 1}`)] }),
    ),
  )
  const lost = send(city, text).then(
    () => undefined,
    (error: unknown) => error,
  )
  await eventually('some lines', async () => ((await head(city)) > 600 ? true : undefined))
  await first.kill('SIGKILL')
  assert.notEqual(await lost, undefined)
  city.api.close()
  await using second = await startSupervisor({ home: first.home })
  const again = await cityAgain(second, 'work')
  cities.push(again)
  const report = await send(again, text)
  assert.equal(report.created + report.unchanged, 5000)
  assert.ok(report.unchanged > 400 && report.created > 0, JSON.stringify(counts(report)))
  assert.equal(normalised20k(await exported(again)), normalised20k(text))
  const ready = await again.api.ask(listReadyBeads, `${again.base}/beads/ready`)
  assert.deepEqual(
    ready.items.map(({ id }) => id),
    ['fr-0'],
  )
})

test('comments that come with a newer line are added, and say so', async () => {
  const city = await newCity()
  const comment = { id: 1, issue_id: 'fr-1', author: 'ann', text: 'one', created_at: T1 }
  await send(
    city,
    textOf([line('fr-1', { comments: [comment] }), line('fr-2', { comments: [{ ...comment, issue_id: 'fr-2' }] })]),
  )
  const more = textOf([line('fr-1', { comments: [comment, { ...comment, id: 2, text: 'two' }] })])
  assert.deepEqual(counts(await send(city, more)), { ...NONE, updated: 1 })
  const listed = await city.get('/beads/fr-1/comments')
  assert.equal(at(listed.body, 'total'), 2)
  const events = await city.api.ask(listCityEvents, `${city.base}/events?subject=fr-1&type=bead.updated`)
  assert.deepEqual(at(events.items[0]?.payload, 'changed'), ['comments'])
  assert.deepEqual(
    parse(await exported(city)).map(({ comments }) => at(comments, 0, 'id')),
    [1, 1],
  )
})

test('comments of several beads under one id are kept apart, and go out under the id that they came with', async () => {
  const city = await newCity()
  const comment = { id: '01a1fd6e-8834-71a3-8d88-42bb1d65d84d', author: 'ann', text: 'seen', created_at: T1 }
  const ids = ['fr-1', 'fr-2', 'fr-3']
  // The ids that they get here are in another order than the ones that they come with.
  const comments = (id: string) => [
    { ...comment, issue_id: id },
    { text: 'without one', created_at: T1 },
  ]
  const text = textOf(ids.map((id) => line(id, { comments: comments(id) })))
  assert.deepEqual(counts(await send(city, text)), { ...NONE, created: 3 })
  assert.deepEqual(counts(await send(city, text)), { ...NONE, unchanged: 3 })
  assert.equal(normalised(await exported(city)), normalised(text))
})
