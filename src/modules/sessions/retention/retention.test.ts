// What goes after its time, with a clock that tests move: real files, a real store.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { type Run, runsToRemove } from './runs.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

const run = (session: string, generation: number, bytes: number, at: number, live = false): Run => ({
  session,
  generation,
  bytes,
  at,
  live,
  directory: '',
})
const idsOf = (runs: readonly Run[]) => runs.map(({ session, generation }) => `${session}/${generation}`)

test('the oldest runs go first, for their age and while there is too much, and a live one never', () => {
  const runs = [
    run('a', 1, 10, 5),
    run('a', 2, 10, 30, true),
    run('b', 1, 10, 20),
    run('b', 2, 10, 10),
    run('c', 1, 10, 1, true),
  ]
  assert.deepEqual(idsOf(runsToRemove(runs, { olderThan: 11, bytes: undefined })), ['a/1', 'b/2'])
  assert.deepEqual(idsOf(runsToRemove(runs, { olderThan: undefined, bytes: 40 })), ['a/1'])
  assert.deepEqual(idsOf(runsToRemove(runs, { olderThan: undefined, bytes: 0 })), ['a/1', 'b/2', 'b/1'])
  assert.deepEqual(idsOf(runsToRemove(runs, { olderThan: undefined, bytes: undefined })), [])
})

/** So much time passes, as a supervisor that looks now and then sees it; its own sweeps do not come. */
function pass(city: SessionCity, clock: ManualClock, ms: number): void {
  for (let left = ms; left > 0; left -= 12 * HOUR) {
    clock.step(Math.min(left, 12 * HOUR))
    city.store.log.agesCount()
  }
}

/** The output of a run that ended at that time. */
function leaveRun(city: SessionCity, id: string, generation: number, at: number, bytes = 100): string {
  const directory = join(city.sessions.directory(id), String(generation))
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'out.000000000000000.log'), Buffer.alloc(bytes))
  for (const path of [join(directory, 'out.000000000000000.log'), directory]) utimesSync(path, at / 1000, at / 1000)
  return directory
}

async function asleep(city: SessionCity): Promise<string> {
  return city.store.db.write((tx) => {
    const draft = { kind: 'provider', template: 'bash', origin: 'manual', cause: 'explicit', state: 'asleep' } as const
    return city.sessions.insert(tx, draft, 'api').id
  })
}

const NOTHING = { runs: 0, run_bytes: 0, closed_sessions: 0, delivery_texts: 0, text_bytes: 0 }

test('runs, closed sessions and texts go when their time has come, and a second sweep finds nothing', async () => {
  const clock = new ManualClock()
  await using city = await new SessionCity({ clock }).start()
  const [open, closed] = [await asleep(city), await asleep(city)]
  const { store, sessions } = city
  await store.db.write((tx) => {
    sessions.store.change(tx, open, { generation: 2 }, { actor: 'test' })
    const message = { source: 'message', intent: 'default', text: 'a secret plan', ttlMs: DAY, wakes: false } as const
    const typed = sessions.deliveries.add(tx, sessions.store.need(tx, open), message, 'api')
    sessions.deliveries.end(tx, typed.id, { state: 'delivered', endOffset: 5 }, 'test')
    sessions.deliveries.add(tx, sessions.store.need(tx, open), { ...message, text: 'waits', ttlMs: 90 * DAY }, 'api')
    sessions.close(tx, closed, 'api', 'requested')
  })
  const [old, young] = [leaveRun(city, open, 1, clock.now()), leaveRun(city, open, 2, clock.now() + 6 * DAY)]
  assert.deepEqual(await sessions.retention.sweep(), NOTHING)

  pass(city, clock, 2 * DAY)
  assert.deepEqual(await sessions.retention.sweep(), {
    runs: 0,
    run_bytes: 0,
    closed_sessions: 0,
    delivery_texts: 1,
    text_bytes: 'a secret plan'.length,
  })
  const [waits, typed] = sessions.deliveries.page(open, undefined, undefined, 10)
  assert.deepEqual([typed?.state, typed?.text, typed?.text_removed], ['delivered', '', true])
  assert.deepEqual([waits?.state, waits?.text, waits?.text_removed], ['queued', 'waits', undefined])

  pass(city, clock, 6 * DAY)
  const swept = await sessions.retention.sweep()
  assert.equal(swept.runs, 1)
  assert.ok(swept.run_bytes >= 100)
  assert.deepEqual([existsSync(old), existsSync(young)], [false, true])
  assert.equal(sessions.retention.kept?.runs, 1)

  pass(city, clock, 23 * DAY)
  assert.equal((await sessions.retention.sweep()).closed_sessions, 1)
  assert.equal(sessions.store.byId(closed), undefined)
  assert.ok(sessions.store.byId(open))
  assert.deepEqual(await sessions.retention.sweep(), NOTHING)
})

test('a clock that jumps forward takes nothing away for its age, and too much on the disk still goes', async () => {
  const clock = new ManualClock()
  const settings = { retention: { runs_bytes: 250_000 } }
  await using city = await new SessionCity({ clock, config: settings }).start()
  const id = await asleep(city)
  await city.store.db.write((tx) => city.sessions.store.change(tx, id, { generation: 3 }, { actor: 'test' }))
  const first = leaveRun(city, id, 1, clock.now() - 1_000, 100_000)
  const second = leaveRun(city, id, 2, clock.now(), 100_000)
  city.store.log.agesCount()
  clock.step(400 * DAY)
  assert.deepEqual(await city.sessions.retention.sweep(), NOTHING)
  assert.ok(existsSync(first) && existsSync(second))
  const third = leaveRun(city, id, 3, clock.now(), 100_000)
  assert.equal((await city.sessions.retention.sweep()).runs, 1)
  assert.deepEqual([existsSync(first), existsSync(second), existsSync(third)], [false, true, true])
})

test('the output of a process that runs is not touched, however large', async () => {
  await using city = await new SessionCity({ config: { retention: { runs_bytes: 1 } } }).start()
  const { id } = await city.create()
  const { generation } = await city.is(id, 'active')
  const old = leaveRun(city, id, 0, Date.now() - DAY)
  assert.equal((await city.sessions.retention.sweep()).runs, 1)
  assert.ok(!existsSync(old))
  assert.ok(existsSync(join(city.sessions.directory(id), String(generation))))
  assert.deepEqual(await city.sessions.retention.sweep(), NOTHING)
})

test('texts of a session are bounded by their bytes: ended ones give way, and what waits is refused with its reason', async () => {
  await using city = await new SessionCity().start()
  const id = await asleep(city)
  const { store, sessions } = city
  const message = {
    source: 'message',
    intent: 'default',
    text: 'x'.repeat(1024 * 1024),
    ttlMs: DAY,
    wakes: false,
  } as const
  const add = () => store.db.write((tx) => sessions.deliveries.add(tx, sessions.store.need(tx, id), message, 'api'))
  const [first] = [await add()]
  await store.db.write((tx) => sessions.deliveries.end(tx, first.id, { state: 'delivered' }, 'test'))
  for (let n = 0; n < 64; n++) await add()
  assert.equal(sessions.deliveries.text(first.id), '')
  await assert.rejects(add(), { code: 'queue-full', message: /67108864 bytes/ })
})
