/** Lines of the raw log of an ACP session as messages; chunks of one message are one entry. */
import type { StructuredMessage } from '../../../contract/sessions/session-transcript.ts'
import { present } from '../../../kernel/present.ts'
import { type AcpAttachment, type AcpRecord, parseAcpLine } from '../../../runtimes/acp/transcript.ts'
import type { Dialect, Message, Said } from './entries.ts'
import { toolResult, toolUse } from './tools.ts'

export const acpDialect =
  (provider: string): Dialect =>
  (line, offset) => {
    const record = parseAcpLine(line, offset)
    return record === undefined ? undefined : said(record, provider)
  }

function said(record: AcpRecord, provider: string): Said | undefined {
  const base = { provider, status: 'final' } as const
  switch (record.kind) {
    case 'user':
      return {
        message: {
          ...base,
          role: 'user',
          blocks: [{ type: 'text', text: record.text }, ...(record.attachments ?? []).map(attached)],
          ...present({ delivery_id: record.delivery_id === '' ? undefined : record.delivery_id, timestamp: record.at }),
        },
      }
    case 'assistant':
      return {
        merge: `assistant ${record.message_id ?? ''}`,
        message: { ...base, role: 'assistant', blocks: [{ type: 'text', text: record.text }] },
      }
    case 'thinking':
      return {
        merge: `thinking ${record.message_id ?? ''}`,
        message: { ...base, role: 'assistant', blocks: [{ type: 'thinking', thinking: record.text }] },
      }
    case 'tool_call':
      return { message: { ...base, role: 'assistant', blocks: [callBlock(record)] } }
    case 'tool_update':
      return resultMessage(record, base)
    case 'plan':
      return {
        message: {
          ...base,
          role: 'assistant',
          blocks: [toolUse('plan', 'update_plan', { entries: record.entries }, 'update_plan')],
        },
      }
    case 'permission':
      return { message: { ...base, role: 'system', blocks: [interaction(record)] } }
    case 'turn_end':
      return { message: turnEnd(record, base) }
    case 'note':
      return {
        message: {
          ...base,
          role: 'system',
          blocks: [{ type: 'text', text: record.text }],
          system_event: { kind: 'note' },
        },
      }
    case 'usage':
      return {
        message: {
          ...base,
          role: 'system',
          blocks: [],
          system_event: { kind: 'usage' },
          usage: contextUsage(record.used, record.size),
        },
      }
    // What is loaded again was said before.
    default:
      return undefined
  }
}

/** Its bytes are in no log: what is shown is that it was there. */
const attached = ({ name, mime_type: type, size }: AcpAttachment) =>
  type?.startsWith('image/')
    ? { type: 'image' as const, media_type: type, ref: name }
    : { type: 'attachment' as const, name, ...present({ media_type: type, size }) }

type Base = { readonly provider: string; readonly status: 'final' }

function callBlock(record: Extract<AcpRecord, { kind: 'tool_call' }>) {
  const [place] = record.locations ?? []
  const use = toolUse(record.id, record.title ?? record.tool_kind ?? 'tool', record.raw_input, record.tool_kind ?? '')
  return place === undefined || use.file_path !== undefined ? use : { ...use, file_path: place.path }
}

function resultMessage(record: Extract<AcpRecord, { kind: 'tool_update' }>, base: Base): Said | undefined {
  if (record.status !== 'completed' && record.status !== 'failed') return undefined
  const content = (record.content ?? [])
    .map((part) => (part.type === 'text' ? part.text : part.type === 'diff' ? `[diff ${part.path}]` : '[content]'))
    .join('\n')
  const text = content !== '' ? content : record.raw_output === undefined ? '' : JSON.stringify(record.raw_output)
  const result = toolResult(record.id, record.tool_kind, text, record.status === 'failed')
  return { message: { ...base, role: 'tool', blocks: [result] } }
}

function interaction(record: Extract<AcpRecord, { kind: 'permission' }>) {
  return {
    type: 'interaction' as const,
    request_id: record.request_id,
    kind: 'approval',
    state: record.state,
    ...present({
      prompt: record.title,
      options: record.options?.map(({ label }) => label),
      action: record.option_id,
      answer: record.option_label,
    }),
  }
}

function turnEnd(record: Extract<AcpRecord, { kind: 'turn_end' }>, base: Base): Message {
  return {
    ...base,
    role: 'system',
    blocks: record.message === undefined ? [] : [{ type: 'text', text: record.message }],
    stop_reason: record.stop_reason,
    system_event: { kind: 'turn_end', code: record.stop_reason },
    ...present({ timestamp: record.at, model: record.model, usage: tokens(record.usage) }),
  }
}

function tokens(usage: Extract<AcpRecord, { kind: 'turn_end' }>['usage']): StructuredMessage['usage'] {
  if (usage === undefined) return undefined
  const { input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_creation_tokens } = usage
  return present({ input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_creation_tokens })
}

const contextUsage = (used: number, size: number): NonNullable<StructuredMessage['usage']> => ({
  context_used_tokens: used,
  context_window_tokens: size,
  ...(size === 0 ? {} : { context_percent: Math.min(100, Math.round((used * 100) / size)) }),
})
