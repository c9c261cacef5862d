/** Single requests that are about very many beads: deleting a tree, closing what thousands wait for. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import { BeadCity } from '../../support/bead-city.ts'
import { asMap, at } from '../../support/document.ts'
import { HealthWatch } from '../../support/health.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

const MANY = 10_000

let running: Running
let city: BeadCity
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'alpha')
  city = new BeadCity(running.api)
})
after(() => running[Symbol.asyncDispose]())

async function importing(lines: readonly object[]): Promise<void> {
  const bytes = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const answer = await city.api.call('POST', `${city.base}/beads/import`, {
    bytes,
    headers: { 'content-type': LINES_TYPE },
  })
  assert.equal(at(answer.body, 'failed'), 0, answer.text)
}
const total = async (query: string) => Number((await city.done('GET', `${query}&limit=1`)).total)
const ended = (requestId: unknown) =>
  eventually('the request has ended', async () => {
    const { body } = await city.api.get(`/v0/requests/${String(requestId)}`)
    const request = asMap(body)
    return request['finished_at'] === undefined ? undefined : request
  })
async function terminal(requestId: unknown): Promise<readonly unknown[]> {
  const { body } = await city.api.get(`${city.base}/events?type=request.*&limit=1000`)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  return items.filter((item) => at(item, 'payload', 'request_id') === requestId)
}

test('ten thousand beads are deleted behind a 202 while everybody else is served: one end, each bead told of, children first', async () => {
  const root = await city.bead('root')
  const outside = await city.bead('outside')
  const inner = Array.from({ length: 100 }, (_, n) => ({ id: `al-i${n}`, title: 'inner', parent: root }))
  const leaves = Array.from({ length: MANY }, (_, n) => ({ id: `al-l${n}`, title: 'leaf', parent: `al-i${n % 100}` }))
  await importing([...inner, ...leaves])
  await city.done('POST', `/${outside}/deps`, { depends_on_id: 'al-l17' })
  const head = await city.head()
  await using watch = new HealthWatch(running.server.url)
  const accepted = await city.send('DELETE', `/${root}?cascade=true`, undefined, { 'idempotency-key': 'k1' })
  assert.equal(accepted.status, 202, accepted.text)
  const requestId = at(accepted.body, 'request_id')
  const again = await city.send('DELETE', `/${root}?cascade=true`, undefined, { 'idempotency-key': 'k1' })
  assert.deepEqual([again.status, again.body], [202, accepted.body])
  // Put below it while it goes: it goes too, or there was nothing any more to put it below.
  const late = await city.send('POST', '', { title: 'late', parent: root })
  assert.ok(late.status === 201 || late.status === 404, late.text)
  const { status, result } = await ended(requestId)
  assert.equal(status, 'succeeded')
  const count = 1 + inner.length + MANY + (late.status === 201 ? 1 : 0)
  assert.deepEqual(result, { request_id: requestId, bead_id: root, deleted: count })
  assert.equal((await terminal(requestId)).length, 1)
  await watch.answers()
  assert.equal(await total('?all=true'), 1)
  assert.equal((await city.get(outside)).is_blocked, false)
  const gone = new Map<string, number>()
  for (let after = head; ; ) {
    const events = await city.events(after)
    if (events.length === 0) break
    after = events.at(-1)?.seq ?? after
    for (const { type, subject, seq } of events) {
      if (type !== 'bead.deleted') continue
      assert.ok(!gone.has(subject), `${subject} is told of twice`)
      gone.set(subject, seq)
    }
  }
  assert.equal(gone.size, count)
  for (const { id, parent } of [...inner, ...leaves])
    assert.ok((gone.get(id) ?? Number.NaN) < (gone.get(parent) ?? Number.NaN), `${id} goes before ${parent}`)
  assertProblem(await city.send('DELETE', `/${root}?cascade=true`), 'bead-not-found')
})

test('closing what thousands wait for answers at once, and in the end each of them is ready', async () => {
  const root = await city.bead('gate')
  const waiting = Array.from({ length: MANY }, (_, n) => ({
    id: `al-w${n}`,
    title: 'waits',
    dependencies: [{ issue_id: `al-w${n}`, depends_on_id: root, type: 'blocks' }],
  }))
  await importing(waiting)
  assert.equal(await total('/ready?q=waits'), 0)
  await using watch = new HealthWatch(running.server.url)
  await city.done('POST', `/${root}/close`)
  await eventually('all of them are ready', async () => ((await total('/ready?q=waits')) === MANY ? true : undefined))
  await city.done('POST', `/${root}/reopen`)
  assert.equal(await total('/ready?q=waits'), 0, 'at once')
  await watch.answers()
})

test('a bead that thousands of closed ones depended on is deleted behind a 202, and something open ends that', async () => {
  const [free, kept] = [await city.bead('free'), await city.bead('kept')]
  const done = (target: string, name: string) =>
    Array.from({ length: 1_200 }, (_, n) => ({
      id: `al-${name}${n}`,
      title: 'done',
      status: 'closed',
      dependencies: [{ issue_id: `al-${name}${n}`, depends_on_id: target, type: 'blocks' }],
    }))
  await importing([...done(free, 'f'), ...done(kept, 'k')])
  const accepted = await city.send('DELETE', `/${free}`)
  assert.equal(accepted.status, 202, accepted.text)
  const { status, result } = await ended(at(accepted.body, 'request_id'))
  assert.deepEqual([status, at(result, 'deleted')], ['succeeded', 1])
  const left = await city.get('al-f1199')
  assert.deepEqual([left.status, left.dependencies], ['closed', undefined], 'those that depended on it stay')
  await city.bead('open', { needs: [kept] })
  assertProblem(await city.send('DELETE', `/${kept}`), 'still-referenced')
})
