import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codexHash } from './hooks.ts'

test('codex is told the hash that it computes itself, so that it runs our hooks and asks nobody about them', () => {
  // As `hooks/list` of the app-server of codex 0.169.0 shows it for this hook.
  const hook = { type: 'command', command: 'echo hi', timeout: 5 } as const
  assert.equal(
    codexHash('Stop', { hooks: [hook] }),
    'sha256:bfacd2ac32f50a02273be5e5139bce873be2be18aed3f7228a6c4b3c28b1beb1',
  )
})
