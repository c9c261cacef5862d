/** The record of a turn with its totals, and the append of the same event alone, into one city's store. */
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Tx } from '../../src/kernel/database.ts'
import { openStore } from '../../src/kernel/store.ts'
import { Ledger } from '../../src/modules/usage/ledger.ts'
import { CITY_SCHEMA } from '../../src/supervisor/families.ts'
import { number, type Options, serveCommands, text } from '../child.ts'

const AGENTS = 10
const SESSIONS = 100
const PRICE = { model: '*', input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
const TOKENS = { input: 10, output: 40, cache_read: 1_000, cache_write: 5 }

let count = 0
const nextTurn = () => {
  const n = count++
  return { id: `s-${n % SESSIONS}`, agent: `a-${n % AGENTS}`, state: 'ended', key: `turn-${n}` }
}

async function measured(options: Options, name: string) {
  const store = openStore({
    path: join(text(options, 'dir'), `${name}.db`),
    migrations: CITY_SCHEMA,
    owner: 'the benchmark',
    clock: systemClock,
  })
  const ledger = new Ledger({
    db: store.db,
    events: store.log,
    prices: () => [PRICE],
    work: () => ({ bead: 'b-1', convoy: 'c-1' }),
  })
  const record = (tx: Tx) => {
    const { id, agent, key } = nextTurn()
    const who = { id, agent, actor: 'a', logged: true, runs: true, provider: 'p', model: 'm' }
    ledger.record(tx, who, { ...TOKENS, id: key, source: 'log', at: systemClock.now() })
  }
  const append = (tx: Tx) => {
    const { id, agent, key } = nextTurn()
    const known = { source: 'log', state: 'ended' } as const
    const payload = { session_id: id, agent, provider: 'p', model: 'm', ...TOKENS, ...known, key }
    store.log.append(tx, { type: 'usage.recorded', actor: agent, subject: id, payload })
  }
  const each = name === 'record' ? record : append
  const started = performance.now()
  const until = started + number(options, 'ms')
  let done = 0
  const writer = async () => {
    while (performance.now() < until) {
      await store.db.write(each)
      done++
    }
  }
  await Promise.all(Array.from({ length: number(options, 'writers') }, writer))
  const seconds = (performance.now() - started) / 1_000
  store.db.close()
  return { perSecond: done / seconds }
}

serveCommands({
  record: (options) => measured(options, 'record'),
  append: (options) => measured(options, 'append'),
})
