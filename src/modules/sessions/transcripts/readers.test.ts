import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { acpDialect } from './acp.ts'
import { claudeLine } from './claude.ts'
import { codexLine } from './codex.ts'

const READERS = { claude: claudeLine, codex: codexLine, acp: acpDialect('opencode') }

for (const [name, read] of Object.entries(READERS)) {
  test(`${name}: no line makes its reader fail`, () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.anything().map((value) => JSON.stringify(value) ?? ''),
        ),
        (line) => {
          read(line, 0)
        },
      ),
    )
  })
}

const line = (value: object) => JSON.stringify(value)

test('claude: question, thought, call, result and answer become messages with their roles', () => {
  const at = '2026-01-02T03:04:05.000Z'
  const read = (value: object) => claudeLine(line({ timestamp: at, ...value }))?.message
  assert.deepEqual(read({ type: 'user', message: { role: 'user', content: 'hello' } }), {
    role: 'user',
    provider: 'claude',
    status: 'final',
    timestamp: at,
    blocks: [{ type: 'text', text: 'hello' }],
  })
  const answer = read({
    type: 'assistant',
    message: {
      role: 'assistant',
      model: 'm-1',
      stop_reason: 'tool_use',
      usage: { input_tokens: 3, output_tokens: 4, cache_read_input_tokens: 5 },
      content: [
        { type: 'thinking', thinking: 'hm', signature: 's' },
        { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'ls' } },
      ],
    },
  })
  assert.equal(answer?.role, 'assistant')
  assert.equal(answer?.model, 'm-1')
  assert.deepEqual(answer?.usage, { input_tokens: 3, output_tokens: 4, cache_read_tokens: 5 })
  assert.deepEqual(answer?.blocks[1], {
    type: 'tool_use',
    id: 't1',
    name: 'Bash',
    input: { kind: 'command', command: 'ls' },
  })
  const result = read({
    type: 'user',
    message: {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'a' }] }],
    },
  })
  assert.equal(result?.role, 'tool')
  assert.equal(read({ type: 'assistant', isSidechain: true, message: { content: 'x' } }), undefined)
  assert.equal(
    read({ type: 'system', subtype: 'compact_boundary', content: 'compacted' })?.system_event?.kind,
    'compaction',
  )
  assert.equal(read({ type: 'file-history-snapshot' }), undefined)
})

test('codex: messages, calls, outputs and token counts', () => {
  const read = (type: string, payload: object) =>
    codexLine(line({ timestamp: '2026-01-02T03:04:05Z', type, payload }))?.message
  assert.equal(read('session_meta', { id: 'x' }), undefined)
  assert.equal(
    read('response_item', { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'do it' }] })?.role,
    'user',
  )
  assert.equal(
    read('response_item', {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_text', text: '<environment_context>' }],
    })?.role,
    'system',
  )
  const call = read('response_item', {
    type: 'function_call',
    name: 'shell',
    arguments: '{"command":["ls"]}',
    call_id: 'c1',
  })
  assert.deepEqual(call?.blocks, [
    { type: 'tool_use', id: 'c1', name: 'shell', input: { kind: 'command', command: ['ls'] } },
  ])
  const output = read('response_item', {
    type: 'function_call_output',
    call_id: 'c1',
    output: '{"output":"boom","metadata":{"exit_code":1}}',
  })
  assert.deepEqual(output?.blocks[0], {
    type: 'tool_result',
    tool_call_id: 'c1',
    content: 'boom',
    is_error: true,
    error: { category: 'unknown', message: 'boom' },
  })
  const usage = read('event_msg', {
    type: 'token_count',
    info: { last_token_usage: { total_tokens: 500, input_tokens: 400 }, model_context_window: 1000 },
  })?.usage
  assert.equal(usage?.context_percent, 50)
})

test('acp: chunks of one message are one entry, and calls, results and turn ends are their own', () => {
  const read = (update: object) => acpDialect('opencode')(line({ method: 'session/update', params: { update } }), 0)
  const chunk = (text: string) => read({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  assert.equal(chunk('a')?.merge, chunk('b')?.merge)
  assert.notEqual(chunk('a')?.merge, undefined)
  const call = read({
    sessionUpdate: 'tool_call',
    toolCallId: 't',
    title: 'Write a',
    kind: 'edit',
    rawInput: { a: 1 },
    locations: [{ path: '/w/a' }],
  })
  assert.deepEqual(call?.message.blocks, [
    { type: 'tool_use', id: 't', name: 'Write a', file_path: '/w/a', input: { a: 1, kind: 'patch' } },
  ])
  assert.equal(read({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'in_progress' }), undefined)
  const done = read({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'failed', content: [] })
  assert.equal(done?.message.role, 'tool')
  const end = acpDialect('x')(line({ svc: { stop_reason: 'end_turn' } }), 0)
  assert.equal(end?.message.stop_reason, 'end_turn')
})
