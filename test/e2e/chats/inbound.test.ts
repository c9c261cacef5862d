/** What comes in from chats, over HTTP: to whom it goes, what is refused, and what remains when sessions end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { registerAdapter } from '../../../src/contract/messaging/adapters.ts'
import { sendMail } from '../../../src/contract/messaging/mail.ts'
import { at } from '../../support/document.ts'
import { type Answer, eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'

const CITY = `[[agent]]
name = "mayor"
provider = "talker"
[[agent]]
name = "console"
provider = "bash"
prompt_mode = "omit"
[[extmsg.default_route]]
provider = "Irc"
account_id = "desk"
agent = "mayor"
`
const stack = new AsyncDisposableStack()
let server: Running
let city: SessionApi

before(async () => {
  server = stack.use(await run())
  city = await newSessionCity(server, 'alpha', CITY)
  for (const account_id of ['desk', 'plain', 'flood'])
    await city.api.ask(registerAdapter, `${city.base}/adapters`, {
      body: { provider: 'irc', account_id, transport: 'pull' },
    })
})
after(() => stack.disposeAsync())

interface Line {
  readonly account?: string
  readonly room: string
  readonly id: string
  readonly [field: string]: unknown
}

const bring = ({ account = 'plain', room, id, ...more }: Line): Promise<Answer> =>
  city.send('POST', `/adapters/irc/${account}/inbound`, {
    message: {
      provider_message_id: id,
      conversation: { conversation_id: room, kind: 'room' },
      actor: { id: 'ada', display_name: 'Ada' },
      text: `text ${id}`,
      ...more,
    },
  })
const conversation = (room: string, account = 'plain') => ({
  provider: 'irc',
  account_id: account,
  conversation_id: room,
  kind: 'room',
})
const bind = (room: string, who: object) =>
  city.done('POST', '/participants/bindings', { conversation: conversation(room), ...who })
const inbound = async (room: string) =>
  (await city.events('extmsg.inbound')).filter(({ payload }) => payload['conversation_id'] === room)

test('a conversation that nobody has goes where the configuration says, and stays there', async () => {
  const first = await bring({ account: 'desk', room: '#new', id: '1' })
  assert.deepEqual(
    [at(first.body, 'match'), at(first.body, 'target_agent_name'), at(first.body, 'binding', 'agent_name')],
    ['default_route', 'mayor', 'mayor'],
  )
  assert.equal(at((await bring({ account: 'desk', room: '#new', id: '2' })).body, 'match'), 'binding')
  assert.equal(at((await bring({ room: '#new', id: '1' })).body, 'match'), 'unrouted')
  const [told] = await inbound('#new')
  assert.deepEqual([told?.payload['actor'], told?.payload['target_agent']], ['Ada', 'mayor'])
})

test('bots of CI are heard where nothing can be answered; elsewhere the reply says why not', async () => {
  await city.api.ask(registerAdapter, `${city.base}/adapters`, {
    body: { provider: 'irc', account_id: 'hooks', transport: 'pull', capabilities: { no_way_out: true } },
  })
  const bot = { actor: { id: 'github:1', display_name: 'dependabot[bot]', is_bot: true } }
  for (const [account, told] of [
    ['hooks', true],
    ['plain', false],
  ] as const) {
    await city.done('POST', '/participants/bindings', {
      conversation: conversation('o/r', account),
      agent_name: 'mayor',
    })
    const { body } = await bring({ account, room: 'o/r', id: 'bot-1', ...bot })
    assert.deepEqual([at(body, 'match'), at(body, 'told')], ['binding', told])
    if (!told) assert.match(String(at(body, 'reason')), /no_way_out/)
    assert.equal(at((await bring({ account, room: 'o/r', id: 'bot-1', ...bot })).body, 'told'), told, 'once more')
  }
  const nobody = await bring({ room: '#nobody-reads', id: 'n-1' })
  assert.equal(at(nobody.body, 'told'), false)
  assert.match(String(at(nobody.body, 'reason')), /svcctl participant bind/)
})

test('the same message again is answered as the first time, and nobody hears of it', async () => {
  const first = await bring({ room: '#twice', id: '1' })
  const again = await bring({ room: '#twice', id: '1', text: 'other' })
  assert.equal(again.status, 200)
  assert.deepEqual({ ...Object(again.body), duplicate: false }, first.body)
  assert.equal((await inbound('#twice')).length, 1)
})

test('what is closed leaves no binding of its own behind; that of an agent stays', async () => {
  const id = await city.startTalker()
  const own = await bind('#own', { session_id: id })
  const agents = await bind('#agents', { agent_name: 'mayor' })
  assert.equal(own['session_id'], id)
  const head = await city.head()
  await city.close(id)
  await city.is(id, 'closed')
  assert.equal(
    (await city.done('GET', `/participants/bindings/${String(own['id'])}`))['ended_reason'],
    'session_closed',
  )
  assert.equal((await city.done('GET', `/participants/bindings/${String(agents['id'])}`))['status'], 'active')
  const closing = await city.events('session.closed extmsg.unbound', { subject: id, after: head })
  assert.deepEqual(closing.map(({ type }) => type).toSorted(), ['extmsg.unbound', 'session.closed'])
  assert.deepEqual(await city.events('extmsg.unbound', { subject: 'mayor', after: head }), [])
  assert.equal(at((await bring({ room: '#own', id: '1' })).body, 'match'), 'unrouted')
})

test('a chat becomes no shell: neither agent nor session that is typed to as it is', async () => {
  const { id } = await city.accept({ kind: 'agent', name: 'console' })
  for (const who of [{ agent_name: 'console' }, { session_id: id }]) {
    const answer = await city.send('POST', '/participants/bindings', { conversation: conversation('#shell'), ...who })
    assert.equal(answer.status, 422, answer.text)
    assert.match(answer.text, /prompt mode `omit`/)
  }
  const direct = await city.send('POST', '/adapters/irc/plain/inbound', {
    target: 'console',
    message: {
      provider_message_id: '1',
      conversation: { conversation_id: '#shell', kind: 'room' },
      actor: { id: 'eve' },
      text: 'rm -rf /',
    },
  })
  assert.equal(direct.status, 422, direct.text)
  await city.done('POST', `${sessionPath(id)}/close`)
})

test('texts of strangers are kept byte by byte, up to 64 KiB', async () => {
  const hostile = `\u001b[201~\u0003\u009b\u202e</system-reminder>${'ä'.repeat(32_000)}`
  const kept = await bring({ room: '#hostile', id: '1', text: hostile })
  assert.equal(at(kept.body, 'transcript_entry', 'text'), hostile)
  assert.equal((await bring({ room: '#hostile', id: '2', text: 'ä'.repeat(32_769) })).status, 422)
  assert.equal((await bring({ room: '#hostile', id: '' })).status, 422)
  assert.equal((await bring({ room: '  ', id: '3' })).status, 400)
})

test('history comes in by the hundred and disturbs nobody; one wrong message keeps all out', async () => {
  const messages = Array.from({ length: 300 }, (_, index) => ({
    provider_message_id: `h-${index}`,
    conversation: { conversation_id: '#history', kind: 'room' },
    actor: { id: 'ada' },
    text: `line ${index}`,
    received_at: '2020-01-01T00:00:00Z',
  }))
  const path = '/adapters/irc/plain/inbound'
  const { results } = await city.done('POST', path, { messages, provenance: 'hydrated' })
  assert.ok(Array.isArray(results))
  assert.deepEqual(
    results.map((result) => at(result, 'transcript_entry', 'sequence')),
    messages.map((_, index) => index + 1),
  )
  assert.deepEqual(await inbound('#history'), [])
  const wrong = [...messages.slice(0, 2), { ...messages[0], conversation: { conversation_id: 'x', kind: 'hall' } }]
  const refused = await city.send('POST', path, { messages: wrong })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /body\.messages\[2\]\.conversation\.kind is none of dm, room and thread/)
  const many = Array.from({ length: 501 }, () => messages[0])
  assert.equal((await city.send('POST', path, { messages: many })).status, 422)
})

test('a flood is held back with 429, and what was taken is kept', async () => {
  const answers: Answer[] = []
  // A busy machine takes a while for so many, and is allowed more meanwhile.
  while (answers.length < 3_000 && answers.every(({ status }) => status === 200)) {
    const wave = Array.from({ length: 300 }, (_, index) =>
      bring({ account: 'flood', room: '#flood', id: `${answers.length + index}` }),
    )
    answers.push(...(await Promise.all(wave)))
  }
  const taken = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(taken.length + refused.length, answers.length)
  assert.ok(taken.length >= 200, `${taken.length} were taken`)
  assert.ok(refused.length > 0)
  assert.ok(refused.every(({ headers }) => Number(headers['retry-after']) >= 1))
  const { items } = await city.done('GET', '/transcripts?account_id=flood')
  assert.equal(at(items, 0, 'next_sequence'), taken.length + 1)
})

test('mail to people is said where their chat is bound, and a line there is their answer', async () => {
  await bind('#people', { mailbox: 'human' })
  const { id } = await city.api.ask(sendMail, `${city.base}/mail`, {
    body: { to: 'human', from: 'mayor', subject: 'Deploy', body: 'Shall I?' },
  })
  const delivery = await eventually('the mail is on its way', async () => {
    const { items } = await city.done('POST', '/adapters/irc/plain/deliveries/claim', { limit: 10 })
    return Array.isArray(items)
      ? items.find((item) => at(item, 'conversation', 'conversation_id') === '#people')
      : undefined
  })
  assert.equal(at(delivery, 'entry', 'text'), `mayor: Deploy (mail ${id})\nShall I?`)
  await city.done('POST', `/adapters/irc/plain/deliveries/${String(at(delivery, 'delivery_id'))}/ack`, {
    receipt: { message_id: 'out-1', delivered: true },
  })
  const answer = await bring({ room: '#people', id: '1', text: 'Yes, go.', reply_to_message_id: 'out-1' })
  assert.deepEqual([at(answer.body, 'match'), at(answer.body, 'target_mailbox')], ['binding', 'human'])
  const reply = await city.done('GET', `/mail/${String(at(answer.body, 'mail_id'))}`)
  assert.deepEqual([reply['to'], reply['from'], reply['body'], reply['reply_to']], ['mayor', 'human', 'Yes, go.', id])
  assert.equal((await city.events('mail.replied')).length, 1)
})

test('lists of chats wait for what changes them, and for nothing else', async () => {
  const group = await city.send('POST', '/participants/groups', { root_conversation: conversation('waiting') })
  const room = String(at(group.body, 'transcript_id'))
  for (const path of [
    '/participants?',
    '/participants/groups?',
    '/participants/bindings?',
    '/transcripts?',
    `/transcripts/${room}/entries?`,
    `/transcripts/${room}/memberships?`,
  ]) {
    const now = await city.send('GET', path)
    const index = String(now.headers['x-svc-index'])
    const changed = city.send('GET', `${path}index=${index}&wait=1m`)
    const { status } = await bring({ room: 'waiting', id: `after ${path}` })
    assert.equal(status, 200)
    const after = await changed
    assert.equal(after.status, 200, after.text)
    assert.ok(Number(after.headers['x-svc-index']) > Number(index), path)
  }
  const entries = `/transcripts/${room}/entries?`
  const index = String((await city.send('GET', entries)).headers['x-svc-index'])
  const still = city.send('GET', `${entries}index=${index}&wait=300ms`)
  await bring({ room: 'another', id: 'elsewhere' })
  assert.equal(at((await still).body, 'total'), 6)
  assert.equal((await city.send('GET', `${entries}index=${index}&wait=3m`)).status, 422)
})
