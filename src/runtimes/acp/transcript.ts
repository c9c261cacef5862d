/**
 * What the raw log of an ACP session says (pure). The log has one line per message of the agent, as it came, and lines
 * of the host between them, `{"svc":{…}}`, for what an agent's output cannot tell: where a turn begins and ends, what
 * was asked of a person and what the answer was. A line is read by itself; whoever wants entries merges the records.
 *
 * Nothing here throws: what has another shape than the protocol promises is no record.
 */

export type AcpRecord = { readonly offset: number } & (
  | {
      readonly kind: 'user'
      readonly text: string
      readonly delivery_id: string
      readonly attachments?: readonly AcpAttachment[]
      readonly at?: string
    }
  | { readonly kind: 'assistant' | 'thinking' | 'user_echo'; readonly text: string; readonly message_id?: string }
  | ({ readonly kind: 'tool_call' } & AcpToolCall)
  /** Only what has changed; a collection replaces the one before. */
  | ({ readonly kind: 'tool_update' } & AcpToolCall)
  | { readonly kind: 'plan'; readonly entries: readonly AcpPlanEntry[] }
  /** `cost`: of the conversation so far, in US dollars. */
  | { readonly kind: 'usage'; readonly used: number; readonly size: number; readonly cost?: number }
  | AcpPermissionRecord
  | {
      readonly kind: 'turn_end'
      readonly stop_reason: string
      readonly usage?: AcpUsage
      /** That spent it, where the agent says so. */
      readonly model?: string
      readonly at?: string
      readonly message?: string
    }
  /** Between `begin` and `end` the agent repeats an earlier conversation that it has loaded. */
  | { readonly kind: 'replay'; readonly phase: 'begin' | 'end' }
  /** For people: something that the host could not use. */
  | { readonly kind: 'note'; readonly text: string }
)

/** What went with a message; its bytes are in no log. */
export interface AcpAttachment {
  readonly name: string
  readonly mime_type?: string
  readonly size?: number
}

interface AcpToolCall {
  readonly id: string
  readonly title?: string
  readonly tool_kind?: string
  readonly status?: string
  readonly raw_input?: unknown
  readonly raw_output?: unknown
  readonly content?: readonly AcpToolContent[]
  readonly locations?: readonly { readonly path: string; readonly line?: number }[]
}

export type AcpToolContent =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'diff'; readonly path: string; readonly old_text?: string; readonly new_text: string }
  | { readonly type: 'other'; readonly value: unknown }

export interface AcpPlanEntry {
  readonly content: string
  readonly priority?: string
  readonly status?: string
}

/** Token counts, where the agent tells them. */
export type AcpUsage = Readonly<Partial<Record<(typeof USAGE_FIELDS)[number][1], number>>>

interface AcpPermissionRecord {
  readonly kind: 'permission'
  readonly request_id: string
  readonly state: 'opened' | 'resolved' | 'dismissed'
  readonly tool_call_id?: string
  readonly title?: string
  readonly options?: readonly { readonly id: string; readonly label: string; readonly kind?: string }[]
  /** What was chosen, once `resolved`. */
  readonly option_id?: string
  readonly option_label?: string
}

/** How every line of the host begins; the host sees to it that no line of an agent does. */
export const SVC_PREFIX = '{"svc":'

const USAGE_FIELDS = [
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['totalTokens', 'total_tokens'],
  ['thoughtTokens', 'reasoning_tokens'],
  ['cachedReadTokens', 'cache_read_tokens'],
  ['cachedWriteTokens', 'cache_creation_tokens'],
] as const

type Json = Readonly<Record<string, unknown>>

/** The record of one line, without its newline; `offset` is where the line begins. */
export function parseAcpLine(line: string, offset: number): AcpRecord | undefined {
  const message = parseObject(line)
  if (message === undefined) return undefined
  if (line.startsWith(SVC_PREFIX)) return isObject(message['svc']) ? wrapperRecord(message['svc'], offset) : undefined
  if (message['method'] !== 'session/update' || !isObject(message['params'])) return undefined
  const { update } = message['params']
  return isObject(update) ? updateRecord(update, offset) : undefined
}

