/** What the next run of the supervisor makes of the commands that it finds. Its deaths are test/crash/execs.test.ts. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openExecCity } from '../../../test/support/exec-city.ts'
import { eventually } from '../../../test/support/http.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { systemClock } from '../../kernel/clock.ts'
import { variableOf } from '../../runtimes/process/process-tree.ts'

const isAlive = (pid: string): boolean => variableOf(Number(pid), 'SVC_EXEC_ID') !== undefined
const WAITS = 'echo $$ >> pids; echo before; while [ ! -e go ]; do sleep 0.05; done; echo after; exit 7'
const DAY_MS = 86_400_000

test('commands run on while no supervisor is there, and are adopted', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const ids: string[] = []
  for (let n = 0; n < 20; n++) ids.push(await first.begin(WAITS))
  await eventually('16 run', () => (first.file('pids').split('\n').length === 17 ? true : undefined))
  await first.leave()
  assert.deepEqual(first.ends, [])

  await using second = await openExecCity(directory.path)
  await second.execs.recover()
  assert.deepEqual(second.execs.counts, { running: 16, queued: 4 })
  writeFileSync(join(directory.path, 'go'), '')
  for (const id of ids) {
    const outcome = await second.ended(id)
    assert.deepEqual([outcome.kind, outcome.output], ['exited', 'before\nafter\n'])
  }
  assert.equal(second.file('pids').trim().split('\n').length, 20)
})

test('one that has ended meanwhile is read; a clock that was set to another day ends nobody', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const short = await first.begin('sleep 0.3; echo $$ > done; exit 5')
  const long = await first.begin(WAITS, { timeout_ms: 60_000 })
  await eventually('both run', () => (first.file('pids') !== '' ? true : undefined))
  await first.leave()
  await eventually('it ends', () => (first.file('done') !== '' ? true : undefined))
  for (const jump of [DAY_MS, -DAY_MS]) {
    const again = await openExecCity(directory.path, { clock: { ...systemClock, now: () => systemClock.now() + jump } })
    await again.execs.recover()
    if (jump > 0) assert.equal((await again.ended(short)).kind, 'exited')
    assert.equal(again.execs.find(long)?.state, 'running')
    await again.leave()
  }
  await using last = await openExecCity(directory.path)
  await last.execs.recover()
  writeFileSync(join(directory.path, 'go'), '')
  assert.equal((await last.ended(long)).kind, 'exited')
})

test('a deadline that passed while no supervisor was there counts', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const id = await first.begin(WAITS, { timeout_ms: 4_000 })
  await eventually('it runs', () => (first.file('pids') !== '' ? true : undefined))
  await first.leave()
  const deadline = performance.now() + 4_100
  await eventually('it is late', () => (performance.now() > deadline ? true : undefined))
  await using second = await openExecCity(directory.path)
  await second.execs.recover()
  assert.equal((await second.ended(id)).kind, 'timed_out')
  assert.equal(isAlive(first.file('pids').trim()), false)
})

test('a city that stops ends its commands: their owners are told, those that wait and those that may run again go on later', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const plain = await first.begin(`trap '' TERM; ${WAITS}`)
  const again = await first.begin(WAITS, { idempotent: true })
  for (let n = 0; n < 14; n++) await first.begin(WAITS)
  const waiting = await first.begin(WAITS)
  await eventually('16 run', () => (first.file('pids').split('\n').length === 17 ? true : undefined))
  await first.execs.stop({ preserve: false, force: false })
  for (const pid of first.file('pids').trim().split('\n')) assert.equal(isAlive(pid), false)
  assert.equal(first.ends.length, 15)
  assert.deepEqual(
    [(await first.ended(plain)).kind, (await first.ended(plain)).error],
    ['interrupted', 'the city stopped'],
  )
  assert.deepEqual(first.execs.counts, { running: 0, queued: 2 })
  const late = await first.begin('true')
  assert.equal(first.execs.find(late)?.state, 'queued', 'nothing starts in a city that stops')
  first.db.close()

  writeFileSync(join(directory.path, 'go'), '')
  await using second = await openExecCity(directory.path)
  await second.execs.recover()
  for (const id of [again, waiting, late]) assert.equal((await second.ended(id)).kind, 'exited')
})

test('one that was cancelled right before the supervisor died is ended', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const id = await first.begin(WAITS)
  await eventually('it runs', () => (first.file('pids') !== '' ? true : undefined))
  await first.leave()
  await using second = await openExecCity(directory.path)
  // As it stands in the store when nobody came to do it.
  await second.db.write((tx) => second.execs.cancel(tx, id))
  assert.equal(isAlive(first.file('pids').trim()), true)
  await second.execs.recover()
  await eventually('it is gone', () => (second.execs.find(id) === undefined ? true : undefined))
  assert.deepEqual([isAlive(first.file('pids').trim()), second.ends], [false, []])
})

test('after a start of the machine nobody knows what has run: it is told as cut off', async () => {
  using directory = temporaryDirectory()
  const first = await openExecCity(directory.path)
  const id = await first.begin(WAITS)
  await eventually('it runs', () => (first.file('pids') !== '' ? true : undefined))
  await first.leave()
  await using second = await openExecCity(directory.path)
  await second.db.write((tx) => tx.run("UPDATE execs SET boot = 'another'"))
  // A disk that lost power has kept the row only.
  rmSync(join(directory.path, '.svc/runtime/exec'), { recursive: true })
  await second.execs.recover()
  assert.equal((await second.ended(id)).kind, 'interrupted')
})

test('files that belong to no command are removed', async () => {
  using directory = temporaryDirectory()
  await using city = await openExecCity(directory.path)
  const root = join(directory.path, '.svc/runtime/exec')
  mkdirSync(join(root, 'ex-old'), { recursive: true })
  writeFileSync(join(root, 'ex-old', 'output.1'), 'old')
  await city.execs.recover()
  await eventually('they are gone', () => (readdirSync(root).length === 0 ? true : undefined))
})
