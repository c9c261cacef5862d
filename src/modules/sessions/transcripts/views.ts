/** Entries as the three formats show them (sheet 04 §5.1). */
import { cut } from '../../../contract/base/text.ts'
import type {
  OutputTurn,
  PaginationInfo,
  SessionTranscriptResponse,
  StructuredMessage,
  TranscriptBlock,
  TranscriptFormat,
  TranscriptHistory,
} from '../../../contract/sessions/session-transcript.ts'
import { present } from '../../../kernel/present.ts'
import type { Item, Page } from './transcript.ts'

/** An entry shows at most this much text (decision 66). */
const MAX_TEXT = 64 * 1024
const MAX_RESULT = 500
const UNREADABLE = 'lines of its log that are no JSON were passed over'

export interface ViewOptions {
  readonly format: TranscriptFormat
  readonly thinking: boolean
}

export interface About {
  readonly id: string
  readonly template: string
  readonly provider: string
}

type Body = Pick<SessionTranscriptResponse, 'format' | 'turns' | 'messages' | 'structured_messages'>

export function bodyOf(items: readonly Item[], { format, thinking }: ViewOptions, text: boolean): Body {
  switch (format) {
    case 'raw':
      return { format, messages: items.flatMap(({ id, entry }) => entry.raw.map((value) => ({ id, value }))) }
    case 'structured':
      return { format, structured_messages: items.filter(says).map((item) => structured(item, thinking)) }
    case 'conversation':
      return { format: text ? 'text' : 'conversation', turns: items.flatMap((item) => turnsOf(item, thinking)) }
  }
}

/** Whether a format has anything to show of it. */
export const isShown = (item: Item, { format, thinking }: ViewOptions): boolean =>
  format === 'conversation'
    ? turnsOf(item, thinking).length > 0
    : format === 'structured'
      ? says(item)
      : item.entry.raw.length > 0

/** Output of a terminal may be nothing that one sees. */
const says = ({ text, entry }: Item): boolean => !text || entry.message.blocks.length > 0

/** Runs before a page of which nothing is kept: a page that has older ones has no such gap before it. */
const lostBefore = ({ older, lostRuns = 0 }: Page): number => (older ? 0 : lostRuns)

export function pagination(page: Page, droppedBytes: number): PaginationInfo {
  const { items, older, newer } = page
  const lost = lostBefore(page)
  return {
    has_older_messages: older,
    has_newer_messages: newer,
    returned_message_count: items.length,
    ...present({ before: items[0]?.id, after: items.at(-1)?.id }),
    ...(droppedBytes > 0 ? { dropped_bytes: droppedBytes } : {}),
    ...(lost > 0 ? { dropped_runs: lost } : {}),
  }
}

export function turnsOf({ id, entry, text, goesOn }: Item, thinking: boolean): OutputTurn[] {
  const { role, blocks, timestamp } = entry.message
  const texts = blocks.flatMap((block, index) => blockText(block, thinking, goesOn === true && index === 0) ?? [])
  const said = cut(texts.join('\n'), MAX_TEXT)
  if (said === '') return []
  const shown =
    text && role === 'unknown' ? 'output' : role === 'tool' ? 'result' : role === 'unknown' ? 'system' : role
  return [{ id, role: shown, text: said, ...present({ timestamp }) }]
}

function blockText(block: TranscriptBlock, thinking: boolean, goesOn: boolean): string | undefined {
  switch (block.type) {
    case 'text':
      return block.text
    case 'thinking':
      if (!thinking) return undefined
      return goesOn ? block.thinking : `[thinking] ${block.thinking}`
    case 'tool_use':
      return `[${block.name}]`
    case 'tool_result':
      return `[result] ${cut(block.content, MAX_RESULT)}`
    case 'interaction':
      return [`[${block.kind} ${block.state}] ${block.prompt ?? ''}`.trimEnd(), block.answer ?? block.action]
        .filter((part) => part !== undefined)
        .join(': ')
    case 'image':
      return '[image]'
    case 'unknown':
      return undefined
  }
}

function structured({ id, entry }: Item, thinking: boolean): StructuredMessage {
  const { message } = entry
  const blocks = message.blocks.filter((block) => thinking || block.type !== 'thinking').map(bounded)
  return { ...message, id, blocks }
}

function bounded(block: TranscriptBlock): TranscriptBlock {
  if (block.type === 'text' && block.text.length > MAX_TEXT) return { type: 'text', text: cut(block.text, MAX_TEXT) }
  if (block.type === 'tool_result' && block.content.length > MAX_TEXT)
    return { ...block, content: cut(block.content, MAX_TEXT) }
  return block
}

/** What the structured format says beside its messages. */
export function historyOf(
  page: Page,
  about: {
    readonly session: string
    readonly conversation: string | undefined
    readonly generation: number
    readonly observedAt: string
    readonly activity: 'idle' | 'in-turn' | undefined
    readonly pending: string | undefined
    readonly token: string
  },
): TranscriptHistory {
  const { items, unreadable } = page
  const compactions = items.filter(({ entry }) => entry.message.system_event?.kind === 'compaction').length
  const last = items.at(-1)
  const text = last?.text ?? false
  const lost = lostBefore(page)
  return {
    transcript_stream_id: about.session,
    svc_session_id: about.session,
    logical_conversation_id: about.conversation ?? about.session,
    ...present({ provider_session_id: about.conversation }),
    generation: { id: String(about.generation), observed_at: about.observedAt },
    cursor: { resume_token: about.token, ...present({ after_entry_id: last?.id }) },
    continuity: {
      status: lost > 0 ? 'degraded' : text ? 'unknown' : compactions > 0 ? 'compacted' : 'continuous',
      compaction_count: compactions,
      has_branches: false,
      ...(lost > 0 ? { note: `nothing is kept of ${lost === 1 ? 'one run' : `${lost} runs`} before this` } : {}),
    },
    tail_state: {
      activity: about.activity === undefined ? 'unknown' : about.activity === 'idle' ? 'idle' : 'in_turn',
      ...present({ last_entry_id: last?.id }),
      open_tool_call_ids: openCalls(items),
      pending_interaction_ids: about.pending === undefined ? [] : [about.pending],
      degraded: text,
      ...(text ? { degraded_reason: 'only the text of its terminal is known' } : {}),
    },
    diagnostics: unreadable === 0 ? [] : [{ code: 'unreadable-line', count: unreadable, message: UNREADABLE }],
  }
}

function openCalls(items: readonly Item[]): string[] {
  const open = new Set<string>()
  for (const { entry } of items) {
    for (const block of entry.message.blocks) {
      if (block.type === 'tool_use') open.add(block.id)
      else if (block.type === 'tool_result') open.delete(block.tool_call_id)
    }
  }
  return [...open]
}
