import assert from 'node:assert/strict'
import { test } from 'node:test'
import { masked, maskedArgs, unmasked } from './mask.ts'

test('a command line is shown without the values of secret flags, headers and logins in URLs', () => {
  const cases = [
    [
      ['--api-key', 'sk-1', '--model', 'opus'],
      ['--api-key', '***', '--model', 'opus'],
    ],
    [['--api-key=sk-1'], ['--api-key=***']],
    [
      ['-c', 'model_providers.x.bearer_token=abc'],
      ['-c', 'model_providers.x.bearer_token=***'],
    ],
    [
      ['--header', 'Authorization: Bearer abc'],
      ['--header', 'Authorization: ***'],
    ],
    [['https://ann:pw@example.org/x'], ['https://***@example.org/x']],
    [['--url=https://ann:pw@example.org/x'], ['--url=https://***@example.org/x']],
    [
      ['--token', '$GH_TOKEN', '--key-bindings', '--vim'],
      ['--token', '$GH_TOKEN', '--key-bindings', '--vim'],
    ],
    [
      ['--max-tokens', '--print', 'hello'],
      ['--max-tokens', '--print', 'hello'],
    ],
  ] as const
  for (const [args, shown] of cases) assert.deepEqual(maskedArgs(args), shown)
})

test('a masked command line that is sent back keeps the stored secrets, and new arguments are taken', () => {
  const stored = { args: ['--api-key', 'sk-1', 'https://a:b@c.org'] }
  const shown = masked(stored, undefined)
  assert.deepEqual(shown, { args: ['--api-key', '***', 'https://***@c.org'] })
  assert.deepEqual(unmasked(stored, { args: ['--api-key', '***', 'https://***@c.org', '-v'] }, undefined), {
    args: ['--api-key', 'sk-1', 'https://a:b@c.org', '-v'],
  })
  assert.deepEqual(unmasked(stored, { args: ['--api-key', 'sk-2'] }, undefined), { args: ['--api-key', 'sk-2'] })
})
