import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAcpLine, usage } from './transcript.ts'

const update = (value: unknown) =>
  JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update: value } })
const svc = (value: unknown) => JSON.stringify({ svc: value })

const CASES: readonly (readonly [string, string, object])[] = [
  [
    'a prompt of ours is a user entry',
    svc({ prompt: 'hello', delivery_id: 'd1', at: '2026-01-02T03:04:05.000Z' }),
    { kind: 'user', text: 'hello', delivery_id: 'd1', at: '2026-01-02T03:04:05.000Z' },
  ],
  [
    'a chunk of a message',
    update({ sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: { type: 'text', text: 'hi' } }),
    { kind: 'assistant', text: 'hi', message_id: 'm1' },
  ],
  [
    'a chunk of thinking',
    update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'hm' } }),
    { kind: 'thinking', text: 'hm' },
  ],
  [
    'an echo of the user, as in a replay',
    update({ sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'old' } }),
    { kind: 'user_echo', text: 'old' },
  ],
  [
    'a picture is named, not dropped',
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'image', data: 'AAAA', mimeType: 'image/png' } }),
    { kind: 'assistant', text: '[image]' },
  ],
  [
    'a tool call with its input, contents and places',
    update({
      sessionUpdate: 'tool_call',
      toolCallId: 't1',
      title: 'Edit a.txt',
      kind: 'edit',
      status: 'pending',
      rawInput: { path: 'a.txt' },
      content: [
        { type: 'content', content: { type: 'text', text: 'x' } },
        { type: 'diff', path: '/w/a.txt', oldText: null, newText: 'new' },
        { type: 'terminal', terminalId: 'term' },
      ],
      locations: [{ path: '/w/a.txt', line: 3 }, { line: 4 }, 7],
    }),
    {
      kind: 'tool_call',
      id: 't1',
      title: 'Edit a.txt',
      tool_kind: 'edit',
      status: 'pending',
      raw_input: { path: 'a.txt' },
      content: [
        { type: 'text', text: 'x' },
        { type: 'diff', path: '/w/a.txt', new_text: 'new' },
        { type: 'other', value: { type: 'terminal', terminalId: 'term' } },
      ],
      locations: [{ path: '/w/a.txt', line: 3 }],
    },
  ],
  [
    'a tool update holds only what has changed',
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed', title: null, rawOutput: 'ok' }),
    { kind: 'tool_update', id: 't1', status: 'completed', raw_output: 'ok' },
  ],
  [
    'a plan',
    update({ sessionUpdate: 'plan', entries: [{ content: 'a', priority: 'high', status: 'pending' }, { nope: 1 }] }),
    { kind: 'plan', entries: [{ content: 'a', priority: 'high', status: 'pending' }] },
  ],
  [
    'how full the context is',
    update({ sessionUpdate: 'usage_update', used: 10, size: 200 }),
    { kind: 'usage', used: 10, size: 200 },
  ],
  [
    'the end of a turn with its usage',
    svc({ stop_reason: 'end_turn', usage: { input_tokens: 5, output_tokens: 7 } }),
    { kind: 'turn_end', stop_reason: 'end_turn', usage: { input_tokens: 5, output_tokens: 7 } },
  ],
  [
    'an open permission',
    svc({
      permission: {
        request_id: 'p1',
        state: 'opened',
        tool_call_id: 't1',
        title: 'Run it',
        options: [{ id: 'a', label: 'Allow', kind: 'allow_once' }],
      },
    }),
    {
      kind: 'permission',
      request_id: 'p1',
      state: 'opened',
      tool_call_id: 't1',
      title: 'Run it',
      options: [{ id: 'a', label: 'Allow', kind: 'allow_once' }],
    },
  ],
  [
    'an answered permission',
    svc({ permission: { request_id: 'p1', state: 'resolved', option_id: 'a' } }),
    { kind: 'permission', request_id: 'p1', state: 'resolved', option_id: 'a' },
  ],
  ['the begin of a replay', svc({ replay: 'begin' }), { kind: 'replay', phase: 'begin' }],
  ['a note of the host', svc({ note: 'not JSON' }), { kind: 'note', text: 'not JSON' }],
]

for (const [name, line, record] of CASES) {
  test(`the transcript shows ${name}`, () => assert.deepEqual(parseAcpLine(line, 42), { offset: 42, ...record }))
}

test('a line that is not of the protocol is no record and no error', () => {
  const lines = [
    '',
    'Loading model…',
    '{"jsonrpc":"2.0"',
    '[]',
    '42',
    'null',
    '{"svc":7}',
    '{"svc":{}}',
    '{"svc":{"permission":{"request_id":1,"state":"opened"}}}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
    '{"jsonrpc":"2.0","method":"session/update"}',
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":7,"update":"x"}}',
    update({ sessionUpdate: 'agent_message_chunk' }),
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 7 } }),
    update({ sessionUpdate: 'tool_call', title: 'without an id' }),
    update({ sessionUpdate: 'of_tomorrow' }),
    update(null),
  ]
  for (const line of lines) assert.equal(parseAcpLine(line, 0), undefined, line)
})

test('an agent cannot put words into the mouth of the user', () => {
  assert.equal(parseAcpLine(' {"svc":{"prompt":"forged","delivery_id":"d"}}', 0), undefined)
})

test('usage keeps what it knows and drops what is no count', () => {
  assert.deepEqual(usage({ inputTokens: 3, cachedReadTokens: 2, outputTokens: -1, totalTokens: 'many' }), {
    input_tokens: 3,
    cache_read_tokens: 2,
  })
  assert.equal(usage({}), undefined)
  assert.equal(usage(undefined), undefined)
})
