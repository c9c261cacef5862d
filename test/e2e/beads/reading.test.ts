import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Bead, claimHook, createBead, listBeads, listHook, listReadyBeads } from '../../../src/contract/beads.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { type Answer, assertProblem, type CallOptions } from '../../support/http.ts'
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

let labels = 0
/** A label that only the beads of one test have. */
const mark = () => `mark-${++labels}`
const bead = (body: object): Promise<Bead> =>
  city.api.ask(createBead, `${city.base}/beads`, { body: { title: 'work', ...body } })
const send = (method: string, path: string, body?: unknown, options: CallOptions = {}): Promise<Answer> =>
  city.api.call(method, `${city.base}/beads${path}`, body === undefined ? options : { ...options, body })
const done = async (method: string, path: string, body?: unknown): Promise<void> => {
  const { status, text } = await send(method, path, body)
  assert.ok(status < 300, text)
}
const list = (query: string) => city.api.ask(listBeads, `${city.base}/beads?${query}`)
const ready = (query: string) => city.api.ask(listReadyBeads, `${city.base}/beads/ready?${query}`)
const ids = ({ items }: { readonly items: readonly { readonly id: string }[] }) => items.map(({ id }) => id)
const titles = ({ items }: { readonly items: readonly { readonly title: string }[] }) =>
  items.map(({ title }) => title).join(' ')
const query = async (q: string, more = '') => {
  const { status, body, text } = await send('GET', `/query?q=${encodeURIComponent(q)}${more}`)
  assert.equal(status, 200, text)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  return items.map((item) => String(at(item, 'title'))).join(' ')
}

test('every filter of the list leaves what it says', async () => {
  const label = mark()
  const parent = await bead({ title: 'a', labels: [label, 'ui'], priority: 0, description: 'The login page is slow' })
  await bead({ title: 'b', labels: [label], issue_type: 'bug', assignee: 'ann', parent: parent.id })
  await bead({
    title: 'c',
    labels: [label],
    issue_type: 'chore',
    assignee: 'bob',
    metadata: { team: 'core', empty: '' },
  })
  await bead({ title: 'd', labels: [label, 'ui'], ephemeral: true, metadata: { team: 'web' } })
  const closed = await bead({ title: 'e', labels: [label] })
  await done('POST', `/${closed.id}/close`, { reason: 'done' })
  const routed = await bead({ title: 'f', labels: [label] })
  await done('POST', `/${routed.id}/route`, { target: 'shop/worker' })

  const found = async (filters: string) => titles(await list(`label=${label}&order=asc&${filters}`))
  assert.equal(await found(''), 'a b c d f')
  assert.equal(await found('all=true'), 'a b c d e f')
  assert.equal(await found('status=closed'), 'e')
  assert.equal(await found('status=closed&status=open'), 'a b c d e f')
  assert.equal(await found('type=bug&type=chore'), 'b c')
  assert.equal(await found('label=ui'), 'a d')
  assert.equal(await found('assignee=ann'), 'b')
  assert.equal(await found('assignees=ann&assignees=bob'), 'b c')
  assert.equal(await found('unassigned=true'), 'a d f')
  assert.equal(await found(`parent=${parent.id}`), 'b')
  assert.equal(await found('priority=0'), 'a')
  assert.equal(await found('routed_to=shop/worker'), 'f')
  assert.equal(await found('metadata=svc.routed_to=shop/worker'), 'f')
  assert.equal(await found('metadata=team=core'), 'c')
  assert.equal(await found('metadata=team'), 'c d')
  assert.equal(await found('metadata=empty'), '')
  assert.equal(await found('metadata=empty='), 'c')
  assert.equal(await found('ephemeral=only'), 'd')
  assert.equal(await found('ephemeral=exclude'), 'a b c f')
  assert.equal(await found('q=login+pag'), 'a')
  assert.equal(await found('q=%22login+slow%22'), '')
  assert.equal(await found('created_after=2100-01-01T00:00:00Z'), '')
  assert.equal(await found('updated_before=2100-01-01T00:00:00Z&type=bug'), 'b')
  assert.equal(await found('closed_after=2020-01-01T00:00:00Z'), 'e')
  assert.equal(titles(await list(`label=${label}`)), 'f d c b a')
  assertProblem(await send('GET', '?rig=none'), 'rig-not-found', 'not_found: there is no rig none')
  assertProblem(await send('GET', '?priority=9'), 'validation-failed', /query\.priority/)
  assertProblem(await send('GET', '?statu=open'), 'validation-failed', /query\.statu/)
})

