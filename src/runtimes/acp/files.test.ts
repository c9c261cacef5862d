import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { RequestError } from '@agentclientprotocol/sdk'
import { fileRequests } from './files.ts'

function place(): Disposable & { readonly work: string; readonly outside: string } {
  const root = mkdtempSync(join(tmpdir(), 'svc-acp-files-'))
  const work = join(root, 'work')
  const outside = join(root, 'outside')
  mkdirSync(work)
  mkdirSync(outside)
  writeFileSync(join(work, 'a.txt'), 'one\ntwo\nthree\n')
  writeFileSync(join(outside, 'secret'), 'secret')
  return { work, outside, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) }
}

const outsideError = (error: unknown) => error instanceof RequestError && /outside|leads nowhere/.test(error.message)

test('a file of the work directory is read, whole or by lines', async () => {
  using dirs = place()
  const files = fileRequests(dirs.work)
  assert.equal(await files.read(join(dirs.work, 'a.txt')), 'one\ntwo\nthree\n')
  assert.equal(await files.read('a.txt', 2, 1), 'two')
  assert.equal(await files.read('a.txt', 2), 'two\nthree\n')
  assert.equal(await files.read('a.txt', null, 2), 'one\ntwo')
  assert.equal(await files.read('a.txt', 99, 5), '')
})

test('a file is written, replaced by a shorter one, and its folders are made', async () => {
  using dirs = place()
  const files = fileRequests(dirs.work)
  await files.write(join(dirs.work, 'new/deep/b.txt'), 'long content')
  await files.write('new/deep/b.txt', 'short')
  assert.equal(readFileSync(join(dirs.work, 'new/deep/b.txt'), 'utf8'), 'short')
})

test('nothing outside the work directory is read or written, by whatever way', async () => {
  using dirs = place()
  const files = fileRequests(dirs.work)
  symlinkSync(dirs.outside, join(dirs.work, 'dir-link'))
  symlinkSync(join(dirs.outside, 'secret'), join(dirs.work, 'file-link'))
  symlinkSync(join(dirs.outside, 'not-yet'), join(dirs.work, 'dangling'))
  symlinkSync('loop', join(dirs.work, 'loop'))
  const ways = [
    join(dirs.outside, 'secret'),
    '../outside/secret',
    '../work-2',
    'dir-link/secret',
    'dir-link/new/deep',
    'file-link',
    'dangling',
    'dangling/below',
    'loop',
  ]
  for (const way of ways) {
    await assert.rejects(files.read(way), outsideError, `read ${way}`)
    await assert.rejects(files.write(way, 'x'), outsideError, `write ${way}`)
  }
  assert.equal(readFileSync(join(dirs.outside, 'secret'), 'utf8'), 'secret')
  assert.throws(() => readFileSync(join(dirs.outside, 'not-yet')))
})

test('a link that stays inside is followed', async () => {
  using dirs = place()
  symlinkSync('a.txt', join(dirs.work, 'link'))
  const files = fileRequests(dirs.work)
  await files.write('link', 'through the link')
  assert.equal(readFileSync(join(dirs.work, 'a.txt'), 'utf8'), 'through the link')
})

test('what is no ordinary file of a bounded size is refused and does not block', async () => {
  using dirs = place()
  execFileSync('mkfifo', [join(dirs.work, 'fifo')])
  writeFileSync(join(dirs.work, 'huge'), '')
  truncateSync(join(dirs.work, 'huge'), 9 * 1024 * 1024)
  const files = fileRequests(dirs.work)
  for (const path of ['fifo', '.', 'huge']) await assert.rejects(files.read(path), RequestError, path)
  for (const path of ['fifo', '.']) await assert.rejects(files.write(path, 'x'), RequestError, path)
  await assert.rejects(files.write('big', 'x'.repeat(9 * 1024 * 1024)), RequestError)
  await assert.rejects(files.read('nul\0'), RequestError)
})

test('a missing file says so with the code of the protocol', async () => {
  using dirs = place()
  const files = fileRequests(dirs.work)
  const isMissing = (error: unknown) => error instanceof RequestError && error.code === -32002
  await assert.rejects(files.read('missing.txt'), isMissing)
  await assert.rejects(files.read('missing/dir/file'), isMissing)
})
