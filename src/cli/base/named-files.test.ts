import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { EXIT, Failure } from './failure.ts'
import { readNamedFile, readNamedText } from './named-files.ts'

test('a file that cannot be read is named as it was written, and why is said in words', async () => {
  using directory = temporaryDirectory()
  const io = { cwd: directory.path }
  writeFileSync(join(directory.path, 'text'), 'text')
  writeFileSync(join(directory.path, 'bytes'), Buffer.from([0xff]))
  mkdirSync(join(directory.path, 'folder'))
  assert.equal(await readNamedText(io, './text'), 'text')
  assert.deepEqual(await readNamedFile(io, 'bytes'), Buffer.from([0xff]))
  for (const [path, why] of [
    ['nothing', 'there is no such file'],
    ['text/below', 'there is no such file'],
    ['./folder', 'it is a directory'],
    ['bytes', 'it is not UTF-8 text'],
  ] as const)
    await assert.rejects(
      readNamedText(io, path),
      (error) =>
        error instanceof Failure && error.exitCode === EXIT.usage && error.message === `cannot read ${path}: ${why}`,
      path,
    )
})
