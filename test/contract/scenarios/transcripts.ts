/** Transcripts: each success and each refusal of its own. What they do is in test/e2e/messaging. */
import assert from 'node:assert/strict'
import { createSession } from '../../../src/contract/sessions/sessions.ts'
import { at } from '../../support/document.ts'
import type { Answer, CallOptions } from '../../support/http.ts'
import { succeeds } from '../../support/running.ts'
import { openStream } from '../../support/sse.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { ambiguousName } from './namesakes.ts'
import { type Scenario, scenario, scenariosOn, type World } from './scenario.ts'

const BASE = '/v0/city/alpha/transcripts'
const GONE = `/cv-${'0'.repeat(32)}`

const on = scenariosOn((world) => world)

const send = ({ main }: World, method: string, path: string, body?: unknown, rest: CallOptions = {}): Promise<Answer> =>
  main.api.call(method, `${BASE}${path}`, body === undefined ? rest : { ...rest, body })

const refOf = (conversation: string, provider = 'streamed') => ({
  provider,
  account_id: 'scenarios',
  conversation_id: conversation,
  kind: 'room',
})

/** A transcript of its own; the adapter of `streamed` takes what is said there at once. */
async function room(world: World, provider?: string): Promise<string> {
  const { api } = world.main
  const adapter = { provider: 'streamed', account_id: 'scenarios', transport: 'stream' }
  const registered = await api.call('POST', '/v0/city/alpha/adapters', { body: adapter })
  assert.ok(registered.status < 300, registered.text)
  const { body } = await send(world, 'POST', '', { conversation: refOf(world.unique('#room'), provider) })
  return `/${String(at(body, 'transcript_id'))}`
}

async function said(world: World, many = 1): Promise<string> {
  const path = await room(world)
  for (let n = 0; n < many; n++) {
    const { status, text } = await send(world, 'POST', `${path}/entries`, { text: `line ${n}` })
    assert.equal(status, 200, text)
  }
  return path
}

/** The mailbox of people reads it. */
async function joined(world: World): Promise<string> {
  const path = await said(world, 2)
  await send(world, 'PUT', `${path}/memberships/human`, {})
  return path
}

const upload = ({ main }: World, text: string, headers: Record<string, string> = {}): Promise<Answer> =>
  main.api.call('POST', `${BASE}/attachments?filename=notes.txt`, {
    bytes: text,
    headers: { 'content-type': 'text/plain', ...headers },
  })

const noPage = (world: World, path: string) => send(world, 'GET', `${path}?cursor=nonsense`)

const missing: readonly [Scenario['operation'], string, string, unknown?][] = [
  ['get-transcript', 'GET', ''],
  ['delete-transcript', 'DELETE', ''],
  ['list-transcript-entries', 'GET', '/entries'],
  ['publish-transcript-entry', 'POST', '/entries', { text: 'x' }],
  ['stream-transcript', 'GET', '/stream'],
  ['ack-transcript', 'POST', '/ack', { session_id: 'human', sequence: 0 }],
  ['get-transcript-backfill', 'GET', '/backfill?session_id=human'],
  ['list-transcript-memberships', 'GET', '/memberships'],
  ['put-transcript-membership', 'PUT', '/memberships/human', {}],
  ['delete-transcript-membership', 'DELETE', '/memberships/human'],
]

/** A session that nothing is bound to. */
async function session(world: World, provider = 'shell'): Promise<string> {
  const { api } = world.main
  const body = { kind: 'provider', name: provider, alias: world.unique('speaker') } as const
  const accepted = await api.ask(createSession, '/v0/city/alpha/sessions', { body })
  await succeeds(api, accepted)
  return accepted.session_id
}

/** Operations that name somebody, by a word that means nobody, or several. */
const naming = (answer: Scenario['answer'], wordOf: (world: World) => Promise<string>): readonly Scenario[] => {
  const asking = (
    operation: Scenario['operation'],
    ask: (world: World, path: string, word: string) => Promise<Answer>,
  ) => on(operation, answer, async (world) => ask(world, await room(world), await wordOf(world)))
  return [
    asking('ack-transcript', (world, path, session_id) =>
      send(world, 'POST', `${path}/ack`, { session_id, sequence: 0 }),
    ),
    asking('get-transcript-backfill', (world, path, word) => send(world, 'GET', `${path}/backfill?session_id=${word}`)),
    asking('put-transcript-membership', (world, path, word) => send(world, 'PUT', `${path}/memberships/${word}`, {})),
    asking('delete-transcript-membership', (world, path, word) => send(world, 'DELETE', `${path}/memberships/${word}`)),
  ]
}

