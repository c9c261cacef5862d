import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { openLog } from './log.ts'

const messages = (file: string): readonly unknown[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).msg)

/** Resolves when the file has these messages. */
async function written(directory: string, file: string, expected: readonly string[]): Promise<void> {
  const watcher = watch(directory)
  try {
    while (JSON.stringify(messages(file)) !== JSON.stringify(expected))
      await once(watcher, 'change', { signal: AbortSignal.timeout(5_000) })
  } finally {
    watcher.close()
  }
}

test('lines of the access log are written together, a warning at once with all before it, the rest at the end', async () => {
  using directory = temporaryDirectory()
  const file = join(directory.path, 'supervisor.log')
  writeFileSync(file, '')
  const clock = new ManualClock()
  const { logger, close } = openLog(file, 'info', clock)
  logger.warn({}, 'first')
  await written(directory.path, file, ['first'])
  logger.info({}, 'a')
  logger.info({}, 'b')
  assert.equal(clock.pending, 1, 'one flush is due for both')
  await clock.advance(100)
  await written(directory.path, file, ['first', 'a', 'b'])
  logger.info({}, 'c')
  logger.error({}, 'd')
  await written(directory.path, file, ['first', 'a', 'b', 'c', 'd'])
  assert.equal(clock.pending, 0, 'what is written needs no flush')
  logger.info({}, 'e')
  close()
  assert.deepEqual(messages(file), ['first', 'a', 'b', 'c', 'd', 'e'])
  logger.info({}, 'too late')
  assert.equal(clock.pending, 0)
})

test('a file that cannot be opened is told at once, and not by the end of the process', () => {
  using directory = temporaryDirectory()
  assert.throws(() => openLog(directory.path, 'info'), /EISDIR/)
})