function parseObject(line: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function wrapperRecord(svc: Json, offset: number): AcpRecord | undefined {
  const at = optional('at', text(svc['at']))
  const prompt = text(svc['prompt'])
  if (prompt !== undefined) {
    const attachments = optional('attachments', list(svc['attachments'], attachment))
    return { kind: 'user', offset, text: prompt, delivery_id: text(svc['delivery_id']) ?? '', ...attachments, ...at }
  }
  const stopReason = text(svc['stop_reason'])
  if (stopReason !== undefined) {
    const message = optional('message', text(svc['message']))
    const spent = { ...optional('usage', usage(svc['usage'])), ...optional('model', text(svc['model'])) }
    return { kind: 'turn_end', offset, stop_reason: stopReason, ...spent, ...message, ...at }
  }
  if (isObject(svc['permission'])) return permissionRecord(svc['permission'], offset)
  if (svc['replay'] === 'begin' || svc['replay'] === 'end') return { kind: 'replay', offset, phase: svc['replay'] }
  const note = text(svc['note'])
  return note === undefined ? undefined : { kind: 'note', offset, text: note }
}

function attachment(value: Json): AcpAttachment | undefined {
  const name = text(value['name'])
  if (name === undefined) return undefined
  return { name, ...optional('mime_type', text(value['mime_type'])), ...optional('size', count(value['size'])) }
}

function permissionRecord(value: Json, offset: number): AcpRecord | undefined {
  const requestId = text(value['request_id'])
  const { state } = value
  if (requestId === undefined || (state !== 'opened' && state !== 'resolved' && state !== 'dismissed')) return undefined
  return {
    kind: 'permission',
    offset,
    request_id: requestId,
    state,
    ...optional('tool_call_id', text(value['tool_call_id'])),
    ...optional('title', text(value['title'])),
    ...optional('options', list(value['options'], permissionOption)),
    ...optional('option_id', text(value['option_id'])),
    ...optional('option_label', text(value['option_label'])),
  }
}

function permissionOption(value: Json) {
  const id = text(value['id'])
  const label = text(value['label'])
  return id === undefined || label === undefined ? undefined : { id, label, ...optional('kind', text(value['kind'])) }
}

function updateRecord(update: Json, offset: number): AcpRecord | undefined {
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return chunkRecord('assistant', update, offset)
    case 'agent_thought_chunk':
      return chunkRecord('thinking', update, offset)
    case 'user_message_chunk':
      return chunkRecord('user_echo', update, offset)
    case 'tool_call':
      return toolRecord('tool_call', update, offset)
    case 'tool_call_update':
      return toolRecord('tool_update', update, offset)
    case 'plan':
      return { kind: 'plan', offset, entries: list(update['entries'], planEntry) ?? [] }
    case 'usage_update':
      return usageUpdateRecord(update, offset)
    default:
      return undefined
  }
}

function chunkRecord(kind: 'assistant' | 'thinking' | 'user_echo', update: Json, offset: number) {
  const chunk = blockText(update['content'])
  if (chunk === undefined) return undefined
  return { kind, offset, text: chunk, ...optional('message_id', text(update['messageId'])) }
}

/** What a person reads of a content block: its text, or what stands for a picture, a sound or a link. */
function blockText(block: unknown): string | undefined {
  if (!isObject(block)) return undefined
  switch (block['type']) {
    case 'text':
      return text(block['text'])
    case 'resource_link':
      return text(block['uri'])
    case 'resource':
      return isObject(block['resource'])
        ? (text(block['resource']['text']) ?? text(block['resource']['uri']))
        : undefined
    case 'image':
    case 'audio':
      return `[${block['type']}]`
    default:
      return undefined
  }
}

function toolRecord(kind: 'tool_call' | 'tool_update', update: Json, offset: number): AcpRecord | undefined {
  const id = text(update['toolCallId'])
  if (id === undefined) return undefined
  return {
    kind,
    offset,
    id,
    ...optional('title', text(update['title'])),
    ...optional('tool_kind', text(update['kind'])),
    ...optional('status', text(update['status'])),
    ...optional('raw_input', update['rawInput'] ?? undefined),
    ...optional('raw_output', update['rawOutput'] ?? undefined),
    ...optional('content', list(update['content'], toolContent)),
    ...optional('locations', list(update['locations'], location)),
  }
}

function toolContent(value: Json): AcpToolContent {
  if (value['type'] === 'content') {
    const content = blockText(value['content'])
    if (content !== undefined) return { type: 'text', text: content }
  }
  const path = text(value['path'])
  const newText = text(value['newText'])
  if (value['type'] === 'diff' && path !== undefined && newText !== undefined) {
    return { type: 'diff', path, new_text: newText, ...optional('old_text', text(value['oldText'])) }
  }
  return { type: 'other', value }
}

function location(value: Json) {
  const path = text(value['path'])
  return path === undefined ? undefined : { path, ...optional('line', count(value['line'])) }
}

function planEntry(value: Json): AcpPlanEntry | undefined {
  const content = text(value['content'])
  if (content === undefined) return undefined
  return { content, ...optional('priority', text(value['priority'])), ...optional('status', text(value['status'])) }
}

function usageUpdateRecord(update: Json, offset: number): AcpRecord | undefined {
  const used = count(update['used'])
  const size = count(update['size'])
  if (used === undefined || size === undefined) return undefined
  const cost = isObject(update['cost']) && update['cost']['currency'] === 'USD' ? update['cost']['amount'] : undefined
  return { kind: 'usage', offset, used, size, ...optional('cost', count(cost)) }
}

/** The usage of a turn as agents report it beside the stop reason (an extension; nothing where there is none). */
export function usage(value: unknown): AcpUsage | undefined {
  if (!isObject(value)) return undefined
  const found: Record<string, number> = {}
  for (const [theirs, ours] of USAGE_FIELDS) {
    const tokens = count(value[theirs]) ?? count(value[ours])
    if (tokens !== undefined) found[ours] = tokens
  }
  return Object.keys(found).length === 0 ? undefined : found
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
const count = (value: unknown) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined

function list<T>(value: unknown, parse: (item: Json) => T | undefined): readonly T[] | undefined {
  if (!Array.isArray(value)) return undefined
  return value.filter(isObject).flatMap((item) => parse(item) ?? [])
}

/** For a field that is left out where there is nothing to say. */
function optional<Key extends string, Value>(key: Key, value: Value | undefined): { readonly [K in Key]?: Value } {
  // A computed key widens to string: this is the one place that says which key it is.
  return value === undefined ? {} : ({ [key]: value } as { readonly [K in Key]: Value })
}
