import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, watch } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Clock } from './clock.ts'
import { findBinary, minimalEnvironment, programDirs, runBriefly } from './processes.ts'

let dir = ''
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'svc-processes-'))
})
after(() => rm(dir, { recursive: true, force: true }))

async function script(path: string, body: string, mode = 0o755): Promise<string> {
  const file = join(dir, path)
  await mkdir(join(file, '..'), { recursive: true })
  await writeFile(file, `#!/bin/sh\n${body}\n`)
  await chmod(file, mode)
  return file
}

const env = { PATH: '/usr/bin:/bin' }
const patient = { env, timeoutMs: 30_000 }

/** A clock that goes off when told. */
function alarm() {
  let ring = () => {}
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(_ms, work) {
      ring = work
      return () => {
        ring = () => {}
      }
    },
  }
  return { clock, ring: () => ring() }
}

async function written(file: string): Promise<string> {
  const watcher = watch(join(file, '..'))
  try {
    while (!existsSync(file) || !readFileSync(file, 'utf8').endsWith('\n')) await once(watcher, 'change')
  } finally {
    watcher.close()
  }
  return readFileSync(file, 'utf8').trim()
}

/** Gone, or dead and not yet reaped: what an orphan of a killed group becomes first. */
function isRunning(pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

test('PATH comes first, then tools of the user, and relative entries of PATH are ignored', () => {
  const dirs = programDirs({ PATH: 'bin:/a:.:/b:/a', HOME: '/home/x' })
  assert.deepEqual(dirs.slice(0, 3), ['/a', '/b', '/home/x/.local/bin'])
  assert.ok(dirs.includes('/home/x/.claude/local') && dirs.includes('/opt/homebrew/bin'))
})

test('a tool in the home of the user is found although PATH lacks it', async () => {
  const file = await script('home/.claude/local/svc-tool', 'exit 0')
  assert.equal(await findBinary('svc-tool', { PATH: '/usr/bin', HOME: join(dir, 'home') }), file)
})

test('what PATH has wins over the tools of the user', async () => {
  const first = await script('path/svc-tool', 'exit 0')
  await script('home/.local/bin/svc-tool', 'exit 0')
  assert.equal(await findBinary('svc-tool', { PATH: join(dir, 'path'), HOME: join(dir, 'home') }), first)
})

test('directories, files without the execute bit and relative paths are no programs', async () => {
  await script('plain/svc-plain', 'exit 0', 0o644)
  await mkdir(join(dir, 'plain/svc-dir'), { recursive: true })
  const at = { PATH: join(dir, 'plain') }
  for (const name of ['svc-plain', 'svc-dir', './svc-plain', '', 'svc-absent', join(dir, 'plain/svc-plain')]) {
    assert.equal(await findBinary(name, at), undefined, name)
  }
})

test('helpers see no credentials', () => {
  const seen = minimalEnvironment({
    HOME: '/h',
    LC_ALL: 'C',
    XDG_CONFIG_HOME: '/c',
    OPENAI_API_KEY: 'secret',
    TERM: 'xterm',
  })
  assert.deepEqual(Object.keys(seen).sort(), ['HOME', 'LC_ALL', 'NO_COLOR', 'PATH', 'TERM', 'XDG_CONFIG_HOME'])
  assert.equal(seen['TERM'], 'dumb')
})

test('output, exit code and the given environment come through', async () => {
  const file = await script('ok', 'echo "$1 $WORD"; echo oops >&2; exit 3')
  const result = await runBriefly(file, ['a b'], { ...patient, env: { ...env, WORD: 'hi' } })
  assert.deepEqual(result, { outcome: 'exited', code: 3, stdout: 'a b hi\n', stderr: 'oops\n', truncated: false })
})

test('a program that cannot start is an answer, not a crash', async () => {
  const result = await runBriefly(join(dir, 'absent'), [], patient)
  assert.equal(result.outcome, 'failed')
  assert.match(result.error ?? '', /ENOENT/)
  assert.equal((await runBriefly('/bin/echo', ['\0'], patient)).outcome, 'failed')
  assert.equal((await runBriefly('/bin/echo', ['x'.repeat(4_000_000)], patient)).outcome, 'failed')
})

test('output beyond the cap is dropped and the writer is not blocked (I3)', async () => {
  const file = await script('flood', 'head -c 3000000 /dev/zero; echo end >&2')
  const result = await runBriefly(file, [], { ...patient, maxBytes: 1000 })
  assert.deepEqual(
    [result.outcome, result.stdout.length, result.stderr, result.truncated],
    ['exited', 1000, 'end\n', true],
  )
})

test('the deadline ends the whole group and keeps what was said (I1, I2)', async () => {
  const note = join(dir, 'grandchild')
  const file = await script('hang', `echo begun; sleep 1000 & echo $! > ${note}; wait`)
  const { clock, ring } = alarm()
  const running = runBriefly(file, [], { ...patient, clock })
  const grandchild = await written(note)
  assert.ok(isRunning(grandchild))
  ring()
  assert.equal((await running).outcome, 'timed_out')
  while (isRunning(grandchild)) await new Promise(setImmediate)
})

test('a grandchild left behind delays nothing and dies too (I1)', async () => {
  const note = join(dir, 'orphan')
  const file = await script('fork', `sleep 1000 & echo $! > ${note}; echo done`)
  const result = await runBriefly(file, [], patient)
  assert.deepEqual([result.outcome, result.code, result.stdout], ['exited', 0, 'done\n'])
  const orphan = readFileSync(note, 'utf8').trim()
  while (isRunning(orphan)) await new Promise(setImmediate)
})

test('a stray that left the group cannot hold up the deadline (I2)', async () => {
  const note = join(dir, 'stray')
  const file = await script(
    'stray-maker',
    `setsid sh -c 'echo $$ > ${note}; exec sleep 1000' & until [ -s ${note} ]; do :; done`,
  )
  const { clock, ring } = alarm()
  const running = runBriefly(file, [], { ...patient, clock })
  const stray = await written(note)
  ring()
  assert.equal((await running).outcome, 'timed_out')
  process.kill(Number(stray), 'SIGKILL')
})

test('an abort ends it, before or after the start', async () => {
  const note = join(dir, 'aborted')
  const file = await script('wait', `echo $$ > ${note}; exec sleep 1000`)
  assert.equal((await runBriefly(file, [], { ...patient, signal: AbortSignal.abort() })).outcome, 'aborted')
  assert.equal(existsSync(note), false)
  const controller = new AbortController()
  const running = runBriefly(file, [], { ...patient, signal: controller.signal })
  const pid = await written(note)
  controller.abort()
  assert.equal((await running).outcome, 'aborted')
  while (isRunning(pid)) await new Promise(setImmediate)
})

test('what a program reads from its input, and from descriptor 3 through another program, is what it is given', async () => {
  const read = await runBriefly('/bin/sh', ['-c', 'cat; sh -c "cat <&3"'], { ...patient, input: 'one ', secret: 'two' })
  assert.deepEqual([read.outcome, read.stdout], ['exited', 'one two'])
  const deaf = await runBriefly('/bin/sh', ['-c', 'exit 0'], { ...patient, input: 'x'.repeat(1_000_000), secret: 'y' })
  assert.equal(deaf.outcome, 'exited')
})
