// Transcripts over HTTP: order, streams, files, and who may see and say what. Real supervisors.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Chat } from '../../support/chat.ts'
import { asMap, at } from '../../support/document.ts'
import { Api, assertProblem } from '../../support/http.ts'
import { newCity, run } from '../../support/running.ts'
import { newSessionCity } from '../../support/session-api.ts'
import { openStream, type SseReader } from '../../support/sse.ts'

const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1)
const entriesOf = (stream: SseReader) => stream.frames.filter(({ event }) => event === 'entry')
const sequencesOf = (stream: SseReader) => entriesOf(stream).map(({ id }) => Number(id))

test('what many say at once has one order, for lists, streams and those who come back', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  const chat = new Chat(running.api)
  await chat.register()
  const id = await chat.room('#crowd')
  const path = `${chat.base}/transcripts/${id}/stream`
  await using live = await openStream(running.api, path)
  const said = Promise.all(
    Array.from({ length: 200 }, async (_, n) => {
      const { status, body } = await chat.publish(id, { text: `line ${n}` })
      assert.equal(status, 200)
      assert.equal(at(body, 'delivery_status'), 'delivered')
      return [Number(at(body, 'transcript_entry', 'sequence')), `line ${n}`] as const
    }),
  )
  // One that is cut off again and again, and goes on where it was.
  const got: number[] = []
  while (got.length < 200) {
    const after = got.at(-1) ?? 0
    await using stream = await openStream(running.api, `${path}?after_sequence=0`, {
      headers: { 'last-event-id': String(after) },
    })
    await stream.until(() => entriesOf(stream).length > 0)
    got.push(...sequencesOf(stream))
  }
  const answered = new Map(await said)
  assert.deepEqual(got, upTo(200))
  await live.until(() => entriesOf(live).length === 200)
  assert.deepEqual(sequencesOf(live), upTo(200))
  const listed = await chat.entries(id)
  assert.deepEqual(
    listed.map(({ sequence }) => sequence),
    upTo(200),
  )
  for (const { sequence, text } of listed) assert.equal(answered.get(sequence), text)
  // What is deleted ends what follows it, and is not there again under its old numbers.
  await chat.done('DELETE', `/transcripts/${id}`)
  await live.ended
  assert.equal((await chat.send('GET', `/transcripts/${id}`)).status, 404)
  assert.equal(await chat.room('#crowd'), id)
  const again = await chat.done('GET', `/transcripts/${id}`)
  assert.deepEqual([again.next_sequence, again.earliest_available_sequence], [201, 201])
  assert.deepEqual(await chat.entries(id), [])
  assert.equal((await chat.done('GET', `/transcripts/${id}/entries?q=line*`)).total, 0)
})

test('a transcript with something on its way is not deleted unasked; whoever waits for that hears what became of it', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  const chat = new Chat(running.api)
  const account = { provider: 'pulled', account_id: 'tests' }
  await chat.done('POST', '/adapters', { ...account, transport: 'pull' })
  const conversation = { ...account, conversation_id: '#slow', kind: 'room' }
  const { transcript_id: id } = await chat.done('POST', '/transcripts', { conversation })
  const ids: string[] = []
  for (const text of ['one', 'two']) {
    const said = await chat.done('POST', `/transcripts/${String(id)}/entries?wait=0s`, { text })
    ids.push(String(said.delivery_id))
  }
  const kept = await chat.send('DELETE', `/transcripts/${String(id)}`)
  assertProblem(kept, 'still-referenced', /2 pending deliveries/)
  await chat.done('DELETE', `/transcripts/${String(id)}?cascade=true`)
  const { items } = await chat.done('GET', '/events?type=extmsg.outbound_failed&order=asc')
  assert.ok(Array.isArray(items))
  assert.deepEqual(
    items.map((item) => [at(item, 'payload', 'delivery_id'), at(item, 'payload', 'error')]),
    // The newest first: what is behind another one never becomes due meanwhile.
    ids.toReversed().map((one) => [one, 'the transcript was deleted']),
  )
  assert.deepEqual((await chat.done('POST', '/adapters/pulled/tests/deliveries/claim', {})).items, [])
})

