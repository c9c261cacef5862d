import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  answerJson,
  answerProblem,
  fastClock,
  frame,
  openStream,
  type Script,
  scriptedServer,
} from '../../test/support/cli-server.ts'
import { Client } from './client.ts'
import { waitForRequest } from './requests.ts'

const ID = 'req-0123456789abcdef01234567'
const event = (seq: number, type: string, payload: object) => ({
  seq,
  type,
  ts: '2026-05-01T10:00:00.000Z',
  actor: 'supervisor',
  payload,
  city: 'alpha',
})
const done = event(3, 'request.result.city.create', { request_id: ID, name: 'alpha', path: '/a' })
const info = (status: string, more: object = {}) => ({
  request_id: ID,
  operation: 'city.create',
  status,
  event_cursor: '__supervisor__:1',
  created_at: '2026-05-01T10:00:00.000Z',
  ...more,
})

async function wait(script: Script) {
  await using server = await scriptedServer(script)
  const client = new Client({ baseUrl: server.url, clock: fastClock(), random: () => 0, newKey: () => 'key' })
  const seen: string[] = []
  const outcome = await waitForRequest(client, {
    requestId: ID,
    eventCursor: '__supervisor__:1',
    signal: new AbortController().signal,
    onEvent: ({ type }) => seen.push(type),
  })
  return {
    outcome,
    seen,
    urls: server.requests.map(({ url }) => url),
    ids: server.requests.map(({ headers }) => headers['last-event-id']),
  }
}

test('the terminal event of the request ends the wait, those of others do not', async () => {
  const { outcome, seen, urls } = await wait((_, response) => {
    openStream(response)
    response.write(
      frame(
        '__supervisor__:2',
        event(2, 'request.result.city.create', { request_id: 'req-000000000000000000000000' }),
        'tagged_event',
      ),
    )
    response.write(frame('__supervisor__:3', done, 'tagged_event'))
  })
  assert.deepEqual(outcome, { requestId: ID, succeeded: true, payload: done.payload })
  assert.equal(seen.length, 2)
  assert.deepEqual(urls, ['/v0/events/stream?type=request.*&type=city.*&after_cursor=__supervisor__%3A1'])
})

test('request.failed is an outcome, not an error', async () => {
  const payload = { request_id: ID, operation: 'city.create', error_code: 'city_init_failed', error_message: 'no' }
  const { outcome } = await wait((_, response) => {
    openStream(response)
    response.write(frame('__supervisor__:3', event(3, 'request.failed', payload), 'tagged_event'))
  })
  assert.deepEqual(outcome, { requestId: ID, succeeded: false, payload })
})

test('a lost stream is resumed after its last frame', async () => {
  const { outcome, ids } = await wait((request, response, count) => {
    if (request.url.startsWith('/v0/requests/')) return answerJson(response, 200, info('running'))
    openStream(response)
    if (count === 0) return void response.end(frame('__supervisor__:2', event(2, 'city.created', {}), 'tagged_event'))
    response.write(frame('__supervisor__:3', done, 'tagged_event'))
  })
  assert.equal(outcome.succeeded, true)
  assert.deepEqual(ids, [undefined, undefined, '__supervisor__:2'])
})

test('an expired cursor turns to asking for the request', async () => {
  let asked = 0
  const { outcome } = await wait((request, response) => {
    if (!request.url.startsWith('/v0/requests/'))
      return answerProblem(response, 410, 'cursor-expired', 'cursor_expired: too old')
    asked += 1
    answerJson(
      response,
      200,
      asked < 3 ? info('running') : info('failed', { error_code: 'interrupted', error_message: 'crash' }),
    )
  })
  assert.equal(asked, 3)
  assert.equal(outcome.succeeded, false)
  assert.deepEqual([outcome.payload['error_code'], outcome.payload['operation']], ['interrupted', 'city.create'])
})

test('a server that is being restarted is waited out', async () => {
  const { outcome } = await wait((request, response, count) => {
    if (count < 4) return void response.socket?.resetAndDestroy()
    if (request.url.startsWith('/v0/requests/'))
      return answerJson(response, 200, info('succeeded', { result: done.payload }))
    openStream(response)
    response.end()
  })
  assert.deepEqual(outcome.payload, done.payload)
})

test('a wait goes on at a server that has started again elsewhere', async () => {
  await using before = await scriptedServer((_, response) => {
    openStream(response)
    response.write(frame('__supervisor__:2', event(2, 'city.created', {}), 'tagged_event'), () =>
      response.socket?.resetAndDestroy(),
    )
  })
  await using after = await scriptedServer((request, response) => {
    if (request.url.startsWith('/v0/requests/')) return answerJson(response, 200, info('running'))
    openStream(response)
    response.write(frame('__supervisor__:3', done, 'tagged_event'))
  })
  const client = new Client({
    baseUrl: before.url,
    clock: fastClock(),
    random: () => 0,
    newKey: () => 'key',
    locate: () => ({ baseUrl: after.url }),
  })
  const { signal } = new AbortController()
  const outcome = await waitForRequest(client, { requestId: ID, eventCursor: '__supervisor__:1', signal })
  assert.equal(outcome.succeeded, true)
  assert.equal(after.requests.at(-1)?.headers['last-event-id'], '__supervisor__:2')
})

test('a request that nobody knows is an error', async () => {
  await assert.rejects(
    wait((request, response) => {
      if (request.url.startsWith('/v0/requests/'))
        return answerProblem(response, 404, 'request-not-found', 'not_found: no')
      openStream(response)
      response.end()
    }),
    { code: 'request-not-found' },
  )
})
