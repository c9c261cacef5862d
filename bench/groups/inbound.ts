/** How many messages a second come in from chats, each kept, routed and told of before it is answered? */
import { type Bench, compare, type Group, listening, post, supervisorWith } from '../bench.ts'
import { Child } from '../child.ts'
import { median } from '../numbers.ts'
import { lengthOf } from './post.ts'

const CONNECTIONS = 64
/** Each may bring 200 at once, and 50 a second. */
const ACCOUNTS = 400
const BODY = JSON.stringify({
  message: {
    provider_message_id: 'm-{n}',
    conversation: { conversation_id: '#ops', kind: 'room' },
    actor: { id: 'ada', display_name: 'Ada' },
    text: 'The deployment goes on as planned: all checks are green, and nobody has complained.',
  },
})

export const inbound: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'inbound', ['alpha'])
  await using load = new Child('load')
  await using floors = new Child('floors')
  const city = `${supervisor.url}/v0/city/alpha`
  bench.say(`${ACCOUNTS} adapters, each with a conversation that is bound`)
  for (let index = 0; index < ACCOUNTS; index++) {
    const conversation = { provider: 'bench', account_id: `a${index}`, conversation_id: '#ops', kind: 'room' }
    await post(`${city}/adapters`, { provider: 'bench', account_id: `a${index}`, transport: 'stream' })
    await post(`${city}/participants/bindings`, { conversation, mailbox: 'human' })
  }
  const bare = `${await listening(floors, 'http', { bytes: 900 })}/x`
  const health = `${supervisor.url}/health`
  const p99: number[] = []
  const run = (bench: Bench, what: object) => load.ask('run', { connections: CONNECTIONS, ...lengthOf(bench), ...what })
  const ours = async () => {
    const url = `${city}/adapters/bench/a{of}/inbound`
    const numbers = await run(bench, { url, method: 'POST', body: BODY, places: ACCOUNTS })
    if (numbers['bad'] !== 0) throw new Error(`${numbers['bad']} messages were refused`)
    p99.push(numbers['p99'] ?? Number.NaN)
    return numbers['perSecond'] ?? 0
  }
  const rate = (what: object) => async () => (await run(bench, what))['perSecond'] ?? 0
  const found = await compare(bench.quick ? 3 : 5, ours, [
    rate({ url: health, method: 'GET' }),
    rate({ url: bare, method: 'POST', body: BODY.replace('{n}', '1') }),
  ])
  return ['GET of a static route of the same server', 'the same POST to a bare node:http'].map((floor, index) => ({
    name: `message from a chat, ${CONNECTIONS} connections`,
    unit: 'requests/s',
    ours: found.ours,
    p99: median(p99),
    floor,
    floorValue: found.floors[index] ?? 0,
    ratio: found.ratios[index] ?? 0,
    budget: 'reported',
    note: 'each is an entry with its search words, its route and an event, on disk when it is answered',
  }))
}
