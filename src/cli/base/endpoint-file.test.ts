import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { readEndpointFile } from './endpoint-file.ts'

/** No process has this number. */
const GONE = 2 ** 22 + 1

function complaintWith(env: Readonly<Record<string, string>>): string {
  using home = temporaryDirectory()
  chmodSync(home.path, 0o700)
  const file = join(home.path, 'endpoint.json')
  writeFileSync(file, JSON.stringify({ url: 'http://127.0.0.1:1', pid: GONE }), { mode: 0o600 })
  try {
    readEndpointFile({ env: { ...env, SVC_HOME: home.path }, home: home.path, cwd: '/' })
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return ''
}

test('in a sandbox that hides processes, the supervisor is not said to have ended', () => {
  assert.match(complaintWith({}), /has ended/)
  for (const name of ['SVC_SESSION_ID', 'CODEX_SANDBOX', 'container']) {
    const complaint = complaintWith({ [name]: 'x' })
    assert.match(complaint, /cannot see the supervisor's process 4194305 from here \(a sandbox\?\)/)
    assert.doesNotMatch(complaint, /has ended/)
  }
})
