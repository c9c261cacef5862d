/** What a bridge asks of a supervisor that is really there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Adapter } from '../../src/bridges/library/adapter.ts'
import { Client } from '../../src/client/client.ts'
import { testWorld } from '../support/bridge-life.ts'
import { listAll } from '../support/crash-client.ts'
import { run } from '../support/running.ts'
import { newSessionCity } from '../support/session-api.ts'

const AGENT = `
[providers.reader]
command = "cat"
prompt_mode = "none"
delivery = "line"
[[agent]]
name = "mayor"
provider = "reader"
`

test('a word before a colon calls who is called so in the group; any other is a word', async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha', AGENT)
  const { clock, random, newKey } = testWorld()
  const client = new Client({ baseUrl: running.server.url, clock, random, newKey })
  const names = { city: 'alpha', provider: 'irc', account: 'test' }
  const adapter = new Adapter({
    client,
    ...names,
    name: 'a chat',
    secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  })
  const { signal } = new AbortController()
  await adapter.register(signal)
  const place = (id: string) => ({ provider: 'irc', account_id: 'test', conversation_id: id, kind: 'room' }) as const
  const group = await city.done('POST', '/participants/groups', {
    root_conversation: place('#shared'),
    default_handle: 'boss',
  })
  await city.done('POST', '/participants', { group_id: group['id'], handle: 'Boss', agent_name: 'mayor' })
  let count = 0
  const say = async (channel: string, called: string | undefined) => {
    count += 1
    const message = {
      provider_message_id: `m-${count}`,
      conversation: place(channel),
      actor: { id: 'nick:ana', display_name: 'ana', is_bot: false },
      text: `${called ?? ''}: x`,
      received_at: '2026-01-01T00:00:00.000Z',
    }
    await adapter.post(called === undefined ? message : { ...message, explicit_target: called }, signal)
  }
  await say('#shared', 'boss')
  await say('#shared', 'note')
  await say('#alone', 'note')
  const targets = async (channel: string) => {
    const query = `provider=irc&conversation_id=${encodeURIComponent(channel)}`
    const [transcript] = await listAll(running.server.url, `/v0/city/alpha/transcripts?${query}`)
    const path = `/v0/city/alpha/transcripts/${String(transcript?.['transcript_id'])}/entries`
    return (await listAll(running.server.url, path)).map((entry) => entry['explicit_target'])
  }
  assert.deepEqual(await targets('#shared'), ['boss', undefined])
  assert.deepEqual(await targets('#alone'), ['note'], 'without a group it says what it says')
})
