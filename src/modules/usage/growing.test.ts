// Turns that grow, are cut, and are reported: what the ledger knows of them at any moment.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { seededRandom } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { Budgets } from './budget.ts'
import { dayOf, Ledger, type Spender, type Turn } from './ledger.ts'
import { GROWING_TURNS, USAGE_SCHEMA } from './schema.ts'

const NOW = Date.UTC(2026, 4, 2, 10)
const OTHERS = `CREATE TABLE sessions (id TEXT PRIMARY KEY, kind TEXT, agent TEXT, template TEXT) STRICT;
  CREATE TABLE beads (session_id TEXT, closed_at INTEGER) STRICT;`

function city(limits: { readonly per_day_usd?: number; readonly per_session_usd?: number } = {}) {
  const directory = temporaryDirectory()
  const { db, log: events } = openStore({
    path: join(directory.path, 'city.db'),
    migrations: [
      ...migrationsOf('store', STORE_SCHEMA),
      ...migrationsOf('others', OTHERS),
      ...migrationsOf('usage', USAGE_SCHEMA, GROWING_TURNS),
    ],
    owner: 'a test',
    clock: new ManualClock(NOW),
  })
  const work: { bead?: string | undefined } = {}
  const ledger = new Ledger({
    db,
    events,
    prices: () => [],
    work: () => (work.bead === undefined ? {} : { bead: work.bead }),
  })
  const held: string[] = []
  const budgets = new Budgets({
    db,
    events,
    ledger,
    settings: () => ({ ...limits, action: 'suspend' }),
    awake: () => ['s-1', 's-2'],
    suspend: (_, id) => held.push(id),
  })
  return {
    ledger,
    held,
    work,
    cost: (id: string) => Number(ledger.totals('session', id)?.cost_usd ?? 0),
    record: (turn: Partial<Turn>, who: Partial<Spender> = {}) =>
      db.write((tx) => {
        const state = ledger.record(tx, { ...WHO, ...who }, { ...TURN, ...turn })
        if (state !== undefined) budgets.spent(tx, who.id ?? WHO.id, NOW, new Set([dayOf(NOW)]))
        return state
      }),
    cutOpen: () => db.write((tx) => ledger.cutOpen(tx, WHO)),
    recorded: () =>
      db
        .all("SELECT envelope FROM events WHERE envelope LIKE '%usage.recorded%' ORDER BY seq")
        .map(({ envelope }): { payload: { key: string; state: string } } => JSON.parse(String(envelope)))
        .map(({ payload }) => `${payload.key} ${payload.state}`),
    [Symbol.dispose]: () => {
      db.close()
      directory[Symbol.dispose]()
    },
  }
}

const WHO: Spender = { id: 's-1', agent: 'a', actor: 'a', logged: true, runs: true, provider: 'p', model: undefined }
const TURN: Turn = { id: 't', input: 0, output: 0, source: 'protocol', at: NOW }

test('a turn counts while it goes on, once, and is told when it ends', async () => {
  using alpha = city({ per_session_usd: 2 })
  for (const cost of ['0.5', '1', '1', '0.7'])
    assert.equal(await alpha.record({ cost_usd: cost, state: 'open' }), 'open')
  assert.deepEqual([alpha.cost('s-1'), alpha.recorded(), alpha.held], [1, [], []])
  await alpha.record({ cost_usd: '2.5', state: 'open' })
  assert.deepEqual(alpha.held, ['s-1'], 'held at its limit, within the turn')
  await alpha.record({ cost_usd: '3', input: 7, model: 'm' })
  const totals = alpha.ledger.totals('city', '')
  assert.deepEqual([totals?.turns, totals?.input, totals?.cost_usd], [1, 7, '3.00'])
  assert.equal(alpha.ledger.totals('model', 'unknown'), undefined)
  assert.equal(alpha.ledger.totals('model', 'm')?.turns, 1)
  assert.equal(await alpha.record({ cost_usd: '9' }), undefined, 'it has ended')
  assert.deepEqual(alpha.recorded(), ['t ended'])
})

test('a turn without an end was cut: it stays as it is known, and is marked', async () => {
  using alpha = city()
  await alpha.record({ id: 'one', cost_usd: '1', state: 'open' })
  await alpha.record({ id: 'two', cost_usd: '2', state: 'open' })
  await alpha.cutOpen()
  assert.deepEqual(alpha.recorded(), ['one cut', 'two cut'])
  assert.deepEqual([alpha.cost('s-1'), alpha.ledger.totals('session', 's-1')?.turns], [3, 2])
})

test('however turns grow and are cut, all totals are the sums of the turns', async () => {
  const random = seededRandom()
  for (let round = 0; round < 20; round++) {
    using alpha = city()
    const most = new Map<string, number>()
    for (let step = 0; step < 30; step++) {
      const id = `t${random.between(0, 4)}`
      const cost = random.between(0, 500)
      alpha.work.bead = random.pick(['b-1', 'b-2'])
      const states = ['open', 'open', 'cut', 'ended'] as const
      const state = await alpha.record({ id, cost_usd: String(cost / 100), state: random.pick(states) })
      if (state !== undefined) most.set(id, Math.max(most.get(id) ?? 0, cost))
      const known = [...most.values()].reduce((sum, one) => sum + one, 0)
      const { items } = alpha.ledger.groups('bead', { range: undefined, keys: undefined, now: NOW }, undefined, 10)
      const beads = items.reduce((sum, { totals }) => sum + Number(totals.cost_usd), 0)
      const where = `SVC_SEED=${random.seed} round ${round}, step ${step}`
      assert.equal(Math.round(alpha.cost('s-1') * 100), known, where)
      assert.equal(Math.round(beads * 100), known, where)
      assert.equal(alpha.ledger.totals('city', '')?.turns, most.size, where)
    }
  }
})

test('a report counts only where nothing else counts, and never in place of a log', async () => {
  using alpha = city()
  const report = { id: 'z', source: 'report', cost_usd: '0' } as const
  assert.equal(await alpha.record(report), undefined)
  assert.equal(await alpha.record({ id: 'm1', source: 'log', input: 1_000_000 }), 'ended')
  assert.equal(alpha.ledger.totals('session', 's-1')?.input, 1_000_000)
  assert.equal(await alpha.record(report, { logged: false }), 'ended')
})

test('one report holds the session that reports, and no other; what is measured holds all', async () => {
  using alpha = city({ per_day_usd: 10 })
  await alpha.record({ id: 'r', source: 'report', cost_usd: '100' }, { id: 's-2', logged: false })
  assert.deepEqual(alpha.held, ['s-2'])
  await alpha.record({ id: 'p', cost_usd: '11' })
  assert.deepEqual([...new Set(alpha.held)].sort(), ['s-1', 's-2'])
})

test('turns that belong to no bead are a row of their own, also within a time', async () => {
  using alpha = city()
  alpha.work.bead = 'b-1'
  await alpha.record({ id: 'one', cost_usd: '1' })
  delete alpha.work.bead
  await alpha.record({ id: 'two', cost_usd: '3' })
  for (const range of [undefined, { from: NOW - 1_000, to: NOW + 1_000 }]) {
    const { items } = alpha.ledger.groups('bead', { range, keys: undefined, now: NOW }, undefined, 10)
    assert.deepEqual(
      items.map(({ key, totals }) => [key, totals.cost_usd]),
      [
        ['', '3.00'],
        ['b-1', '1.00'],
      ],
    )
  }
})
