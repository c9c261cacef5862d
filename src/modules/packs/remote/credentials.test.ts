import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { parseSource } from '../../../files/pack-source.ts'
import { createLogins } from './credentials.ts'

const { signal } = new AbortController()
const remote = parseSource('https://git.example.org/x.git')

function home() {
  const directory = temporaryDirectory()
  const city = join(directory.path, 'city')
  mkdirSync(join(city, '.svc'), { recursive: true })
  const file = join(city, '.svc', 'credentials.toml')
  const token = join(directory.path, 'token')
  writeFileSync(token, 'secret\n', { mode: 0o600 })
  writeFileSync(file, `[[credential]]\nmatch = "git.example.org"\ntoken_file = ${JSON.stringify(token)}\n`, {
    mode: 0o600,
  })
  assert.ok(remote.kind === 'git')
  const logins = createLogins({ home: directory.path, env: {} })
  const ask = () => logins(city, remote, signal)
  return { file, token, ask, [Symbol.dispose]: () => directory[Symbol.dispose]() }
}

test('a file that only we can read leads to its login', async () => {
  using place = home()
  assert.deepEqual(await place.ask(), { kind: 'basic', username: 'x-access-token', secret: 'secret' })
})

test('a credentials file, or what it points at, that others can read is refused', async () => {
  for (const which of ['file', 'token'] as const) {
    using place = home()
    chmodSync(place[which], 0o640)
    await assert.rejects(place.ask(), /can be read by others/)
  }
})

test('a credentials file of another user is refused, however private it is', {
  skip: process.getuid?.() === 0 ? false : 'only root gives files away',
}, async () => {
  for (const which of ['file', 'token'] as const) {
    using place = home()
    chownSync(place[which], 12_345, 12_345)
    await assert.rejects(place.ask(), /belongs to another user/)
  }
})

test('a pipe in place of a credentials file holds nobody up', async () => {
  for (const which of ['file', 'token'] as const) {
    using place = home()
    rmSync(place[which])
    execFileSync('mkfifo', ['-m', '600', place[which]])
    await assert.rejects(place.ask(), /cannot be read: it is no regular file/)
  }
})