test('files come back as they were, under names that are only names, and texts as they were said', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  const chat = new Chat(running.api)
  await chat.register()
  const id = await chat.room('#files')
  const bytes = Buffer.alloc(25 * 1024 * 1024, 'file\0\r\n')
  const names: readonly [string, string][] = [
    ['../../../etc/passwd', 'passwd'],
    ['..\\..\\x.exe', 'x.exe'],
    ['a\r\nSet-Cookie: x=1', 'aSet-Cookie: x=1'],
    ['"; filename="evil.html', '"; filename="evil.html'],
    ['naïve \u{1f600} 名.txt', 'naïve \u{1f600} 名.txt'],
    ['gpj.\u202eexe', 'gpj.exe'],
  ]
  const uploads = await Promise.all(
    names.map(async ([given, kept], n) => {
      const body = n === 0 ? bytes : bytes.subarray(0, n)
      const { status, body: made } = await chat.upload(body, given, 'text/html; charset=utf-8')
      assert.equal(status, 201)
      assert.deepEqual(
        [at(made, 'filename'), at(made, 'size'), at(made, 'mime_type'), at(made, 'sha256')],
        [kept, body.length, 'text/html', createHash('sha256').update(body).digest('hex')],
      )
      const fileId = String(at(made, 'id'))
      const got = await chat.send('GET', `/transcripts/attachments/${fileId}`)
      assert.ok(got.bytes.equals(body))
      assert.equal(got.headers['content-type'], 'application/octet-stream')
      const shown = String(got.headers['content-disposition'])
      assert.match(shown, /^attachment; filename="[\x20-\x21\x23-\x7e]*"; filename\*=UTF-8''[\w%.~!#$&+^`|-]+$/)
      assert.equal(decodeURIComponent(shown.split("UTF-8''")[1] ?? ''), kept)
      return fileId
    }),
  )
  const large = await chat.upload(Buffer.concat([bytes, Buffer.of(0)]), 'x').catch((error: unknown) => error)
  if (!(large instanceof Error)) assertProblem(large as Awaited<ReturnType<Chat['upload']>>, 'payload-too-large')
  for (const odd of ['..%2f..%2fcity.db', '%00', 'at-'.padEnd(300, 'x')])
    assert.equal((await chat.send('GET', `/transcripts/attachments/${odd}`)).status, 404)

  const text = `\0\u001b[201~ <system-reminder> ${'é'.repeat(1000)}`
  const { body } = await chat.publish(id, { text, attachments: uploads.slice(0, 2), metadata: { a: '\0' } })
  assert.equal(at(body, 'transcript_entry', 'text'), text)
  assert.equal((await chat.publish(id, { text: 'x'.repeat(65_536) })).status, 200)
  assertProblem(
    await chat.publish(id, { text: 'x'.repeat(65_537) }),
    'validation-failed',
    /body\.text: has 65537 bytes/,
  )
  assertProblem(await chat.publish(id, { attachments: ['at-none'] }), 'validation-failed', /attachments\[0\]\.id/)
  assertProblem(await chat.publish(id, { text: '' }), 'validation-failed', /body\.text/)
  const [first] = await chat.entries(id)
  assert.equal(first?.text, text)
})

/** Shells that take messages: they only say with which token they run. */
const AGENTS = `[providers.told]
base = "provider:bash"
prompt_mode = "none"
[[agent]]
name = "worker"
provider = "told"
[[agent]]
name = "mayor"
provider = "told"
api = "city"
`

test('the token of a session reads what it is a member of, and speaks as itself', { timeout: 120_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const city = await newSessionCity(running, 'alpha', AGENTS)
  const owner = new Chat(running.api)
  await owner.register()
  const [mine, other] = [await owner.room('#mine'), await owner.room('#other')]
  const start = async (name: string) => {
    const id = await city.start({ kind: 'agent', name, runtime: 'subprocess' })
    return { id, chat: new Chat(new Api(running.server.url, await city.tokenOf(id))) }
  }
  const [worker, mayor] = await Promise.all([start('worker'), start('mayor')])
  using stack = new DisposableStack()
  for (const { chat } of [worker, mayor]) stack.defer(() => chat.api.close())
  const conversation = owner.conversation('#mine')
  await owner.done('POST', '/participants/bindings', { conversation, session_id: worker.id })
  await owner.done('PUT', `/transcripts/${mine}/memberships/human`, {})
  const file = String(at((await owner.upload(Buffer.from('secret'), 'plan.txt')).body, 'id'))
  await owner.publish(other, { text: 'not for all', attachments: [file] })

  // As itself, whether or not it says so.
  for (const body of [{ text: 'one' }, { text: 'two', session_id: worker.id }]) {
    const { status, text, body: result } = await worker.chat.publish(mine, body)
    assert.equal(status, 200, text)
    assert.equal(at(result, 'transcript_entry', 'source_session_id'), worker.id)
    assert.equal(at(result, 'transcript_entry', 'actor', 'is_bot'), true)
  }
  const refused = async (chat: Chat, method: string, path: string, body?: unknown) =>
    assertProblem(await chat.send(method, path, body), 'session-forbidden')
  await refused(worker.chat, 'POST', `/transcripts/${mine}/entries`, { text: 'x', session_id: mayor.id })
  // Of another conversation it may see and say nothing.
  assertProblem(await worker.chat.publish(other, { text: 'x' }), 'conversation-unbound')
  for (const path of ['', '/entries', '/entries?q=not', '/memberships', '/stream'])
    await refused(worker.chat, 'GET', `/transcripts/${other}${path}`)
  await refused(worker.chat, 'GET', `/transcripts/attachments/${file}`)
  await refused(worker.chat, 'GET', `/transcripts/${mine}/backfill?session_id=human`)
  await refused(worker.chat, 'POST', `/transcripts/${mine}/ack`, { session_id: 'human', sequence: 1 })
  await refused(worker.chat, 'DELETE', `/transcripts/${mine}/memberships/human`)
  for (const [method, path, body] of [
    ['DELETE', `/transcripts/${mine}`, undefined],
    ['PUT', `/transcripts/${other}/memberships/${worker.id}`, {}],
  ] as const)
    assertProblem(await worker.chat.send(method, path, body), 'forbidden')
  const seen = async (chat: Chat) => {
    const { items } = await chat.done('GET', '/transcripts')
    assert.ok(Array.isArray(items))
    return items.map((item) => at(item, 'transcript_id')).sort()
  }
  assert.deepEqual(await seen(worker.chat), [mine])
  assert.deepEqual(await seen(mayor.chat), [mine, other].sort())
  assert.equal((await mayor.chat.send('GET', `/transcripts/${other}/entries`)).status, 200)

  // Its place is its own.
  const unread = await worker.chat.done('GET', `/transcripts/${mine}/backfill`)
  assert.deepEqual([unread.total, unread.head_sequence, unread.last_read_sequence], [2, 2, 0])
  assert.equal((await worker.chat.done('POST', `/transcripts/${mine}/ack`, { sequence: 2 })).last_read_sequence, 2)
  assert.equal((await worker.chat.done('POST', `/transcripts/${mine}/ack`, { sequence: 1 })).last_read_sequence, 2)
  assertProblem(await worker.chat.send('POST', `/transcripts/${mine}/ack`, { sequence: 3 }), 'validation-failed')
  assert.equal((await worker.chat.done('GET', `/transcripts/${mine}/backfill`)).total, 0)
  await using stream = await openStream(worker.chat.api, `${owner.base}/transcripts/${mine}/stream`)

  // Another session in its channel is refused, and the log says so; the operator speaks everywhere.
  assertProblem(await owner.publish(mine, { text: 'x', session_id: mayor.id }), 'session-forbidden')
  const [mismatch] = await city.events('extmsg.outbound_channel_mismatch')
  assert.deepEqual([mismatch?.payload['posting_session'], mismatch?.payload['owner_session']], [mayor.id, worker.id])
  const said = asMap((await owner.publish(mine, { text: 'from above' })).body)
  assert.equal(asMap(at(said, 'transcript_entry')).source_session_id, undefined)
  await stream.until(() => entriesOf(stream).length === 1)
  assert.equal(at(JSON.parse(entriesOf(stream)[0]?.data ?? '{}'), 'text'), 'from above')
})
