/** Adapters and their deliveries: each success and each refusal of its own. What they do is in test/e2e/adapters. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { registerAdapter } from '../../../src/contract/messaging/adapters.ts'
import { createSecret, sign } from '../../../src/messaging/signature.ts'
import { at } from '../../support/document.ts'
import type { Answer, CallOptions } from '../../support/http.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, scenariosOn, type World } from './scenario.ts'

const CITY = '/v0/city/alpha'
const BASE = `${CITY}/adapters`

const on = scenariosOn((world) => world)

const call = ({ main }: World, method: string, path: string, body?: unknown, more: CallOptions = {}): Promise<Answer> =>
  main.api.call(method, `${BASE}${path}`, body === undefined ? more : { ...more, body })

interface Made {
  readonly account: string
  /** Of its paths. */
  readonly path: string
}

async function made(world: World, more: object = {}): Promise<Made> {
  const account = world.unique('account')
  const body = { provider: 'chat', account_id: account, ...more }
  await world.main.api.ask(registerAdapter, BASE, { body })
  return { account, path: `/chat/${account}` }
}

interface Said extends Made {
  readonly delivery: string
}

/** Something is said that the adapter is to deliver. */
async function said(world: World, adapter?: Made): Promise<Said> {
  const { account, path } = adapter ?? (await made(world))
  const { api } = world.main
  const conversation = { provider: 'chat', account_id: account, conversation_id: world.unique('#room'), kind: 'room' }
  const ensured = await api.post(`${CITY}/transcripts`, { conversation })
  const entries = `${CITY}/transcripts/${String(at(ensured.body, 'transcript_id'))}/entries?wait=0s`
  const published = await api.post(entries, { text: 'hello' })
  assert.equal(published.status, 200, published.text)
  return { account, path, delivery: `${path}/deliveries/${String(at(published.body, 'delivery_id'))}` }
}

async function claimed(world: World, adapter?: Made): Promise<Said> {
  const one = await said(world, adapter)
  const { body } = await call(world, 'POST', `${one.path}/deliveries/claim`, { limit: 1 })
  const [item] = asList(at(body, 'items'))
  assert.equal(at(item, 'attempt'), 1)
  return one
}

const FINAL = { attempt: 1, failure_kind: 'permanent' }

async function dead(world: World): Promise<Said> {
  const one = await claimed(world)
  const failed = await call(world, 'POST', `${one.delivery}/fail`, FINAL)
  assert.equal(at(failed.body, 'status'), 'dead')
  return one
}

const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : assert.fail('no list'))

/** Runs while something answers for the callback of an adapter. */
async function withCallback<T>(answer: RequestListener, work: (url: string) => Promise<T>): Promise<T> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  try {
    return await work(`http://127.0.0.1:${address.port}`)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

const childOf = (account: string, label = 'deploy') => ({
  conversation: { provider: 'chat', account_id: account, conversation_id: '#builds', kind: 'room' },
  label,
})
const opens =
  (status: number): RequestListener =>
  (_, response) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ conversation_id: 'T-1', parent_conversation_id: '#builds', kind: 'thread' }))

const withChildren = (world: World, status: number, work: (adapter: Made) => Promise<Answer>) =>
  withCallback(opens(status), async (url) =>
    work(await made(world, { callback_url: url, capabilities: { supports_child_conversations: true } })),
  )

const missing = (operation: Scenario['operation'], method: string, tail: string, body?: unknown): Scenario =>
  on(operation, 'adapter-not-found', (world) => call(world, method, `/chat/nobody${tail}`, body))
const noDelivery = (operation: Scenario['operation'], method: string, tail: string, body?: unknown): Scenario =>
  on(operation, 'delivery-not-found', async (world) => {
    const { path } = await made(world)
    return call(world, method, `${path}/deliveries/dl-none${tail}`, body)
  })

const inbound = (id: string, text = 'hello') => ({
  message: {
    provider_message_id: id,
    conversation: { conversation_id: '#builds', kind: 'room' },
    actor: { id: 'u-1' },
    text,
  },
})

const SECRETS = new WeakMap<World, Promise<Made & { readonly secret: string }>>()
/** An adapter that signs. */
function signing(world: World): Promise<Made & { readonly secret: string }> {
  const secret = createSecret()
  const known = SECRETS.get(world) ?? made(world, { secret }).then((adapter) => ({ ...adapter, secret }))
  SECRETS.set(world, known)
  return known
}

