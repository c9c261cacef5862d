/** How late is an idle agent told of its mail, and of its chat? Beside a message that somebody says to it, in turn, and a bare write. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareMessages, type City, linesIn, send, start } from '../agents.ts'
import { type Group, supervisorWith, until } from '../bench.ts'
import { machineMicros, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

/** Not told of at once, by anybody: a turn ends after a quarter of a second of quiet. */
const TURN_MS = 600

export const digests: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'digests', ['alpha'])
  const city: City = { bench, pid: supervisor.pid, url: `${supervisor.url}/v0/city/alpha` }
  bench.say('mail → the agent’s stdin')
  const file = join(bench.dir, 'told')
  const [id = ''] = await start(city, 'reader', ['listen', file], { prompt: 'none' })
  const rounds = bench.quick ? 10 : 40
  const late = async (say: (stamp: string) => Promise<unknown>): Promise<number> => {
    const before = linesIn(file).length
    await say(`T${machineMicros()}`)
    await until('the agent has it', async () => (linesIn(file).length > before ? true : undefined))
    await sleep(TURN_MS)
    return (linesIn(file).at(-1) ?? Number.NaN) / 1000
  }
  await send(`${city.url}/adapters`, 'POST', { provider: 'irc', account_id: 'bench', transport: 'pull' })
  const room = { conversation_id: '#bench', kind: 'room' }
  const conversation = { provider: 'irc', account_id: 'bench', ...room }
  await send(`${city.url}/participants/bindings`, 'POST', { conversation, session_id: id })
  const inbound = (text: string) => {
    const message = { provider_message_id: text, conversation: room, actor: { id: 'ada' }, text }
    return send(`${city.url}/adapters/irc/bench/inbound`, 'POST', { message })
  }
  const mails: number[] = []
  const chats: number[] = []
  const messages: number[] = []
  for (let round = 0; round < rounds; round++) {
    mails.push(await late((subject) => send(`${city.url}/mail`, 'POST', { to: id, subject })))
    chats.push(await late(inbound))
    messages.push(await late((message) => send(`${city.url}/sessions/${id}/messages`, 'POST', { message })))
  }
  const bare = percentile(await bareMessages(join(bench.dir, 'bare-told'), rounds), 50)
  const row = (name: string, ours: readonly number[], note: string): Row => ({
    name,
    unit: 'ms',
    ours: percentile(ours, 50),
    p99: percentile(ours, 99),
    floor: 'POST of a message to the same agent, in turn',
    floorValue: percentile(messages, 50),
    ratio: percentile(ours, 50) / percentile(messages, 50),
    budget: 'reported',
    note,
  })
  return [
    row(
      'POST of a mail → in the stdin of an idle agent',
      mails,
      `a write into the same pty takes ${bare.toFixed(2)} ms`,
    ),
    row('message of a chat → in the stdin of an idle agent', chats, 'from the POST of its adapter'),
  ]
}
