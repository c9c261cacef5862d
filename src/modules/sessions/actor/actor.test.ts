// The loop of one session over a runtime without processes, whose every answer is decided here.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { ManualClock, settled } from '../../../../test/support/manual-clock.ts'
import { SEED, seededRandom } from '../../../../test/support/random.ts'
import { SCRIPTED, ScriptedRuntime } from '../../../../test/support/scripted-runtime.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { removeTree } from '../../../../test/support/temporary.ts'
import type { SessionRecord } from '../record/record.ts'

const provider = { providers: { fake: SCRIPTED } }
const draft = { template: 'fake', runtime: 'acp' } as const

test('a kill whose write fails keeps no dead process alive: it is tried again, and the session is back', async () => {
  const runtime = new ScriptedRuntime()
  await using city = await new SessionCity({ ...provider, runtimes: [runtime] }).start()
  const { id } = await city.create(draft)
  await city.is(id, 'active')
  const { db } = city.store
  const write = db.write.bind(db)
  let full = true
  db.write = (change) => (full ? Promise.reject(new Error('database or disk is full')) : write(change))
  assert.equal(await city.sessions.kill(id), false, 'the caller hears that it did not work')
  assert.equal(city.sessions.live(id)?.liveness, 'dead', 'nothing is shown as alive')
  full = false
  const back = await city.when(id, 'it is back', ({ state, generation }) => state === 'active' && generation === 2)
  assert.equal(back.process, true)
  const said = await city.say(id, 'hello')
  await city.delivered(id, said.id)
  assert.deepEqual(runtime.last.heard, ['hello'])
})

test('effects that fail or do nothing never hold the process, from any situation', { timeout: 120_000 }, async () => {
  const random = seededRandom()
  for (let round = 0; round < 60; round++) {
    const clock = new ManualClock()
    const runtime = new ScriptedRuntime()
    const city = new SessionCity({ ...provider, runtimes: [runtime], clock })
    runtime.made = (process) => {
      if (random.chance(0.4)) process.activity = 'in-turn'
      if (random.chance(0.3)) process.pending = { requestId: 'q', kind: 'question', options: [], metadata: {} }
      if (random.chance(0.5)) process.interrupt = () => Promise.resolve(random.chance(0.5))
      if (random.chance(0.5)) process.stop = () => Promise.reject(new Error('it does not end'))
      if (random.chance(0.7)) {
        const code = random.pick(['held', 'moved', 'interrupted', 'closed', 'unseen'] as const) ?? 'held'
        process.deliver = () => Promise.resolve({ state: 'failed', code, message: 'not now' })
      }
    }
    await city.start()
    const { id } = await city.create(draft)
    const { db } = city.store
    const write = db.write.bind(db)
    let steps = 0
    let most = 0
    const byId = city.sessions.store.byId.bind(city.sessions.store)
    city.sessions.store.byId = (asked) => {
      steps++
      assert.ok(steps < 10_000, `the loop goes on without a pause, seed ${SEED}, round ${round}`)
      return byId(asked)
    }
    const failing = random.next()
    await clock.advance(100)
    for (const intent of ['default', 'interrupt_now', 'follow_up'] as const)
      if (random.chance(0.6)) await city.say(id, intent, { intent })
    if (random.chance(0.5)) await put(city, id, random)
    db.write = (change) => (random.chance(failing) ? Promise.reject(new Error('disk full')) : write(change))
    if (random.chance(0.3)) void city.sessions.kill(id)
    if (random.chance(0.3)) runtime.processes.at(-1)?.exit(1)
    for (let turn = 0; turn < 30; turn++) {
      steps = 0
      city.sessions.actor(id)?.poke()
      await settled()
      most = Math.max(most, steps)
      await clock.advance(random.between(0, 1_000))
    }
    // Its clock stands still: an orderly end would wait for it.
    await city.release()
    removeTree(city.path)
    assert.ok(most < 1_000, `at most some looks between two pauses, not ${most}: seed ${SEED}, round ${round}`)
  }
})

type Random = ReturnType<typeof seededRandom>

/** A situation that nobody brought about in order: what a crash, a bug or a full disk may leave behind. */
async function put(city: SessionCity, id: string, random: Random): Promise<void> {
  const states: readonly SessionRecord['state'][] = [
    'start-pending',
    'creating',
    'active',
    'asleep',
    'draining',
    'quarantined',
  ]
  const desires: readonly SessionRecord['desired'][] = ['running', 'asleep', 'suspended']
  const state = random.pick(states) ?? 'active'
  const desired = random.pick(desires) ?? 'running'
  await city.store.db.write((tx) => {
    tx.run(
      'UPDATE sessions SET state = ?, desired = ?, process = ? WHERE id = ?',
      state,
      desired,
      random.between(0, 1),
      id,
    )
  })
  await eventually('it is written', () => (city.record(id).state === state ? true : undefined))
}
