import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { isLoopback, parseFlags, resolveSettings, SettingsError } from './settings.ts'

type Environment = Readonly<Record<string, string | undefined>>

function resolveIn(home: string, argv: readonly string[] = [], env: Environment = {}, file?: string) {
  mkdirSync(join(home, '.svc'), { recursive: true })
  if (file !== undefined) writeFileSync(join(home, '.svc', 'supervisor.toml'), file)
  return resolveSettings(parseFlags(argv), env, home, '/work')
}

const refused = (pattern: RegExp) => (error: unknown) => error instanceof SettingsError && pattern.test(error.message)

test('defaults: loopback, the known port, no token, everything allowed', () => {
  using home = temporaryDirectory()
  const { bind, port, auth, allowMutations, logLevel, home: place } = resolveIn(home.path)
  assert.deepEqual(
    { bind, port, auth, allowMutations, logLevel, place },
    {
      bind: '127.0.0.1',
      port: 8372,
      auth: false,
      allowMutations: true,
      logLevel: 'info',
      place: join(home.path, '.svc'),
    },
  )
})

test('a flag beats the environment, which beats the file, which beats the default', () => {
  using home = temporaryDirectory()
  const file = '[supervisor]\nport = 3\nbind = "127.0.0.3"\nlog_level = "error"\n'
  assert.equal(resolveIn(home.path, [], {}, file).port, 3)
  assert.equal(resolveIn(home.path, [], { SVC_PORT: '2' }).port, 2)
  assert.equal(resolveIn(home.path, ['--port', '1'], { SVC_PORT: '2' }).port, 1)
  assert.equal(resolveIn(home.path, [], { SVC_PORT: '' }).port, 3, 'an empty variable is none')
  assert.deepEqual([resolveIn(home.path).bind, resolveIn(home.path).logLevel], ['127.0.0.3', 'error'])
})

test('any other bind than loopback needs a token, and so does who asks for it', () => {
  using home = temporaryDirectory()
  for (const bind of ['0.0.0.0', '::', '192.168.1.2', 'example.org'])
    assert.equal(resolveIn(home.path, ['--bind', bind]).auth, true, bind)
  for (const bind of ['127.0.0.1', '127.1.2.3', 'localhost', '::1'])
    assert.equal(resolveIn(home.path, ['--bind', bind]).auth, false, bind)
  assert.equal(resolveIn(home.path, ['--auth']).auth, true)
  assert.equal(resolveIn(home.path, [], { SVC_AUTH: '1' }).auth, true)
  assert.equal(resolveIn(home.path, [], { SVC_AUTH: '0' }).auth, false)
  assert.equal(isLoopback('127.0.0.1.example.org'), false)
})

test('SVC_AUTH that nobody understands stops the start instead of leaving the door open', () => {
  using home = temporaryDirectory()
  for (const text of ['true', '1']) assert.equal(resolveIn(home.path, [], { SVC_AUTH: text }).auth, true, text)
  for (const text of ['false', '0', '']) assert.equal(resolveIn(home.path, [], { SVC_AUTH: text }).auth, false, text)
  for (const text of ['yes', 'TRUE', 'on', 'no', ' '])
    assert.throws(
      () => resolveIn(home.path, [], { SVC_AUTH: text }),
      refused(/SVC_AUTH must be true, false, 1 or 0, got/),
    )
})

test('an IPv6 bind is served under the name that clients write', () => {
  using home = temporaryDirectory()
  assert.deepEqual(resolveIn(home.path, ['--bind', 'fd00:0::2']).allowedHosts, ['[fd00::2]'])
})

test('origins and users that may come in are read from the file', () => {
  using home = temporaryDirectory()
  const file =
    '[supervisor]\nallowed_uids = [1001, 0]\nallowed_origins = ["https://board.example", "http://localhost:*", "chrome-extension://abc"]\n'
  const { allowedUids, allowedOrigins } = resolveIn(home.path, [], {}, file)
  assert.deepEqual(allowedUids, [1001, 0])
  assert.deepEqual(allowedOrigins, ['https://board.example', 'http://localhost:*', 'chrome-extension://abc'])
})

