/** What the input of a hook says, by the table of its harness. Pure. */
import { cut } from '../../contract/base/text.ts'
import type { SessionReportRequest, SessionToolRequest } from '../../contract/sessions/reports.ts'
import type { HarnessHooks } from '../../harnesses/hooks.ts'

export type HookInput = Readonly<Record<string, unknown>>

export type Said =
  | { readonly kind: 'report'; readonly report: SessionReportRequest }
  | { readonly kind: 'permission'; readonly event: string; readonly request: SessionToolRequest }

const KEY = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$/
const MAX_TEXT = 65_536

/** Undefined: nothing that anybody needs to know. */
export function saidBy({ events }: HarnessHooks, input: HookInput): Said | undefined {
  const name = textOf(input['hook_event_name'])
  const event = name !== undefined && Object.hasOwn(events, name) ? events[name] : undefined
  if (name === undefined || event === undefined) return undefined
  if (event.only !== undefined && !event.only.values.includes(String(input[event.only.field]))) return undefined
  if (event.permission === true) return permissionOf(name, input)
  const { activity, asks, used } = event
  const key = textOf(input['session_id'])
  const path = textOf(input['transcript_path'])
  const model = textOf(input['model'])
  const prompt = asks === undefined ? undefined : textOf(input[asks.prompt])
  return {
    kind: 'report',
    report: {
      ...(activity === undefined ? {} : { activity }),
      ...(asks === undefined
        ? {}
        : { pending: { kind: asks.kind, ...(prompt === undefined ? {} : { prompt: cut(prompt, 4096) }) } }),
      ...(used === true && key !== undefined && KEY.test(key) ? { resume_key: key } : {}),
      ...(path?.startsWith('/') === true ? { transcript_path: path } : {}),
      ...(model === undefined ? {} : { model: cut(model, 256) }),
    },
  }
}

function permissionOf(event: string, input: HookInput): Said | undefined {
  const tool = textOf(input['tool_name'])
  if (tool === undefined) return undefined
  return { kind: 'permission', event, request: { tool: cut(tool, 256), input: shortened(input['tool_input']) } }
}

/** A file may be written that is larger than a question: what is cut is text that nobody decides by. */
function shortened(value: unknown): { [key: string]: unknown } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return {}
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, DECIDED_BY.has(key) ? one : bounded(one, 0)]),
  )
}

const DECIDED_BY: ReadonlySet<string> = new Set(['command', 'cmd', 'file_path', 'path', 'notebook_path', 'url'])
const MAX_DEPTH = 8
const MAX_ITEMS = 200

function bounded(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.length > MAX_TEXT ? cut(value, MAX_TEXT + 1, '…') : value
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return '…'
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((one) => bounded(one, depth + 1))
  const entries = Object.entries(value).slice(0, MAX_ITEMS)
  return Object.fromEntries(entries.map(([key, one]) => [key, bounded(one, depth + 1)]))
}

/** The verdict in the words that the harnesses share; nothing where nobody has decided. */
export function verdictText(event: string, decision: string, reason: string | undefined): string {
  if (decision !== 'allow' && decision !== 'deny') return ''
  const said = { behavior: decision, ...(decision === 'deny' ? { message: reason ?? 'refused' } : {}) }
  return `${JSON.stringify({ hookSpecificOutput: { hookEventName: event, decision: said } })}\n`
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
