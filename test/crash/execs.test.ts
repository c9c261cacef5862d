/**
 * Commands over deaths: whatever the supervisor dies of, and whenever, a command runs once, its owner is told once, and no
 * file is left. Where what watches over a command dies, its owner is told that it was cut off.
 *
 *   SVC_SOAK=1    more rounds
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { createExecRuntime } from '../../src/runtimes/exec/runtime.ts'
import { variableOf } from '../../src/runtimes/process/process-tree.ts'
import { openExecCity } from '../support/exec-city.ts'
import { eventually } from '../support/http.ts'
import { fill, mounted } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 50 : 6
const VICTIM = join(import.meta.dirname, '..', 'support', 'exec-victim.ts')
const LINE = 'echo ran >> lines; sleep 0.2'

/** Its output; undefined where it died. */
function victim(path: string, ...args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [VICTIM, path, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString()
    })
    child.once('close', (code, signal) => {
      if (code === 0) resolve(out)
      else if (signal === 'SIGKILL') resolve(undefined)
      else reject(new Error(err))
    })
  })
}

const countLines = (file: string): number => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0)
const linesOf = (path: string): number => countLines(join(path, 'lines'))

const PLACES = ['committed', 'spawned', 'running', 'ended', 'recorded'] as const

suite('wherever a supervisor dies', { concurrency: 2 }, () => {
  for (const place of PLACES) {
    test(`a supervisor that dies when a command is ${place} loses none and doubles none`, {
      timeout: 300_000,
    }, async () => {
      using directory = temporaryDirectory()
      for (let round = 1; round <= ROUNDS; round++) {
        // Commands are known by their ids on the whole machine, and others of these run beside them.
        const id = (n: number) => `ex-${place}-${n}`
        // One that is to be seen while it runs does not end before.
        const until = `go-${round}`
        const command = place === 'running' ? `echo ran >> lines; until [ -e ${until} ]; do sleep 0.05; done` : LINE
        assert.equal(await victim(directory.path, place, id(round), command), undefined, 'it died there')
        writeFileSync(join(directory.path, until), '')
        const told: unknown = JSON.parse((await victim(directory.path)) ?? '')
        assert.deepEqual(
          told,
          Array.from({ length: round }, (_, n) => ({ id: id(n + 1), kind: 'exited' })),
        )
        assert.equal(linesOf(directory.path), round)
      }
    })
  }
})

test('a supervisor that dies before the commit has begun nothing', async () => {
  using directory = temporaryDirectory()
  assert.equal(await victim(directory.path, 'uncommitted', 'ex-1', LINE), undefined)
  assert.equal(await victim(directory.path), '[]')
  assert.equal(linesOf(directory.path), 0)
})

test('one that dies again and again while it takes up what the last one left does not run it twice', async () => {
  using directory = temporaryDirectory()
  await victim(directory.path, 'committed', 'ex-1', LINE)
  for (const place of ['revoked', 'committed', 'revoked', 'spawned', 'running', 'ended', 'recorded'])
    await victim(directory.path, place)
  assert.equal(await victim(directory.path), '[{"id":"ex-1","kind":"exited"}]')
  assert.equal(linesOf(directory.path), 1)
})

test('a wrapper that is killed ends its command, and one that may run again does', async () => {
  using directory = temporaryDirectory()
  await using city = await openExecCity(directory.path)
  const command = 'echo $$ >> lines; sleep 60'
  const once = await city.begin(command)
  await eventually('it runs', () => (linesOf(directory.path) === 1 ? true : undefined))
  process.kill(wrapperOf(directory.path, once, 1), 'SIGKILL')
  assert.equal((await city.ended(once)).kind, 'interrupted')
  const [pid] = city.file('lines').split('\n')
  assert.equal(variableOf(Number(pid), 'SVC_EXEC_ID'), undefined, 'it is gone')

  const again = await city.begin('echo $$ >> lines; [ $(wc -l < lines) -ge 4 ] || sleep 60', { idempotent: true })
  for (const start of [1, 2]) {
    await eventually('it runs', () => (linesOf(directory.path) === 1 + start ? true : undefined))
    process.kill(wrapperOf(directory.path, again, start), 'SIGKILL')
  }
  assert.equal((await city.ended(again)).kind, 'exited')
  assert.equal(linesOf(directory.path), 4)
})

const wrapperOf = (path: string, id: string, start: number): number =>
  Number.parseInt(readlinkSync(join(path, '.svc/runtime/exec', id, `claim.${start}`)), 10)

test('of two hundred raced claims each is had by one', { timeout: 120_000 }, async (t) => {
  using directory = temporaryDirectory()
  const runtime = await createExecRuntime({ clock: systemClock, env: process.env, directory: directory.path })
  let [won, ran] = [0, 0]
  for (let round = 0; round < 200; round++) {
    const start = { id: `ex-raced-${round}`, number: 2 }
    const file = join(directory.path, `ran-${round}`)
    const launch = { ...start, command: `echo ran >> ${file}`, cwd: '/', env: { PATH: '/usr/bin:/bin' }, stdin: '' }
    // Two wrappers and somebody who revokes, all after the same claim.
    let gone = 0
    const onGone = () => {
      gone++
    }
    runtime.start(launch, onGone)
    if (round % 4 !== 0) runtime.start(launch, onGone)
    const pause = (round % 25) / 5
    for (const until = performance.now() + pause; performance.now() < until; );
    const revoked = runtime.revoke(start)
    await eventually('the wrappers are gone', () => (gone === (round % 4 === 0 ? 1 : 2) ? true : undefined))
    const lines = countLines(file)
    assert.equal(lines, revoked ? 0 : 1, `round ${round}`)
    assert.equal(runtime.look(start).state, revoked ? 'revoked' : 'done')
    if (revoked) won++
    else ran++
  }
  t.diagnostic(`${won} were revoked, ${ran} ran`)
})

test('on a disk that is full nobody is told until that can be kept; then each is, once', async (t) => {
  using directory = temporaryDirectory()
  using disk = mounted(t, join(directory.path, 'disk'), 8)
  if (disk === undefined) return
  await using city = await openExecCity(disk.path)
  const waits = `while [ ! -e ${directory.path}/go ]; do sleep 0.05; done; echo said; exit 9`
  const ids = [await city.begin(waits), await city.begin('echo begun > begun; sleep 0.2; yes')]
  await eventually('both run', () => (existsSync(join(disk.path, 'begun')) ? true : undefined))
  const free = fill(disk.path)
  writeFileSync(join(directory.path, 'go'), '')
  await eventually('a write is refused', () => (city.db.failure === undefined ? undefined : true))
  assert.deepEqual(city.ends, [])
  free()
  for (const id of ids) assert.ok(['exited', 'signal', 'interrupted'].includes((await city.ended(id)).kind))
  assert.equal(city.ends.length, 2)
  assert.deepEqual(await city.run('echo well').then(({ output }) => output), 'well\n')
})
