/**
 * A bridge as a service, where the API asks for a token: it keeps its connection to the chat while the supervisor dies, and
 * what was said meanwhile is there afterwards, once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAdapters } from '../../src/contract/messaging/adapters.ts'
import { listTranscriptEntries, listTranscripts } from '../../src/contract/messaging/transcripts.ts'
import { eventually } from '../support/http.ts'
import { IrcPerson } from '../support/irc-person.ts'
import { IrcServer } from '../support/irc-server.ts'
import { cityIs, run, runAgain } from '../support/running.ts'
import { declaration, newServiceCity, ServiceCity } from '../support/service-city.ts'

const CHANNEL = '#ops'

/** What was said in the channel, as the city has it. */
async function heard({ api, base }: ServiceCity): Promise<readonly string[]> {
  const { items } = await api.ask(listTranscripts, `${base}/transcripts`)
  const entries = await Promise.all(
    items.map(({ transcript_id: id }) => api.ask(listTranscriptEntries, `${base}/transcripts/${id}/entries`)),
  )
  return entries.flatMap((page) => page.items.map(({ text }) => text))
}

test('a bridge that is a service outlives the supervisor with its connection', { timeout: 240_000 }, async () => {
  await using irc = await IrcServer.start({ modern: true, history: 'join' })
  await using first = await run({ args: ['--auth'] })
  const words = [
    'bridge',
    'irc',
    '--server',
    `127.0.0.1:${irc.port}`,
    '--no-tls',
    '--nick',
    'svc',
    '--channel',
    CHANNEL,
  ]
  const bridge = declaration({ name: 'irc', command: ['svcctl', ...words, '--account', 'local'] })
  const { dir } = await newServiceCity(first, 'alpha', bridge)
  const city = new ServiceCity(first.api, 'alpha', dir)
  const { pid } = await city.is('ready', 'irc')
  await eventually('it is in the channel', () => (irc.nicks(CHANNEL).includes('svc') ? true : undefined))
  await eventually('its adapter is online', async () => {
    const { items } = await city.api.ask(listAdapters, `${city.base}/adapters`)
    return items[0]?.status === 'online' ? true : undefined
  })
  using ana = await IrcPerson.join(irc.port, 'ana', CHANNEL)
  ana.say(CHANNEL, 'before')
  await eventually('it is heard', async () => ((await heard(city)).includes('before') ? true : undefined))

  const joins = irc.lines.filter((line) => line.startsWith('JOIN')).length
  await first.server.kill('SIGKILL')
  ana.say(CHANNEL, 'meanwhile')
  await using second = await runAgain(first.server.home, { args: ['--auth'] })
  await cityIs(second.api, 'alpha', 'running')
  const again = new ServiceCity(second.api, 'alpha', dir)
  assert.equal((await again.is('ready', 'irc')).pid, pid)
  ana.say(CHANNEL, 'afterwards')
  await eventually('all of it is heard', async () => ((await heard(again)).length >= 3 ? true : undefined))
  assert.deepEqual(await heard(again), ['before', 'meanwhile', 'afterwards'])
  assert.equal(irc.lines.filter((line) => line.startsWith('JOIN')).length, joins)

  await again.declare()
  await again.none('irc')
  await eventually('it has left the channel', () => (irc.nicks(CHANNEL).includes('svc') ? undefined : true))
})
