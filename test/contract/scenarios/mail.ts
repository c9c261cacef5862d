/** Mail: each success and each refusal of its own. What mail does is in test/e2e/mail. */
import assert from 'node:assert/strict'
import type { ProblemCode } from '../../../src/contract/base/problems.ts'
import { sendMail } from '../../../src/contract/messaging/mail.ts'
import { at } from '../../support/document.ts'
import type { Answer } from '../../support/http.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { ambiguousName, closedName } from './namesakes.ts'
import { type Scenario, scenariosOn, type World } from './scenario.ts'

const CITY = '/v0/city/alpha'
const BASE = `${CITY}/mail`
const LETTER = { to: 'human', subject: 'Hello' }
const BAD_CURSOR = 'cursor=nonsense'

const on = scenariosOn((world) => world)

const call = ({ main }: World, method: string, path: string, body?: unknown, headers = {}): Promise<Answer> =>
  main.api.call(method, `${BASE}${path}`, body === undefined ? { headers } : { headers, body })

const sent = ({ main }: World, more = {}) => main.api.ask(sendMail, BASE, { body: { ...LETTER, ...more } })

const missing = (operation: Scenario['operation'], method: string, tail: string): Scenario =>
  on(operation, 'mail-not-found', (world) => call(world, method, `/ml-none${tail}`))

/** A move of a message that is there, and one that is not. */
const moves = (operation: Scenario['operation'], tail: string): readonly Scenario[] => [
  on(operation, 200, async (world) => call(world, 'POST', `/${(await sent(world)).id}${tail}`)),
  missing(operation, 'POST', tail),
]

const archived = (operation: Scenario['operation'], tail: string): Scenario =>
  on(operation, 'conflict-wrong-state', async (world) => {
    const { id } = await sent(world)
    await call(world, 'POST', `/${id}/archive`)
    return call(world, 'POST', `/${id}${tail}`)
  })

/** What refuses a recipient in `to` or `cc`. */
const recipients = (
  operation: Scenario['operation'],
  send: (world: World, name: string) => Promise<Answer>,
): readonly Scenario[] => [
  on(operation, 'recipient-not-found', (world) => send(world, 'nobody at all')),
  on(operation, 'ambiguous-recipient', async (world) => send(world, await ambiguousName(world))),
  on(operation, 'recipient-closed', async (world) => send(world, await closedName(world))),
]

const keyed = (
  operation: Scenario['operation'],
  send: (world: World, subject: string, headers: Readonly<Record<string, string>>) => Promise<Answer>,
): readonly Scenario[] => [
  inFlight(operation, (world, key) =>
    Promise.all(Array.from({ length: 8 }, () => send(world, key, { 'idempotency-key': key }))),
  ),
  mismatch(operation, (world, key, second) => send(world, second ? 'other' : key, { 'idempotency-key': key })),
]

const badCursor: ProblemCode = 'invalid-cursor'
let answered: Promise<string> | undefined

