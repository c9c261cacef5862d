import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { answerJson, answerProblem, fastClock, scriptedServer } from '../../test/support/cli-server.ts'
import { listCities } from '../contract/cities.ts'
import { OPERATIONS } from '../contract/index.ts'
import { Client, type ClientOptions, type Place, pathOf } from './client.ts'
import { ApiProblem, DecodeError, Unreachable } from './problems.ts'
import { ROUTES } from './routes.ts'

const clientOf = (url: string, options: Partial<ClientOptions> = {}) =>
  new Client({ baseUrl: url, clock: fastClock(), random: () => 0, newKey: () => 'made-up', ...options })
const accepted = { request_id: 'req-0123456789abcdef01234567', event_cursor: '__supervisor__:1' }

suite('calls', () => {
  test('method, path, query, body and headers come from the operation', async () => {
    await using server = await scriptedServer((request, response) =>
      answerJson(
        response,
        request.method === 'GET' ? 200 : 202,
        request.method === 'GET' ? { items: [], total: 0 } : accepted,
      ),
    )
    const client = clientOf(server.url, { token: 'secret' })
    const reply = await client.call('create-city', { body: { dir: '/srv/alpha' } })
    assert.equal(reply.status, 202)
    assert.equal(reply.body.request_id, accepted.request_id)
    assert.equal(reply.requestId, 'rid-202')
    await client.call(listCities, { query: { limit: 5, cursor: undefined } })
    await client.call('list-events', { query: { type: ['a.b', 'c.*'], since: '1h' } })
    const [create, list, events] = server.requests
    assert.deepEqual([create?.method, create?.url, create?.body], ['POST', '/v0/city', '{"dir":"/srv/alpha"}'])
    assert.equal(create?.headers['x-svc-request'], '1')
    assert.equal(create?.headers['idempotency-key'], 'made-up')
    assert.equal(create?.headers['content-type'], 'application/json')
    assert.equal(create?.headers.authorization, 'Bearer secret')
    assert.deepEqual([list?.method, list?.url], ['GET', '/v0/cities?limit=5'])
    assert.equal(list?.headers['x-svc-request'], undefined)
    assert.equal(list?.headers['idempotency-key'], undefined)
    assert.equal(events?.url, '/v0/events?type=a.b&type=c.*&since=1h')
  })

  test('every operation of the contract is in the table, as it is in the contract', () => {
    for (const { id, method, path, headers, mediaType } of OPERATIONS) {
      const route = Object.values(ROUTES).find((candidate) => candidate.id === id)
      const keyed = headers?.includes('Idempotency-Key') === true
      assert.deepEqual(
        [route?.method, route?.path, route?.headers?.includes('Idempotency-Key') === true, route?.mediaType],
        [method, path, keyed, mediaType],
        `${id}: run npm run generate`,
      )
    }
    assert.equal(Object.keys(ROUTES).length, OPERATIONS.length)
  })

  test('path parameters are encoded, and what a URL would swallow is refused', () => {
    assert.equal(pathOf('/v0/city/{cityName}/x', { cityName: 'a/b ?#ü' }, {}), '/v0/city/a%2Fb%20%3F%23%C3%BC/x')
    assert.throws(() => pathOf('/v0/city/{cityName}', { cityName: '..' }, {}), /URLs drop such segments/)
    assert.throws(() => pathOf('/v0/city/{cityName}', { cityName: '' }, {}), /cityName must not be empty/)
  })

  test('wrong calls do not compile', () => {
    const calls = async (client: Client) => {
      // @ts-expect-error a body is needed
      await client.call('create-city')
      // @ts-expect-error and its fields are known
      await client.call('create-city', { body: { dirr: '/x' } })
      // @ts-expect-error a path parameter is needed
      await client.call('get-city', {})
      // @ts-expect-error this one has no query
      await client.call('get-city', { params: { cityName: 'a' }, query: { limit: 1 } })
      // @ts-expect-error no such operation
      await client.call('get-town')
      const reply = await client.call('stop-city', { params: { cityName: 'a' } })
      // @ts-expect-error replies are typed
      return reply.body.request_id
    }
    assert.equal(typeof calls, 'function')
  })
})

