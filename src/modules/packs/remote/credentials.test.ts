import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { parseSource } from '../../../files/pack-source.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { CredentialError, createLogins } from './credentials.ts'

const { signal } = new AbortController()
const remote = parseSource('https://git.example.org/x.git')

function home() {
  const directory = temporaryDirectory()
  const file = join(directory.path, 'credentials.toml')
  const token = join(directory.path, 'token')
  writeFileSync(token, 'secret\n', { mode: 0o600 })
  writeFileSync(file, `[[credential]]\nmatch = "git.example.org"\ntoken_file = ${JSON.stringify(token)}\n`, {
    mode: 0o600,
  })
  assert.ok(remote.kind === 'git')
  const logins = createLogins({ home: directory.path, env: {}, clock: systemClock })
  const ask = () => logins(remote, signal)
  return { file, token, ask, [Symbol.dispose]: () => directory[Symbol.dispose]() }
}

test('a file that only we can read leads to its login', async () => {
  using place = home()
  assert.deepEqual((await place.ask()).login, { kind: 'basic', username: 'x-access-token', secret: 'secret' })
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

test('a helper that never ends is ended, and said so', async () => {
  using directory = temporaryDirectory()
  const clock = new ManualClock()
  const started = join(directory.path, 'started')
  const helper = `touch ${started}; exec sleep 1000; :`
  writeFileSync(
    join(directory.path, 'credentials.toml'),
    `[[credential]]\nmatch = "git.example.org"\nhelper = ${JSON.stringify(helper)}\n`,
    { mode: 0o600 },
  )
  assert.ok(remote.kind === 'git')
  const asking = createLogins({ home: directory.path, env: process.env, clock })(remote, signal)
  const refused = assert.rejects(asking, /took longer than 20 s/)
  await eventually('the helper runs', () => (existsSync(started) ? true : undefined))
  await clock.advance(20_000)
  await refused
})

test('the longest match that says a thing wins, and each thing is looked for on its own', async () => {
  using directory = temporaryDirectory()
  const ca = join(directory.path, 'ca.pem')
  writeFileSync(ca, 'x', { mode: 0o644 })
  writeFileSync(
    join(directory.path, 'credentials.toml'),
    [
      ['git.example.org', `ca_file = "${ca}"\ntoken_env = "ALL"`],
      ['git.example.org/x.git', 'token_env = "OWN"\nusername = "me"'],
      ['git.example.org/x', 'token_env = "OTHER"'],
      ['example.org', 'token_env = "OTHER"'],
    ]
      .map(([match, more]) => `[[credential]]\nmatch = "${match}"\n${more}\n`)
      .join(''),
    { mode: 0o600 },
  )
  assert.ok(remote.kind === 'git')
  const env = { ALL: 'all', OWN: 'own', OTHER: 'other' }
  const access = await createLogins({ home: directory.path, env, clock: systemClock })(remote, signal)
  assert.deepEqual(access, { login: { kind: 'basic', username: 'me', secret: 'own' }, caFile: ca })
})

test('an entry that says nothing, two things, or what nobody knows is refused without repeating it', async () => {
  for (const more of [
    '',
    'token_env = "A"\nhelper = "b"',
    'token = "s3cret"',
    'username = "s3cret"',
    'token_env = 1',
  ]) {
    using directory = temporaryDirectory()
    writeFileSync(join(directory.path, 'credentials.toml'), `[[credential]]\nmatch = "git.example.org"\n${more}\n`, {
      mode: 0o600,
    })
    assert.ok(remote.kind === 'git')
    const asking = createLogins({ home: directory.path, env: {}, clock: systemClock })(remote, signal)
    await assert.rejects(asking, (error) => error instanceof CredentialError && !error.message.includes('s3cret'))
  }
})