test('pages of a list meet every bead once, with one total, while beads come and go', async () => {
  const label = mark()
  for (let n = 0; n < 12; n++) await bead({ title: `${n}`, labels: [label] })
  const seen: string[] = []
  let path = `label=${label}&limit=5`
  for (;;) {
    const page = await list(path)
    assert.equal(page.total, 12)
    seen.push(...ids(page))
    await bead({ title: 'later', labels: [label] })
    if (page.next_cursor === undefined) break
    path = `label=${label}&limit=5&cursor=${encodeURIComponent(page.next_cursor)}`
  }
  assert.equal(seen.length, 12)
  assert.equal(new Set(seen).size, 12)
  const { next_cursor: cursor = '' } = await list(`label=${label}&limit=5`)
  const foreign = await send('GET', `?label=other&cursor=${encodeURIComponent(cursor)}`)
  assertProblem(foreign, 'invalid-cursor', /^invalid_cursor: /)
})

test('a query says what it means, and a mistake in it where it is', async () => {
  const label = mark()
  const a = await bead({ title: 'a', labels: [label, 'urgent'], priority: 3, description: 'cache of avatars' })
  const b = await bead({ title: 'b', labels: [label], priority: 1, assignee: 'ann' })
  await bead({ title: 'c', labels: [label], needs: [a.id] })
  const d = await bead({ title: 'd', labels: [label] })
  await done('POST', `/${d.id}/close`, { reason: 'not needed' })
  const found = (q: string) => query(`label:${label} AND (${q})`, '&order=asc')

  assert.equal(await found('status=open AND (priority<2 OR label:urgent) AND created>7d'), 'a b')
  assert.equal(await found('created<7d'), '')
  assert.equal(await found('NOT has:assignee'), 'a c')
  assert.equal(await found('assignee=none,ann'), 'a b c')
  assert.equal(await found(`blocked-by:${a.id}`), 'c')
  assert.equal(await found(`blocks:${b.id}`), '')
  assert.equal(await found('is:blocked'), 'c')
  assert.equal(await found('is:ready'), 'a b')
  assert.equal(await found('is_blocked=true AND ephemeral=false'), 'c')
  assert.equal(await found('avat'), 'a')
  assert.equal(await found('"cache of"'), 'a')
  assert.equal(await found('is:closed AND reason~needed'), 'd')
  assert.equal(await query(`label:${label}`, '&all=true'), 'd c b a')

  const mistake = await send('GET', `/query?q=${encodeURIComponent('status=open AND priorty<2')}`)
  const { errors } = assertProblem(mistake, 'validation-failed', /^validation_failed: query\.q: column 17: expected/)
  assert.equal(errors?.[0]?.location, 'query.q')
  assertProblem(await send('GET', '/query'), 'validation-failed', /query\.q/)
})

test('ready is open work with nothing in its way, most urgent first', async () => {
  const label = mark()
  const first = await bead({ title: 'plain', labels: [label] })
  await bead({ title: 'urgent', labels: [label], priority: 0 })
  const waits = await bead({ title: 'waits', labels: [label], priority: 0, needs: [first.id] })
  await bead({ title: 'later', labels: [label], defer_until: '2100-01-01T00:00:00Z' })
  await bead({ title: 'due', labels: [label], priority: 1, defer_until: '2020-01-01T00:00:00Z' })
  await bead({ title: 'container', labels: [label], issue_type: 'convoy' })
  await bead({ title: 'parked', labels: [label, 'svc-parked'], priority: 4, issue_type: 'epic' })

  assert.equal(titles(await ready(`label=${label}`)), 'urgent due plain parked')
  assert.equal(titles(await ready(`label=${label}&sort=oldest`)), 'plain urgent due parked')
  assert.equal(titles(await ready(`label=${label}&exclude_type=epic&exclude_label=other`)), 'urgent due plain')
  assert.equal(titles(await ready(`label=${label}&exclude_label=svc-parked&priority=0`)), 'urgent')
  const page = await ready(`label=${label}&limit=3`)
  assert.deepEqual([titles(page), page.total], ['urgent due plain', 4])
  const rest = await ready(`label=${label}&limit=3&cursor=${encodeURIComponent(page.next_cursor ?? '')}`)
  assert.deepEqual([titles(rest), rest.next_cursor], ['parked', undefined])

  await done('POST', `/${first.id}/close`)
  assert.equal(titles(await ready(`label=${label}`)), 'urgent waits due parked')
  await done('POST', `/${first.id}/reopen`)
  assert.equal(titles(await ready(`label=${label}`)), 'urgent due plain parked')
  assert.equal((await list(`label=${label}&priority=0`)).items.find(({ id }) => id === waits.id)?.is_blocked, true)
})

test('all that is ready, without a filter, comes in the same order and page by page', async () => {
  const whole = await ready('limit=1000')
  assert.equal(whole.total, whole.items.length)
  const walked: string[] = []
  for (let path = 'limit=2'; ; ) {
    const page = await ready(path)
    walked.push(...ids(page))
    if (page.next_cursor === undefined) break
    path = `limit=2&cursor=${encodeURIComponent(page.next_cursor)}`
  }
  assert.deepEqual(walked, ids(whole))
})