async function signedInbound(world: World, key: string, message: object): Promise<Answer> {
  const { path, secret } = await signing(world)
  const bytes = JSON.stringify(message)
  const headers = { 'content-type': 'application/json', ...sign([secret], key, Date.now(), bytes) }
  return world.main.api.call('POST', `${BASE}${path}/inbound`, { bytes, headers })
}

const BAD_CURSOR = '?cursor=nonsense'
const REGISTRATION = { provider: 'chat', account_id: 'keyed' }

export const adapterScenarios: readonly Scenario[] = [
  on('list-adapters', 200, async (world) => {
    const { account } = await made(world, { generate_secret: true })
    const answer = await call(world, 'GET', '?provider=CHAT&limit=1000')
    const listed = asList(at(answer.body, 'items')).find((item) => at(item, 'account_id') === account)
    assert.equal(at(listed, 'secured'), true)
    assert.ok(!answer.text.includes('whsec_'))
    return answer
  }),
  on('list-adapters', 'invalid-cursor', (world) => call(world, 'GET', BAD_CURSOR)),

  on('register-adapter', 201, (world) => {
    const body = { provider: 'IRC', account_id: world.unique('libera'), generate_secret: true }
    return call(world, 'POST', '', body)
  }),
  on('register-adapter', 200, async (world) => {
    const { account } = await made(world)
    return call(world, 'POST', '', { provider: 'chat', account_id: account })
  }),
  on('register-adapter', 'too-many-adapters', async ({ forgetful }) => {
    const register = (index: number) => forgetful.api.post(BASE, { provider: 'many', account_id: `a-${index}` })
    for (let begun = 0; begun < 1_000; begun += 50) {
      const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => register(begun + index)))
      for (const { status } of answers) assert.ok(status === 201 || status === 429)
    }
    return register(1_000)
  }),
  inFlight('register-adapter', (world, key) =>
    Promise.all(
      Array.from({ length: 4 }, () =>
        call(world, 'POST', '', REGISTRATION, { headers: { 'idempotency-key': key }, alone: true }),
      ),
    ),
  ),
  mismatch('register-adapter', (world, key, second) =>
    call(world, 'POST', '', second ? { ...REGISTRATION, name: 'another' } : REGISTRATION, {
      headers: { 'idempotency-key': key },
    }),
  ),

  on('get-adapter', 200, async (world) => call(world, 'GET', (await made(world)).path)),
  missing('get-adapter', 'GET', ''),
  on('patch-adapter', 200, async (world) => {
    const answer = await call(world, 'PATCH', (await made(world)).path, { name: 'Builds', rotate_secret: true })
    assert.match(String(at(answer.body, 'secret')), /^whsec_/)
    return answer
  }),
  on('patch-adapter', 'precondition-failed', async (world) => {
    const { path } = await made(world)
    const etag = String((await call(world, 'GET', path)).headers['etag'])
    const change = (name: string) => call(world, 'PATCH', path, { name }, { headers: { 'if-match': etag } })
    assert.equal((await change('First')).status, 200)
    return change('Second')
  }),
  missing('patch-adapter', 'PATCH', '', {}),
  on('delete-adapter', 200, async (world) => call(world, 'DELETE', (await made(world)).path)),
  missing('delete-adapter', 'DELETE', ''),

  missing('receive-inbound', 'POST', '/inbound', inbound('m-1')),
  on('receive-inbound', 'too-many-requests', async (world) => {
    const { path } = await made(world)
    for (;;) {
      const answers = await Promise.all(
        Array.from({ length: 60 }, () => call(world, 'POST', `${path}/inbound`, inbound('m-1'))),
      )
      const refused = answers.find(({ status }) => status === 429)
      if (refused !== undefined) return refused
    }
  }),
  inFlight('receive-inbound', (world, key) =>
    Promise.all(Array.from({ length: 4 }, () => signedInbound(world, key, inbound(`m-${key}`)))),
  ),
  mismatch('receive-inbound', (world, key, second) =>
    signedInbound(world, key, inbound(`m-${key}`, second ? 'other' : 'hello')),
  ),

  on('create-child-conversation', 201, (world) =>
    withChildren(world, 201, async ({ account, path }) => {
      const answer = await call(world, 'POST', `${path}/children`, childOf(account))
      assert.deepEqual(at(answer.body, 'conversation', 'conversation_id'), 'T-1')
      return answer
    }),
  ),
  missing('create-child-conversation', 'POST', '/children', childOf('nobody')),
  on('create-child-conversation', 'invalid-conversation', async (world) => {
    const { path } = await made(world)
    return call(world, 'POST', `${path}/children`, childOf('another'))
  }),
  on('create-child-conversation', 'adapter-unsupported', async (world) => {
    const { account, path } = await made(world)
    return call(world, 'POST', `${path}/children`, childOf(account))
  }),
  on('create-child-conversation', 'bad-gateway', (world) =>
    withChildren(world, 500, ({ account, path }) => call(world, 'POST', `${path}/children`, childOf(account))),
  ),
  inFlight('create-child-conversation', (world, key) =>
    withCallback(opens(200), async (url) => {
      const { account, path } = await made(world, {
        callback_url: url,
        capabilities: { supports_child_conversations: true },
      })
      const send = () =>
        call(world, 'POST', `${path}/children`, childOf(account), { headers: { 'idempotency-key': key }, alone: true })
      return Promise.all([send(), send(), send()])
    }),
  ),
  scenario('create-child-conversation', 'idempotency-mismatch', async (world) =>
    withCallback(opens(201), async (url) => {
      const capabilities = { supports_child_conversations: true }
      const { account, path } = await made(world, { callback_url: url, capabilities })
      const headers = { 'idempotency-key': world.unique('key') }
      const first = await call(world, 'POST', `${path}/children`, childOf(account), { headers })
      const again = await call(world, 'POST', `${path}/children`, childOf(account), { headers })
      assert.deepEqual([first.status, again.body], [201, first.body])
      return call(world, 'POST', `${path}/children`, childOf(account, 'another'), { headers })
    }),
  ),

  on('list-deliveries', 200, async (world) => {
    const { path } = await said(world)
    const answer = await call(world, 'GET', `${path}/deliveries?status=pending`)
    assert.equal(asList(at(answer.body, 'items')).length, 1)
    return answer
  }),
  missing('list-deliveries', 'GET', '/deliveries'),
  on('list-deliveries', 'invalid-cursor', async (world) =>
    call(world, 'GET', `${(await made(world)).path}/deliveries${BAD_CURSOR}`),
  ),
  on('claim-deliveries', 200, async (world) => call(world, 'POST', `${(await said(world)).path}/deliveries/claim`)),
  missing('claim-deliveries', 'POST', '/deliveries/claim'),
  on('claim-deliveries', 'conflict-wrong-state', async (world) =>
    call(world, 'POST', `${(await made(world, { transport: 'stream' })).path}/deliveries/claim`),
  ),
  on('get-delivery', 200, async (world) => call(world, 'GET', (await said(world)).delivery)),
  missing('get-delivery', 'GET', '/deliveries/dl-none'),
  noDelivery('get-delivery', 'GET', ''),
  on('ack-delivery', 200, async (world) => {
    const { delivery } = await claimed(world)
    const receipt = { message_id: 'm-9' }
    const first = await call(world, 'POST', `${delivery}/ack`, { receipt })
    const again = await call(world, 'POST', `${delivery}/ack`)
    assert.deepEqual(again.body, first.body)
    return first
  }),
  missing('ack-delivery', 'POST', '/deliveries/dl-none/ack'),
  noDelivery('ack-delivery', 'POST', '/ack'),
  on('fail-delivery', 200, async (world) => call(world, 'POST', `${(await claimed(world)).delivery}/fail`, FINAL)),
  missing('fail-delivery', 'POST', '/deliveries/dl-none/fail', FINAL),
  noDelivery('fail-delivery', 'POST', '/fail', FINAL),
  on('fail-delivery', 'conflict-wrong-state', async (world) =>
    call(world, 'POST', `${(await claimed(world)).delivery}/fail`, { ...FINAL, attempt: 2 }),
  ),
  on('retry-delivery', 200, async (world) => call(world, 'POST', `${(await dead(world)).delivery}/retry`)),
  missing('retry-delivery', 'POST', '/deliveries/dl-none/retry'),
  noDelivery('retry-delivery', 'POST', '/retry'),
  on('retry-delivery', 'conflict-wrong-state', async (world) =>
    call(world, 'POST', `${(await claimed(world)).delivery}/retry`),
  ),
  on('delete-delivery', 200, async (world) => call(world, 'DELETE', (await dead(world)).delivery)),
  missing('delete-delivery', 'DELETE', '/deliveries/dl-none'),
  noDelivery('delete-delivery', 'DELETE', ''),
  on('delete-delivery', 'conflict-wrong-state', async (world) => call(world, 'DELETE', (await said(world)).delivery)),
]
