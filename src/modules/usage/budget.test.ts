import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import type { BudgetPayload } from '../../contract/sessions/usage.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../kernel/store.ts'
import { Budgets } from './budget.ts'
import { dayOf, Ledger } from './ledger.ts'
import { GROWING_TURNS, USAGE_SCHEMA } from './schema.ts'

const ROOT = mkdtempSync(join(tmpdir(), 'svc-unit-'))
after(() => rmSync(ROOT, { recursive: true }))

const MIDNIGHT = Date.UTC(2026, 4, 2)

/** A city in which a turn costs a dollar, half a minute after midnight. */
async function place(name: string, perDay: number) {
  const clock = new ManualClock(MIDNIGHT + 30_000)
  const sessions =
    'CREATE TABLE sessions (id TEXT PRIMARY KEY, kind TEXT, agent TEXT, template TEXT) STRICT; CREATE TABLE beads (session_id TEXT, closed_at INTEGER) STRICT;'
  const { db, log: events } = openStore({
    path: join(ROOT, `${name}.db`),
    migrations: [
      ...migrationsOf('store', STORE_SCHEMA),
      ...migrationsOf('sessions', sessions),
      ...migrationsOf('usage', USAGE_SCHEMA, GROWING_TURNS),
    ],
    owner: 'a test',
    clock,
  })
  const ledger = new Ledger({ db, events, prices: () => [], work: () => ({}) })
  const held: string[] = []
  const limits = { perDay }
  const budgets = new Budgets({
    db,
    events,
    ledger,
    settings: () => ({ per_day_usd: limits.perDay, action: 'suspend' }),
    awake: () => ['s-1', 's-2'],
    suspend: (_, id) => held.push(id),
  })
  let turns = 0
  const who = { id: 's-1', agent: 'a', actor: 'a', logged: false, runs: true, provider: 'p', model: undefined }
  return {
    held,
    limits,
    /** Turns of one read of a log. */
    record: (...times: readonly number[]) =>
      db.write((tx) => {
        for (const at of times) {
          const turn = { id: `t${++turns}`, input: 1, output: 1, cost_usd: '1', source: 'log' as const, at }
          assert.ok(ledger.record(tx, who, turn))
        }
        budgets.spent(tx, who.id, clock.now(), new Set(times.map(dayOf)))
      }),
    configured: () => db.write((tx) => budgets.configured(tx, clock.now())),
    told: () =>
      db
        .all("SELECT envelope FROM events WHERE envelope LIKE '%budget.crossed%' ORDER BY seq")
        .map(({ envelope }): { type: string; payload: BudgetPayload } => JSON.parse(String(envelope)))
        .flatMap(({ type, payload }) => (type === 'budget.crossed' ? [payload] : []))
        .map(({ day, spent_usd: spent }) => `${day} ${spent}`),
    [Symbol.dispose]: () => db.close(),
  }
}

test('a turn that was recorded after midnight counts for the day on which it was, and holds nobody on the next', async () => {
  using city = await place('midnight', 2)
  await city.record(MIDNIGHT - 20_000)
  assert.deepEqual(city.told(), [])
  await city.record(MIDNIGHT - 10_000)
  assert.deepEqual([city.told(), city.held], [['2026-05-01 2.00'], []])
  await city.record(MIDNIGHT + 10_000)
  assert.deepEqual(city.told(), ['2026-05-01 2.00'])
})

test('turns of both sides of midnight that are read at once are looked at for both days', async () => {
  using city = await place('both', 1)
  await city.record(MIDNIGHT - 10_000, MIDNIGHT + 10_000)
  assert.deepEqual(
    [city.told(), city.held],
    [
      ['2026-05-01 1.00', '2026-05-02 1.00'],
      ['s-1', 's-2'],
    ],
  )
})

test('a limit that was lowered holds at once, and once', async () => {
  using city = await place('lowered', 10)
  await city.record(MIDNIGHT + 1_000, MIDNIGHT + 2_000)
  await city.configured()
  assert.deepEqual(city.held, [])
  city.limits.perDay = 2
  await city.configured()
  await city.configured()
  assert.deepEqual([city.told(), city.held], [['2026-05-02 2.00'], ['s-1', 's-2']])
})
