import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { isDirectory, look, lookAtEntry, lookLater } from './look.ts'

test('look: every kind of entry has its own answer, and none is an exception', async () => {
  using temporary = temporaryDirectory()
  const dir = temporary.path
  mkdirSync(join(dir, 'sub'))
  writeFileSync(join(dir, 'file'), '')
  symlinkSync('sub', join(dir, 'link'))
  symlinkSync('loop', join(dir, 'loop'))

  const answers = async (name: string) => {
    const path = join(dir, name)
    return [look(path).is, lookAtEntry(path).is, (await lookLater(path)).is, isDirectory(path)]
  }
  assert.deepEqual(await answers('sub'), ['directory', 'directory', 'directory', true])
  assert.deepEqual(await answers('file'), ['file', 'file', 'file', false])
  assert.deepEqual(await answers('link'), ['directory', 'link', 'directory', true])
  assert.deepEqual(await answers('none'), ['missing', 'missing', 'missing', false])
  assert.deepEqual(await answers('file/below'), ['missing', 'missing', 'missing', false])
  assert.deepEqual(await answers('loop'), ['unknown', 'link', 'unknown', false])
  assert.deepEqual(await answers('x'.repeat(300)), ['unknown', 'unknown', 'unknown', false])
  assert.deepEqual(look(join(dir, 'loop')), { is: 'unknown', code: 'ELOOP' })
  assert.deepEqual(look('/nul\0byte'), { is: 'unknown', code: 'ERR_INVALID_ARG_VALUE' })
})