suite('failures', () => {
  test('Problem Details become an ApiProblem with all that they say', async () => {
    await using server = await scriptedServer((_, response) =>
      answerJson(response, 422, {
        type: 'urn:svc:error:validation-failed',
        title: 'The request breaks its schema',
        status: 422,
        code: 'validation-failed',
        detail: 'validation_failed: body.dir: required',
        errors: [{ location: 'body.dir', message: 'required' }],
      }),
    )
    await assert.rejects(clientOf(server.url).call('create-city', { body: { dir: '' } }), (error) => {
      assert.ok(error instanceof ApiProblem)
      assert.deepEqual(
        [error.status, error.code, error.detail, error.requestId],
        [422, 'validation-failed', 'validation_failed: body.dir: required', 'rid-422'],
      )
      assert.deepEqual(error.errors, [{ location: 'body.dir', message: 'required' }])
      return true
    })
  })

  test('an error that is no Problem Details still has a status, a code and a text', async () => {
    await using server = await scriptedServer((request, response) => {
      response
        .writeHead(request.url === '/v0/cities' ? 404 : 405, { 'content-type': 'text/plain' })
        .end(request.url === '/v0/cities' ? 'nope' : '')
    })
    const client = clientOf(server.url)
    await assert.rejects(client.call('list-cities'), {
      status: 404,
      code: 'http-404',
      detail: 'HTTP 404, and not from a svcctl server: nope',
    })
    await assert.rejects(client.call('get-health'), {
      status: 405,
      code: 'http-405',
      detail: 'HTTP 405, and not from a svcctl server',
    })
  })

  test('an answer of something that is not our server is an error, not data', async () => {
    await using server = await scriptedServer((request, response) => {
      if (request.url === '/health') answerJson(response, 200, {}, { 'content-type': 'text/html' })
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"items": [')
    })
    await assert.rejects(clientOf(server.url).call('get-health'), DecodeError)
    await assert.rejects(clientOf(server.url).call('list-cities'), DecodeError)
  })

  test('nobody listening is said in words and not tried again', async () => {
    const server = await scriptedServer(() => undefined)
    await server[Symbol.asyncDispose]()
    const clock = fastClock()
    await assert.rejects(clientOf(server.url, { clock }).call('list-cities'), (error) => {
      assert.ok(error instanceof Unreachable)
      assert.equal(error.message, `cannot reach ${server.url}: connection refused`)
      return true
    })
    assert.deepEqual(clock.delays, [])
  })

  test('an aborted call rejects with the reason of its signal', async () => {
    await using server = await scriptedServer(() => undefined)
    const signal = AbortSignal.abort(new Error('changed my mind'))
    await assert.rejects(clientOf(server.url).call('list-cities', { signal }), /changed my mind/)
  })
})

suite('tries', () => {
  test('a keyed POST is tried again with the same key', async () => {
    let keys = 0
    await using server = await scriptedServer((_, response, count) => {
      if (count === 0) return void response.socket?.resetAndDestroy()
      if (count === 1)
        return answerProblem(response, 503, 'unavailable', 'unavailable: draining', { 'retry-after': '1' })
      answerJson(response, 202, accepted)
    })
    const client = clientOf(server.url, { newKey: () => `key-${++keys}` })
    await client.call('create-city', { body: { dir: '/x' } })
    assert.deepEqual(
      server.requests.map((request) => request.headers['idempotency-key']),
      ['key-1', 'key-1', 'key-1'],
    )
    await client.call('create-city', { body: { dir: '/x' }, idempotencyKey: 'mine' })
    assert.equal(server.requests.at(-1)?.headers['idempotency-key'], 'mine')
  })

  test('a POST without a key is sent once; that its answer was lost says that nobody knows whether it was done', async () => {
    await using server = await scriptedServer((_, response) => void response.socket?.resetAndDestroy())
    await assert.rejects(clientOf(server.url).call('stop-city', { params: { cityName: 'a' } }), {
      name: 'LostReply',
      message: 'POST /v0/city/a/stop was sent and no answer came (connection reset): whether it was done is not known',
    })
    assert.equal(server.requests.length, 1)
  })

  test('a change is in doubt from its first lost answer until the server answers about it', async () => {
    await using gone = await scriptedServer((_, response, count) => {
      if (count === 0) return void response.socket?.resetAndDestroy()
      answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: a')
    })
    const create = (url: string) =>
      clientOf(url).call('create-bead', { params: { cityName: 'a' }, body: { title: 'x' }, idempotencyKey: 'mine' })
    await assert.rejects(create(gone.url), {
      name: 'LostReply',
      request: { key: 'mine', method: 'POST', path: '/v0/city/a/beads' },
    })
    await using refusing = await scriptedServer((_, response, count) => {
      if (count === 0) return void response.socket?.resetAndDestroy()
      answerProblem(response, 422, 'validation-failed', 'invalid: no')
    })
    await assert.rejects(create(refusing.url), { status: 422 })
  })

  test('what never reached a server is no doubt, nor is a question without an answer', async () => {
    const free = await scriptedServer(() => undefined)
    await free[Symbol.asyncDispose]()
    await assert.rejects(clientOf(free.url).call('stop-city', { params: { cityName: 'a' } }), Unreachable)
    await using server = await scriptedServer((_, response) => void response.socket?.resetAndDestroy())
    await assert.rejects(clientOf(server.url).call('list-cities'), Unreachable)
  })
})

suite('a server that moves', () => {
  const moving = (places: readonly (Place | undefined)[], baseUrl: string, options: Partial<ClientOptions> = {}) => {
    const left = [...places]
    const locate = () => left.shift()
    return new Client({ baseUrl, clock: fastClock(), random: () => 1, newKey: () => 'key', locate, ...options })
  }

  test('is looked for again after a lost connection, and nothing is sent while it is nowhere', async () => {
    await using before = await scriptedServer((_, response) => void response.socket?.resetAndDestroy())
    await using after = await scriptedServer((_, response) => answerJson(response, 200, { items: [], total: 0 }))
    const client = moving([undefined, { baseUrl: after.url, token: 'new' }], before.url)
    await assert.rejects(client.call('list-cities'), { message: `cannot reach ${before.url}: that server has ended` })
    assert.equal(before.requests.length, 1)
    await client.call('list-cities')
    assert.equal(after.requests[0]?.headers.authorization, 'Bearer new')
  })

  test('is waited for by whoever has the patience, until it has its city again; one key goes through it all', async () => {
    await using before = await scriptedServer((_, response) => void response.socket?.resetAndDestroy())
    await using after = await scriptedServer((_, response, count) => {
      if (count === 0)
        return answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: a')
      if (count === 1)
        return answerProblem(response, 503, 'unavailable', 'unavailable: starting', { 'retry-after': '1' })
      answerJson(response, 201, { id: 'ml-1' })
    })
    const gone = Array.from({ length: 6 }, () => undefined)
    const there = { baseUrl: after.url }
    const input = { params: { cityName: 'a' }, body: { to: 'mayor', subject: 'x' } }
    // Of a clock that is a hundred times as fast: what it may take is not what is tried here.
    const patient = moving([...gone, there], before.url, { outlastMs: 4_000_000 })
    await patient.call('send-mail', input)
    assert.deepEqual(
      [...before.requests, ...after.requests].map(({ headers }) => headers['idempotency-key']),
      ['key', 'key', 'key', 'key'],
    )
    await assert.rejects(moving([...gone, there], before.url).call('send-mail', input), { name: 'LostReply' })
    assert.equal(after.requests.length, 3)
  })

  test('is not waited for beyond that patience, and never where repeating is not safe or its city was never there', async () => {
    const free = await scriptedServer(() => undefined)
    await free[Symbol.asyncDispose]()
    const patient = (url: string) => clientOf(url, { outlastMs: 20_000 })
    await assert.rejects(clientOf(free.url, { outlastMs: 20_000 }).call('list-cities'), Unreachable)
    await assert.rejects(patient(free.url).call('stop-city', { params: { cityName: 'a' } }), Unreachable)
    await using server = await scriptedServer((_, response) =>
      answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: a'),
    )
    await assert.rejects(patient(server.url).call('list-mail', { params: { cityName: 'a' } }), { status: 404 })
    assert.equal(server.requests.length, 1)
  })

  test('that has another token by now is asked with that', async () => {
    await using server = await scriptedServer((request, response) =>
      request.headers.authorization === 'Bearer new'
        ? answerJson(response, 200, { items: [], total: 0 })
        : answerProblem(response, 401, 'unauthorized', 'unauthorized: no'),
    )
    const place = { baseUrl: server.url, token: 'new' }
    await moving([place], server.url).call('list-cities')
    await assert.rejects(moving([{ baseUrl: server.url }], server.url).call('list-cities'), { status: 401 })
    assert.equal(server.requests.length, 3)
  })

  test('a refusal is not tried again, nor a server that wants a long pause', async () => {
    await using server = await scriptedServer((_, response, count) =>
      count === 0
        ? answerProblem(response, 409, 'city-name-taken', 'conflict: no')
        : answerProblem(response, 503, 'unavailable', 'unavailable: no', { 'retry-after': '60' }),
    )
    await assert.rejects(clientOf(server.url).call('list-cities'), { status: 409 })
    await assert.rejects(clientOf(server.url).call('list-cities'), { status: 503 })
    assert.equal(server.requests.length, 2)
  })
})
