// What a step reads of a long queue decides as the whole queue would.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEED, seededRandom } from '../../../../test/support/random.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { type Action, nextAction, type Situation } from '../actor/reconcile.ts'
import { agePolicyOf } from '../record/policy.ts'
import type { SessionRecord } from '../record/record.ts'

const SHORT = 5
const LONG = 150
const HOUR_MS = 3_600_000
const PAUSE = { desired: 'running', retry_at: Date.now() + 29_000 } as const

const idsOf = (action: Action): readonly string[] => {
  if ('deliveries' in action) return action.deliveries.map(({ id }) => id)
  return 'delivery' in action ? [action.delivery.id] : []
}

test('a step over a long queue reads a few messages and decides as if it had read them all', async () => {
  const random = seededRandom()
  await using city = new SessionCity()
  const { deliveries, store, policy } = city.sessions
  const now = Date.now()
  for (let round = 0; round < 12; round++) {
    const { id } = await city.create({ state: 'asleep' })
    const length = round % 4 === 0 ? SHORT : LONG
    const open = random.chance(0.7)
    const wakes = random.chance(0.5)
    const dueAt = random.pick([now + HOUR_MS, now - HOUR_MS, now + 1_000]) ?? now
    await city.store.db.write((tx) => {
      store.change(tx, id, PAUSE, { actor: 'api' })
      for (let nth = 0; nth < length; nth++) {
        const intent = random.pick(['default', 'follow_up', 'interrupt_now'] as const) ?? 'default'
        const more = { wakes: wakes && random.chance(0.02), eager: random.chance(0.1) }
        const draft = { source: 'submit', intent, text: 'x', ttlMs: 24 * HOUR_MS, ...more } as const
        const added = deliveries.add(tx, store.need(tx, id), draft, 'api')
        tx.run(
          'UPDATE session_deliveries SET request_open = ?, created_at = ?, expires_at = ? WHERE id = ?',
          open && random.chance(0.3) ? 1 : 0,
          now - random.between(0, 2 * HOUR_MS) * (round % 2),
          random.chance(0.05) ? dueAt + random.between(0, 1_000) : now + 24 * HOUR_MS,
          added.id,
        )
      }
    })
    const record = city.record(id)
    const all = deliveries.waiting(id)
    const front = deliveries.front(record)
    assert.ok(front.length <= Math.max(SHORT, 82), `${front.length} of ${all.length} are read`)
    assert.equal(deliveries.head(id)?.id, all[0]?.id)
    for (const activity of ['idle', 'in-turn'] as const)
      for (const state of ['active', 'asleep', 'draining', 'start-pending'] as const) {
        const session: SessionRecord = { ...record, state, process: state === 'active' || state === 'draining' }
        const situation: Situation = {
          session,
          process: session.process ? 'alive' : 'none',
          activity,
          quietSince: now,
          busySince: activity === 'idle' ? undefined : now - 60_000,
          pending: random.chance(0.2),
          attended: false,
          assigned: false,
          queue: all,
          personTypingSince: random.chance(0.2) ? now - HOUR_MS : undefined,
          lineLeftAt: undefined,
          saidAt: undefined,
          interruptedAt: undefined,
          want: { run: 'as-desired' },
          drift: 'none',
          blocked: undefined,
          policy,
          age: agePolicyOf(city.config, undefined, session),
          now,
        }
        const [whole, part] = [nextAction(situation), nextAction({ ...situation, queue: front })]
        const what = `seed ${SEED}, round ${round}, ${state}, ${activity}`
        const strip = ({ deliveries: _, ...action }: Action & { readonly deliveries?: unknown }) => action
        assert.deepEqual(strip(part), strip(whole), what)
        const ids = new Set(idsOf(whole))
        assert.equal(idsOf(part).length > 0, ids.size > 0, what)
        assert.ok(
          idsOf(part).every((one) => ids.has(one)),
          what,
        )
      }
  }
})
