import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../test/support/http.ts'
import { openLog } from './log.ts'

const LIMITS = { maxFileBytes: 1_000, files: 3 }

function directory(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'svc-log-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const numbersIn = (file: string): number[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(JSON.parse(line).number))

test('a flood of log lines while the server runs costs older lines and no more disk than promised', async () => {
  using home = directory()
  const file = join(home.path, 'supervisor.log')
  const { logger, close } = openLog(file, 'info', LIMITS)
  for (let number = 0; number < 150; number++) {
    logger.info({ number }, 'line')
    await eventually('the line is written', () => {
      const lines = [file, `${file}.1`].flatMap((one) =>
        statSync(one, { throwIfNoEntry: false }) ? numbersIn(one) : [],
      )
      return lines.includes(number) || undefined
    })
  }
  close()
  const names = readdirSync(home.path).sort()
  assert.deepEqual(names, ['supervisor.log', 'supervisor.log.1', 'supervisor.log.2'])
  for (const name of names) assert.ok(statSync(join(home.path, name)).size < 2 * LIMITS.maxFileBytes, name)
  const kept = [`${file}.2`, `${file}.1`, file].flatMap(numbersIn)
  const first = kept[0] ?? 0
  assert.deepEqual(
    kept,
    Array.from({ length: 150 - first }, (_, at) => first + at),
    'no line is lost or out of order within what is kept',
  )
})

test('what is still said when the log is closed is dropped, and ends nobody', async () => {
  using home = directory()
  const file = join(home.path, 'supervisor.log')
  const { logger, close } = openLog(file, 'info', LIMITS)
  logger.info({ number: 1 }, 'line')
  await eventually('the line is written', () => statSync(file, { throwIfNoEntry: false })?.size || undefined)
  close()
  for (let number = 2; number < 5; number++) {
    logger.warn({ number }, 'late line')
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.deepEqual(numbersIn(file), [1])
})

test('nobody else can read the log, also one that an earlier version wrote for everybody', async () => {
  using home = directory()
  const file = join(home.path, 'supervisor.log')
  writeFileSync(`${file}.1`, 'old\n', { mode: 0o644 })
  writeFileSync(file, `${'x'.repeat(2_000)}\n`, { mode: 0o644 })
  const { logger, close } = openLog(file, 'info', LIMITS)
  logger.info({ number: 1 }, 'line')
  await eventually('the line is written', () => statSync(file, { throwIfNoEntry: false })?.size || undefined)
  close()
  const modes = readdirSync(home.path).map((name) => (statSync(join(home.path, name)).mode & 0o777).toString(8))
  assert.deepEqual(new Set(modes), new Set(['600']))
  assert.equal(readFileSync(`${file}.2`, 'utf8'), 'old\n', 'what was too big already was put aside')
})

test('a pipe in the place of the log is refused, not waited for', () => {
  using home = directory()
  const file = join(home.path, 'supervisor.log')
  execFileSync('mkfifo', [file])
  assert.throws(() => openLog(file, 'info'), /supervisor\.log is a pipe/)
})
