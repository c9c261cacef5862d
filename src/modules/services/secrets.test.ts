import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { randomHex } from '../../kernel/ids.ts'
import * as secrets from './secrets.ts'

function opened() {
  const directory = temporaryDirectory()
  const city = directory.path
  const stateRoot = join(city, '.svc', 'services', 'page')
  return { city, stateRoot, files: join(stateRoot, 'secrets'), [Symbol.dispose]: () => directory[Symbol.dispose]() }
}

describe('secrets of a service', () => {
  test('there are none before there is a directory; one is a private file, whole, and can be another', () => {
    using place = opened()
    assert.deepEqual(secrets.list(place), [])
    secrets.put(place, 'password', 'ä\nb', randomHex)
    secrets.put(place, 'password', 'second', randomHex)
    assert.equal(readFileSync(join(place.files, 'password'), 'utf8'), 'second')
    assert.equal(statSync(join(place.files, 'password')).mode & 0o777, 0o600)
    assert.deepEqual(
      secrets.list(place).map(({ key }) => key),
      ['password'],
    )
    secrets.remove(place, 'password')
    assert.throws(() => secrets.remove(place, 'password'), { code: 'secret-not-found' })
  })

  test('a link, a directory or a half file in its place is no secret, and is neither followed nor replaced', () => {
    using place = opened()
    secrets.put(place, 'real', 'x', randomHex)
    const outside = join(place.city, 'outside')
    writeFileSync(outside, 'mine')
    symlinkSync(outside, join(place.files, 'link'))
    mkdirSync(join(place.files, 'directory'))
    writeFileSync(join(place.files, '.0123.new'), 'half')
    assert.deepEqual(
      secrets.list(place).map(({ key }) => key),
      ['real'],
    )
    for (const key of ['link', 'directory'])
      assert.throws(() => secrets.put(place, key, 'y', randomHex), { code: 'conflict-wrong-state' })
    assert.equal(readFileSync(outside, 'utf8'), 'mine')
    assert.deepEqual(secrets.valuesOf(place).map(String), ['x'])
  })

  test('a link above them is refused wherever it leads', () => {
    using place = opened()
    mkdirSync(join(place.city, '.svc', 'services'), { recursive: true })
    mkdirSync(join(place.city, 'elsewhere', 'secrets'), { recursive: true })
    symlinkSync(join(place.city, 'elsewhere'), place.stateRoot)
    assert.throws(() => secrets.list(place), { code: 'conflict-wrong-state' })
    assert.throws(() => secrets.put(place, 'password', 'x', randomHex), { code: 'conflict-wrong-state' })
    assert.deepEqual(secrets.valuesOf(place), [])
  })

  test('there is a bound', () => {
    using place = opened()
    for (let n = 0; n < 100; n++) secrets.put(place, `key${n}`, 'x', randomHex)
    assert.throws(() => secrets.put(place, 'more', 'x', randomHex), { code: 'conflict-wrong-state' })
    secrets.put(place, 'key7', 'y', randomHex)
  })
})
