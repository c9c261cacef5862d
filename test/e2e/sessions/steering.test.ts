// Steering sessions over HTTP: names, options, holds, drains, waits, reminders, crashes, ends. With real programs.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isRunning } from '../../support/city-processes.ts'
import { cliHere } from '../../support/cli.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually, RawConnection } from '../../support/http.ts'
import { outcome, type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'

const MORE = `
[providers.unlicensed]
command = "/bin/sh"
args = ["-c", "echo no licence for this host; exit 1"]
prompt_mode = "omit"
ready_delay_ms = 60000
[[agent]]
name = "unready"
provider = "bash"
pre_start = ["echo no room >&2; exit 1"]
[[agent]]
name = "licensed"
provider = "unlicensed"
[[agent]]
name = "slow"
provider = "bash"
pre_start = ["sleep 1000"]
`

describe('steering', { concurrency: 3 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
    await city.configure(MORE, {}, 'max_restarts = 2\n')
  })
  after(() => running[Symbol.asyncDispose]())

  const to = (method: string, id: string, rest: string, body?: unknown) =>
    city.send(method, `${sessionPath(id)}${rest}`, body)
  const done = (id: string, verb: string, body?: unknown) => city.done('POST', `${sessionPath(id)}/${verb}`, body)
  const patched = (id: string, body: unknown) => city.done('PATCH', sessionPath(id), body)
  const bead = async (title: string): Promise<string> => String((await city.done('POST', '/beads', { title })).id)
  const typesOf = async (id: string): Promise<readonly string[]> =>
    (await city.events('session.*', { subject: id })).map(({ type }) => type)

  // --- Names and settings ----------------------------------------------------------------------------------------------

  test('an alias belongs to one open session, and is free again when that is closed', async () => {
    const alias = 'team/front.desk'
    const first = await city.start({ alias })
    assert.equal((await city.get(alias)).id, first)
    const create = () =>
      city.send('POST', '/sessions', { kind: 'provider', name: 'bash', runtime: 'subprocess', alias })
    const taken = await create()
    assertProblem(taken, 'name-taken', `conflict: session ${first} has the alias ${alias}`)
    const other = await city.start()
    assertProblem(await to('PATCH', other, '', { alias }), 'name-taken')
    await city.close(first)
    assert.equal((await city.get(alias)).id, first, 'a closed session is still found by it')
    assert.equal((await city.done('PATCH', sessionPath(other), { alias })).alias, alias)
    assert.equal((await city.get(alias)).id, other, 'an open one first')
    const released = await city.done('POST', `${sessionPath(first)}/release-name`)
    assert.equal(released.alias, undefined)
    const cleared = await city.done('PATCH', sessionPath(other), { alias: '' })
    assert.equal(cleared.alias, undefined)
    assert.equal((await city.get(alias)).id, other, 'by a name that it had, while nobody has it')
    await city.forget(other)
    assertProblem(await city.send('GET', sessionPath(alias)), 'session-not-found')
  })

  for (const alias of ['s-0123456789abcdef', 's-x', 'human', 'a b', '/a', 'a//b', 'a/../b', 'x'.repeat(65)]) {
    test(`the alias ${alias.slice(0, 20)} is refused`, async () => {
      const body = { kind: 'provider', name: 'bash', alias }
      const refused = assertProblem(await city.send('POST', '/sessions', body), 'validation-failed')
      assert.equal(refused.errors?.[0]?.location, 'body.alias')
    })
  }

  test('title and metadata are changed by merging, under the revision that was read', async () => {
    const id = await city.start({ title: 'One', metadata: { a: '1', b: '2' } })
    const { headers } = await to('GET', id, '')
    const etag = String(headers['etag'])
    const patch = (body: unknown, tag: string) => city.send('PATCH', sessionPath(id), body, { 'if-match': tag })
    const changed = await patch({ title: 'Two', metadata: { a: null, c: '3' } }, etag)
    assert.equal(at(changed.body, 'title'), 'Two')
    assert.deepEqual(at(changed.body, 'metadata'), { b: '2', c: '3' })
    assertProblem(await patch({ title: 'Three' }, etag), 'precondition-failed')
    const before = await city.head()
    const same = await patch({}, String(changed.headers['etag']))
    assert.equal(same.headers['etag'], changed.headers['etag'])
    assert.deepEqual(await city.events('session.updated', { subject: id, after: before }), [])
    const event = (await city.events('session.updated', { subject: id })).at(-1)
    assert.deepEqual(event?.payload.changed, ['title', 'metadata'])
    await city.forget(id)
  })

  test('options are those of the provider, and the program is started with them', async () => {
    const create = (options: object) => city.send('POST', '/sessions', { kind: 'provider', name: 'modal', options })
    const unknown = assertProblem(await create({ size: 'xl' }), 'validation-failed')
    assert.equal(unknown.errors?.[0]?.location, 'body.options.size')
    const wrong = assertProblem(await create({ colour: 'blue' }), 'validation-failed')
    assert.equal(wrong.errors?.[0]?.location, 'body.options.colour')
    const id = await city.start({ name: 'modal', options: { colour: 'red' } })
    assert.deepEqual((await city.get(id)).options, { permission_mode: 'ask', colour: 'red' })
    await city.message(id, 'echo clobber-$(shopt -po noclobber)')
    await city.said(id, 'clobber-set -o noclobber')

    await done(id, 'suspend')
    assertProblem(await to('PATCH', id, '', { options: { permission_mode: 'maybe' } }), 'validation-failed')
    await patched(id, { options: { permission_mode: 'never' } })
    await city.message(id, 'echo flags-$-')
    // A restricted shell says so.
    await city.said(id, /flags-\w*r/)
    await city.forget(id)
  })

  // --- Holds -----------------------------------------------------------------------------------------------------------

  test('who is suspended stays so whatever reminds it, until somebody says something', async () => {
    const id = await city.start()
    const { pid = 0 } = await city.get(id)
    const held = await done(id, 'suspend')
    assert.equal(held.state, 'suspended')
    assert.equal(held.reason, 'user-hold')
    assert.equal(isRunning(pid), false)
    assert.equal((await done(id, 'suspend')).state, 'suspended', 'again is no mistake')
    await done(id, 'nudge', { message: 'echo nudged' })
    const wanted = await bead('held')
    await done(id, 'waits', { dep_ids: [wanted], note: 'echo waited' })
    await city.done('POST', `/beads/${wanted}/close`)
    await eventually('the wait is over', async () => ((await city.get(id)).queued === 2 ? true : undefined))
    assert.equal((await city.get(id)).state, 'suspended')
    await city.message(id, 'echo woken-$((1+1))')
    const text = await city.said(id, 'woken-2')
    assert.ok(text.indexOf('nudged') < text.indexOf('woken-2'), 'what was said before comes before')
    const types = await typesOf(id)
    for (const type of ['session.suspended', 'session.woke']) assert.ok(types.includes(type), types.join())
    await city.forget(id)
  })

  test('a session is woken without a word, and a closed one never', async () => {
    const id = await city.start()
    await done(id, 'suspend')
    await done(id, 'wake')
    const woken = await city.is(id, 'active')
    assert.equal(woken.generation, 2)
    assert.equal((await done(id, 'resume')).state, 'active', 'one that runs is left alone')
    await city.close(id)
    assert.equal((await done(id, 'close')).state, 'closed', 'again is no mistake')
    for (const verb of ['wake', 'suspend', 'drain'])
      assertProblem(await to('POST', id, `/${verb}`), 'illegal-transition', /^illegal_transition: /)
    assertProblem(await to('POST', id, '/messages', { message: 'hello' }), 'session-conflict')
    await city.forget(id)
  })

  test('a nudge waits for a session that rests, or wakes it, as it is asked to', async () => {
    const id = await city.start()
    await done(id, 'drain')
    await done(id, 'drain-ack')
    await city.is(id, 'asleep')
    const quiet = await done(id, 'nudge', { message: 'echo quiet-$((1+1))', delivery: 'queue' })
    assert.equal(quiet.source, 'nudge')
    assert.equal((await city.get(id)).state, 'asleep')
    await done(id, 'nudge', { message: 'echo loud-$((1+1))', delivery: 'wait_idle' })
    const text = await city.said(id, 'loud-2')
    assert.ok(text.indexOf('quiet-2') < text.indexOf('loud-2'))
    assert.ok((await city.get(id)).last_nudge_delivered_at !== undefined)
    await city.forget(id)
  })

  test('an immediate nudge goes into a turn, another one waits for its end', async () => {
    const id = await city.start()
    // A program of its own: a builtin of the shell that waits looks idle.
    await city.message(id, `sh -c 'read -r line; echo got-$line; sleep 1000'`)
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const patient = await done(id, 'nudge', { message: 'echo patient' })
    await done(id, 'nudge', { message: 'urgent', delivery: 'immediate' })
    // The queue keeps its order: what waits for idle holds what comes behind it.
    assert.equal((await city.deliveries(id)).find((one) => one.id === patient.id)?.state, 'queued')
    await city.done('DELETE', `${sessionPath(id)}/deliveries/${String(patient.id)}`)
    await city.said(id, 'got-urgent')
    await city.forget(id)
  })

  test('a pinned session is not put to sleep', async () => {
    const id = await city.start()
    assert.equal((await patched(id, { pinned: true })).pinned, true)
    await done(id, 'drain')
    await city.is(id, 'active')
    assert.ok((await typesOf(id)).includes('session.undrained'))
    assert.equal((await patched(id, { pinned: false })).pinned, false)
    await done(id, 'drain')
    const drained = await done(id, 'drain-ack')
    assert.equal(drained.state, 'asleep')
    await city.forget(id)
  })

  // --- Drains and restarts ---------------------------------------------------------------------------------------------

  test('a session that is asked to finish can see it, and sleeps when it says that it has', async () => {
    const id = await city.start()
    const { pid = 0 } = await city.get(id)
    await done(id, 'drain')
    const asked = await city.done('GET', `${sessionPath(id)}/drain`)
    assert.equal(asked.draining, true)
    assert.equal(asked.reason, 'requested')
    assert.equal(asked.acknowledged, false)
    assert.ok(Date.parse(String(asked.deadline)) > Date.parse(String(asked.since)))
    assert.equal(isRunning(pid), true, 'it may finish')
    await done(id, 'undrain')
    assert.deepEqual(await city.done('GET', `${sessionPath(id)}/drain`), { draining: false, acknowledged: false })
    await done(id, 'drain')
    const slept = await done(id, 'drain-ack')
    assert.equal(slept.state, 'asleep')
    assert.equal(slept.reason, 'drained')
    assert.equal(isRunning(pid), false)
    assert.deepEqual(
      (await typesOf(id)).filter((type) => /drain|stopped/.test(type)),
      ['session.draining', 'session.undrained', 'session.draining', 'session.stopped'],
    )
    await city.forget(id)
  })

  test('a reset begins a new conversation, a requested restart goes on with the old one', async () => {
    const id = await city.startTalker()
    const conversation = async () =>
      (await city.transcript(id, '', 'structured')).history?.provider_session_id ?? assert.fail('no conversation')
    const first = await conversation()
    await done(id, 'reset')
    await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
    const second = await conversation()
    assert.notEqual(second, first)
    assert.ok((await typesOf(id)).includes('session.reset'))
    const calls = (await city.events('worker.operation', { subject: id })).map(({ payload }) => payload.operation)
    assert.deepEqual(calls, ['start', 'reset', 'start'])
    // Nothing is under way: it waits for nothing.
    await done(id, 'request-restart')
    await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation === 3)
    await city.forget(id)
  })

  test('every edge of a session is told with where from, where to and why', async () => {
    const id = await city.start()
    for (const verb of ['drain', 'undrain', 'suspend', 'wake']) {
      await done(id, verb)
      if (verb === 'wake') await city.is(id, 'active')
    }
    assert.equal((await city.get(id)).reason, undefined, 'what runs needs no excuse')
    await city.forget(id)
    const told = await city.events('session.*', { subject: id })
    const edges = told.filter(({ payload }) => payload.to !== undefined)
    assert.deepEqual(
      edges.map(({ type, payload: { from, to, reason } }) => `${type.slice(8)} ${from}>${to} ${reason}`),
      [
        'created none>start-pending explicit',
        'starting start-pending>creating explicit',
        'woke creating>active explicit',
        'draining active>draining requested',
        'undrained draining>active requested',
        'suspended active>suspended user-hold',
        'waking suspended>start-pending explicit',
        'starting start-pending>creating explicit',
        'woke creating>active explicit',
        'closed active>closed requested',
        'deleted closed>none requested',
      ],
    )
  })

  test('a session that is killed comes back, with everything of it gone before', async () => {
    const id = await city.start()
    await city.message(id, '(trap "" TERM HUP; sleep 1000) & echo child-$!-')
    const [, child] = /child-(\d+)-/.exec(await city.said(id, /child-\d+-/)) ?? []
    const { pid = 0 } = await city.get(id)
    await done(id, 'kill')
    assert.equal(isRunning(pid), false)
    assert.equal(isRunning(Number(child)), false)
    const back = await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
    assert.notEqual(back.pid, pid)
    assert.equal(back.crash_count, 0, 'a kill is no crash')
    assert.ok((await typesOf(id)).includes('session.killed'))
    await done(id, 'suspend')
    assertProblem(await to('POST', id, '/kill'), 'session-conflict')
    await city.forget(id)
  })

  test('who asks twice with one key for an end or a fresh start gets one', async () => {
    const id = await city.start()
    for (const [verb, generation] of [
      ['kill', 2],
      ['reset', 3],
      ['request-restart', 4],
    ] as const) {
      const key = { 'idempotency-key': `${id}-${verb}` }
      const ask = () => city.send('POST', `${sessionPath(id)}/${verb}`, undefined, key)
      const first = await ask()
      assert.equal(first.status, 200, first.text)
      await city.until(id, `is back after ${verb}`, (one) => one.state === 'active' && one.generation === generation)
      const again = await ask()
      assert.deepEqual([again.status, again.text, again.headers.etag], [200, first.text, first.headers.etag])
      assert.equal((await city.get(id)).generation, generation, 'nothing was ended twice')
      assert.equal((await city.get(id)).state, 'active')
    }
    await city.forget(id)
  })

  test('a program that ends itself sleeps; one that dies is started again', async () => {
    const id = await city.start()
    await city.message(id, 'exit')
    const slept = await city.is(id, 'asleep')
    assert.equal(slept.reason, 'exited')
    assert.equal(slept.crash_count, 0)
    await city.message(id, 'kill -9 $$')
    const back = await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation > 2)
    assert.equal(back.generation, 3, JSON.stringify(await city.events('session.start_failed', { subject: id })))
    assert.equal(back.crash_count, 1)
    assert.equal(back.last_exit?.classification, 'crash')
    assert.equal(back.last_exit.signal, 'SIGKILL')
    const [crash] = await city.events('session.crashed', { subject: id })
    assert.deepEqual([crash?.payload.from, crash?.payload.to], ['active', 'start-pending'])
    await city.forget(id)
  })

  test('a program that keeps falling is held for a while, and a person lifts the hold', async () => {
    const id = await city.start()
    for (const life of [1, 2, 3]) {
      await city.until(id, `lives for the ${life}. time`, (one) => one.state === 'active' && one.generation === life)
      await city.message(id, 'exit 3')
    }
    const held = await city.is(id, 'quarantined')
    assert.ok(Date.parse(held.quarantined_until ?? '') > Date.now())
    assert.equal(held.crash_count, 3)
    assert.equal(held.last_exit?.code, 3)
    const types = await typesOf(id)
    assert.ok(types.includes('session.quarantined'))
    assert.equal(types.filter((type) => type === 'session.crashed').length, 3)
    const woken = await done(id, 'wake')
    assert.equal(woken.crash_count, 0)
    await city.until(id, 'is tried again', ({ generation }) => generation > held.generation)
    await city.forget(id)
  })

  test('what keeps a session from starting fails its creation, and is told', async () => {
    const { id, requestId } = await city.accept({ kind: 'agent', name: 'unready' })
    const request = await outcome(city.api, requestId)
    assert.equal(request.status, 'failed', JSON.stringify(request))
    assert.equal(request.error_code, 'create_failed')
    const [told] = await city.events('request.failed', { subject: id })
    assert.equal(told?.payload.request_id, requestId, 'it is told of the session')
    assert.match(String(request.error_message), /no room/)
    assert.equal((await city.get(id)).state, 'failed-create')
    await city.forget(id)
  })

  test('an agent whose program ends while it starts shows its last words in every list', async () => {
    const { id } = await city.accept({ kind: 'agent', name: 'licensed' })
    const failed = await city.until(id, 'failed', ({ state }) => state === 'failed-create')
    assert.equal(failed.last_exit?.output, 'no licence for this host')
    assert.equal(failed.crash_count, 1)
    const [event] = await city.events('session.start_failed', { subject: id })
    assert.match(event?.message ?? '', /no licence for this host/)
    const world = { env: { SVC_HOME: running.server.home, SVC_CITY: 'alpha' } }
    const { out } = await cliHere(['agent', 'list', '-o', 'wide'], world)
    assert.match(out, /^licensed-adhoc-\w+\t.*crash: exited with 1: no licence for this host/m)
    await city.forget(id)
  })

  test('who is told that a session did not start is also told where what its program said can be read', async () => {
    const { id, requestId } = await city.accept({ name: 'unlicensed' })
    const request = await outcome(city.api, requestId)
    assert.deepEqual([request.status, request.error_code], ['failed', 'create_failed'])
    const [, directory = ''] = /what it said: (.*\/\d+), or GET /.exec(String(request.error_message)) ?? []
    assert.notEqual(directory, '', String(request.error_message))
    const output = readdirSync(directory).filter((name) => name.startsWith('out.'))
    const said = output.map((name) => readFileSync(join(directory, name), 'utf8')).join('')
    assert.match(said, /no licence for this host/)
    assert.match(await city.text(id), /no licence for this host/)
    await city.forget(id)
  })

  test('a session that is closed while it is being started fails its creation, and says so', async () => {
    const { id, requestId } = await city.accept({ kind: 'agent', name: 'slow' })
    await city.is(id, 'creating')
    await city.close(id)
    const request = await outcome(city.api, requestId)
    assert.deepEqual([request.status, request.error_code], ['failed', 'create_failed'])
    assert.match(String(request.error_message), /closed before it had started/)
    await city.forget(id)
  })

  // --- Waits -----------------------------------------------------------------------------------------------------------

  test('a session waits for all of some beads, or for any, and is told with its note', async () => {
    const id = await city.start()
    const [a, b] = [await bead('a'), await bead('b')]
    const all = await done(id, 'waits', { dep_ids: [a, b, a], note: 'echo all-done' })
    assert.deepEqual(all.dep_ids, [a, b])
    const any = await done(id, 'waits', { dep_ids: [a, b], dep_mode: 'any', note: 'echo any-done' })
    await city.done('POST', `/beads/${b}/close`)
    await city.said(id, 'any-done')
    assert.equal((await city.done('GET', `/waits/${String(all.id)}`)).state, 'pending')
    await city.done('POST', `/beads/${a}/close`)
    await city.said(id, 'all-done')
    const ready = await city.done('GET', `/waits/${String(any.id)}`)
    assert.equal(ready.state, 'ready')
    assert.ok((await city.deliveries(id)).some((one) => one.id === ready.delivery_id && one.source === 'wait'))
    const list = await city.done('GET', `/waits?session=${id}`)
    assert.equal(list.total, 2)
    assert.equal(at(list, 'items', 0, 'id'), any.id, 'newest first')
    const late = await done(id, 'waits', { dep_ids: [a] })
    assert.equal(late.state, 'ready', 'it was closed before')
    await city.forget(id)
    assertProblem(await city.send('GET', `/waits/${String(any.id)}`), 'wait-not-found')
  })

  test('a wait ends when its time is up, when it is cancelled, and when a person wakes the session', async () => {
    const id = await city.start()
    const open = await bead('open')
    const short = await done(id, 'waits', { dep_ids: [open], timeout: '200ms', note: 'echo too-late' })
    await city.said(id, 'too-late')
    assert.equal((await city.done('GET', `/waits/${String(short.id)}`)).state, 'expired')
    const dropped = await done(id, 'waits', { dep_ids: [open] })
    assert.equal((await city.done('DELETE', `/waits/${String(dropped.id)}`)).state, 'canceled')
    const woken = await done(id, 'waits', { dep_ids: [open] })
    await done(id, 'wake')
    assert.equal((await city.done('GET', `/waits/${String(woken.id)}`)).state, 'canceled')
    const events = await city.events('wait.created wait.ready wait.expired wait.canceled')
    const mine = events.filter(({ payload }) => payload.session_id === id).map(({ type }) => type)
    assert.deepEqual(mine, [
      'wait.created',
      'wait.expired',
      'wait.created',
      'wait.canceled',
      'wait.created',
      'wait.canceled',
    ])
    await city.forget(id)
  })

  // --- Ends ------------------------------------------------------------------------------------------------------------

  test('a session that is deleted takes its process, queue, waits and streams with it, and gives its work back', async () => {
    const id = await city.start()
    const { pid = 0 } = await city.get(id)
    const work = await bead('work')
    await city.done('POST', `/beads/${work}/claim`, { assignee: id, session_id: id })
    const wait = await done(id, 'waits', { dep_ids: [work] })
    await city.message(id, 'sleep 1000')
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const queued = await city.submit(id, 'echo never', 'default')
    await using stream = await openStream(city.api, `${city.base}${sessionPath(id)}/stream`)
    const { headers } = await to('GET', id, '')
    const path = sessionPath(id)
    assertProblem(await city.send('DELETE', path, undefined, { 'if-match': '"999"' }), 'precondition-failed')
    const deleted = await city.send('DELETE', path, undefined, { 'if-match': String(headers['etag']) })
    assert.deepEqual(deleted.body, { status: 'deleted', id })
    assert.equal(isRunning(pid), false)
    assertProblem(await city.send('GET', path), 'session-not-found')
    const request = await outcome(city.api, queued.request_id)
    assert.equal(request.status, 'failed')
    assert.equal(request.error_code, 'session_closed')
    await stream.ended
    assert.equal(stream.frames.at(-1)?.event, 'ended')
    const given = await city.done('GET', `/beads/${work}`)
    assert.equal(given.status, 'open')
    assert.equal(given.assignee, undefined)
    const events = await city.events('session.* wait.*', { after: Number(deleted.headers['x-svc-index'] ?? 0) })
    const about = events.filter(({ payload }) => payload.session_id === id).map(({ type }) => type)
    for (const type of ['wait.canceled', 'session.closed', 'session.stranded', 'session.deleted'])
      assert.ok(about.includes(type), `${type} in ${about.join()}`)
    assertProblem(await city.send('GET', `/waits/${String(wait.id)}`), 'wait-not-found')
    await eventually('its runs are gone', () =>
      existsSync(join(city.dir, '.svc/runtime/sessions', id)) ? undefined : true,
    )
  })

  test('closed sessions are kept until somebody prunes them', async () => {
    // A city of its own: the others close sessions, too.
    const pruning = await newSessionCity(running, 'pruning')
    const kept = await pruning.start()
    const id = await pruning.start()
    await pruning.close(id)
    assert.deepEqual((await pruning.done('POST', '/sessions/prune', { closed_before: '1h' })).deleted, [])
    assert.deepEqual((await pruning.done('POST', '/sessions/prune', { closed_before: '0s' })).deleted, [id])
    assertProblem(await pruning.send('GET', sessionPath(id)), 'session-not-found')
    assert.equal((await pruning.get(kept)).state, 'active')
    await pruning.forget(kept)
  })

  test('sessions are listed newest first, by state and template, in pages that skip and double none', async () => {
    // Of its own: what happens to other sessions before a read has come answers it at once.
    const city = await newSessionCity(running, 'listed')
    const made: string[] = []
    for (let n = 0; n < 5; n++) made.unshift(await city.start({ name: 'piped' }))
    await city.close(made[2] ?? '')
    const list = async (query: string) => {
      const found: string[] = []
      for (let cursor = ''; ; ) {
        const page = await city.done('GET', `/sessions?template=piped&limit=2${query}${cursor}`)
        assert.ok(Array.isArray(page.items))
        found.push(...page.items.map((item: unknown) => String(at(item, 'id'))))
        if (page.next_cursor === undefined) return { found, total: page.total }
        cursor = `&cursor=${String(page.next_cursor)}`
      }
    }
    const open = made.filter((_, index) => index !== 2)
    assert.deepEqual(await list(''), { found: open, total: 4 })
    assert.deepEqual(await list('&state=open'), { found: open, total: 4 })
    assert.deepEqual(await list('&state=closed'), { found: [made[2]], total: 1 })
    assert.deepEqual(await list('&state=all'), { found: made, total: 5 })
    assert.deepEqual(await list('&state=all&order=asc'), { found: made.toReversed(), total: 5 })
    assert.deepEqual(await list('&state=active,closed'), { found: made, total: 5 })
    assertProblem(await city.send('GET', '/sessions?state=broken'), 'validation-failed')
    const index = await city.head()
    // A whole request stands before it: its answer shows that the server has read what came with it.
    using waiting = new RawConnection(running.api.url)
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
    await waiting.send(get('/health') + get(`${city.base}/sessions?template=piped&index=${index}&wait=20s`))
    await waiting.answers(1)
    // Of another template: no news for who waits for these.
    await city.forget(await city.start())
    await city.done('PATCH', sessionPath(open[0] ?? ''), { title: 'Renamed' })
    const [, news] = await waiting.answers(2)
    assert.match(news?.body.toString() ?? '', /^\{"items":\[\{[^}]*"title":"Renamed"/)
    for (const id of made) await city.forget(id)
  })

  test('the work directory is one that is there: in the city, or by its whole path', async () => {
    const create = (work_dir: string) => city.send('POST', '/sessions', { kind: 'provider', name: 'bash', work_dir })
    for (const wrong of ['none', '../..', '/nonexistent/place', 'city.toml', 'x'.repeat(300), 'nul\0']) {
      const refused = assertProblem(await create(wrong), 'validation-failed')
      assert.equal(refused.errors?.[0]?.location, 'body.work_dir', wrong)
    }
    city.write('place/here.txt', 'here')
    const id = await city.start({ work_dir: 'place' })
    assert.equal((await city.get(id)).work_dir, join(city.dir, 'place'))
    await city.message(id, 'ls')
    await city.said(id, 'here.txt')
    await city.forget(id)
  })

  test('the screen of a session is seen as it is', async () => {
    const id = await city.start()
    await city.message(id, 'clear; echo seen-$((5*5))')
    await eventually('it is on the screen', async () => {
      const { lines } = await city.done('GET', `${sessionPath(id)}/screen`)
      return JSON.stringify(lines).includes('seen-25') ? true : undefined
    })
    const peeked = await city.done('GET', `${sessionPath(id)}?peek=true&peek_lines=2`)
    assert.match(String(peeked.last_output), /ready>/)
    await city.forget(id)
  })
})
