/** Lines of Claude Code's session log: one JSON object each, one entry each. */
import type { StructuredMessage, TranscriptBlock } from '../../../contract/sessions/session-transcript.ts'
import { present } from '../../../kernel/present.ts'
import type { Message, Said } from './entries.ts'
import { countOf, isJson, type Json, listOf, objectOf, parseLine, textOf, timeOf } from './json.ts'
import { toolResult, toolUse } from './tools.ts'

export function claudeLine(line: string): Said | undefined {
  const record = parseLine(line)
  // Sub-agents have transcripts of their own.
  if (record === undefined || record['isSidechain'] === true) return undefined
  const message = claudeMessage(record)
  return message === undefined ? undefined : { message }
}

function claudeMessage(record: Json): Message | undefined {
  const { type } = record
  const timestamp = timeOf(record['timestamp'])
  if (type === 'system') return systemMessage(record, timestamp)
  if (type !== 'user' && type !== 'assistant') return undefined
  const message = objectOf(record['message'])
  const blocks = blocksOf(message['content'])
  if (blocks.length === 0) return undefined
  if (record['isCompactSummary'] === true) {
    return {
      role: 'system',
      provider: 'claude',
      status: 'final',
      blocks,
      system_event: { kind: 'compaction' },
      ...present({ timestamp }),
    }
  }
  return {
    role: roleOf(type, blocks, record['isMeta'] === true),
    provider: 'claude',
    status: 'final',
    blocks,
    ...present({
      timestamp,
      model: textOf(message['model']),
      stop_reason: textOf(message['stop_reason']),
      usage: type === 'assistant' ? usageOf(message['usage']) : undefined,
    }),
  }
}

function roleOf(type: 'user' | 'assistant', blocks: readonly TranscriptBlock[], meta: boolean): Message['role'] {
  if (type === 'assistant') return 'assistant'
  if (blocks.every((block) => block.type === 'tool_result')) return 'tool'
  return meta ? 'system' : 'user'
}

function systemMessage(record: Json, timestamp: string | undefined): Message | undefined {
  const text = textOf(record['content'])
  const kind = textOf(record['subtype'])
  if (text === undefined && kind === undefined) return undefined
  return {
    role: 'system',
    provider: 'claude',
    status: 'final',
    blocks: text === undefined ? [] : [{ type: 'text', text }],
    system_event: { kind: kind === 'compact_boundary' ? 'compaction' : (kind ?? 'notice') },
    ...present({ timestamp }),
  }
}

function blocksOf(content: unknown): TranscriptBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return listOf(content).flatMap((block) => blockOf(block) ?? [])
}

function blockOf(block: Json): TranscriptBlock | undefined {
  switch (block['type']) {
    case 'text':
      return { type: 'text', text: textOf(block['text']) ?? '' }
    case 'thinking': {
      const signature = textOf(block['signature'])
      return {
        type: 'thinking',
        thinking: textOf(block['thinking']) ?? '',
        ...(signature === undefined ? {} : { signature }),
      }
    }
    case 'tool_use':
      return toolUse(textOf(block['id']) ?? '', textOf(block['name']) ?? 'tool', block['input'])
    case 'tool_result':
      return toolResult(
        textOf(block['tool_use_id']) ?? '',
        undefined,
        resultText(block['content']),
        block['is_error'] === true,
      )
    case 'image':
      return { type: 'image', ...present({ media_type: textOf(objectOf(block['source'])['media_type']) }) }
    default:
      return { type: 'unknown', value: block }
  }
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((part) => textOf(part['text']) ?? `[${textOf(part['type']) ?? 'part'}]`)
    .join('\n')
}

function usageOf(value: unknown): StructuredMessage['usage'] {
  if (!isJson(value)) return undefined
  return present({
    input_tokens: countOf(value['input_tokens']),
    output_tokens: countOf(value['output_tokens']),
    cache_read_tokens: countOf(value['cache_read_input_tokens']),
    cache_creation_tokens: countOf(value['cache_creation_input_tokens']),
  })
}
