/** Lines of Codex' rollout files: `{timestamp, type, payload}`, one entry each. */
import type { StructuredMessage, TranscriptBlock } from '../../../contract/sessions/session-transcript.ts'
import { present } from '../../../kernel/present.ts'
import type { Message, Said } from './entries.ts'
import { countOf, type Json, listOf, objectOf, parseLine, textOf, timeOf } from './json.ts'
import { toolResult, toolUse } from './tools.ts'

export function codexLine(line: string): Said | undefined {
  const record = parseLine(line)
  if (record === undefined) return undefined
  const timestamp = timeOf(record['timestamp'])
  const payload = objectOf(record['payload'])
  const message = messageOf(record['type'], payload)
  return message === undefined ? undefined : { message: { ...message, ...present({ timestamp }) } }
}

function messageOf(type: unknown, payload: Json): Message | undefined {
  switch (type) {
    case 'response_item':
      return itemMessage(payload)
    case 'event_msg':
      return eventMessage(payload)
    case 'turn_context': {
      const model = textOf(payload['model'])
      return model === undefined ? undefined : { ...system('turn_context', undefined), model }
    }
    case 'compacted':
      return system('compaction', textOf(payload['message']))
    default:
      return undefined
  }
}

function itemMessage(item: Json): Message | undefined {
  const id = textOf(item['call_id']) ?? textOf(item['id']) ?? ''
  switch (item['type']) {
    case 'message':
      return spoken(item)
    case 'reasoning': {
      const thinking = [...listOf(item['summary']), ...listOf(item['content'])]
        .map((part) => textOf(part['text']) ?? '')
        .join('\n')
      return thinking === '' ? undefined : assistant([{ type: 'thinking', thinking }])
    }
    case 'function_call':
    case 'custom_tool_call':
      return assistant([toolUse(id, textOf(item['name']) ?? 'tool', parsed(item['arguments'] ?? item['input']))])
    case 'local_shell_call':
      return assistant([toolUse(id, 'local_shell', item['action'])])
    case 'web_search_call':
      return assistant([toolUse(id, 'web_search', item['action'])])
    case 'function_call_output':
    case 'custom_tool_call_output':
      return output(id, item['output'])
    default:
      return undefined
  }
}

/** What the harness itself puts before a conversation is nobody's message. */
const INJECTED = /^<(user_instructions|environment_context|permissions|turn_aborted)/

function spoken(item: Json): Message | undefined {
  const blocks = listOf(item['content']).flatMap((part): TranscriptBlock[] => {
    const text = textOf(part['text'])
    if (text !== undefined) return [{ type: 'text', text }]
    return part['type'] === 'input_image' ? [{ type: 'image' }] : []
  })
  if (blocks.length === 0) return undefined
  const [first] = blocks
  const injected = first?.type === 'text' && INJECTED.test(first.text)
  const role = item['role'] === 'assistant' ? 'assistant' : item['role'] === 'user' && !injected ? 'user' : 'system'
  return { role, provider: 'codex', status: 'final', blocks }
}

function output(id: string, value: unknown): Message {
  const plain = parsed(value)
  const fields = objectOf(plain)
  const content = textOf(plain) ?? textOf(fields['output']) ?? textOf(fields['content']) ?? JSON.stringify(plain ?? '')
  const failed = fields['success'] === false || (countOf(objectOf(fields['metadata'])['exit_code']) ?? 0) > 0
  return { role: 'tool', provider: 'codex', status: 'final', blocks: [toolResult(id, undefined, content, failed)] }
}

function eventMessage(event: Json): Message | undefined {
  switch (event['type']) {
    case 'token_count': {
      const info = objectOf(event['info'])
      const usage = usageOf(info)
      return usage === undefined ? undefined : { ...system('usage', undefined), usage }
    }
    case 'turn_aborted':
      return system('turn_aborted', textOf(event['reason']))
    case 'error':
      return system('error', textOf(event['message']))
    default:
      return undefined
  }
}

function usageOf(info: Json): StructuredMessage['usage'] {
  const last = objectOf(info['last_token_usage'])
  const window = countOf(info['model_context_window'])
  const used = countOf(last['total_tokens'])
  if (used === undefined) return undefined
  return present({
    input_tokens: countOf(last['input_tokens']),
    output_tokens: countOf(last['output_tokens']),
    reasoning_tokens: countOf(last['reasoning_output_tokens']),
    cache_read_tokens: countOf(last['cached_input_tokens']),
    context_window_tokens: window,
    context_used_tokens: used,
    context_percent:
      window === undefined || window === 0 ? undefined : Math.min(100, Math.round((used * 100) / window)),
  })
}

const assistant = (blocks: TranscriptBlock[]): Message => ({
  role: 'assistant',
  provider: 'codex',
  status: 'final',
  blocks,
})

const system = (kind: string, text: string | undefined): Message => ({
  role: 'system',
  provider: 'codex',
  status: 'final',
  blocks: text === undefined ? [] : [{ type: 'text', text }],
  system_event: { kind },
})

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
