import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acpDialect } from './acp.ts'
import { claudeLine } from './claude.ts'
import { codexLine } from './codex.ts'
import type { Dialect, Message } from './entries.ts'
import { knownOf } from './insight.ts'

const read = (dialect: Dialect, lines: readonly object[]): readonly Message[] =>
  lines.flatMap((line) => dialect(JSON.stringify(line), 0)?.message ?? [])

const acp = (...lines: readonly object[]) => read(acpDialect('opencode'), lines)
const full = (used: number, size: number) => ({
  method: 'session/update',
  params: { update: { sessionUpdate: 'usage_update', used, size } },
})
const said = (id: string) => ({ svc: { prompt: 'go', delivery_id: id } })
const ended = (inputTokens: number) => ({
  svc: { stop_reason: 'end_turn', usage: { inputTokens, outputTokens: 7, cachedReadTokens: 3 } },
})

test('acp: the last word on how full the context is counts', () => {
  assert.deepEqual(knownOf(acp(full(1, 100), said('d1'), full(250, 1000), ended(5))), {
    context_pct: 25,
    context_window: 1000,
  })
  assert.deepEqual(knownOf([]), {})
})

test('claude: the model of the last answer is known', () => {
  const answer = (model: string) => ({
    type: 'assistant',
    message: { model, content: [{ type: 'text', text: 'hi' }], usage: { input_tokens: 3 } },
  })
  assert.deepEqual(knownOf(read(claudeLine, [answer('one'), answer('two')])), { model: 'two' })
})

test('codex: model and window are known', () => {
  const lines = [
    { type: 'turn_context', payload: { model: 'm-2' } },
    {
      type: 'event_msg',
      payload: {
        type: 'token_count',
        info: { last_token_usage: { total_tokens: 500 }, model_context_window: 1000 },
      },
    },
  ]
  assert.deepEqual(knownOf(read(codexLine, lines)), { model: 'm-2', context_pct: 50, context_window: 1000 })
})
