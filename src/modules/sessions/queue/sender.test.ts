import assert from 'node:assert/strict'
import { test } from 'node:test'
import { frameOf, isPerson } from './sender.ts'

const agent = { kind: 'agent', name: 'worker', session_id: 's-0123456789abcdef' } as const
const protocol = { readsCommands: false, onTerminal: false }
const terminal = { readsCommands: false, onTerminal: true }

test('frame: what an agent or a service says names it, what people and we say does not', () => {
  assert.equal(frameOf(agent, 'go', protocol), '[message from agent worker, session s-0123456789abcdef]\n')
  assert.equal(frameOf({ kind: 'service', name: 'service:web' }, 'go', protocol), '[message from service:web]\n')
  assert.equal(frameOf({ kind: 'person', name: 'api' }, 'go', protocol), '')
  assert.equal(frameOf({ kind: 'supervisor', name: 'supervisor' }, 'go', protocol), '')
  assert.equal(isPerson(agent), false)
})

test('frame: a message of one line stays one on a terminal, and a shell gets no frame to run', () => {
  assert.equal(frameOf(agent, 'go', terminal), '[message from agent worker, session s-0123456789abcdef] ')
  assert.match(frameOf(agent, 'go\nthere', terminal), /\]\n$/)
  assert.equal(frameOf(agent, 'ls', { readsCommands: true, onTerminal: true }), '')
})
