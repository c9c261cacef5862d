import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { removeEndpoint, writeEndpoint } from './endpoint.ts'
import { openHome } from './home.ts'
import { SettingsError } from './settings.ts'

const ENDPOINT = { url: 'http://127.0.0.1:1', pid: 1, started_at: '2026-11-22T00:00:00.000Z', token: 'secret' }
const asRoot = { skip: process.getuid?.() !== 0 }
const NOBODY = 65_534

test('a link planted under the name of endpoint.json, or of a file on the way to it, is not written through', () => {
  using home = temporaryDirectory()
  const victim = join(home.path, 'victim')
  writeFileSync(victim, 'mine')
  for (const name of ['endpoint.json', 'endpoint.json.next', 'endpoint.json.known'])
    symlinkSync(victim, join(home.path, name))
  assert.throws(() => writeEndpoint(home.path, ENDPOINT, () => 'known'), /EEXIST/)
  let tries = 0
  writeEndpoint(home.path, ENDPOINT, () => `random-${++tries}`)
  assert.equal(readFileSync(victim, 'utf8'), 'mine')
  const written = lstatSync(join(home.path, 'endpoint.json'))
  assert.ok(written.isFile())
  assert.equal(written.mode & 0o777, 0o600)
  assert.deepEqual(JSON.parse(readFileSync(join(home.path, 'endpoint.json'), 'utf8')), ENDPOINT)
  removeEndpoint(home.path)
  assert.equal(existsSync(join(home.path, 'endpoint.json')), false)
  assert.equal(readFileSync(victim, 'utf8'), 'mine')
})

test('a state directory of our own that others could write to is closed to them', () => {
  using place = temporaryDirectory()
  const home = join(place.path, 'a', 'home')
  openHome(home, process.getuid?.())
  assert.equal(lstatSync(home).mode & 0o777, 0o700)
  chmodSync(home, 0o777)
  openHome(home, process.getuid?.())
  assert.equal(lstatSync(home).mode & 0o777, 0o700)
})

test('a state directory that cannot be made or used is refused with its name', () => {
  using place = temporaryDirectory()
  const file = join(place.path, 'file')
  writeFileSync(file, '')
  for (const home of [file, join(file, 'below'), '/proc/svc'])
    assert.throws(
      () => openHome(home, process.getuid?.()),
      (error) =>
        error instanceof SettingsError &&
        error.message.startsWith(`the state directory ${home} cannot be used: `) &&
        error.message.endsWith('; choose another with --home'),
      home,
    )
})

test('a state directory of somebody else, or a link of his to one of ours, is refused', asRoot, () => {
  using place = temporaryDirectory()
  const planted = join(place.path, 'planted')
  mkdirSync(planted)
  chownSync(planted, NOBODY, NOBODY)
  const refused = (home: string) =>
    assert.throws(
      () => openHome(home, 0),
      (error: unknown) => error instanceof SettingsError && /belongs to uid 65534, not to uid 0/.test(error.message),
    )
  refused(planted)
  const mine = join(place.path, 'mine')
  mkdirSync(mine)
  const link = join(place.path, 'link')
  symlinkSync(mine, link)
  openHome(link, 0)
  const foreign = join(place.path, 'foreign')
  symlinkSync(mine, foreign)
  lchownSync(foreign, NOBODY, NOBODY)
  refused(foreign)
})

test('a file that somebody else left in the state directory is refused by name, owner and mode', asRoot, () => {
  using home = temporaryDirectory()
  for (const name of ['supervisor.db', 'supervisor.toml', 'supervisor.log', 'endpoint.json', 'cache', 'run']) {
    const planted = join(home.path, name)
    writeFileSync(planted, '')
    chownSync(planted, NOBODY, NOBODY)
    chmodSync(planted, 0o666)
    assert.throws(
      () => openHome(home.path, 0),
      (error: unknown) =>
        error instanceof SettingsError &&
        error.message.startsWith(`${planted} belongs to uid 65534 (mode 666), not to uid 0`),
    )
    rmSync(planted)
  }
  openHome(home.path, 0)
})

test('a directory that everybody shares, such as /tmp, is no state directory and stays open to all', () => {
  using home = temporaryDirectory()
  chmodSync(home.path, 0o1777)
  assert.throws(() => openHome(home.path, process.getuid?.()), /is shared by everybody \(mode 1777\)/)
  assert.equal(lstatSync(home.path).mode & 0o7777, 0o1777)
})
