/** What calls of tools are about, by the names that harnesses give them (sheet 04 §5.1). */
import { cut } from '../../../contract/base/text.ts'
import type { INPUT_KINDS, RESULT_KINDS, TranscriptBlock } from '../../../contract/sessions/session-transcript.ts'
import { isJson, type Json, textOf } from './json.ts'

type InputKind = (typeof INPUT_KINDS)[number]
type ResultKind = (typeof RESULT_KINDS)[number]
export type ToolUse = Extract<TranscriptBlock, { type: 'tool_use' }>
export type ToolResult = Extract<TranscriptBlock, { type: 'tool_result' }>

const KINDS: Readonly<Record<string, readonly [InputKind, ResultKind]>> = {
  bash: ['command', 'bash'],
  shell: ['command', 'bash'],
  exec_command: ['command', 'bash'],
  local_shell: ['command', 'bash'],
  execute: ['command', 'bash'],
  write_stdin: ['stdin', 'stdin'],
  python: ['code', 'python'],
  edit: ['patch', 'edit'],
  multiedit: ['patch', 'edit'],
  apply_patch: ['patch', 'edit'],
  notebookedit: ['patch', 'edit'],
  write: ['write', 'write'],
  read: ['file', 'read'],
  glob: ['glob', 'glob'],
  grep: ['search', 'grep'],
  search: ['search', 'search'],
  websearch: ['search', 'search'],
  web_search: ['search', 'search'],
  fetch: ['fetch', 'fetch'],
  webfetch: ['fetch', 'fetch'],
  todowrite: ['todo', 'todo'],
  update_plan: ['plan', 'plan'],
  exitplanmode: ['plan', 'plan'],
  askuserquestion: ['question', 'question'],
  task: ['task', 'task'],
  agent: ['task', 'task'],
  think: ['text', 'text'],
}

const kindsOf = (name: string): readonly [InputKind, ResultKind] =>
  KINDS[name.toLowerCase()] ?? ['arguments', 'unknown']

export function toolUse(id: string, name: string, input: unknown, kind = name): ToolUse {
  const fields = isJson(input) ? input : input === undefined ? {} : { value: input }
  const path = filePath(fields)
  return {
    type: 'tool_use',
    id,
    name,
    ...(path === undefined ? {} : { file_path: path }),
    input: { ...fields, kind: kindsOf(kind)[0] },
  }
}

export function toolResult(id: string, name: string | undefined, content: string, isError: boolean): ToolResult {
  return {
    type: 'tool_result',
    tool_call_id: id,
    ...(name === undefined ? {} : { name, structured: { kind: kindsOf(name)[1] } }),
    content,
    is_error: isError,
    ...(isError ? { error: { category: errorCategory(content), message: cut(content, 500) } } : {}),
  }
}

function errorCategory(content: string): string {
  if (/user (doesn't want|rejected|denied)|permission denied by user|rejected by user/i.test(content))
    return 'user_rejection'
  if (/timed? ?out/i.test(content)) return 'timeout'
  if (/ENOENT|no such file|EACCES|EISDIR/i.test(content)) return 'file_error'
  if (/exit code|exited with/i.test(content)) return 'command_failure'
  return 'unknown'
}

const filePath = (input: Json): string | undefined =>
  textOf(input['file_path']) ?? textOf(input['notebook_path']) ?? textOf(input['path'])
