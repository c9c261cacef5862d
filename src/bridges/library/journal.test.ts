import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Journal } from './journal.ts'
import type { Delivery, InboundMessage } from './shapes.ts'
import { openStateRoot, readSecret } from './state.ts'

function directory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'svc-bridge-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const conversation = { provider: 'irc', account_id: 'a', conversation_id: '#c', kind: 'room' } as const
const delivery = (id: string): Delivery => ({
  delivery_id: id,
  attempt: 1,
  conversation,
  text: 'hello',
  attachments: [],
  lease_expires_at: 1,
})
const message = (id: string, place = '#c'): InboundMessage => ({
  provider_message_id: id,
  conversation: { ...conversation, conversation_id: place },
  actor: { id: 'nick:ana', display_name: 'ana', is_bot: false },
  text: id,
  received_at: '2026-01-01T00:00:00.000Z',
})

test('what was begun, said and done is known in the next life', () => {
  using root = directory()
  {
    using journal = new Journal(root.path)
    assert.deepEqual(journal.begin(delivery('dl-1')), { isAgain: false, messageId: undefined, parts: new Map() })
    journal.said('dl-1', 0, 'm1')
    journal.begin(delivery('dl-2'))
    journal.done('dl-2', 'm2')
    journal.begin(delivery('dl-3'))
    journal.settled('dl-3')
  }
  using journal = new Journal(root.path)
  assert.deepEqual(
    journal.open().map(({ delivery_id: id }) => id),
    ['dl-1', 'dl-2'],
  )
  assert.deepEqual(journal.begin(delivery('dl-1')).parts, new Map([[0, 'm1']]))
  assert.equal(journal.begin(delivery('dl-2')).messageId, 'm2')
})

test('what the chat said waits in its order, and is known again when it was posted long ago', () => {
  using root = directory()
  using journal = new Journal(root.path)
  for (const id of ['1', '2', '3']) assert.equal(journal.keep(message(id), id !== '3'), 'taken')
  assert.equal(journal.keep(message('1', '#d'), false), 'taken')
  assert.equal(journal.keep(message('2'), false), 'known')
  assert.equal(journal.conversations().length, 2)
  const [first = ''] = journal.conversations()
  const past = journal.next(first, 500)
  assert.deepEqual(
    past.map(({ message: { text }, past: isPast }) => [text, isPast]),
    [
      ['1', true],
      ['2', true],
    ],
  )
  journal.posted(past.map(({ number }) => number))
  assert.deepEqual(
    journal.next(first, 500).map(({ message: { text } }) => text),
    ['3'],
  )
  assert.equal(journal.keep(message('1'), false), 'known')
})

test('a proof counts once', () => {
  using root = directory()
  using journal = new Journal(root.path)
  assert.equal(journal.keep(message('1'), false, 'body x'), 'taken')
  assert.equal(journal.keep(message('1'), false, 'body x'), 'known')
  assert.equal(journal.keep(message('2'), false, 'body x'), 'replayed')
})

test('one process at a time, and the next one as soon as it is gone, however it went', () => {
  using root = directory()
  const file = join(import.meta.dirname, 'journal.ts')
  const script = `const { Journal } = await import(${JSON.stringify(file)}); const j = new Journal(${JSON.stringify(root.path)}); j.begin({ delivery_id: 'dl-9' }); process.kill(process.pid, 'SIGKILL')`
  assert.equal(spawnSync(process.execPath, ['--input-type=module', '-e', script]).signal, 'SIGKILL')
  using journal = new Journal(root.path)
  assert.equal(journal.progress('dl-9').isAgain, true)
  const second = `const { Journal } = await import(${JSON.stringify(file)}); try { new Journal(${JSON.stringify(root.path)}) } catch (e) { console.log(e.name, e.message) }`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', second], { encoding: 'utf8' })
  assert.match(stdout, /^Unusable another bridge uses the state root/)
})

test('the secret is made once, is ours alone, and has the form of Standard Webhooks', () => {
  using root = directory()
  const path = openStateRoot(join(root.path, 'a', 'b'))
  let number = 0
  const newKey = () => {
    number += 1
    return `key ${number}`
  }
  const secret = readSecret(path, { newKey })
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(readSecret(path, { newKey }), secret)
  assert.equal(statSync(path).mode & 0o777, 0o700)
  assert.equal(statSync(join(path, 'secret')).mode & 0o777, 0o600)
})
