/** The event bus. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { emit } from '../../support/running.ts'
import { openStream } from '../../support/sse.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const BAD_SEQUENCES = ['x', '-1', '01', '1.5', '99999999999999999999', '']
const BAD_COMPOSITES = ['x', '7', 'alpha', 'alpha:', 'alpha:-1', 'alpha:1,', 'alpha:1,alpha:2', ':1', 'a b:1', '']

type Id = 'list-events' | 'stream-events' | 'list-city-events' | 'stream-city-events'

const badCursors = (id: Id, path: string, parameters: readonly string[], bad: readonly string[]): Scenario =>
  scenario(id, 'invalid-cursor', async ({ main }) => {
    for (const parameter of parameters) {
      for (const cursor of bad) {
        const answer = await main.api.get(`${path}?${parameter}=${encodeURIComponent(cursor)}`)
        assertProblem(answer, 'invalid-cursor', /^invalid_cursor: cursor /)
      }
    }
    if (!id.startsWith('stream')) return main.api.get(`${path}?cursor=v1:nonsense`)
    return main.api.get(path, { headers: { 'last-event-id': 'nonsense' } })
  })

/** Waits until retention has taken the oldest events of the forgetful server's city away. */
async function forgotten({ forgetful }: World): Promise<number> {
  return eventually('retention', async () => {
    const { body } = await forgetful.api.get('/v0/city/alpha/status')
    const oldest = Number(at(body, 'events', 'oldest_seq'))
    return oldest > 2 ? oldest : undefined
  })
}

const expired = (id: Id, path: string, query: string): Scenario =>
  scenario(id, 'cursor-expired', async (world) => {
    const oldest = await forgotten(world)
    const answer = await world.forgetful.api.get(`${path}?${query}`)
    const problem = assertProblem(answer, 'cursor-expired', /^cursor_expired: /)
    assert.equal(problem.oldest_seq, oldest)
    assert.ok(Number(problem.head_seq) >= oldest)
    if (query.startsWith('after_cursor')) assert.equal(problem.errors?.[0]?.location, 'cursor.alpha')
    return answer
  })

const opens = (id: Id, path: string): Scenario =>
  scenario(id, 200, async ({ main }) => {
    // An empty resume point is none: the stream starts at the head.
    const stream = await openStream(main.api, path, { headers: { 'last-event-id': '' } })
    await emit(main.api, 'alpha', 'scenario.stream')
    await stream.next(({ envelope }) => envelope.type === 'scenario.stream')
    await stream[Symbol.asyncDispose]()
    const { operation, headers } = stream
    return { operation, status: 200, headers, text: '', bytes: Buffer.of(), body: undefined }
  })

