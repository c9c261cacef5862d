// What hooks of harnesses say, and that they never keep a harness waiting.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findHooks } from '../../harnesses/all.ts'
import { runHook } from './run.ts'
import { type HookInput, saidBy, verdictText } from './said.ts'

function said(harness: string, input: HookInput) {
  const hooks = findHooks(harness)
  assert.ok(hooks !== undefined)
  return saidBy(hooks, { session_id: 'key-1', transcript_path: '/logs/key-1.jsonl', ...input })
}
const path = { transcript_path: '/logs/key-1.jsonl' }

test('the events of each harness become reports', () => {
  const turn = { kind: 'report', report: { activity: 'in-turn', resume_key: 'key-1', ...path } }
  const end = { kind: 'report', report: { activity: 'idle', resume_key: 'key-1', ...path } }
  for (const harness of ['claude', 'codex', 'qwen']) {
    assert.deepEqual(said(harness, { hook_event_name: 'UserPromptSubmit' }), turn)
    assert.deepEqual(said(harness, { hook_event_name: 'Stop' }), end)
  }
  assert.deepEqual(said('gemini', { hook_event_name: 'BeforeAgent' }), turn)
  assert.deepEqual(said('gemini', { hook_event_name: 'AfterAgent' }), end)
  const start = { hook_event_name: 'SessionStart', source: 'startup', model: 'opus' }
  assert.deepEqual(said('claude', start), {
    kind: 'report',
    report: { activity: 'idle', model: 'opus', ...path },
  })
  assert.equal(said('claude', { ...start, source: 'compact' }), undefined, 'a turn may be under way')
  assert.equal(said('claude', { hook_event_name: 'Notification', notification_type: 'auth_success' }), undefined)
  assert.equal(said('claude', { hook_event_name: 'toString' }), undefined)
})

test('a permission hook asks with the tool and its input, and prints the verdict as its harness reads it', () => {
  const input = { command: 'x'.repeat(100_000), content: 'y'.repeat(100_000) }
  const asked = said('claude', { hook_event_name: 'PermissionRequest', tool_name: 'Bash', tool_input: input })
  assert.ok(asked?.kind === 'permission')
  assert.equal(asked.request.input?.['command'], input.command, 'what is decided by is whole')
  assert.ok(String(asked.request.input?.['content']).length < 70_000)
  const decision = (text: string): unknown => JSON.parse(text).hookSpecificOutput.decision
  assert.deepEqual(decision(verdictText('PermissionRequest', 'allow', undefined)), { behavior: 'allow' })
  assert.deepEqual(decision(verdictText('PermissionRequest', 'deny', 'no')), { behavior: 'deny', message: 'no' })
  assert.equal(verdictText('PermissionRequest', 'none', undefined), '')
})

test('a hook without a supervisor, with nonsense, or of nobody says nothing and does not fail', async () => {
  const printed: string[] = []
  const world = (text: string, env: Record<string, string>) => ({
    env: { SVC_HOME: '/nonexistent/home', SVC_API: 'http://127.0.0.1:9', ...env },
    cwd: '/',
    home: '/nonexistent',
    input: () => Promise.resolve(text),
    print: async (line: string) => void printed.push(line),
    now: () => Date.now(),
  })
  const session = { SVC_SESSION_ID: 's-0123456789abcdef', SVC_CITY: 'alpha' }
  const stop = JSON.stringify({ hook_event_name: 'Stop', session_id: 'k' })
  const began = Date.now()
  await runHook('claude', world(stop, session))
  await runHook('claude', world('nonsense', session))
  await runHook('claude', world(stop, {}))
  await runHook('nobody', world(stop, session))
  assert.deepEqual(printed, [])
  assert.ok(Date.now() - began < 5_000)
})
