import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Bead, createBead, getBead } from '../../../src/contract/beads.ts'
import {
  type Convoy,
  checkConvoy,
  checkConvoys,
  createConvoy,
  getConvoy,
  landConvoy,
  listConvoys,
  listStranded,
} from '../../../src/contract/convoys.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { type Answer, assertProblem, type CallOptions, eventually } from '../../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

let supervisor: RunningSupervisor
let city: ConfigCity
before(async () => {
  supervisor = await startSupervisor()
  city = await createCity(supervisor, 'alpha')
})
after(async () => {
  city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const bead = (title = 'work', more: object = {}): Promise<Bead> =>
  city.api.ask(createBead, `${city.base}/beads`, { body: { title, ...more } })
const beads = async (count: number): Promise<readonly string[]> => {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await bead(`work ${i}`)).id)
  return ids
}
const convoy = (items: readonly string[], more: object = {}): Promise<Convoy> =>
  city.api.ask(createConvoy, `${city.base}/convoys`, { body: { title: 'release', items, ...more } })
const send = (method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> =>
  city.api.call(method, `${city.base}${path}`, body === undefined ? options : { ...options, body })
const close = async (id: string): Promise<void> => {
  const { status, text } = await send('POST', `/beads/${id}/close`)
  assert.equal(status, 200, text)
}
const view = (id: string, query = '') => city.api.ask(getConvoy, `${city.base}/convoys/${id}${query}`)
const closed = (id: string) =>
  eventually(`${id} is closed`, async () => {
    const { convoy: found } = await view(id)
    return found.status === 'closed' ? found : undefined
  })
const head = async () => Number((await send('GET', '/convoys?limit=1')).headers['x-svc-index'])
const said = async (id: string) =>
  (await city.events('convoy.*'))
    .filter(({ payload }) => payload['convoy_id'] === id)
    .map(({ type, payload: { convoy_id: _, ...payload } }) => [type, payload])

test('a convoy is created with its members and what it is for, and its members stay as they were', async () => {
  const items = await beads(2)
  const { progress, owned, ...made } = await convoy([...items, items[0] ?? ''], {
    description: 'for May',
    owner: 'ann',
    notify: 'bob',
    merge: 'mr',
    target: 'release/5',
    molecule: 'al-m0l',
  })
  assert.equal(made.issue_type, 'convoy')
  assert.equal(made.status, 'open')
  assert.deepEqual(
    [made.owner, made.notify, made.merge, made.target, made.molecule],
    ['ann', 'bob', 'mr', 'release/5', 'al-m0l'],
  )
  assert.equal(owned, false)
  assert.deepEqual(progress, { total: 2, closed: 0 })
  const { convoy: found, children, progress: same } = await view(made.id)
  assert.deepEqual(found, { ...made, owned, progress })
  assert.deepEqual(same, progress)
  assert.deepEqual(
    children.map(({ id }) => id),
    items,
  )
  assert.equal(at(children[0], 'status'), 'open')
  assert.ok(!asMap(children[0]).parent, 'a member needs no parent')
  assert.deepEqual(await said(made.id), [
    ['convoy.created', { title: 'release', total: 2, closed: 0, owner: 'ann', notify: 'bob' }],
  ])
})

test('a convoy of which one item is not there is not created, nor is anything said', async () => {
  const [item = ''] = await beads(1)
  const events = (await city.events('convoy.*')).length
  const problem = assertProblem(
    await send('POST', '/convoys', { title: 'x', items: [item, item, 'al-none'] }),
    'bead-not-found',
    'not_found: there is no bead al-none',
  )
  assert.deepEqual(problem.errors, [{ location: 'body.items[2]', message: 'there is no such bead', value: 'al-none' }])
  assertProblem(await send('POST', '/convoys', { title: 'x', rig: 'none' }), 'rig-not-found')
  assert.equal((await city.events('convoy.*')).length, events)
})

test('the last member that closes closes the convoy, and the convoys around it', async () => {
  const [one = '', two = ''] = await beads(2)
  const inner = await convoy([one, two], { notify: 'bob' })
  const outer = await convoy([inner.id])
  const mine = await convoy([inner.id], { owned: true })
  await close(one)
  assert.deepEqual(await city.api.ask(checkConvoy, `${city.base}/convoys/${inner.id}/check`), {
    convoy_id: inner.id,
    total: 2,
    closed: 1,
    complete: false,
  })
  // Close by PATCH is a close like any other.
  assert.equal((await send('PATCH', `/beads/${two}`, { status: 'closed' })).status, 200)
  const found = await closed(inner.id)
  assert.equal(found.close_reason, 'all children closed')
  await closed(outer.id)
  assert.deepEqual((await said(inner.id)).at(-1), [
    'convoy.closed',
    { title: 'release', total: 2, closed: 2, notify: 'bob', reason: 'all children closed' },
  ])
  assert.equal((await view(mine.id)).convoy.status, 'open', 'an owned one waits to be landed')
  const check = await city.api.ask(checkConvoy, `${city.base}/convoys/${mine.id}/check`)
  assert.equal(check.complete, true)
})

test('members come and go all together or not at all; without its last open one the convoy is complete', async () => {
  const [one = '', two = '', three = ''] = await beads(3)
  const { id } = await convoy([one])
  const added = await send('POST', `/convoys/${id}/add`, { items: [two, three, one, two] })
  assert.equal(at(added.body, 'progress', 'total'), 3)
  assertProblem(await send('POST', `/convoys/${id}/add`, { items: ['al-none'] }), 'bead-not-found')
  const itself = assertProblem(await send('POST', `/convoys/${id}/add`, { items: [id] }), 'validation-failed')
  assert.equal(itself.errors?.[0]?.location, 'body.items[0]')
  const stranger = (await bead()).id
  const { errors } = assertProblem(
    await send('POST', `/convoys/${id}/remove`, { items: [three, three, stranger] }),
    'invalid-request',
    `invalid: ${stranger} is not a member of the convoy ${id}`,
  )
  assert.equal(errors?.[0]?.location, 'body.items[2]')
  assertProblem(await send('POST', `/convoys/${id}/remove`, { items: ['al-none'] }), 'bead-not-found')
  assert.equal((await view(id)).progress.total, 3)

  const before = await head()
  assert.equal((await send('POST', `/convoys/${id}/add`, { items: [one] })).status, 200)
  assert.equal(await head(), before, 'who is a member already is no change')

  await close(one)
  await close(two)
  assert.equal((await send('POST', `/convoys/${id}/remove`, { items: [three] })).status, 200)
  await closed(id)
  assert.deepEqual(
    (await said(id)).map(([type]) => type),
    ['convoy.created', 'convoy.updated', 'convoy.updated', 'convoy.closed'],
  )
  assert.deepEqual((await said(id))[1]?.[1], { added: [two, three], removed: [] })
  assertProblem(await send('POST', `/convoys/${id}/add`, { items: [stranger] }), 'conflict-wrong-state')
})

test('an empty convoy never closes by itself, and one of beads that were closed before waits for the sweep', async () => {
  const empty = await convoy([])
  const [done = ''] = await beads(1)
  await close(done)
  const late = await convoy([done])
  const { closed: swept, checked } = await city.api.ask(checkConvoys, `${city.base}/convoys/check`)
  assert.ok(swept.includes(late.id) && !swept.includes(empty.id))
  assert.ok(checked >= 2)
  assert.equal((await view(empty.id)).convoy.status, 'open')
  const again = await city.api.ask(checkConvoys, `${city.base}/convoys/check`)
  assert.deepEqual(again.closed, [])
})

test('what a convoy is for can be changed and cleared, against the version that was read', async () => {
  const made = await convoy([], { owner: 'ann', target: 'main' })
  const patched = await send(
    'PATCH',
    `/convoys/${made.id}`,
    { owner: 'eve', target: null, merge: 'local', owned: true, title: 'later' },
    { headers: { 'if-match': `"${made.revision}"` } },
  )
  assert.equal(patched.status, 200, patched.text)
  const { revision, owner, target, merge, owned, title } = asMap(patched.body)
  assert.deepEqual([owner, target, merge, owned, title], ['eve', undefined, 'local', true, 'later'])
  assert.equal(patched.headers.etag, `"${String(revision)}"`)
  assertProblem(
    await send('PATCH', `/convoys/${made.id}`, { owner: 'x' }, { headers: { 'if-match': `"${made.revision}"` } }),
    'precondition-failed',
  )
  const events = await head()
  assert.equal((await send('PATCH', `/convoys/${made.id}`, {})).status, 200)
  assert.equal((await send('PATCH', `/convoys/${made.id}`, { owner: 'eve' })).status, 200)
  assert.equal(await head(), events, 'nothing changed, nothing is said')
  assertProblem(await send('PATCH', `/convoys/${made.id}`, { title: null }), 'validation-failed')
})

test('closing leaves the members alone, and closing again does nothing', async () => {
  const [one = ''] = await beads(1)
  const { id } = await convoy([one])
  const answer = await send('POST', `/convoys/${id}/close`, { reason: 'not this year' })
  assert.equal(at(answer.body, 'close_reason'), 'not this year')
  const before = await head()
  assert.equal((await send('POST', `/convoys/${id}/close`)).status, 200)
  assert.equal(await head(), before)
  assert.equal((await city.api.ask(getBead, `${city.base}/beads/${one}`)).status, 'open')
  assert.deepEqual((await said(id)).at(-1), [
    'convoy.closed',
    { title: 'release', total: 1, closed: 0, reason: 'not this year' },
  ])
})

test('an owned convoy lands when all is done, or by force; a dry run changes nothing', async () => {
  const [one = '', two = ''] = await beads(2)
  const { id } = await convoy([one, two], { owned: true })
  const land = (body: object) => city.api.ask(landConvoy, `${city.base}/convoys/${id}/land`, { body })
  await close(one)
  const { errors } = assertProblem(await send('POST', `/convoys/${id}/land`), 'conflict-wrong-state')
  assert.deepEqual(
    errors?.map(({ value }) => value),
    [two],
  )
  const events = await head()
  const { landed, open, dry_run } = await land({ dry_run: true })
  assert.deepEqual([landed, open, dry_run], [false, [two], true])
  assert.equal((await land({ dry_run: true, force: true })).landed, true)
  assert.equal(await head(), events)
  const forced = await land({ force: true })
  assert.equal(forced.landed, true)
  assert.equal(forced.convoy.status, 'closed')
  assert.equal(forced.convoy.close_reason, 'landed')
  assert.equal((await land({})).landed, true, 'it has landed already')
  assertProblem(await send('POST', `/convoys/${(await convoy([])).id}/land`), 'conflict-wrong-state')
})

test('deleting a convoy deletes nothing else, and not while another convoy tracks it', async () => {
  const [one = ''] = await beads(1)
  const inner = await convoy([one])
  const outer = await convoy([inner.id])
  assertProblem(await send('DELETE', `/convoys/${inner.id}`), 'still-referenced')
  assert.deepEqual((await send('DELETE', `/convoys/${outer.id}`)).body, { status: 'deleted', id: outer.id })
  assert.equal((await send('DELETE', `/convoys/${inner.id}`)).status, 200)
  assertProblem(await send('GET', `/convoys/${inner.id}`), 'convoy-not-found')
  assert.equal((await city.api.ask(getBead, `${city.base}/beads/${one}`)).status, 'open')
  assertProblem(
    await send('GET', `/convoys/${one}`),
    'convoy-not-found',
    `not_found: there is no convoy ${one}: the bead of this id is a task`,
  )
})

test('a member that is not there is shown as such, comes last, and never counts as closed', async () => {
  const [one = ''] = await beads(1)
  const { id } = await convoy([one])
  // An import may bring edges to beads that it does not bring.
  const line = JSON.stringify({
    id: `${id}x`,
    title: 'imported',
    status: 'open',
    issue_type: 'convoy',
    created_at: '2026-05-01T10:00:00Z',
    updated_at: '2026-05-01T10:00:00Z',
    dependencies: [
      { issue_id: `${id}x`, depends_on_id: `${id}-0lost`, type: 'tracks', created_at: '2026-05-01T10:00:00Z' },
      { issue_id: `${id}x`, depends_on_id: one, type: 'tracks', created_at: '2026-05-01T10:00:00Z' },
    ],
  })
  const imported = await city.api.call('POST', `${city.base}/beads/import`, {
    bytes: `${line}\n`,
    headers: { 'content-type': 'application/x-ndjson' },
  })
  assert.equal(imported.status, 200, imported.text)
  const { children, progress } = await view(`${id}x`)
  assert.equal(children[0]?.id, one)
  assert.deepEqual(children[1], { id: `${id}-0lost`, title: `${id}-0lost`, status: 'unknown', issue_type: 'task' })
  assert.deepEqual(progress, { total: 2, closed: 0 })
  await close(one)
  await closed(id)
  assert.equal((await view(`${id}x`)).convoy.status, 'open')
})

test('children of a convoy are members of it as well, once each, and are taken out like any other', async () => {
  const [tracked = '', both = ''] = await beads(2)
  const { id } = await convoy([tracked, both])
  const child = (await bead('child', { parent: id })).id
  assert.equal((await send('PATCH', `/beads/${both}`, { parent: id })).status, 200)
  const before = await view(id)
  assert.deepEqual(
    before.children.map((member) => member.id),
    [tracked, both, child],
  )
  assert.deepEqual(before.progress, { total: 3, closed: 0 })
  const { items } = await city.api.ask(listStranded, `${city.base}/convoys/stranded?limit=1000`)
  assert.deepEqual(items.find((item) => item.id === child)?.convoys, [id])
  const known = await head()
  assert.equal((await send('POST', `/convoys/${id}/add`, { items: [child] })).status, 200)
  assert.equal(await head(), known, 'who is a member already is no change')

  const removed = await send('POST', `/convoys/${id}/remove`, { items: [child, both] })
  assert.equal(at(removed.body, 'progress', 'total'), 1)
  for (const one of [child, both])
    assert.equal((await city.api.ask(getBead, `${city.base}/beads/${one}`)).parent, undefined)
  assert.deepEqual((await said(id)).at(-1), ['convoy.updated', { added: [], removed: [child, both] }])

  assert.equal((await send('PATCH', `/beads/${child}`, { parent: id })).status, 200)
  await close(tracked)
  assert.equal((await view(id)).convoy.status, 'open')
  const index = await head()
  const waiting = send('GET', `/convoys?limit=1000&index=${index}&wait=30s`)
  assert.equal((await send('PATCH', `/beads/${child}`, { parent: null })).status, 200)
  assert.equal((await waiting).status, 200)
  await closed(id)

  const other = await convoy([])
  assert.equal((await send('PATCH', `/beads/${child}`, { parent: other.id })).status, 200)
  await eventually('it is said that it came', async () => {
    const [type, payload] = (await said(other.id)).at(-1) ?? []
    return type === 'convoy.updated' ? assert.deepEqual(payload, { added: [child], removed: [] }) !== null : undefined
  })
  assert.equal((await send('DELETE', `/convoys/${other.id}`)).status, 200)
  assert.equal((await city.api.ask(getBead, `${city.base}/beads/${child}`)).parent, undefined, 'it stays, on its own')
})

test('what is no convoy is told from what is not there', async () => {
  const { id } = await bead()
  const { errors } = assertProblem(
    await send('POST', `/convoys/${id}/close`),
    'invalid-request',
    `invalid: the bead ${id} is no convoy, it is a task`,
  )
  assert.equal(errors?.[0]?.location, 'path.id')
  assertProblem(await send('GET', `/convoys/${id}/check`), 'invalid-request')
  assertProblem(await send('GET', `/convoys/${id}`), 'convoy-not-found')
  assertProblem(await send('GET', '/convoys/al-none/check'), 'convoy-not-found')
})

test('convoys are listed newest first, in pages, the closed ones where they are asked for', async () => {
  const made: string[] = []
  for (let i = 0; i < 3; i++) made.push((await convoy([], { title: `batch ${i}` })).id)
  await send('POST', `/convoys/${made[1]}/close`)
  const list = (query: string) => city.api.ask(listConvoys, `${city.base}/convoys?${query}`)
  const open = await list('limit=1000')
  const ids = open.items.map(({ id }) => id)
  assert.equal(open.total, ids.length)
  assert.deepEqual(ids.slice(0, 2), [made[2], made[0]])
  assert.ok((await list('all=true&limit=1000')).items.some(({ id }) => id === made[1]))
  const onlyClosed = await list('status=closed&limit=1000')
  assert.ok(onlyClosed.items.every(({ status }) => status === 'closed') && onlyClosed.total === onlyClosed.items.length)

  const forward = await list('order=asc&limit=1000')
  assert.deepEqual(forward.items.map(({ id }) => id).reverse(), ids)
  const half = await list('order=asc&limit=2')
  const rest = await list(`order=asc&limit=1000&cursor=${half.next_cursor}`)
  assert.deepEqual([...half.items, ...rest.items], forward.items)
  assertProblem(await send('GET', `/convoys?cursor=${half.next_cursor}`), 'invalid-cursor')

  const walked: string[] = []
  let cursor = ''
  do {
    const page = await list(`limit=2${cursor}`)
    assert.equal(page.total, ids.length)
    walked.push(...page.items.map(({ id }) => id))
    cursor = page.next_cursor === undefined ? '' : `&cursor=${page.next_cursor}`
  } while (cursor !== '')
  assert.deepEqual(walked, ids)
  assertProblem(await send('GET', '/convoys?cursor=v1:x'), 'invalid-cursor')
})

test('members have pages too', async () => {
  const items = await beads(5)
  const { id } = await convoy([...items].reverse())
  const first = await view(id, '?limit=3')
  const second = await view(id, `?limit=3&cursor=${first.next_cursor}`)
  assert.equal(second.next_cursor, undefined)
  assert.deepEqual(
    [...first.children, ...second.children].map((child) => child.id),
    items,
  )
})

test('stranded is what open convoys have that is open and that nobody has', async () => {
  const [free = '', taken = '', done = ''] = await beads(3)
  const own = await convoy([free, taken, done])
  const other = await convoy([free])
  const over = await convoy([taken])
  await send('POST', `/beads/${taken}/claim`, { assignee: 'ann' })
  await close(done)
  await send('POST', `/convoys/${over.id}/close`)
  const { items, total } = await city.api.ask(listStranded, `${city.base}/convoys/stranded?limit=1000`)
  assert.equal(total, items.length)
  const ours = items.filter(({ id }) => [free, taken, done].includes(id))
  assert.deepEqual(
    ours.map(({ id, convoys }) => [id, convoys]),
    [[free, [own.id, other.id]]],
  )
})

test('a waiting list is woken by the progress of a convoy, and not by work in none', async () => {
  const [member = ''] = await beads(1)
  const elsewhere = (await bead()).id
  const { id } = await convoy([member], { owned: true })
  const index = await head()
  let answered = false
  const waiting = send('GET', `/convoys?limit=1000&index=${index}&wait=30s`).then((answer) => {
    answered = true
    return answer
  })
  await close(elsewhere)
  await send('GET', '/convoys')
  assert.equal(answered, false)
  await close(member)
  const items = at((await waiting).body, 'items')
  assert.ok(Array.isArray(items))
  const found = items.find((item) => at(item, 'id') === id)
  assert.equal(at(found, 'progress', 'closed'), 1)
})

test('the same key creates one convoy', async () => {
  const options = { headers: { 'idempotency-key': 'convoy-1' } }
  const first = await send('POST', '/convoys', { title: 'once' }, options)
  const second = await send('POST', '/convoys', { title: 'once' }, options)
  assert.equal(first.status, 201)
  assert.deepEqual(second.body, first.body)
  assert.equal((await said(String(at(first.body, 'id')))).length, 1)
})

test('a title or subject that shows nothing is refused, of whatever it is', async () => {
  for (const nothing of ['\u200b', '\u00ad\u2800', ' \u3164 ']) {
    const refusals = [
      await send('POST', '/beads', { title: nothing }),
      await send('POST', '/convoys', { title: nothing, items: [] }),
      await send('PATCH', `/convoys/${(await convoy([])).id}`, { title: nothing }),
      await send('POST', '/mail', { to: 'human', subject: nothing, body: 'x' }),
      await send('POST', '/molecules', { formula: 'verified-task', title: nothing, dry_run: true }),
    ]
    for (const refusal of refusals) assertProblem(refusal, 'validation-failed', /nothing that one can see/)
  }
})
