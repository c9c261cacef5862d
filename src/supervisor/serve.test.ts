import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { EXIT } from '../contract/base/exit-codes.ts'
import { problem } from '../kernel/problem.ts'
import { explain, farewell } from './serve.ts'

function explained(error: unknown): { readonly text: string; readonly code: number } {
  let text = ''
  const code = explain(error, { stderr: { write: (part) => (text += part) } })
  return { text, code }
}

const refusalOf = (host: string): Promise<unknown> =>
  new Promise((resolve) => createServer().once('error', resolve).listen(0, host))

test('an address that is not of this machine is a bad value, and the flag is named', async () => {
  const { text, code } = explained(await refusalOf('192.0.2.1'))
  assert.match(
    text,
    /^error: listen EADDRNOTAVAIL: .*192\.0\.2\.1\nhint: it listens on addresses of this machine only; .*--bind\n$/,
  )
  assert.equal(code, EXIT.usage)
})

test('a port that needs more rights is one; a file that may not be read is no port', () => {
  const denied = (syscall: string) => Object.assign(new Error('EACCES'), { code: 'EACCES', syscall })
  assert.match(explained(denied('listen')).text, /--port/)
  assert.deepEqual(explained(denied('open')), { text: 'error: EACCES\n', code: EXIT.failure })
})

test('a store that cannot be opened is said to be in use only where it is', () => {
  const refused = (cause: unknown) =>
    explained(problem('unavailable', 'the store is not available: so', { cause })).text
  const busy = Object.assign(new Error('locked'), { code: 'SQLITE_BUSY' })
  assert.match(refused(busy), /hint: another supervisor runs on this home; .*--home\n$/)
  assert.match(refused(new Error('newer')), /hint: put a backup .*version that wrote it.*--home\n$/)
})

test('the farewell says what runs on without the supervisor', () => {
  assert.equal(farewell({ sessions: 0, services: 0 }), 'stopped\n')
  assert.match(farewell({ sessions: 1, services: 0 }), /^stopped; running on: 1 session \(.*svcctl city stop/)
  assert.match(farewell({ sessions: 3, services: 2 }), /^stopped; running on: 3 sessions, 2 services \(/)
})
