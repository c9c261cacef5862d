// The loop of one session over a runtime without processes, whose every answer is decided here.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { ManualClock, settled } from '../../../../test/support/manual-clock.ts'
import { SEED, seededRandom } from '../../../../test/support/random.ts'
import { SCRIPTED, type ScriptedProcess, ScriptedRuntime } from '../../../../test/support/scripted-runtime.ts'
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

/** Works on each message until it is told to stop, or that it is done. */
function working(process: ScriptedProcess) {
  const heard: string[] = []
  const interrupts: string[] = []
  process.deliver = ({ text }) => {
    heard.push(text)
    process.become('in-turn')
    return Promise.resolve({ state: 'delivered' })
  }
  process.interrupt = () => {
    interrupts.push(heard.at(-1) ?? '')
    process.become('idle')
    return Promise.resolve(true)
  }
  return { heard, interrupts }
}

test('interrupt_now ends the turn that runs, once, and goes before what waits', async () => {
  const runtime = new ScriptedRuntime()
  let seen = { heard: [] as string[], interrupts: [] as string[] }
  runtime.made = (process) => {
    seen = working(process)
  }
  await using city = await new SessionCity({ ...provider, runtimes: [runtime] }).start()
  const { id } = await city.create(draft)
  await city.is(id, 'active')
  const first = await city.say(id, 'FIRST')
  await city.delivered(id, first.id)
  await city.say(id, 'SECOND')
  await city.store.db.write((tx) => {
    const add = (text: string, intent: 'interrupt_now' | 'default') => {
      const message = { source: 'submit', intent, text, ttlMs: 60_000 } as const
      return city.sessions.deliveries.add(tx, city.sessions.store.need(tx, id), message, 'api')
    }
    add('THIRD', 'default')
    add('URGENT', 'interrupt_now')
    return add('URGENT TOO', 'interrupt_now')
  })
  await eventually('the urgent one is heard', () => (seen.heard.includes('URGENT') ? true : undefined))
  for (const text of ['URGENT', 'URGENT TOO', 'SECOND', 'THIRD']) {
    await eventually(`${text} is worked on`, () => (seen.heard.at(-1) === text ? true : undefined))
    assert.deepEqual(seen.interrupts, ['FIRST'], 'no other turn is interrupted')
    runtime.last.become('idle')
  }
})

test('stop says what was seen: a turn that ended, one that goes on, a program that quit', async () => {
  const runtime = new ScriptedRuntime()
  const config = { session: { provider: 'acp', interrupt_timeout: '1s' } } as const
  await using city = await new SessionCity({ ...provider, config, runtimes: [runtime] }).start()
  const { id } = await city.create(draft)
  await city.is(id, 'active')
  const stop = () => city.sessions.actor(id)?.interrupt(AbortSignal.timeout(20_000))
  assert.equal(await stop(), 'idle')
  runtime.last.become('in-turn')
  runtime.last.interrupt = () => Promise.resolve(true)
  assert.equal(await stop(), 'deaf')
  runtime.last.interrupt = () => Promise.resolve(false)
  assert.equal(await stop(), 'unsupported')
  runtime.last.interrupt = () => {
    runtime.last.become('idle')
    return Promise.resolve(true)
  }
  assert.equal(await stop(), 'over')
  runtime.last.become('in-turn')
  runtime.last.interrupt = () => {
    runtime.last.exit(0)
    return Promise.resolve(true)
  }
  assert.equal(await stop(), 'gone')
})

test('what was on its way to a process that was killed, and not written, goes to the next one', async () => {
  const runtime = new ScriptedRuntime()
  const known = { urgent: 'no', uncertain: 'unknown' } as const
  for (const [text, answer] of Object.entries(known)) {
    runtime.made = (process) => {
      if (runtime.processes.length % 2 === 0) return
      process.deliver = () => new Promise(() => {})
      process.delivered = () => Promise.resolve(answer)
    }
    runtime.processes.length = 0
    await using city = await new SessionCity({ ...provider, runtimes: [runtime] }).start()
    const { id } = await city.create(draft)
    await city.is(id, 'active')
    const said = await city.say(id, text)
    await eventually('it is on its way', () => (city.delivery(id, said.id).state === 'delivering' ? true : undefined))
    await city.sessions.kill(id)
    await city.when(id, 'it is back', ({ state, generation }) => state === 'active' && generation === 2)
    if (answer === 'unknown') await city.delivered(id, said.id, 'failed')
    else await city.delivered(id, said.id)
    assert.deepEqual(runtime.last.heard, answer === 'no' ? [text] : [])
  }
})

test('a session that is to restart leaves what waits to the next process', async () => {
  const runtime = new ScriptedRuntime()
  const heard: (readonly [number, string])[] = []
  runtime.made = (process) => {
    const nth = runtime.processes.length
    process.deliver = ({ text }) => {
      heard.push([nth, text])
      process.become('in-turn')
      return Promise.resolve({ state: 'delivered' })
    }
  }
  await using city = await new SessionCity({ ...provider, runtimes: [runtime] }).start()
  const { id } = await city.create(draft)
  await city.is(id, 'active')
  const first = await city.say(id, 'FIRST')
  await city.delivered(id, first.id)
  const fields = { drain_reason: 'restart-requested' }
  await city.store.db.write((tx) =>
    city.sessions.store.move(tx, id, 'drain', {
      actor: 'api',
      reason: 'restart-requested',
      deadlineMs: 60_000,
      fields,
    }),
  )
  const second = await city.say(id, 'SECOND')
  runtime.last.become('idle')
  await city.delivered(id, second.id)
  assert.deepEqual(heard, [
    [1, 'FIRST'],
    [2, 'SECOND'],
  ])
})

