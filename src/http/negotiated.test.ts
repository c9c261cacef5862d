import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnchanged, takesGzip } from './negotiated.ts'

test('a version is unchanged where the client names it, weak or strong, alone or among others', () => {
  for (const named of ['"a"', 'W/"a"', '"b", "a"', '"b",W/"a"', '*'])
    assert.ok(isUnchanged('"a"', named), String(named))
  for (const named of [undefined, '"b"', 'a', '', '"a']) assert.ok(!isUnchanged('"a"', named), String(named))
  assert.ok(isUnchanged('W/"a"', '"a"'))
})

test('gzip is for clients that take it, and not for those that refuse it', () => {
  for (const taken of ['gzip', 'deflate, gzip', 'GZIP;q=0.5', 'br;q=1.0, gzip;q=0.8', '*', 'identity;q=0, *;q=0.1'])
    assert.ok(takesGzip(taken), taken)
  for (const refused of [undefined, '', 'br', 'gzip;q=0', 'identity', '*;q=0', 'gzip;q=0, *'])
    assert.ok(!takesGzip(refused), String(refused))
})
