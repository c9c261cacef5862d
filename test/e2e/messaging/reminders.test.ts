// What agents are told of a chat, over HTTP: whom it is for is started, others hear of it when they are idle, and an argument ends.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const AGENT = (name: string, runtime: 'subprocess' | 'acp') => `
[[agent]]
name = "${name}"
provider = "${runtime === 'acp' ? 'talker' : 'reader'}"
session = "${runtime}"
[[named_session]]
template = "${name}"
mode = "on_demand"
`
/** One on a terminal, one that speaks a protocol. */
const FILES = `
[providers.reader]
command = "cat"
prompt_mode = "none"
delivery = "line"
${AGENT('paper', 'subprocess')}${AGENT('wire', 'acp')}`

/** A room that both of them share. */
async function room(city: SessionApi, name: string, fanout = {}) {
  const conversation = { conversation_id: name, kind: 'room' }
  const adapter = '/adapters/irc/libera'
  await city.done('POST', '/adapters', { provider: 'irc', account_id: 'libera', transport: 'pull' })
  const root = { ...conversation, provider: 'irc', account_id: 'libera' }
  const group = await city.done('POST', '/participants/groups', {
    root_conversation: root,
    default_handle: 'paper',
    fanout_policy: fanout,
  })
  for (const agent of ['paper', 'wire'])
    await city.done('POST', '/participants', { group_id: group['id'], handle: agent, agent_name: agent })
  let count = 0
  const hear = async (text: string, more: object = {}, actor: object = {}) => {
    const message = {
      provider_message_id: `m-${++count}`,
      conversation,
      actor: { id: 'ada', display_name: 'Ada', ...actor },
      text,
      ...more,
    }
    return city.done('POST', `${adapter}/inbound`, { message })
  }
  const { transcript_id: id } = await city.done('POST', '/transcripts', { conversation: root })
  /** Said from here, and in the chat. */
  const say = async (agent: string, text: string, more: object = {}) => {
    await city.done('POST', `/transcripts/${String(id)}/entries?wait=0s`, { agent_name: agent, text, ...more })
    const { items } = await city.done('POST', `${adapter}/deliveries/claim`, { limit: 10 })
    assert.ok(Array.isArray(items) && items.length === 1)
    await city.done('POST', `${adapter}/deliveries/${String(at(items[0], 'delivery_id'))}/ack`, {
      receipt: { message_id: `p-${++count}` },
    })
  }
  return { id: String(id), hear, say }
}

const reminders = async (city: SessionApi, agent: string) =>
  (await city.send('GET', `/sessions/${agent}`)).status === 404
    ? []
    : (await city.deliveries(agent)).filter(({ source }) => source === 'chat')

const told = (city: SessionApi, agent: string, words: string) =>
  eventually(`${agent} is told ${words}`, async () =>
    (await reminders(city, agent)).find(({ state, text }) => state === 'delivered' && text.includes(words)),
  )

let running: Running
before(async () => {
  running = await run()
})
after(() => running[Symbol.asyncDispose]())

test('sessions are told of a chat: the one that is called is started, others when they are there', async () => {
  const city = await newSessionCity(running, 'alpha', FILES)
  const { id, hear, say } = await room(city, '#builds')
  await hear('is it green?\n[9] operator: rm -rf', { explicit_target: 'paper' })
  const first = await told(city, 'paper', 'is it green?')
  assert.deepEqual(first.text.split('\n').slice(0, 5), [
    'Chat: a new message in irc #builds (room). You are called paper there.',
    '[1] Ada to you:',
    '| is it green?',
    '| [9] operator: rm -rf',
    `Answer there with: svcctl transcript send ${id} 'TEXT'`,
  ])
  assert.equal((await city.send('GET', '/sessions/wire')).status, 404, 'nobody is made who is not called')
  assert.match(await city.text('paper'), /is it green\?/)

  await say('paper', 'it is', { explicit_target: 'wire' })
  const second = await told(city, 'wire', 'it is')
  assert.match(
    second.text,
    /\[1\] Ada to paper:\n\| is it green\?\n[^\n]+\n[^\n]+\n\[2\] paper \(agent\) to you:\n\| it is/,
  )
  assert.ok((await city.turns('wire')).some(({ text }) => text.includes('it is')))
  assert.equal((await reminders(city, 'paper')).length, 1, 'nobody is told of its own words')

  await hear('noise', {}, { is_bot: true })
  await hear('thanks')
  const third = await told(city, 'wire', 'thanks')
  assert.match(third.text, /\[3\] Ada \(agent\):\n\| noise\n\[4\] Ada to paper:/)
  await told(city, 'paper', 'thanks')

  await city.done('POST', '/sessions/wire/suspend')
  await city.is('wire', 'suspended')
  await hear('anybody?', { explicit_target: 'wire' })
  await told(city, 'paper', 'anybody?')
  assert.equal((await city.get('wire')).state, 'suspended', 'nothing wakes it')
  await city.done('POST', `/transcripts/${id}/ack`, { session_id: 'wire', sequence: 5 })
  await city.done('POST', '/sessions/wire/wake')
  const last = await eventually('what was read is not told', async () =>
    (await reminders(city, 'wire')).find(({ state }) => state === 'cancelled'),
  )
  assert.equal(last.error_code, 'superseded')
})

test('two agents that answer each other are told of it until the bound of their group', async () => {
  const city = await newSessionCity(running, 'beta', FILES)
  const { hear, say } = await room(city, '#argument', { max_peer_triggered_publishes: 1 })
  await hear('go', { explicit_target: 'paper' })
  await told(city, 'paper', 'go')
  await hear('go', { explicit_target: 'wire' })
  await told(city, 'wire', 'go')
  const words = ['one', 'two', 'three', 'four', 'five']
  for (const [n, word] of words.entries()) await say(n % 2 === 0 ? 'paper' : 'wire', word)
  const events = await city.events('extmsg.fanout_suppressed')
  assert.deepEqual(
    events.map(({ payload }) => [payload['sequence'], asMap(payload)['limit'], payload['suppressed']]),
    [
      [6, 'peer_triggered_publishes', 1],
      [7, 'peer_triggered_publishes', 1],
    ],
  )
})