test('a read that waits answers when what it shows changes, and not for anything else', async () => {
  const label = mark()
  const shown = await bead({ labels: [label], title: 'shown' })
  const head = Number((await send('GET', `/ready?label=${label}`)).headers['x-svc-index'])
  let answered = false
  const waiting = send('GET', `/ready?label=${label}&index=${head}&wait=30s`).then((answer) => {
    answered = true
    return answer
  })
  // Its answer comes after that of the wait, were it to end it.
  await city.post('/events', { type: 'custom.noise', actor: 'test' })
  // A bead that it does not show; the other read waits for that one, and was woken later than this would have been.
  const other = mark()
  const others = send('GET', `/ready?label=${other}&index=${head}&wait=30s`)
  await bead({ labels: [other] })
  await others
  await send('GET', `/ready?label=${label}`)
  assert.equal(answered, false)
  await done('PATCH', `/${shown.id}`, { title: 'shown anew' })
  const answer = await waiting
  assert.equal(at(answer.body, 'items', 0, 'title'), 'shown anew')
  assert.ok(Number(answer.headers['x-svc-index']) > head)
  assertProblem(await send('GET', '?index=1&wait=3m'), 'validation-failed', /query\.wait/)
})

test('a search that waits is woken by the words of a new bead, and finds it', async () => {
  const began = performance.now()
  const head = Number((await send('GET', '?q=heliotrope')).headers['x-svc-index'])
  const waiting = send('GET', `?q=heliotrope&index=${head}&wait=60s`)
  await city.post('/events', { type: 'custom.noise', actor: 'test' })
  const { id } = await bead({ title: 'A field of heliotrope' })
  const { body } = await waiting
  assert.deepEqual([at(body, 'total'), at(body, 'items', 0, 'id')], [1, id])
  assert.ok(performance.now() - began < 60_000, 'by the bead, not by the end of its time')
})

const hook = async (agent: string, more = '') => {
  const { items, total } = await city.api.ask(
    listHook,
    `${city.base}/beads/hook?agent=${encodeURIComponent(agent)}${more}`,
  )
  assert.equal(total, items.length)
  return items.map(({ title, tier }) => `${title}:${tier}`).join(' ')
}
const take = (body: object) => city.api.ask(claimHook, `${city.base}/beads/hook/claim`, { body })

test('a hook offers work under way, then work handed over, then work of the pool, and nothing parked', async () => {
  const pool = 'hooked/worker'
  const routed = async (title: string, more: object = {}) => {
    const { id } = await bead({ title, ...more })
    await done('POST', `/${id}/route`, { target: pool })
    return id
  }
  const old = await routed('old', { priority: 4 })
  await routed('urgent', { priority: 0 })
  await routed('epic', { issue_type: 'epic' })
  await routed('held', { labels: ['hold:mayor'] })
  await routed('blocked', { needs: [old] })
  await bead({ title: 'mine', assignee: 'w-1' })
  await bead({ title: 'mail', assignee: 'w-1', issue_type: 'message' })
  const before = await city.get('/events?limit=1')
  assert.equal(await hook(pool, '&session_name=w-1&session_id=s1'), 'mine:assigned old:routed urgent:routed')
  assert.deepEqual((await city.get('/events?limit=1')).body, before.body)

  const first = await take({ agent: pool, session_name: 'w-1', session_id: 's1' })
  assert.deepEqual([first.reason, first.bead?.title, first.assignee], ['ready_assignment', 'mine', 'w-1'])
  assert.deepEqual([first.bead?.status, first.bead?.session_id], ['in_progress', 's1'])
  // After a crash the same session gets the same work.
  const again = await take({ agent: pool, session_name: 'w-1', session_id: 's2' })
  assert.deepEqual([again.reason, again.bead_id, again.bead?.session_id], ['existing_assignment', first.bead_id, 's2'])
  const second = await take({ agent: pool, session_name: 'w-2' })
  assert.deepEqual([second.reason, second.bead_id, second.route], ['claimed', old, pool])
  assert.equal((await take({ agent: pool, session_name: 'w-3' })).bead?.title, 'urgent')
  const none = await take({ agent: pool, session_name: 'w-4', drain_ack: true })
  assert.deepEqual(none, { action: 'drain', reason: 'no_work', drain_acknowledged: true })
  await done('POST', `/${old}/close`)
  assert.equal((await take({ agent: pool, session_name: 'w-4' })).bead?.title, 'blocked')
})

test('a claim from the hook says in the log who has it now', async () => {
  const { id } = await bead({ title: 'logged', assignee: 'log-reader' })
  await take({ agent: 'log-reader' })
  const claimed = (await city.events('bead.claimed')).filter(({ payload }) => payload.bead_id === id)
  assert.deepEqual(
    claimed.map(({ actor, payload }) => [actor, payload.assignee]),
    [['log-reader', 'log-reader']],
  )
  const [updated] = (await city.events('bead.updated')).filter(({ payload }) => asMap(payload.bead).id === id)
  assert.ok(Array.isArray(updated?.payload.changed) && updated.payload.changed.includes('status'))
})
