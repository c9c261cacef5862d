/** What updates have said about the tool calls of a turn: a permission request may hold an id only. */
import { cut } from '../../contract/base/text.ts'
import type { PendingTool } from '../process/runtime.ts'
import { type Json, listOf, objectOf, textOf } from './json.ts'

export interface KnownTool {
  readonly title?: string | undefined
  readonly kind?: string | undefined
  readonly name?: string | undefined
  readonly input?: Json | undefined
  readonly paths?: readonly string[] | undefined
}

const MAX_TOOLS = 256
const MAX_TEXT = 4096
const MAX_PATHS = 64
const MAX_INPUT_BYTES = 64 * 1024

export class KnownTools {
  /** Oldest first; what is over the bound is forgotten. */
  readonly #tools = new Map<string, KnownTool>()

  /** `update` is that of a `session/update`. */
  learn(update: Json): void {
    const { sessionUpdate, toolCallId } = update
    if (sessionUpdate !== 'tool_call' && sessionUpdate !== 'tool_call_update') return
    if (typeof toolCallId !== 'string') return
    this.#tools.set(toolCallId, withCall(this.get(toolCallId), update))
    const [oldest] = this.#tools.keys()
    if (this.#tools.size > MAX_TOOLS && oldest !== undefined) this.#tools.delete(oldest)
  }

  get(toolCallId: string): KnownTool {
    return this.#tools.get(toolCallId) ?? {}
  }

  clear(): void {
    this.#tools.clear()
  }
}

/** What is known, with what a call says more; agents leave out what they have said, or send it empty. */
export function withCall(known: KnownTool, call: Json): KnownTool {
  const input = objectOf(call['rawInput'])
  const paths = pathsOf(call)
  return {
    title: shortText(call['title']) ?? known.title,
    kind: shortText(call['kind']) ?? known.kind,
    name: nameOf(call) ?? known.name,
    input: Object.keys(input).length > 0 ? bounded(input) : known.input,
    paths: paths.length > 0 ? paths : known.paths,
  }
}

/** For rules, which are matched against commands and paths. */
export function toolOf({ name, kind, input, paths = [] }: KnownTool): PendingTool {
  const command = commandOf(input ?? {})
  return {
    ...(name === undefined ? {} : { name }),
    ...(kind === undefined ? {} : { kind }),
    ...(command === undefined ? {} : { command }),
    paths,
    ...(input === undefined ? {} : { input: JSON.stringify(input) }),
  }
}

/** `name` is the protocol's; before it had one, adapters put it beside (Qwen Code, claude-agent-acp, Gemini CLI). */
function nameOf(call: Json): string | undefined {
  const meta = objectOf(call['_meta'])
  const beside = [meta, ...Object.values(meta).map(objectOf)].map((one) => textOf(one['toolName']))
  return shortText(call['name']) ?? shortText(beside.find((one) => one !== undefined))
}

/** What would be run: a line, or the words of one. */
function commandOf(input: Json): string | undefined {
  const command = input['command'] ?? input['cmd'] ?? input['script']
  if (Array.isArray(command)) return command.map(String).join(' ')
  return textOf(command)
}

const PATH_FIELDS = ['file_path', 'filePath', 'filepath', 'path', 'absolute_path', 'notebook_path', 'dir_path'] as const

function pathsOf(call: Json): readonly string[] {
  const input = objectOf(call['rawInput'])
  const found = [
    ...listOf(call['locations']).map(({ path }) => path),
    ...listOf(call['content']).map(({ path }) => path),
    ...PATH_FIELDS.map((field) => input[field]),
  ]
  return [
    ...new Set(found.flatMap((path) => (typeof path === 'string' && path !== '' ? [cut(path, MAX_TEXT)] : []))),
  ].slice(0, MAX_PATHS)
}

/** A file that is to be written can be large; a rule looks at where, not at what. */
function bounded(input: Json): Json | undefined {
  if (JSON.stringify(input).length <= MAX_INPUT_BYTES) return input
  const short = Object.entries(input).filter(([, value]) => (JSON.stringify(value) ?? '').length <= MAX_TEXT)
  const kept = Object.fromEntries(short)
  return JSON.stringify(kept).length <= MAX_INPUT_BYTES ? kept : undefined
}

const shortText = (value: unknown) => (typeof value === 'string' ? cut(value, MAX_TEXT) : undefined)
