// What an agent may do with the token that it was started with, and for how long. A real supervisor that asks for one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { at } from '../../support/document.ts'
import { Api, eventually } from '../../support/http.ts'
import { cityIs, outcome, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'

async function statusWith(url: string, token: string): Promise<number> {
  const api = new Api(url, token)
  const { status } = await api.get('/v0/cities')
  api.close()
  return status
}

test('an agent of a server with a token speaks with one of its own, while it runs', { timeout: 90_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const city = await newSessionCity(running, 'alpha')
  const { url, home } = running.server
  const id = await city.start()
  const token = await city.tokenOf(id)
  assert.match(token, /^[0-9a-f]{64}$/)
  assert.notEqual(token, JSON.parse(readFileSync(join(home, 'endpoint.json'), 'utf8')).token)
  assert.equal(await statusWith(url, token), 200)

  const follower = new Api(url, token)
  await using stream = await openStream(follower, '/v0/city/alpha/events/stream')
  await city.done('POST', `/sessions/${id}/kill`)
  assert.equal(await statusWith(url, token), 401)
  // What is followed with it ends too.
  await stream.ended
  follower.close()
  await city.until(id, 'runs again', ({ generation, running }) => generation === 2 && running)
  assert.equal(await statusWith(url, token), 401)

  const second = await city.tokenOf(id)
  await running.server.kill('SIGKILL')
  await using again = await runAgain(home, { args: ['--auth'] })
  // It never hears that it may not, only that nobody can tell yet.
  const early = new Set<number>()
  await eventually('the agent is known again', async () => {
    early.add(await statusWith(again.server.url, second))
    return early.has(200) ? true : undefined
  })
  assert.deepEqual(
    [...early].filter((status) => status !== 200 && status !== 503),
    [],
  )
  await cityIs(again.api, 'alpha', 'running')
  await new SessionApi(again.api, 'alpha', city.dir).close(id)
  assert.equal(await statusWith(again.server.url, second), 401)
})

test('without a token of the server an agent has none', { timeout: 60_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  assert.equal(await city.tokenOf(await city.start()), '')
})

const AGENTS = ['worker', 'reader', 'mayor'] as const
const AGENTS_TOML = `[[agent]]
name = "worker"
[[agent]]
name = "reader"
api = "read"
[[agent]]
name = "mayor"
api = "city"
`

test('an agent works in its city, and is nobody else there or anywhere', { timeout: 120_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const city = await newSessionCity(running, 'alpha', AGENTS_TOML)
  await newSessionCity(running, 'beta')
  const other = await city.startTalker({ alias: 'other' })
  const started = await Promise.all(
    AGENTS.map(async (name) => {
      const id = await city.start({ kind: 'agent', name, runtime: 'subprocess' })
      return { id, name, api: new Api(running.server.url, await city.tokenOf(id)) }
    }),
  )
  using stack = new DisposableStack()
  for (const { api } of started) stack.defer(() => api.close())
  const [worker, reader, mayor] = started
  assert.ok(worker && reader && mayor)
  const refused = async (who: (typeof started)[number], method: string, path: string, body?: unknown) => {
    const answer = await who.api.call(method, path, body === undefined ? {} : { body })
    assert.equal(answer.status, 403, `${who.name}: ${method} ${path}: ${answer.text}`)
    return String(at(answer.body, 'detail'))
  }
  const may = async (who: (typeof started)[number], method: string, path: string, body?: unknown) => {
    const answer = await who.api.call(method, path, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, `${who.name}: ${method} ${path}: ${answer.text}`)
    return answer.body
  }
  const alpha = '/v0/city/alpha'

  for (const who of started) {
    // Other cities are not there for it.
    for (const path of ['', '/beads', '/events', '/sessions', '/config', '/nonsense'])
      assert.match(await refused(who, 'GET', `/v0/city/beta${path}`), /this token is for the city alpha and no other/)
    for (const [method, path, body] of [
      ['POST', '/v0/city', { dir: join(running.work, 'gamma'), name: 'gamma' }],
      ['POST', '/v0/city/beta/start', {}],
      ['POST', '/v0/city/beta/events', { type: 'a.b', actor: who.name }],
      ['POST', `${alpha}/unregister`, {}],
      ['GET', '/v0/tokens', undefined],
      ['POST', '/v0/tokens', { name: 'mine', role: 'admin' }],
      ['GET', '/metrics', undefined],
    ] as const)
      await refused(who, method, path, body)
    assert.match(await refused(who, 'GET', '/v0/events'), /its events are at \/v0\/city\/alpha\/events/)
    const cities = at(await may(who, 'GET', '/v0/cities'), 'items')
    assert.ok(Array.isArray(cities))
    assert.deepEqual(
      cities.map((one) => at(one, 'name')),
      ['alpha'],
    )
    const requests = at(await may(who, 'GET', '/v0/requests?limit=1000'), 'items')
    assert.ok(Array.isArray(requests) && requests.every((one) => at(one, 'city') === 'alpha'))
    // Its own terminal, its own questions, its own leash.
    for (const [method, verb, body] of [
      ['POST', 'respond', { action: 'allow' }],
      ['GET', 'terminal', undefined],
      ['POST', 'terminal/input', { viewer: 'me', seq: 1, text: 'y' }],
      ['POST', 'terminal/size', { cols: 80, rows: 24 }],
      ['POST', 'keys', { keys: ['Enter'] }],
    ] as const)
      await refused(who, method, `${alpha}/sessions/${who.id}/${verb}`, body)
    // Of itself it may tell, of nobody else.
    await may(who, 'POST', `${alpha}/sessions/${who.id}/heartbeat`, {})
    await refused(who, 'POST', `${alpha}/sessions/other/heartbeat`, {})
    await may(who, 'GET', `${alpha}/beads`)
  }

  // Work is for the worker, and under its own name.
  const bead = String(at(await may(worker, 'POST', `${alpha}/beads`, { title: 'x' }), 'id'))
  await refused(reader, 'POST', `${alpha}/beads`, { title: 'x' })
  const actor = /cannot speak as human/
  assert.match(await refused(worker, 'POST', `${alpha}/events`, { type: 'a.b', actor: 'human' }), actor)
  assert.match(await refused(worker, 'POST', `${alpha}/beads/${bead}/claim`, { assignee: 'human' }), actor)
  assert.match(await refused(worker, 'POST', `${alpha}/beads/${bead}/comments`, { text: 'x', author: 'human' }), actor)
  await may(worker, 'POST', `${alpha}/events`, { type: 'a.b', actor: 'worker' })
  await may(worker, 'POST', `${alpha}/beads/${bead}/claim`, { assignee: 'worker', session_id: worker.id })
  const said = await may(worker, 'POST', `${alpha}/beads/${bead}/comments`, { text: 'x' })
  assert.equal(at(said, 'author'), (await city.get(worker.id)).agent)
  const { items: told } = await city.done('GET', `/events?type=bead.created&subject=${bead}`)
  assert.equal(at(told, 0, 'actor'), (await city.get(worker.id)).agent)
  const sent = await may(worker, 'POST', `${alpha}/sessions/${reader.id}/messages`, { message: 'true' })
  await may(worker, 'GET', `/v0/requests/${at(sent, 'request_id')}`)
  const elsewhere = (await running.api.get('/v0/requests?city=beta')).body
  const hidden = await worker.api.get(`/v0/requests/${at(elsewhere, 'items', 0, 'request_id')}`)
  assert.equal(hidden.status, 404)
  await refused(reader, 'POST', `${alpha}/sessions/${worker.id}/messages`, { message: 'true' })
  for (const [method, path, body] of [
    ['POST', `/sessions/${reader.id}/kill`, {}],
    ['POST', '/sessions/other/close', {}],
    ['POST', '/sessions', { kind: 'provider', name: 'bash' }],
    ['GET', '/sessions/other/terminal', undefined],
    ['POST', '/sessions/other/keys', { keys: ['Enter'] }],
    ['POST', '/sessions/other/respond', { action: 'allow' }],
    ['PUT', '/config/files/city.toml', {}],
    ['POST', '/packs', { source: 'builtin:core' }],
    ['POST', '/providers', { name: 'evil' }],
    ['POST', '/agents', { name: 'evil' }],
    ['POST', '/stop', {}],
  ] as const)
    for (const who of [worker, reader]) await refused(who, method, `${alpha}${path}`, body)

  // All of its city is for the one whose files say so.
  const question = await city.ask(other)
  await may(mayor, 'POST', `${alpha}/sessions/other/respond`, { request_id: question.request_id, action: 'allow' })
  await may(mayor, 'POST', `${alpha}/sessions/other/close`, {})
  await may(mayor, 'POST', `${alpha}/agents`, { name: 'helper' })
  const { items: changes } = await city.done('GET', '/events?type=agent.created&subject=helper')
  assert.equal(at(changes, 0, 'actor'), (await city.get(mayor.id)).agent)
})

test('what an agent says to a held session waits for a person, and says who speaks', { timeout: 120_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const city = await newSessionCity(running, 'alpha', AGENTS_TOML)
  const held = await city.startTalker({ alias: 'held' })
  const id = await city.start({ kind: 'agent', name: 'worker', runtime: 'subprocess' })
  const worker = new Api(running.server.url, await city.tokenOf(id))
  using stack = new DisposableStack()
  stack.defer(() => worker.close())
  const say = (path: string, body: object) => worker.call('POST', `/v0/city/alpha/sessions/${held}/${path}`, { body })
  await city.done('POST', `/sessions/${held}/suspend`, {})
  await city.is(held, 'suspended')

  const sent: string[] = []
  for (const [path, body] of [
    ['messages', { message: 'first' }],
    ['prompt', { message: 'second' }],
    ['submit', { message: 'third', intent: 'interrupt_now' }],
  ] as const) {
    const answer = await say(path, body)
    assert.equal(answer.status, 202, answer.text)
    sent.push(String(at(answer.body, 'request_id')))
  }
  assert.equal((await say('nudge', { message: 'fourth' })).status, 201)
  for (const request of sent) {
    const ended = await outcome(running.api, request)
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended))
  }
  const waiting = await city.deliveries(held)
  assert.deepEqual(
    waiting.map(({ state, waits_for }) => [state, waits_for]),
    Array.from({ length: 4 }, () => ['queued', 'hold']),
  )
  assert.equal((await city.get(held)).state, 'suspended')
  const { agent: name } = await city.get(id)
  const sender = { kind: 'agent', name, session_id: id }
  for (const one of waiting) assert.deepEqual(one.sender, sender)
  const { items } = await city.done('GET', `/events?type=session.delivery&subject=${held}`)
  assert.deepEqual(at(items, 0, 'payload', 'sender'), sender)

  // A person lifts it by speaking, and is heard without a frame.
  await city.message(held, 'and I')
  const said = await city.said(held, /you said: and I/)
  for (const text of ['first', 'second', 'third', 'fourth'])
    assert.match(said, new RegExp(`\\[message from agent ${name}, session ${id}\\]\\s+${text}`))
  assert.doesNotMatch(said, /message from[^\n]*\n+and I/)
  const own = (await city.deliveries(held)).find(({ text }) => text === 'and I')
  assert.equal(own?.sender?.kind, 'person')
})
