/** Claims, leases and hand-overs over HTTP. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BeadCity } from '../../support/bead-city.ts'
import { asMap, at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { cityIs, newCity, type Running, run, runAgain } from '../../support/running.ts'

let running: Running
let city: BeadCity
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'alpha')
  city = new BeadCity(running.api)
})
after(() => running[Symbol.asyncDispose]())

const types = async (subject: string, after = 0) =>
  (await city.events(after)).filter((event) => event.subject === subject).map(({ type }) => type)

test('a claim takes a bead for a while, and says so in the log', async () => {
  const id = await city.bead('one')
  const head = await city.head()
  const { claimed, bead } = await city.done('POST', `/${id}/claim`, {
    assignee: 'ann',
    session_id: 's1',
    session_name: 'ann-1',
    branch: 'work/one',
  })
  assert.equal(claimed, true)
  const { status, assignee, session_id, metadata, lease_expires_at, updated_at } = asMap(bead)
  assert.deepEqual([status, assignee, session_id], ['in_progress', 'ann', 's1'])
  assert.deepEqual(metadata, { 'svc.session_id': 's1', 'svc.session_name': 'ann-1', 'svc.work_branch': 'work/one' })
  // The two are read from the clock one after the other.
  const leaseMs = Date.parse(String(lease_expires_at)) - Date.parse(String(updated_at))
  assert.ok(Math.abs(leaseMs - 15 * 60_000) < 1_000, `${leaseMs} ms`)
  const events = await city.events(head)
  assert.deepEqual(
    events.map(({ type, actor }) => [type, actor]),
    [
      ['bead.updated', 'ann'],
      ['bead.claimed', 'ann'],
    ],
  )
  assert.deepEqual(events[1]?.payload, { bead_id: id, assignee: 'ann', session_id: 's1', lease_expires_at })
})

test('what is blocked or deferred can be claimed by its id, and the answer says what it waits for', async () => {
  const [blocker, other] = [await city.bead('first'), await city.bead('second')]
  const id = await city.bead('waits', { needs: [blocker, other], defer_until: '2099-01-01T00:00:00Z' })
  const { claimed, warnings } = await city.done('POST', `/${id}/claim`, { assignee: 'ann' })
  assert.equal(claimed, true)
  const named = [blocker, other].sort().map((one) => `${one} (open)`)
  assert.deepEqual(warnings, [
    `it is blocked: it waits for ${named.join(', ')}`,
    'it is deferred until 2099-01-01T00:00:00.000Z',
  ])
  assert.equal((await city.done('POST', `/${blocker}/claim`, { assignee: 'ann' }))['warnings'], undefined)
})

test('closing again with the same outcome changes nothing, with another one it is refused', async () => {
  const [plain, failed] = [await city.bead('plain'), await city.bead('failed')]
  await city.done('POST', `/${plain}/close`)
  await city.done('POST', `/${failed}/close`, { outcome: 'fail' })
  const head = await city.head()
  await city.done('POST', `/${plain}/close`, { outcome: 'pass', reason: 'again' })
  await city.done('POST', `/${failed}/close`, { outcome: 'fail' })
  await city.done('POST', `/${failed}/close`)
  for (const [id, outcome] of [
    [plain, 'fail'],
    [failed, 'pass'],
  ]) {
    const refused = assertProblem(await city.send('POST', `/${id}/close`, { outcome }), 'conflict-wrong-state')
    assert.equal(at(refused.errors, 0, 'location'), 'body.outcome')
  }
  assert.equal(await city.head(), head)
})

test('of many who claim the same bead at once one gets it, and every other is told who has it', async () => {
  const id = await city.bead('wanted')
  const head = await city.head()
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, n) => city.send('POST', `/${id}/claim`, { assignee: `w${n}` })),
  )
  const won = answers.filter(({ status }) => status === 200)
  assert.equal(won.length, 1)
  const holder = at(won[0]?.body, 'bead', 'assignee')
  for (const answer of answers) {
    if (answer.status === 200) continue
    const { errors } = assertProblem(answer, 'conflict-claimed', `conflict: ${String(holder)} has ${id}`)
    assert.deepEqual(errors, [{ location: 'body.assignee', message: 'is not who has it', value: holder }])
  }
  const seen = await types(id, head)
  assert.equal(seen.filter((type) => type === 'bead.claimed').length, 1)
  assert.equal(seen.filter((type) => type === 'bead.claim_rejected').length, 31)
})

test('of the sessions of one pool one gets a bead, however many claim it at once', async () => {
  const id = await city.bead('wanted by a pool')
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, n) => city.send('POST', `/${id}/claim`, { assignee: 'pool', session_id: `s${n}` })),
  )
  const [won, ...others] = answers.filter(({ status }) => status === 200)
  assert.deepEqual(others, [])
  const session = at(won?.body, 'bead', 'session_id')
  for (const answer of answers) {
    if (answer.status === 200) continue
    const { errors } = assertProblem(
      answer,
      'conflict-claimed',
      `conflict: pool has ${id}, in session ${String(session)}`,
    )
    assert.equal(at(errors, 0, 'location'), 'body.session_id')
  }
  await city.done('POST', `/${id}/claim`, { assignee: 'pool', session_id: session })
})

test('a hand-over moves a bead only from whom it is taken, and its lease with it', async () => {
  const id = await city.bead('one')
  await city.done('POST', `/${id}/claim`, { assignee: 'ann', session_id: 's1' })
  assertProblem(
    await city.send('POST', `/${id}/assign`, { assignee: 'bob', expected_assignee: 'eve' }),
    'conflict-assignee',
    `conflict: ann has ${id}`,
  )
  const handed = await city.done('POST', `/${id}/assign`, { assignee: 'bob', expected_assignee: 'ann' })
  assert.deepEqual([handed.status, handed.assignee, handed.session_id], ['in_progress', 'bob', undefined])
  assert.ok(handed.lease_expires_at)
  assertProblem(await city.send('POST', `/${id}/heartbeat`, { assignee: 'ann' }), 'conflict-claimed')
  await city.done('POST', `/${id}/heartbeat`, { assignee: 'bob' })
  assertProblem(
    await city.send('POST', `/${id}/assign`, { assignee: 'eve', expected_assignee: null }),
    'conflict-assignee',
  )
  const freed = await city.done('POST', `/${id}/assign`, { assignee: null })
  assert.deepEqual([freed.status, freed.assignee, freed.lease_expires_at], ['in_progress', undefined, undefined])
  await city.done('POST', `/${id}/claim`, { assignee: 'eve' })
})

test('an open bead that was handed to somebody is theirs to claim, and no lease runs until then', async () => {
  const id = await city.bead('one', { assignee: 'ann' })
  assert.equal((await city.get(id)).lease_expires_at, undefined)
  assertProblem(await city.send('POST', `/${id}/claim`, { assignee: 'bob' }), 'conflict-claimed')
  await city.done('POST', `/${id}/claim`, { assignee: 'ann' })
})

test('a heartbeat renews a lease without changing the bead', async () => {
  const id = await city.bead('one')
  await city.done('POST', `/${id}/claim`, { assignee: 'ann' })
  const before = await city.get(id)
  const head = await city.head()
  const kept = await city.done('POST', `/${id}/heartbeat`)
  assert.ok(String(kept.lease_expires_at) >= String(before.lease_expires_at))
  assert.deepEqual([kept.revision, kept.updated_at, await city.head()], [before.revision, before.updated_at, head])
})

test('what is released is open again and says who had it', async () => {
  const id = await city.bead('one')
  await city.done('POST', `/${id}/claim`, { assignee: 'ann', session_id: 's1' })
  const head = await city.head()
  const { released, bead } = await city.done('POST', `/${id}/release`, { assignee: 'ann' })
  assert.equal(released, true)
  assert.deepEqual(
    ['status', 'assignee', 'session_id', 'lease_expires_at'].map((field) => asMap(bead)[field]),
    ['open', undefined, undefined, undefined],
  )
  assert.deepEqual((await city.events(head))[1]?.payload, { bead_id: id, previous_assignee: 'ann', reason: 'released' })
})

test('a claim survives a crash of the supervisor, with its lease in full', async () => {
  await using first = await run()
  await newCity(first.api, first.work, 'alpha')
  const before = new BeadCity(first.api)
  const id = await before.bead('one')
  const { bead } = await before.done('POST', `/${id}/claim`, { assignee: 'ann' })
  await first.server.kill('SIGKILL')
  const restarted = Date.now()
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = await new BeadCity(second.api).get(id)
  assert.deepEqual([again.status, again.assignee, again.revision], ['in_progress', 'ann', at(bead, 'revision')])
  assert.ok(Date.parse(String(again.lease_expires_at)) >= restarted + 15 * 60_000)
})
