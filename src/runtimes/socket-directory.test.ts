import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { startLeaver } from '../../test/support/leaver.ts'
import { leaveSocketDirectory, openSocketDirectory, squatterOf } from './socket-directory.ts'

const NOBODY = 65_534
/** Making something that is somebody else's takes root. */
const asRoot = process.getuid?.() === 0 ? {} : { skip: 'needs root' }

function place(): { root: string; home: string; env: { XDG_RUNTIME_DIR: string } } & Disposable {
  const root = mkdtempSync(join(tmpdir(), 'svc-s-'))
  const home = join(root, 'home')
  mkdirSync(home, { mode: 0o700 })
  mkdirSync(join(root, 'r'), { mode: 0o700 })
  return {
    root,
    home,
    env: { XDG_RUNTIME_DIR: join(root, 'r') },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** A socket in it can be listened on, with a name as long as ours are. */
async function assertUsable(directory: string): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(join(directory, `${'x'.repeat(16)}.host`), resolve),
  )
  await new Promise((resolve) => server.close(resolve))
}

test('the sockets of a city are in a directory that only its owner can use, also where an old one was open to others', () => {
  using at = place()
  const { path, instead } = openSocketDirectory('/cities/alpha', at)
  assert.equal(instead, undefined)
  assert.equal(squatterOf(at), undefined)
  assert.equal(dirname(dirname(path)), at.env.XDG_RUNTIME_DIR)
  for (const one of [path, dirname(path)]) assert.equal(statSync(one).mode & 0o777, 0o700)
  chmodSync(dirname(path), 0o755)
  assert.equal(openSocketDirectory('/cities/alpha', at).path, path)
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
})

test('a socket directory that somebody else made first stops no session', asRoot, async () => {
  using at = place()
  const squatted = join(at.env.XDG_RUNTIME_DIR, 'svc')
  mkdirSync(squatted, { mode: 0o777 })
  chownSync(squatted, NOBODY, NOBODY)
  assert.match(squatterOf(at) ?? '', /belongs to uid 65534, mode 755/)
  const { path, instead } = openSocketDirectory('/cities/alpha', at)
  assert.ok(realpathSync(path).startsWith(join(realpathSync(at.home), 'run')), path)
  assert.match(
    instead ?? '',
    new RegExp(`${squatted} must be a directory that is ours alone; it belongs to uid ${NOBODY}`),
  )
  assert.equal(statSync(path).mode & 0o777, 0o700)
  await assertUsable(path)
  assert.equal(openSocketDirectory('/cities/alpha', at).path, path, 'a restart finds its agents again')
})

test('a link in the place of the socket directory is not followed', async () => {
  using at = place()
  mkdirSync(join(at.root, 'elsewhere'))
  symlinkSync(join(at.root, 'elsewhere'), join(at.env.XDG_RUNTIME_DIR, 'svc'))
  const { path, instead } = openSocketDirectory('/cities/alpha', at)
  assert.ok(realpathSync(path).startsWith(realpathSync(at.home)))
  assert.notEqual(instead, undefined)
  await assertUsable(path)
})

test('in a home with a long path the sockets are reached by a short link that is ours', async () => {
  using at = place()
  const home = join(at.home, 'x'.repeat(120))
  mkdirSync(home, { mode: 0o700 })
  symlinkSync('/nonexistent', join(at.env.XDG_RUNTIME_DIR, 'svc'))
  const first = openSocketDirectory('/cities/alpha', { home, env: at.env })
  const link = dirname(first.path)
  try {
    assert.ok(lstatSync(link).isSymbolicLink())
    assert.equal(realpathSync(link), join(realpathSync(home), 'run'))
    await assertUsable(first.path)
    assert.equal(openSocketDirectory('/cities/alpha', { home, env: at.env }).path, first.path)
    rmSync(link)
    symlinkSync(tmpdir(), link)
    const other = openSocketDirectory('/cities/alpha', { home, env: at.env })
    assert.notEqual(other.path, first.path, 'one that leads elsewhere is not used')
    rmSync(dirname(other.path))
  } finally {
    rmSync(link, { force: true })
  }
})

test('it is found in its usual place however often the last host there takes it along', async () => {
  using at = place()
  const usual = openSocketDirectory('/cities/alpha', at)
  using _ = await startLeaver(usual.path)
  for (let round = 0; round < 2_000; round++) assert.deepEqual(openSocketDirectory('/cities/alpha', at), usual)
})

test('a city that ends takes its empty directory along, and forgotten ones, but none with a socket in it', () => {
  using places = place()
  const parent = join(places.env.XDG_RUNTIME_DIR, 'svc')
  const [mine, other] = ['/cities/mine', '/cities/other'].map((city) => openSocketDirectory(city, places).path)
  assert.ok(mine !== undefined && other !== undefined)
  const [used, forgotten, foreign] = ['0123456789abcdef', 'fedcba9876543210', 'not-one-of-ours'].map((name) => {
    mkdirSync(join(parent, name))
    return join(parent, name)
  })
  assert.ok(used !== undefined && forgotten !== undefined && foreign !== undefined)
  writeFileSync(join(used, 'a.host'), '')
  const longAgo = new Date('2020-01-01')
  for (const path of [used, forgotten, foreign]) utimesSync(path, longAgo, longAgo)
  leaveSocketDirectory('/cities/mine', places, Date.now())
  assert.deepEqual(
    [mine, other, used, forgotten, foreign].map((path) => existsSync(path)),
    [false, true, true, false, true],
  )
  rmSync(used, { recursive: true })
  rmdirSync(foreign)
  leaveSocketDirectory('/cities/other', places, Date.now())
  assert.equal(existsSync(parent), false, 'with the last of them goes what they were in')
  assert.equal(openSocketDirectory('/cities/mine', places).path, mine)
})
