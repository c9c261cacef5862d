/** Beads over HTTP: what they are made of, how they change, and what is refused. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { BeadCity } from '../../support/bead-city.ts'
import { asMap, at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { cityIs, newCity, outcome, type Running, run, runAgain } from '../../support/running.ts'

let running: Running
let city: BeadCity
before(async () => {
  running = await run()
  const dir = await newCity(running.api, running.work, 'alpha')
  city = new BeadCity(running.api)
  writeFileSync(
    join(dir, 'city.toml'),
    '[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n[[rigs]]\nname = "shop"\npath = "shop"\nprefix = "sho-p"\n',
  )
  const reload = await running.api.post(`${city.base}/config/reload`)
  await outcome(running.api, String(at(reload.body, 'request_id')))
})
after(() => running[Symbol.asyncDispose]())

test('a bead comes back as it was said, with what the service adds', async () => {
  const parent = await city.bead('parent')
  const needed = await city.bead('needed')
  const { created_at, updated_at, id, ...bead } = await city.done('POST', '', {
    title: 'Cache avatars',
    issue_type: 'feature',
    type: 'feature',
    priority: 0,
    description: 'Use the CDN',
    assignee: 'ann',
    labels: ['ui', 'cdn', 'ui'],
    parent,
    metadata: { team: 'web', empty: '' },
    rig: 'shop',
    defer_until: '2100-01-01T00:00:00+01:00',
    needs: [needed, `relates-to:${parent}`],
    from: 'bob',
    ref: 'step-1',
  })
  assert.match(String(id), /^sho-p-[a-z0-9]{3,}$/)
  assert.equal(created_at, updated_at)
  assert.deepEqual(bead, {
    title: 'Cache avatars',
    status: 'open',
    issue_type: 'feature',
    priority: 0,
    description: 'Use the CDN',
    assignee: 'ann',
    labels: ['cdn', 'ui'],
    parent,
    metadata: { team: 'web', empty: '' },
    rig: 'shop',
    defer_until: '2099-12-31T23:00:00.000Z',
    needs: [needed, `relates-to:${parent}`],
    dependencies: [
      { issue_id: id, depends_on_id: needed, type: 'blocks' },
      { issue_id: id, depends_on_id: parent, type: 'parent-child' },
      { issue_id: id, depends_on_id: parent, type: 'relates-to' },
    ].sort((a, b) => (a.depends_on_id + a.type < b.depends_on_id + b.type ? -1 : 1)),
    from: 'bob',
    ref: 'step-1',
    is_blocked: true,
    revision: 1,
  })
  const got = await city.send('GET', `/${String(id)}`)
  assert.equal(got.headers.etag, '"1"')
  assert.deepEqual(asMap(got.body), { ...bead, id, created_at, updated_at })
  const [event] = (await city.events()).filter(({ subject }) => subject === id)
  assert.deepEqual([event?.type, event?.actor, event?.payload.bead], ['bead.created', 'api', got.body])
})

test('an ephemeral bead says so in its id', async () => {
  assert.match(await city.bead('short-lived', { ephemeral: true }), /^al-wisp-[a-z0-9]{3,}$/)
})

const REFUSED: readonly [name: string, body: object, location: string][] = [
  ['no title', {}, 'body.title'],
  ['a blank title', { title: '  ' }, 'body.title'],
  ['a title that is too long', { title: 'x'.repeat(501) }, 'body.title'],
  ['a priority outside 0 to 4', { title: 'x', priority: 5 }, 'body.priority'],
  ['two different types', { title: 'x', type: 'bug', issue_type: 'task' }, 'body.type'],
  ['reserved metadata', { title: 'x', metadata: { 'svc.routed_to': 'me' } }, 'body.metadata.svc.routed_to'],
  ['reserved metadata under its old name', { title: 'x', metadata: { 'gc.kind': 'x' } }, 'body.metadata.gc.kind'],
  ['metadata that is no text', { title: 'x', metadata: { n: 1 } }, 'body.metadata.n'],
  ['a time that there never was', { title: 'x', defer_until: '2016-12-31T23:59:60Z' }, 'body.defer_until'],
  ['a time after all years', { title: 'x', defer_until: '9999-12-31T23:59:59-00:01' }, 'body.defer_until'],
  ['metadata without a name', { title: 'x', metadata: { '': 'v' } }, 'body.metadata.'],
  [
    'a long name of metadata',
    { title: 'x', metadata: { ['k'.repeat(257)]: 'v' } },
    `body.metadata.${'k'.repeat(200)}…`,
  ],
  [
    'metadata that is no text, under a name of two lines',
    { title: 'x', metadata: { 'a\nb': 1 } },
    'body.metadata.a\nb',
  ],
  ['a need of nothing', { title: 'x', needs: ['blocks:'] }, 'body.needs[0]'],
  ['two parents', { title: 'x', needs: ['parent-child:al-1', 'al-2', 'parent-child:al-3'] }, 'body.needs[2]'],
  ['a parent and another one', { title: 'x', parent: 'al-1', needs: ['parent-child:al-2'] }, 'body.needs[0]'],
  ['a field that it does not know', { title: 'x', colour: 'red' }, 'body.colour'],
]
for (const [name, body, location] of REFUSED) {
  test(`a bead with ${name} is refused, and the refusal names the field`, async () => {
    const { errors } = assertProblem(await city.send('POST', '', body), 'validation-failed')
    assert.equal(at(errors, 0, 'location'), location)
  })
}

for (const [body, location] of [
  [{ parent: 'al-none' }, 'body.parent'],
  [{ needs: ['waits-for:al-none'] }, 'body.needs[0]'],
  [{ rig: 'none' }, 'body.rig'],
] as const) {
  test(`what a new bead refers to and is not there is named: ${location}`, async () => {
    const answer = await city.send('POST', '', { title: 'x', ...body })
    assert.equal(answer.status, 404)
    assert.equal(at(answer.body, 'errors', 0, 'location'), location)
  })
}

test('a patch: absent keeps, null and empty clear what can be cleared, and nothing else', async () => {
  const parent = await city.bead('parent')
  const full = {
    priority: 1,
    description: 'text',
    assignee: 'ann',
    parent,
    labels: ['a', 'b'],
    metadata: { k: 'v', gone: 'x' },
    defer_until: '2100-01-01T00:00:00.000Z',
  }
  const id = await city.bead('full', full)
  const before = await city.get(id)
  const head = await city.head()
  for (const nothing of [
    {},
    { labels: null },
    { remove_labels: [] },
    { metadata: null },
    { metadata: {} },
    { labels: ['a'] },
  ])
    assert.deepEqual(await city.done('PATCH', `/${id}`, nothing), before, JSON.stringify(nothing))
  assert.equal(await city.head(), head, 'what changes nothing says nothing')

  const said = { labels: ['c', 'd'], remove_labels: ['d', 'b'], metadata: { k: '', gone: null, new: 'n' } }
  const changed = await city.done('PATCH', `/${id}`, said)
  assert.deepEqual([changed.labels, changed.metadata], [['a', 'c'], { k: '', new: 'n' }])
  const cleared = await city.done('PATCH', `/${id}`, {
    priority: null,
    description: null,
    assignee: '',
    parent: null,
    defer_until: null,
  })
  for (const field of ['priority', 'description', 'assignee', 'parent', 'defer_until', 'dependencies'])
    assert.equal(cleared[field], undefined, field)
  assert.equal(cleared.revision, 3)

  for (const body of [
    { title: null },
    { title: '' },
    { status: null },
    { status: 'blocked' },
    { issue_type: '' },
    { type: null },
    { priority: 9 },
    { defer_until: '' },
    { metadata: { 'svc.kind': null } },
  ])
    assertProblem(await city.send('PATCH', `/${id}`, body), 'validation-failed')
  assertProblem(await city.send('PATCH', `/${id}`, { parent: 'al-none' }), 'bead-not-found')
})

test('closing by PATCH is closing, and reopening by PATCH is reopening', async () => {
  const id = await city.bead('one')
  const waiting = await city.bead('waiting', { needs: [id] })
  const head = await city.head()
  await city.done('PATCH', `/${id}`, { status: 'closed' })
  assert.ok((await city.get(id)).closed_at)
  assert.equal((await city.get(waiting)).is_blocked, false)
  await city.done('PATCH', `/${id}`, { status: 'open' })
  assert.equal((await city.get(waiting)).is_blocked, true)
  const events = await city.events(head)
  assert.deepEqual(
    events.map(({ type, subject, payload }) => [type, subject, payload.changed]),
    [
      ['bead.closed', id, ['status', 'closed_at']],
      ['bead.updated', waiting, ['is_blocked']],
      ['bead.updated', id, ['status', 'closed_at']],
      ['bead.reopened', id, undefined],
      ['bead.updated', waiting, ['is_blocked']],
    ],
  )
})

test('closing twice is a success that says nothing; reopening forgets how it ended', async () => {
  const id = await city.bead('one', { assignee: 'ann' })
  const closing = {
    reason: 'shipped',
    outcome: 'fail',
    failure_class: 'hard',
    failure_reason: 'why',
    output: { n: 1 },
    commit: 'abc',
  }
  const closed = await city.done('POST', `/${id}/close`, closing)
  assert.equal(closed.close_reason, 'shipped')
  assert.deepEqual(closed.metadata, {
    'svc.outcome': 'fail',
    'svc.output_json': '{"n":1}',
    'svc.failure_class': 'hard',
    'svc.failure_reason': 'why',
    'svc.work_commit': 'abc',
  })
  const head = await city.head()
  assert.deepEqual(await city.done('POST', `/${id}/close`, { reason: 'again' }), closed)
  assert.equal(await city.head(), head)
  const open = await city.done('POST', `/${id}/reopen`)
  assert.deepEqual(
    ['status', 'assignee', 'close_reason', 'closed_at', 'outcome'].map((field) => open[field]),
    ['open', undefined, undefined, undefined, undefined],
  )
  const long = { output: 'x'.repeat(262_144) }
  assertProblem(await city.send('POST', `/${id}/close`, long), 'validation-failed', /body\.output/)
})

test('an edit that is based on an older version is refused, whichever edit it is', async () => {
  const id = await city.bead('one')
  const other = await city.bead('other')
  const { headers } = await city.send('GET', `/${id}`)
  await city.done('PATCH', `/${id}`, { priority: 1 })
  const stale = { 'if-match': String(headers.etag) }
  for (const [method, path, body] of [
    ['PATCH', '', {}],
    ['DELETE', '', undefined],
    ['POST', '/close', {}],
    ['POST', '/assign', { assignee: 'x' }],
    ['POST', '/route', { target: 'x' }],
    ['POST', '/claim', { assignee: 'x' }],
    ['POST', '/deps', { depends_on_id: other }],
    ['PUT', '/labels/x', undefined],
  ] as const)
    assertProblem(await city.send(method, `/${id}${path}`, body, stale), 'precondition-failed')
  const fresh = { 'if-match': `"${(await city.get(id)).revision}"` }
  assert.equal((await city.send('PATCH', `/${id}`, { priority: 2 }, fresh)).status, 200)
})

test('labels are a set, whatever is in their names', async () => {
  const id = await city.bead('one')
  const label = 'a/b c?%"é'
  await city.done('PUT', `/${id}/labels/${encodeURIComponent(label)}`)
  const twice = await city.done('PUT', `/${id}/labels/${encodeURIComponent(label)}`)
  assert.deepEqual([twice.labels, twice.revision], [[label], 2])
  const gone = await city.done('DELETE', `/${id}/labels/${encodeURIComponent(label)}`)
  assert.deepEqual([gone.labels, gone.revision], [undefined, 3])
})

test('comments are kept in order, page by page, and change the bead', async () => {
  const id = await city.bead('one')
  const head = await city.head()
  for (const text of ['first', 'second', 'third']) await city.done('POST', `/${id}/comments`, { text, author: 'ann' })
  const first = await city.done('GET', `/${id}/comments?limit=2`)
  assert.equal(first.total, 3)
  const rest = await city.done('GET', `/${id}/comments?limit=2&cursor=${String(first.next_cursor)}`)
  const texts = [first, rest].flatMap(({ items }) =>
    Array.isArray(items) ? items.map((item) => at(item, 'text')) : [],
  )
  assert.deepEqual(texts, ['first', 'second', 'third'])
  assert.equal(rest.next_cursor, undefined)
  assert.equal((await city.get(id)).revision, 4)
  assert.deepEqual(
    (await city.events(head)).map(({ type, actor, payload }) => [type, actor, payload.changed]),
    Array.from({ length: 3 }, () => ['bead.updated', 'ann', ['comments']]),
  )
  const elsewhere = await city.bead('elsewhere')
  assertProblem(await city.send('GET', `/${elsewhere}/comments?cursor=${String(first.next_cursor)}`), 'invalid-cursor')
  assertProblem(await city.send('POST', `/${id}/comments`, { text: ' \n' }), 'validation-failed')
})

test('the status of the city counts its work', async () => {
  const counts = async () => asMap(at((await running.api.get(`${city.base}/status`)).body, 'work'))
  const before = await counts()
  const [free] = [await city.bead('free'), await city.bead('later', { defer_until: '2100-01-01T00:00:00Z' })]
  await city.bead('blocked', { needs: [free] })
  await city.done('POST', `/${await city.bead('taken')}/claim`, { assignee: 'ann' })
  const afterwards = await counts()
  assert.deepEqual(
    ['open', 'in_progress', 'ready'].map((name) => Number(afterwards[name]) - Number(before[name])),
    [3, 1, 1],
  )
})

test('a create that is sent again after a crash makes no second bead', async () => {
  await using first = await run()
  await newCity(first.api, first.work, 'alpha')
  const headers = { 'idempotency-key': 'one' }
  const made = await new BeadCity(first.api).send('POST', '', { title: 'once' }, headers)
  await first.server.kill('SIGKILL')
  await using second = await runAgain(first.server.home)
  const again = new BeadCity(second.api)
  await cityIs(second.api, 'alpha', 'running')
  const repeated = await again.send('POST', '', { title: 'once' }, headers)
  assert.deepEqual([repeated.status, repeated.body], [201, made.body])
  assert.equal((await again.events()).length, 1)
})