test('a number is a port or is refused with its value and the range', () => {
  using home = temporaryDirectory()
  fc.assert(
    fc.property(fc.oneof(fc.integer({ min: -10, max: 70_000 }).map(String), fc.string()), (text) => {
      fc.pre(!text.startsWith('-') && text !== '')
      const valid = /^\d{1,5}$/.test(text) && Number(text) <= 65_535
      if (valid) assert.equal(resolveIn(home.path, [], { SVC_PORT: text }).port, Number(text))
      else
        assert.throws(
          () => resolveIn(home.path, [], { SVC_PORT: text }),
          refused(/port must be a number from 0 to 65535/),
        )
    }),
  )
})

test('a pipe or a device in the place of supervisor.toml stops the start instead of holding it up', () => {
  using home = temporaryDirectory()
  const file = join(home.path, '.svc', 'supervisor.toml')
  mkdirSync(join(home.path, '.svc'))
  execFileSync('mkfifo', [file])
  assert.throws(() => resolveIn(home.path), refused(/supervisor\.toml cannot be used: /))
  rmSync(file)
  symlinkSync('/dev/zero', file)
  assert.throws(() => resolveIn(home.path), refused(/supervisor\.toml cannot be used: /))
})

test('a supervisor.toml that is a link to nothing, or to itself, stops the start: it may have asked for tokens', () => {
  for (const target of ['nowhere', 'supervisor.toml']) {
    using home = temporaryDirectory()
    mkdirSync(join(home.path, '.svc'))
    symlinkSync(target, join(home.path, '.svc', 'supervisor.toml'))
    assert.throws(() => resolveIn(home.path), refused(/supervisor\.toml cannot be used: /), target)
  }
})

test('a value that cannot be used stops the start with its name', () => {
  using home = temporaryDirectory()
  assert.throws(() => resolveIn(home.path, ['--log-level', 'loud']), refused(/log level must be one of .*"loud"/))
  assert.throws(() => parseFlags(['--prot', '1']), refused(/--prot/))
  assert.throws(() => parseFlags(['extra']), refused(/extra/))
  assert.throws(() => parseFlags(['--port']), refused(/port/))
  for (const name of ['home', 'bind', 'port', 'log-level'])
    assert.throws(() => parseFlags([`--${name}`, '']), refused(new RegExp(`^--${name} is empty$`)))
})

for (const [name, file, complaint] of [
  ['an unknown key', '[supervisor]\nprot = 1\n', /supervisor\.toml:2:1: unknown key `supervisor\.prot`/],
  ['an unknown table', '[supervisors]\n', /unknown key `supervisors`/],
  ['a number as text', '[supervisor]\nport = "80"\n', /supervisor\.port.* must be a whole number/],
  ['a flag as number', '[supervisor]\nauth = 1\n', /supervisor\.auth.* must be true or false/],
  ['a list as text', '[supervisor]\nallowed_hosts = "a"\n', /allowed_hosts.* must be a list of texts/],
  ['a user by name', '[supervisor]\nallowed_uids = ["ann"]\n', /allowed_uids.* must be a list of whole numbers/],
  ['an origin with a path', '[supervisor]\nallowed_origins = ["https://a.example/x"]\n', /allowed_origins.* must be/],
  ['any origin', '[supervisor]\nallowed_origins = ["*"]\n', /allowed_origins.* must be a list of origins/],
  ['pages without an origin', '[supervisor]\nallowed_origins = ["null"]\n', /allowed_origins.* must be/],
  ['a port out of range', '[supervisor]\nport = 70000\n', /port must be a number from 0 to 65535/],
  ['no duration', '[events.retention]\nmax_age = "soon"\n', /`events\.retention\.max_age` not a duration/],
  ['a negative size', '[events.retention]\nmax_bytes = -1\n', /must be a whole number, 0 or more/],
  ['no TOML', '[supervisor\n', /supervisor\.toml:1/],
] as const) {
  test(`supervisor.toml with ${name} is refused with its place`, () => {
    using home = temporaryDirectory()
    assert.throws(() => resolveIn(home.path, [], {}, file), refused(complaint))
  })
}

test('retention of the file is used, each value on its own', () => {
  using home = temporaryDirectory()
  const usual = resolveIn(home.path).retention
  assert.deepEqual(resolveIn(home.path, [], {}, '[events.retention]\nmax_age = "1h"\n').retention, {
    ...usual,
    maxAgeMs: 3_600_000,
  })
  assert.deepEqual(resolveIn(home.path, [], {}, '[events.retention]\nmax_bytes = 5\n').retention, {
    ...usual,
    maxBytes: 5,
  })
})
