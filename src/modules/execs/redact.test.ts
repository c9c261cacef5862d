import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesFor, secretsOf, tailText } from './redact.ts'

test('a value is a secret by the name of its variable, or because it is long and no path', () => {
  const ambient = { GH_TOKEN: 'ghp_abc', JAVA_HOME: '/usr/lib/jvm/java-21', REGION: 'eu-west-1b', LANG: 'en_US.UTF-8' }
  const secrets = (env: Record<string, string>, inherit_env: string[] = []) => secretsOf({ env, inherit_env }, ambient)
  assert.deepEqual(secrets({ API_KEY: 'abcd', DB_PASS: '12345', PASSENGER: '12345', KEYBOARD: 'qwerty' }), [
    '12345',
    'abcd',
  ])
  assert.deepEqual(secrets({ PIN_TOKEN: '123', EMPTY: '', MODE: 'debug' }), [])
  assert.deepEqual(secrets({ OTHER: 'correct-horse', BASE: 'https://example.org/a', DIR: './some/where' }), [
    'correct-horse',
  ])
  assert.deepEqual(secrets({ URL: 'https://user:pw@example.org' }), ['https://user:pw@example.org'])
  assert.deepEqual(secrets({}, ['GH_TOKEN', 'JAVA_HOME', 'REGION', 'LANG', 'ABSENT']), ['eu-west-1b', 'ghp_abc'])
  assert.deepEqual(secrets({ MY_TOKEN: '$GH_TOKEN' }), ['ghp_abc'], 'what a reference stands for')
  assert.deepEqual(secrets({ A_KEY: 'short-one', B_KEY: 'short-one-and-more' }), ['short-one-and-more', 'short-one'])
})

test('no part of a secret is told where the output is cut in the middle of it', () => {
  const secret = 'SECRET-0123456789'
  for (let before = 0; before < 80; before++) {
    const text = `${'x'.repeat(before)}${secret}${'y'.repeat(40)}`
    const bytes = Buffer.from(text)
    const max = 48
    const seen = bytes.subarray(Math.max(0, bytes.length - bytesFor(max, [secret])))
    for (const cut of [seen, bytes.subarray(-50), bytes.subarray(-60)]) {
      const told = tailText(cut, [secret], max, cut.length === bytes.length)
      assert.ok(Buffer.byteLength(told) <= max)
      for (let at = 0; at + 4 <= secret.length; at++)
        assert.ok(!told.includes(secret.slice(at, at + 4)), `${before}: ${told}`)
      assert.ok(told.endsWith('yyyy'))
    }
  }
})
