// Who may speak as an adapter, where the API asks for tokens: its secret or its signature, for itself and nobody else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { patchAdapter, registerAdapter } from '../../../src/contract/messaging/adapters.ts'
import { sign } from '../../../src/messaging/signature.ts'
import { at } from '../../support/document.ts'
import { type Answer, Api } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

const BASE = '/v0/city/alpha/adapters'
let server: Running
/** Without a token. */
let stranger: Api
before(async () => {
  server = await run({ args: ['--auth'] })
  stranger = new Api(server.server.url)
  await newCity(server.api, server.work, 'alpha')
})
after(async () => {
  stranger.close()
  await server[Symbol.asyncDispose]()
})

interface Secured {
  readonly path: string
  readonly secret: string
}

async function secured(account: string): Promise<Secured> {
  const body = { provider: 'chat', account_id: account, generate_secret: true }
  const { secret = '' } = await server.api.ask(registerAdapter, BASE, { body })
  assert.match(secret, /^whsec_/)
  return { path: `${BASE}/chat/${account}`, secret }
}

const as = (secret: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  stranger.call(method, path, {
    headers: { authorization: `Bearer ${secret}` },
    ...(body === undefined ? {} : { body }),
  })

const message = (id: string, text = 'hello') => ({
  message: {
    provider_message_id: id,
    conversation: { conversation_id: '#builds', kind: 'room' },
    actor: { id: 'u-1', display_name: 'Ada' },
    text,
  },
})

function signed(secret: string, path: string, id: string, body: unknown, at = Date.now()): Promise<Answer> {
  const bytes = JSON.stringify(body)
  return stranger.call('POST', path, {
    bytes,
    headers: { 'content-type': 'application/json', ...sign([secret], id, at, bytes) },
  })
}

const statusOf = async (answer: Promise<Answer>): Promise<number> => (await answer).status

test('a secret passes the gate for its own adapter and transcripts, and for nothing else', async () => {
  const [mine, other] = [await secured('mine'), await secured('other')]
  const transcriptOf = async (adapter: Secured): Promise<string> => {
    const answer = await as(adapter.secret, 'POST', `${adapter.path}/inbound`, message('m-1'))
    assert.equal(answer.status, 200, answer.text)
    return `/v0/city/alpha/transcripts/${String(at(answer.body, 'transcript_id'))}`
  }
  const [own, foreign] = [await transcriptOf(mine), await transcriptOf(other)]
  const may: readonly [string, string, unknown?][] = [
    ['GET', mine.path],
    ['GET', mine.path.replace('chat', 'CHAT')],
    ['POST', `${mine.path}/deliveries/claim`, {}],
    ['GET', `${mine.path}/deliveries`],
    ['GET', own],
    ['GET', `${own}/entries`],
    ['POST', BASE, { provider: 'chat', account_id: 'mine' }],
  ]
  for (const [method, path, body] of may)
    assert.equal(await statusOf(as(mine.secret, method, path, body)), 200, `${method} ${path}`)
  const mayNot: readonly [string, string, unknown?][] = [
    ['GET', other.path],
    ['POST', `${other.path}/inbound`, message('m-2')],
    ['POST', `${other.path}/deliveries/claim`, {}],
    ['PATCH', mine.path, { rotate_secret: true }],
    ['DELETE', mine.path],
    ['GET', BASE],
    ['POST', BASE, { provider: 'chat', account_id: 'new' }],
    ['GET', foreign],
    ['GET', `${foreign}/entries`],
    ['POST', `${own}/entries`, { text: 'as the operator' }],
    ['GET', '/v0/city/alpha/transcripts'],
    ['GET', '/v0/city/alpha/beads'],
    ['GET', '/v0/city/alpha/config'],
    ['GET', '/v0/tokens'],
    ['GET', '/v0/city/beta/beads'],
  ]
  for (const [method, path, body] of mayNot) {
    const status = await statusOf(as(mine.secret, method, path, body))
    // Of a city that is not there its secret says nothing.
    assert.equal(status, path.includes('beta') || path === '/v0/tokens' ? 401 : 403, `${method} ${path}`)
  }
  assert.equal(await statusOf(stranger.get(mine.path)), 401)
  assert.equal(await statusOf(as('whsec_bm9ib2R5IGtub3dzIHRoaXMgb25lIGF0IGFsbA==', 'GET', mine.path)), 401)
})

test('an adapter moves its callback within its own address alone; another address needs more than its secret', async () => {
  const at = (port: number, path = '') => `http://chat.example.org:${port}/hook${path}`
  const mine = { provider: 'chat', account_id: 'moving', transport: 'callback' }
  const body = { ...mine, callback_url: at(81), generate_secret: true }
  const { secret = '' } = await server.api.ask(registerAdapter, BASE, { body })
  const move = (callback_url: string) => as(secret, 'POST', BASE, { ...mine, callback_url })
  assert.equal(await statusOf(move(at(81, '/new'))), 200)
  for (const elsewhere of [
    at(82),
    'http://127.0.0.1:8372/v0',
    'http://[::1]:81/hook',
    'https://chat.example.org:81/hook',
  ]) {
    const answer = await move(elsewhere)
    assert.equal(answer.status, 403, elsewhere)
    assert.match(answer.text, /keeps its callback at http:\/\/chat\.example\.org:81 with its own secret/)
  }
  const pulling = await secured('pulling')
  const turned = { provider: 'chat', account_id: 'pulling', transport: 'callback', callback_url: at(81) }
  assert.equal(await statusOf(as(pulling.secret, 'POST', BASE, turned)), 403)
  await server.api.ask(patchAdapter, `${BASE}/chat/moving`, { body: { callback_url: at(82) } })
  assert.equal(await statusOf(move(at(82, '/again'))), 200)
})

test('a signature is as good as the secret, for the bytes that it is of and for five minutes', async () => {
  const [mine, other] = [await secured('signs'), await secured('signs-too')]
  const path = `${mine.path}/inbound`
  const first = await signed(mine.secret, path, 'in-1', message('s-1'))
  assert.equal(first.status, 200, first.text)
  const again = await signed(mine.secret, path, 'in-1', message('s-1'))
  assert.deepEqual([again.status, again.body], [200, first.body], 'the stored reply, which is no duplicate')
  assert.equal(at(again.body, 'duplicate'), false)
  const changed = await signed(mine.secret, path, 'in-1', message('s-1', 'other words'))
  assert.equal(at(changed.body, 'code'), 'idempotency-mismatch')
  assert.equal(await statusOf(signed(other.secret, path, 'in-2', message('s-2'))), 401)
  assert.equal(await statusOf(signed(mine.secret, path, 'in-3', message('s-3'), Date.now() - 301_000)), 401)
  assert.equal(await statusOf(signed(mine.secret, `${other.path}/inbound`, 'in-4', message('s-4'))), 401)
  assert.equal(
    await statusOf(signed(other.secret, path, 'in-5', { nonsense: true })),
    401,
    'before a word about the body',
  )
  assert.equal(await statusOf(signed(mine.secret, path, 'in-6', { nonsense: true })), 422)
  assert.equal(await statusOf(signed(mine.secret, `${mine.path}/deliveries/claim`, 'c-1', {})), 200)
  const transcript = `/v0/city/alpha/transcripts/${String(at(first.body, 'transcript_id'))}/entries`
  assert.equal(at((await server.api.get(transcript)).body, 'total'), 1)
})

test('files are uploaded with the secret; a signature there is of nobody, since the path names no adapter', async () => {
  const { secret, path } = await secured('files')
  const bytes = Buffer.from('a plan')
  const upload = (headers: Readonly<Record<string, string>>) =>
    stranger.call('POST', '/v0/city/alpha/transcripts/attachments', { bytes, headers })
  assert.equal(await statusOf(upload(sign([secret], 'up-1', Date.now(), bytes))), 401)
  const file = await upload({ authorization: `Bearer ${secret}` })
  assert.equal(file.status, 201, file.text)
  const said = { message: { ...message('f-1').message, attachments: [{ id: at(file.body, 'id') }] } }
  assert.equal((await signed(secret, `${path}/inbound`, 'in-f', said)).status, 200)
})

test("the API's own token changes an adapter, and does not speak for one that has a secret", async () => {
  const { path, secret } = await secured('rotates')
  assert.equal(await statusOf(server.api.post(`${path}/inbound`, message('r-1'))), 401)
  assert.equal(await statusOf(server.api.post(`${path}/deliveries/claim`, {})), 401)
  const renewed = await server.api.post(BASE, { provider: 'chat', account_id: 'rotates' })
  assert.equal(renewed.status, 401, 'nor replaces it')
  const { secret: next = '' } = await server.api.ask(patchAdapter, path, { body: { rotate_secret: true } })
  for (const one of [secret, next]) assert.equal(await statusOf(as(one, 'GET', path)), 200, 'both, for a day')
  assert.equal(await statusOf(signed(secret, `${path}/inbound`, 'old', message('r-2'))), 200)
  assert.equal(await statusOf(signed(next, `${path}/inbound`, 'new', message('r-3'))), 200)
  assert.equal(await statusOf(server.api.call('DELETE', path)), 200)
  assert.equal(await statusOf(as(next, 'GET', path)), 401, 'with it its secrets are gone')
  const events = await server.api.get('/v0/city/alpha/events?limit=1000')
  assert.ok(!events.text.includes('whsec_'))
})
