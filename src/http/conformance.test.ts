import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeldServer } from '../../test/support/held.ts'
import { family } from '../contract/base/family.ts'
import { listBody } from '../contract/base/paging.ts'
import { component, string } from '../contract/base/schema.ts'
import { WireEvent } from '../contract/events.ts'
import { RawBody, type Reply, StreamBody } from '../kernel/call.ts'
import { problem } from '../kernel/problem.ts'
import { Conformance } from './conformance.ts'
import { toChunk } from './sse.ts'

const things = family({ name: 'Things', about: 'For the tests.' }, '/things', {}, {})
const Thing = component('Thing', { name: string() })
const getThing = things.get('get-thing', '', { summary: 'Get', replies: { 200: Thing } })
const listThings = things.get('list-things', '', { summary: 'List', replies: { 200: listBody('Events', WireEvent) } })
const exportThings = things.get('export-things', '', {
  summary: 'Export',
  replies: { 200: Thing },
  mediaType: 'application/x-ndjson',
})
const followThings = things.get('follow-things', '', {
  summary: 'Follow',
  replies: {},
  frames: [{ event: 'thing', data: Thing, id: 'n', description: 'One.' }],
})
const operations = { getThing, listThings, exportThings, followThings }

const messages: string[] = []
const silent = () => {}
const log = {
  error: (_fields: object, message: string) => messages.push(message),
  warn: silent,
  info: silent,
  debug: silent,
  isLevelEnabled: () => false,
}

/** What the check says of what `make` lets it see. */
function faultsOf(make: (check: Conformance) => void): readonly string[] {
  const held = new HeldServer()
  make(new Conformance(String(Object.values(held.env)[0]), log))
  return held.faults()
}

const asked = (name: keyof typeof operations) => ({ operation: operations[name], method: 'GET', path: '/things' })
const repliesWith = (name: keyof typeof operations, reply: Reply) =>
  faultsOf((check) => void check.reply(asked(name), reply))
const event = { seq: 1, ts: '2026-01-02T03:04:05Z', actor: 'api' }

test('contract check: a reply that its operation declares is no fault', () => {
  assert.deepEqual(repliesWith('getThing', { status: 200, body: { name: 'a', gone: undefined } }), [])
  assert.deepEqual(repliesWith('getThing', { status: 200, body: new RawBody('{"name":"a"}', 'application/json') }), [])
  assert.deepEqual(
    repliesWith('listThings', { status: 200, body: { items: [{ ...event, type: 'a.b', payload: {} }], total: 1 } }),
    [],
  )
})

test('contract check: field, status, header, media type and text that are not declared are faults', () => {
  const faults = (reply: Reply) => repliesWith('getThing', reply).join('\n')
  assert.match(faults({ status: 200, body: { name: 'a', closed_at: 'x' } }), /get-thing GET \/things: .*\(closed_at\)/)
  assert.match(faults({ status: 200, body: {} }), /required property 'name'/)
  assert.match(faults({ status: 201, body: { name: 'a' } }), /201 is not declared/)
  assert.match(faults({ status: 200, body: { name: 'a' }, headers: { ETag: '"1"' } }), /ETag is not declared/)
  assert.match(faults({ status: 200, body: new RawBody('a', 'text/plain') }), /is text\/plain, declared is/)
  assert.match(faults({ status: 200, body: new RawBody('{', 'application/json') }), /is no JSON: \{/)
})

test('contract check: an event of a list is held against the payload of its type', () => {
  const items = [{ ...event, type: 'request.failed', payload: { request_id: 1 } }]
  assert.match(repliesWith('listThings', { status: 200, body: { items, total: 1 } }).join('\n'), /must have required/)
  const unknown = [{ ...event, type: 'a.b', payload: {}, extra: 1 }]
  assert.match(repliesWith('listThings', { status: 200, body: { items: unknown, total: 1 } }).join('\n'), /list-things/)
})

test('contract check: each line of a body that is made while it is sent counts', async () => {
  const held = new HeldServer()
  const check = new Conformance(String(Object.values(held.env)[0]), log)
  async function* pieces() {
    yield '{"name":"a"}\n{"na'
    yield 'me":1}\n'
  }
  const { body } = check.reply(asked('exportThings'), {
    status: 200,
    body: new StreamBody(pieces(), 'application/x-ndjson'),
  })
  assert.ok(body instanceof StreamBody)
  let sent = ''
  for await (const piece of body.pieces) sent += piece
  assert.equal(sent, '{"name":"a"}\n{"name":1}\n')
  assert.throws(() => held.assertNone(), /export-things GET \/things: \/name must be string/)
})

test('contract check: a problem, a frame and an event that are not declared are faults', () => {
  const refused = (check: Conformance) =>
    check.problem(asked('getThing'), problem('service-not-found', 'no such service'))
  assert.match(faultsOf(refused).join('\n'), /the problem service-not-found is not declared/)
  const frames = (text: string) => faultsOf((check) => check.frames(asked('followThings'), toChunk(text))).join('\n')
  assert.equal(frames('id: 1\nevent: thing\ndata: {"name":"a"}\n\n'), '')
  assert.match(frames('event: thing\ndata: {"name":"a"}\n\n'), /has no id/)
  assert.match(frames('id: 1\nevent: thing\ndata: {"name":1}\n\n'), /\/name must be string/)
  assert.match(frames('id: 1\nevent: other\ndata: {}\n\n'), /a frame other is not declared/)
  const stored = (type: string, payload: object) => {
    const envelope = JSON.stringify({ ...event, type, payload })
    return faultsOf((check) =>
      check.events('city', [{ seq: 1, at: 0, type, actor: 'api', subject: undefined, city: undefined, envelope }]),
    ).join('\n')
  }
  assert.equal(stored('deploy.done', {}), '')
  assert.match(stored('supervisor.started', {}), /belongs into the log of the supervisor\n.*must have required/)
  assert.match(stored('bead.imagined', {}), /the type is reserved/)
  assert.ok(messages.length > 0)
})