export const eventScenarios: readonly Scenario[] = [
  scenario('list-events', 200, async ({ main }) => {
    const answer = await main.api.get('/v0/events?type=city.created&type=request.*&limit=2&order=asc')
    assert.equal(at(answer.body, 'items', 0, 'type'), 'city.created')
    return answer
  }),
  badCursors('list-events', '/v0/events', ['after_cursor'], BAD_COMPOSITES),
  expired('list-events', '/v0/events', 'after_cursor=__supervisor__:1,alpha:1'),
  opens('stream-events', '/v0/events/stream'),
  badCursors('stream-events', '/v0/events/stream', ['after_cursor'], BAD_COMPOSITES),
  expired('stream-events', '/v0/events/stream', 'after_cursor=__supervisor__:1,alpha:1'),
  scenario('stream-events', 'no-event-providers', async ({ empty }) => {
    const answer = await empty.api.get('/v0/events/stream')
    assertProblem(answer, 'no-event-providers', 'no_providers: no event providers available')
    assert.equal(answer.headers['retry-after'], '1')
    return answer
  }),
  scenario('list-city-events', 200, async ({ main }) => {
    await emit(main.api, 'alpha', 'scenario.list')
    const answer = await main.api.get('/v0/city/alpha/events?type=scenario.list&limit=1')
    assert.equal(at(answer.body, 'items', 0, 'type'), 'scenario.list')
    return answer
  }),
  badCursors('list-city-events', '/v0/city/alpha/events', ['after_seq'], BAD_SEQUENCES),
  expired('list-city-events', '/v0/city/alpha/events', 'after_seq=1'),
  opens('stream-city-events', '/v0/city/alpha/events/stream'),
  badCursors('stream-city-events', '/v0/city/alpha/events/stream', ['after_seq'], BAD_SEQUENCES),
  expired('stream-city-events', '/v0/city/alpha/events/stream', 'after_seq=1'),
  scenario('emit-event', 201, async ({ main }) => {
    const body = {
      type: 'scenario.emit',
      actor: 'ci',
      subject: 'web',
      message: 'done',
      payload: { rev: [1, null, 'x'] },
    }
    const answer = await main.api.post('/v0/city/alpha/events', body)
    const seq = Number(at(answer.body, 'seq'))
    const { body: list } = await main.api.get(`/v0/city/alpha/events?after_seq=${seq - 1}&order=asc&limit=1`)
    const { ts, ...rest } = Object(at(list, 'items', 0))
    assert.deepEqual(rest, { seq, ...body })
    assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 60_000)
    return answer
  }),
  scenario('emit-event', 'validation-failed', async ({ main }) => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ actor: 'ci' }, 'body.type'],
      [{ type: 'a.b' }, 'body.actor'],
      [{ type: '', actor: 'ci' }, 'body.type'],
      [{ type: 'A.b', actor: 'ci' }, 'body.type'],
      [{ type: 'a..b', actor: 'ci' }, 'body.type'],
      [{ type: 'a'.repeat(129), actor: 'ci' }, 'body.type'],
      [{ type: 'a.b', actor: '' }, 'body.actor'],
      [{ type: 'a.b', actor: 'ci', seq: 1 }, 'body.seq'],
      [{ type: 'a.b', actor: 'ci', ts: '2026-01-01T00:00:00Z' }, 'body.ts'],
      [{ type: 'a.b', actor: 'ci', payload: [] }, 'body.payload'],
      [{ type: 'a.b', actor: 'ci', payload: null }, 'body.payload'],
      [[], 'body'],
      ['text', 'body'],
      [null, 'body'],
    ]
    for (const [body, location] of wrong) {
      const { errors } = assertProblem(await main.api.post('/v0/city/alpha/events', body), 'validation-failed')
      assert.ok(
        errors?.some((error) => error.location === location),
        `${JSON.stringify(body)}: ${JSON.stringify(errors)}`,
      )
    }
    for (const type of [
      'city.created',
      'request.result.city.create',
      'request.failed',
      'supervisor.started',
      'bead.x',
      'session',
    ]) {
      const answer = await main.api.post('/v0/city/alpha/events', { type, actor: 'ci' })
      assertProblem(answer, 'validation-failed', 'validation_failed: body.type: event type is reserved')
    }
    return main.api.post('/v0/city/alpha/events', { type: 'mail.sent', actor: 'ci' })
  }),
  scenario('emit-event', 'payload-too-large', async ({ main }) => {
    const payload = { text: 'x'.repeat(256 * 1024) }
    const answer = await main.api.post('/v0/city/alpha/events', { type: 'scenario.big', actor: 'ci', payload })
    assertProblem(answer, 'payload-too-large', 'too_large: an event takes at most 262144 bytes')
    return answer
  }),
  inFlight('emit-event', async ({ main }, key) =>
    Promise.all(
      Array.from({ length: 20 }, () =>
        main.api.post(
          '/v0/city/alpha/events',
          { type: 'scenario.key', actor: 'ci' },
          { headers: { 'idempotency-key': key } },
        ),
      ),
    ),
  ),
  mismatch('emit-event', ({ main }, key, second) =>
    main.api.post(
      '/v0/city/alpha/events',
      { type: second ? 'scenario.other' : 'scenario.key', actor: 'ci' },
      { headers: { 'idempotency-key': key } },
    ),
  ),
]