test('a message that never gets its Enter fails after ten tries, and the next one is typed', async () => {
  const runtime = new ScriptedRuntime()
  const tries = new Map<string, number>()
  runtime.made = (process) => {
    process.deliver = ({ text }) => {
      tries.set(text, (tries.get(text) ?? 0) + 1)
      const code = (tries.get(text) ?? 0) % 2 === 0 ? ('moved' as const) : ('unseen' as const)
      const failed = { state: 'failed', code, message: 'not now' } as const
      return Promise.resolve(text === '!ls' ? failed : { state: 'delivered' })
    }
  }
  const clock = new ManualClock()
  const city = new SessionCity({ ...provider, runtimes: [runtime], clock })
  try {
    await city.start()
    const { id } = await city.create(draft)
    await settled()
    const stuck = await city.say(id, '!ls')
    const next = await city.say(id, 'second')
    for (let second = 0; second < 120; second++) await clock.advance(1_000)
    assert.equal(tries.get('!ls'), 10)
    assert.equal(city.delivery(id, stuck.id).state, 'failed')
    assert.match(city.delivery(id, stuck.id).error_code ?? '', /moved|unseen/)
    assert.equal(city.delivery(id, next.id).state, 'delivered')
  } finally {
    await city.release()
    removeTree(city.path)
  }
})

test('a clock that is set, or a machine that slept, kills no agent at work', async () => {
  for (const jump of [3_600_000, -3_600_000, 90_000_000, -90_000_000]) {
    const runtime = new ScriptedRuntime()
    const clock = new ManualClock()
    const config = { session: { provider: 'acp', progress_stall_timeout: '10m' } } as const
    const city = new SessionCity({ ...provider, config, runtimes: [runtime], clock })
    try {
      await city.start()
      const { id } = await city.create(draft)
      await eventually('it runs', () => (city.record(id).state === 'active' ? true : undefined))
      runtime.last.become('in-turn')
      await clock.advance(60_000)
      clock.step(jump)
      await city.say(id, 'are you there?')
      for (let minute = 0; minute < 9; minute++) await clock.advance(60_000)
      assert.equal(city.record(id).generation, 1, `it works on after a jump of ${jump} ms`)
      await eventually('it is given up when it was silent for its time', async () => {
        await clock.advance(60_000)
        return city.record(id).generation === 2 ? true : undefined
      })
    } finally {
      await city.release()
      removeTree(city.path)
    }
  }
})

const HOUR_MS = 3_600_000
const LASTS_MS = 120_000
/** States that end at a time. */
const DEADLINES = [
  { state: 'draining', process: 1, field: 'deadline' },
  { state: 'quarantined', process: 0, field: 'quarantined_until' },
] as const

test('a clock that jumps makes no state and no message of a session last longer, or end before its time', async () => {
  for (const jump of [HOUR_MS, -HOUR_MS, 25 * HOUR_MS, -25 * HOUR_MS])
    for (const { state, process, field } of DEADLINES) {
      const runtime = new ScriptedRuntime()
      const clock = new ManualClock()
      const city = new SessionCity({ ...provider, runtimes: [runtime], clock })
      try {
        await city.start()
        const { id } = await city.create(draft)
        await eventually('it runs', () => (city.record(id).state === 'active' ? true : undefined))
        runtime.last.become('in-turn')
        const said = await city.say(id, 'wait')
        await city.store.db.write((tx) => {
          const sql = `UPDATE sessions SET state = ?, process = ?, drain_reason = 'requested', state_since = ?, ${field} = ? WHERE id = ?`
          tx.run(sql, state, process, clock.now(), clock.now() + LASTS_MS, id)
          tx.run(
            'UPDATE session_deliveries SET wakes = 0, expires_at = ? WHERE id = ?',
            clock.now() + LASTS_MS,
            said.id,
          )
        })
        await city.store.db.write((tx) => {
          city.sessions.store.change(tx, id, { title: 'looked at' }, { actor: 'api' })
        })
        clock.step(jump)
        const what = `${state}, a jump of ${jump / HOUR_MS} h`
        for (let passed = 0; passed < LASTS_MS - 20_000; passed += 10_000) {
          city.sessions.actor(id)?.poke()
          await clock.advance(10_000)
          assert.equal(city.record(id).state, state, `${what}: not before its time`)
          assert.equal(city.delivery(id, said.id).state, 'queued', `${what}: it still waits`)
        }
        for (let passed = 0; passed < 60_000; passed += 10_000) await clock.advance(10_000)
        await eventually(`${what}: it is left at its time`, async () => {
          await clock.advance(1_000)
          const isLeft = city.record(id).state !== state
          return isLeft && city.delivery(id, said.id).state === 'expired' ? true : undefined
        })
      } finally {
        await city.release()
        removeTree(city.path)
      }
    }
})

test('effects that fail or do nothing never hold the process, from any situation', { timeout: 120_000 }, async () => {
  const random = seededRandom()
  for (let round = 0; round < 25; round++) {
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
