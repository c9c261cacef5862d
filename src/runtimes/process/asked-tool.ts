/**
 * What a tool that asks for leave is about to do, whatever its harness calls it: which kind of tool it is, and the
 * command, the paths or the address that it is called with. Pure.
 */
import type { PendingTool } from './runtime.ts'

export type ToolKind = 'shell' | 'edit' | 'read' | 'fetch' | 'other'

export interface AskedTool {
  /** As its harness calls it. */
  readonly name: string
  readonly kind: ToolKind
  readonly command?: string
  readonly paths: readonly string[]
  readonly url?: string
}

/** Names of tools, in lower case: claude, codex, gemini, qwen, opencode, copilot; and the kinds of the agent protocol. */
const KINDS: Readonly<Record<string, ToolKind>> = {
  bash: 'shell',
  shell: 'shell',
  local_shell: 'shell',
  exec_command: 'shell',
  run_shell_command: 'shell',
  execute: 'shell',
  powershell: 'shell',
  edit: 'edit',
  multiedit: 'edit',
  write: 'edit',
  write_file: 'edit',
  replace: 'edit',
  create: 'edit',
  str_replace: 'edit',
  notebookedit: 'edit',
  apply_patch: 'edit',
  patch: 'edit',
  delete: 'edit',
  move: 'edit',
  read: 'read',
  read_file: 'read',
  read_many_files: 'read',
  view: 'read',
  glob: 'read',
  grep: 'read',
  search: 'read',
  list: 'read',
  ls: 'read',
  list_directory: 'read',
  webfetch: 'fetch',
  web_fetch: 'fetch',
  fetch: 'fetch',
}
const PATH_FIELDS = ['file_path', 'path', 'notebook_path', 'absolute_path', 'filePath', 'dir_path'] as const
const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)$/gm
const MAX_PATHS = 100

export function askedTool(
  name: string,
  input: Readonly<Record<string, unknown>>,
  kind: string | undefined = undefined,
): AskedTool {
  const known = KINDS[name.toLowerCase()] ?? KINDS[kind ?? ''] ?? 'other'
  const command = commandOf(input)
  const isPatch = known === 'edit' && command !== undefined
  const paths = [...(isPatch ? patchedPaths(command) : []), ...pathsOf(input)].slice(0, MAX_PATHS)
  const { url } = input
  return {
    name,
    kind: known,
    ...(command === undefined || isPatch ? {} : { command }),
    paths,
    ...(typeof url === 'string' ? { url } : {}),
  }
}

/** The same of what the agent protocol says of a tool. */
export function askedByProtocol({ name, kind, command, paths, input }: PendingTool): AskedTool {
  const known = askedTool(name ?? kind ?? 'unknown', input === undefined ? {} : fieldsOf(input), kind)
  const said = known.command ?? (known.kind === 'edit' ? undefined : command)
  return {
    ...known,
    ...(said === undefined ? {} : { command: said }),
    paths: [...new Set([...known.paths, ...paths])].slice(0, MAX_PATHS),
  }
}

function fieldsOf(json: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(json)
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** As a shell would read it: words of a list are quoted where they need it. */
function commandOf({ command, cmd }: Readonly<Record<string, unknown>>): string | undefined {
  const said = command ?? cmd
  if (typeof said === 'string') return said
  if (!Array.isArray(said) || !said.every((word) => typeof word === 'string')) return undefined
  const [program = '', flag = '', script] = said
  // What is handed to a shell is that script, and not the name of the shell.
  if (said.length === 3 && /^(?:\/\S*\/)?(?:ba|z|da)?sh$/.test(program) && /^-l?c$/.test(flag)) return script
  return said
    .map((word) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ')
}

function pathsOf(input: Readonly<Record<string, unknown>>): readonly string[] {
  return PATH_FIELDS.flatMap((field) => {
    const value = input[field]
    return typeof value === 'string' && value !== '' ? [value] : []
  })
}

const patchedPaths = (patch: string): readonly string[] =>
  [...patch.matchAll(PATCHED)].map(([, path = '']) => path.trim())

/** For people: in one line, what it would do. */
export const subjectOf = ({ command, paths, url }: AskedTool): string | undefined =>
  command ?? (paths.length === 0 ? url : paths.join(', '))