export const mailScenarios: readonly Scenario[] = [
  on('list-mail', 200, async (world) => {
    const subject = world.unique('subject')
    const { id } = await sent(world, { subject })
    const answer = await call(world, 'GET', `?q=${subject}&agent=human`)
    assert.equal(at(answer.body, 'items', '0', 'id'), id)
    assert.equal(at(answer.body, 'total'), 1)
    return answer
  }),
  on('list-mail', badCursor, (world) => call(world, 'GET', `?${BAD_CURSOR}`)),
  on('list-mail', 'rig-not-found', (world) => call(world, 'GET', '?rig=none')),

  on('send-mail', 201, (world) => call(world, 'POST', '', { ...LETTER, cc: ['human'], priority: 3, notify: false })),
  on('send-mail', 'mail-not-found', (world) => call(world, 'POST', '', { ...LETTER, thread_id: 'thread-none' })),
  ...recipients('send-mail', (world, name) => call(world, 'POST', '', { ...LETTER, cc: [name] })),
  ...keyed('send-mail', (world, subject, headers) => call(world, 'POST', '', { ...LETTER, subject }, headers)),

  on('count-mail', 200, (world) => call(world, 'GET', '/count?agent=human')),
  on('count-mail', 'rig-not-found', (world) => call(world, 'GET', '/count?rig=none')),
  on('check-mail', 200, async (world) => {
    const { id } = await sent(world, { priority: 9 })
    const answer = await call(world, 'GET', '/check?agent=human')
    assert.ok(answer.text.includes(id))
    return answer
  }),

  on('broadcast-mail', 201, (world) => call(world, 'POST', '/broadcast', { to: ['human'], subject: 'All' })),
  on('broadcast-mail', 'no-recipients', ({ forgetful }) =>
    forgetful.api.post(`${BASE}/broadcast`, { subject: 'Is anybody there' }),
  ),
  ...recipients('broadcast-mail', (world, name) => call(world, 'POST', '/broadcast', { to: [name], subject: 'All' })),
  ...keyed('broadcast-mail', (world, subject, headers) =>
    call(world, 'POST', '/broadcast', { to: ['human'], subject }, headers),
  ),

  on('archive-mails', 200, async (world) => {
    const { id } = await sent(world)
    const answer = await call(world, 'POST', '/archive', { ids: [id, 'ml-none', id] })
    const results = at(answer.body, 'results')
    assert.ok(Array.isArray(results))
    assert.deepEqual(
      results.map((result) => at(result, 'status')),
      ['archived', 'not_found', 'unchanged'],
    )
    return answer
  }),

  on('get-mail-thread', 200, async (world) => {
    const { id, thread_id } = await sent(world)
    await call(world, 'POST', `/${id}/reply`)
    const answer = await call(world, 'GET', `/threads/${id}`)
    assert.equal(at(answer.body, 'total'), 2)
    assert.deepEqual((await call(world, 'GET', `/threads/${thread_id}`)).body, answer.body)
    return answer
  }),
  on('get-mail-thread', 'mail-not-found', (world) => call(world, 'GET', '/threads/thread-none')),
  on('get-mail-thread', badCursor, async (world) =>
    call(world, 'GET', `/threads/${(await sent(world)).id}?${BAD_CURSOR}`),
  ),

  on('get-mail', 200, async (world) => call(world, 'GET', `/${(await sent(world)).id}`)),
  missing('get-mail', 'GET', ''),
  on('delete-mail', 200, async (world) => {
    const { id } = await sent(world)
    await call(world, 'DELETE', `/${id}`)
    return call(world, 'DELETE', `/${id}`)
  }),
  missing('delete-mail', 'DELETE', ''),
  ...moves('read-mail', '/read'),
  archived('read-mail', '/read'),
  ...moves('mark-mail-unread', '/mark-unread'),
  archived('mark-mail-unread', '/mark-unread'),
  on('mark-mail-unread', 200, async (world) => {
    const { id } = await sent(world)
    await call(world, 'POST', `/${id}/read`)
    return call(world, 'POST', `/${id}/mark-unread`)
  }),
  ...moves('archive-mail', '/archive'),
  ...moves('unarchive-mail', '/unarchive'),
  on('unarchive-mail', 200, async (world) => {
    const { id } = await sent(world)
    await call(world, 'POST', `/${id}/archive`)
    return call(world, 'POST', `/${id}/unarchive`)
  }),

  on('reply-mail', 201, async (world) => call(world, 'POST', `/${(await sent(world)).id}/reply`, { body: 'Well' })),
  missing('reply-mail', 'POST', '/reply'),
  on('reply-mail', 'conflict-wrong-state', async (world) =>
    call(world, 'POST', `/${(await sent(world, { from: 'the weather' })).id}/reply`),
  ),
  ...recipients('reply-mail', async (world, name) =>
    call(world, 'POST', `/${(await sent(world)).id}/reply`, { cc: [name] }),
  ),
  ...keyed('reply-mail', async (world, subject, headers) => {
    answered ??= sent(world).then(({ id }) => id)
    return call(world, 'POST', `/${await answered}/reply`, { subject }, headers)
  }),
]
