import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { giveLastWords } from './last-words.ts'

function dying(home: string, file: string) {
  const seen = { code: -1, err: '' }
  const source = new EventEmitter()
  giveLastWords(source, {
    file,
    home,
    now: () => '2026-01-01T00:00:00.000Z',
    stderr: { write: (text) => (seen.err += text) },
    exit: (code) => {
      seen.code = code
    },
  })
  return { source, seen }
}

for (const [event, said] of [
  ['uncaughtException', 'an exception was not caught'],
  ['unhandledRejection', 'a rejection was not handled'],
] as const)
  test(`the log says why the process dies: ${said}`, () => {
    using directory = temporaryDirectory()
    const file = join(directory.path, 'supervisor.log')
    writeFileSync(file, '{"msg":"before"}\n')
    writeFileSync(join(directory.path, 'endpoint.json'), '{}')
    const { source, seen } = dying(directory.path, file)
    source.emit(event, new TypeError('a fault of ours'))
    const [, last = ''] = readFileSync(file, 'utf8').split('\n')
    const { level, msg, err } = JSON.parse(last)
    assert.equal(level, 60)
    assert.equal(msg, `the supervisor ends: ${said}`)
    assert.equal(err.message, 'a fault of ours')
    assert.match(seen.err, /^error: .*a fault of ours/)
    assert.equal(seen.code, 1)
    assert.equal(existsSync(join(directory.path, 'endpoint.json')), false, 'nobody is sent to its port')
  })

test('a process that dies on a disk that takes no line ends all the same', () => {
  const { source, seen } = dying('/nowhere', '/nowhere/supervisor.log')
  source.emit('unhandledRejection', 'a text')
  assert.equal(seen.code, 1)
})