export const transcriptScenarios: readonly Scenario[] = [
  on('list-transcripts', 200, async (world) => {
    await said(world)
    return send(world, 'GET', '?provider=Streamed&limit=1')
  }),
  on('list-transcripts', 'invalid-cursor', (world) => noPage(world, '')),
  on('ensure-transcript', 201, (world) => send(world, 'POST', '', { conversation: refOf(world.unique('#new')) })),
  on('ensure-transcript', 200, async (world) => {
    const conversation = refOf(world.unique('#old'))
    const first = await send(world, 'POST', '', { conversation })
    const again = await send(world, 'POST', '', { conversation: { ...conversation, kind: ' ROOM ' } })
    assert.deepEqual(again.body, first.body)
    return again
  }),
  on('ensure-transcript', 'invalid-conversation', (world) =>
    send(world, 'POST', '', { conversation: { ...refOf('#x'), kind: 'channel' } }),
  ),
  mismatch('ensure-transcript', (world, key, second) =>
    send(world, 'POST', '', { conversation: refOf(`#${key}${second}`) }, { headers: { 'idempotency-key': key } }),
  ),
  inFlight('ensure-transcript', (world, key) => {
    const body = { conversation: refOf(`#${key}`) }
    return Promise.all(
      Array.from({ length: 8 }, () => send(world, 'POST', '', body, { headers: { 'idempotency-key': key } })),
    )
  }),

  on('get-transcript', 200, async (world) => send(world, 'GET', await said(world))),
  on('delete-transcript', 200, async (world) => {
    const path = await said(world, 3)
    const gone = await send(world, 'DELETE', path)
    assert.equal(at(gone.body, 'entries'), 3)
    assert.equal((await send(world, 'GET', path)).status, 404)
    return gone
  }),
  on('delete-transcript', 'still-referenced', async (world) => {
    const path = await room(world)
    const { body } = await send(world, 'GET', path)
    const group = { root_conversation: at(body, 'conversation') }
    const { status, text } = await world.main.api.call('POST', '/v0/city/alpha/participants/groups', { body: group })
    assert.equal(status, 201, text)
    const kept = await send(world, 'DELETE', path)
    assert.equal((await send(world, 'DELETE', `${path}?cascade=true`)).status, 200)
    return kept
  }),

  on('list-transcript-entries', 200, async (world) =>
    send(world, 'GET', `${await said(world, 3)}/entries?q=line&limit=2`),
  ),
  on('list-transcript-entries', 'invalid-cursor', async (world) => noPage(world, `${await said(world)}/entries`)),

  on('publish-transcript-entry', 200, async (world) =>
    send(world, 'POST', `${await room(world)}/entries`, { text: 'hello' }),
  ),
  on('publish-transcript-entry', 'no-adapter', async (world) =>
    send(world, 'POST', `${await room(world, 'carried-by-nobody')}/entries`, { text: 'hello' }),
  ),
  on('publish-transcript-entry', 'session-not-found', async (world) =>
    send(world, 'POST', `${await room(world)}/entries`, { text: 'hello', session_id: 'nobody-of-this-name' }),
  ),
  on('publish-transcript-entry', 'conversation-unbound', async (world) =>
    send(world, 'POST', `${await room(world)}/entries`, { text: 'hello', session_id: await session(world) }),
  ),
  on('publish-transcript-entry', 'ambiguous-recipient', async (world) =>
    send(world, 'POST', `${await room(world)}/entries`, { text: 'hello', session_id: await ambiguousName(world) }),
  ),
  mismatch('publish-transcript-entry', async (world, key, second) => {
    const { body } = await send(world, 'POST', '', { conversation: refOf(`#${key}`) })
    await room(world)
    const path = `/${String(at(body, 'transcript_id'))}/entries`
    return send(world, 'POST', path, { text: `hello ${second}` }, { headers: { 'idempotency-key': key } })
  }),
  inFlight('publish-transcript-entry', async (world, key) => {
    const path = await room(world)
    return Promise.all(
      Array.from({ length: 8 }, () =>
        send(world, 'POST', `${path}/entries`, { text: 'once' }, { headers: { 'idempotency-key': key } }),
      ),
    )
  }),

  scenario('stream-transcript', 200, async (world) => {
    const path = await said(world, 2)
    const stream = await openStream(world.main.api, `${BASE}${path}/stream?after_sequence=1`)
    await stream.until(() => stream.frames.some(({ event, id }) => event === 'entry' && id === '2'))
    await stream[Symbol.asyncDispose]()
    const { operation, headers } = stream
    return { operation, status: 200, headers, text: '', bytes: Buffer.of(), body: undefined }
  }),
  on('stream-transcript', 'invalid-cursor', async (world) =>
    send(world, 'GET', `${await room(world)}/stream?after_sequence=first`),
  ),
  on('stream-transcript', 'cursor-expired', async (world) => {
    const path = await said(world, 3)
    const { body } = await send(world, 'GET', path)
    await send(world, 'DELETE', path)
    await send(world, 'POST', '', { conversation: at(body, 'conversation') })
    return send(world, 'GET', `${path}/stream?after_sequence=1`)
  }),

  on('upload-transcript-attachment', 201, (world) => upload(world, 'hello')),
  mismatch('upload-transcript-attachment', (world, key, second) =>
    upload(world, second ? 'other' : 'same', { 'idempotency-key': key }),
  ),
  inFlight('upload-transcript-attachment', (world, key) =>
    Promise.all(Array.from({ length: 12 }, () => upload(world, 'the same', { 'idempotency-key': key }))),
  ),
  on('get-transcript-attachment', 200, async (world) => {
    const uploaded = await upload(world, 'hello')
    const got = await send(world, 'GET', `/attachments/${String(at(uploaded.body, 'id'))}`)
    assert.equal(got.text, 'hello')
    assert.match(String(got.headers['content-disposition']), /^attachment; /)
    return got
  }),
  on('get-transcript-attachment', 'attachment-not-found', (world) => send(world, 'GET', '/attachments/at-none')),

  on('ack-transcript', 200, async (world) =>
    send(world, 'POST', `${await joined(world)}/ack`, { session_id: 'human', sequence: 2 }),
  ),
  on('ack-transcript', 'membership-not-found', async (world) =>
    send(world, 'POST', `${await said(world)}/ack`, { session_id: 'human', sequence: 1 }),
  ),
  on('get-transcript-backfill', 200, async (world) =>
    send(world, 'GET', `${await joined(world)}/backfill?session_id=human&limit=1`),
  ),
  on('get-transcript-backfill', 'membership-not-found', async (world) =>
    send(world, 'GET', `${await said(world)}/backfill?session_id=human`),
  ),
  on('list-transcript-memberships', 200, async (world) => send(world, 'GET', `${await joined(world)}/memberships`)),
  on('put-transcript-membership', 200, async (world) =>
    send(world, 'PUT', `${await said(world)}/memberships/human`, { backfill_policy: 'since_join' }),
  ),
  on('put-transcript-membership', 'precondition-failed', async (world) => {
    const path = `${await said(world)}/memberships/human`
    const etag = String((await send(world, 'PUT', path, { metadata: { team: 'a' } })).headers['etag'])
    const change = (team: string) => send(world, 'PUT', path, { metadata: { team } }, { headers: { 'if-match': etag } })
    assert.equal((await change('b')).status, 200)
    return change('c')
  }),
  on('delete-transcript-membership', 200, async (world) =>
    send(world, 'DELETE', `${await joined(world)}/memberships/human`),
  ),
  on('delete-transcript-membership', 'conflict-wrong-state', async (world) => {
    const path = await room(world)
    const { body } = await send(world, 'GET', path)
    const provider = { name: world.unique('told'), base: 'builtin:shell', prompt_mode: 'none' }
    const made = await world.main.api.call('POST', '/v0/city/alpha/providers', { body: provider })
    assert.equal(made.status, 201, made.text)
    const session_id = await session(world, provider.name)
    const binding = { conversation: at(body, 'conversation'), session_id }
    const bound = await world.main.api.call('POST', '/v0/city/alpha/participants/bindings', { body: binding })
    assert.equal(bound.status, 201, bound.text)
    return send(world, 'DELETE', `${path}/memberships/${session_id}`)
  }),
  on('delete-transcript-membership', 'membership-not-found', async (world) =>
    send(world, 'DELETE', `${await said(world)}/memberships/human`),
  ),

  ...missing.map(([operation, method, path, body]) =>
    on(operation, 'transcript-not-found', (world) => send(world, method, `${GONE}${path}`, body)),
  ),
  ...naming('recipient-not-found', async () => 'nobody-of-this-name'),
  ...naming('ambiguous-recipient', ambiguousName),
]
