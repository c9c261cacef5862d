/** What a pack would run: shown to whoever is asked to trust it, and hashed, so that an upgrade that runs the same is not asked about. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { cut } from '../../../contract/base/text.ts'
import type { PackRun } from '../../../contract/packs.ts'
import { diskFiles, listable, readable } from '../../../files/files.ts'
import { IssueList } from '../../../files/issues.ts'
import { ASSET_BYTES } from '../../../files/read.ts'
import { type ConfigNode, type ListNode, readToml, type TableNode, tableOf } from '../../../files/toml.ts'
import { inTurns, type TreeFile, treeFiles } from '../../../files/tree.ts'

const files = diskFiles()
/** Longest text of one command that is shown. */
const MAX_SHOWN = 500
/** For the words about what is left out. */
const ROOM = 40
/** Fields that are command lines, or name programs, in the files of packs. */
const COMMANDS: ReadonlySet<string> = new Set([
  'start_command',
  'command',
  'acp_command',
  'resume_command',
  'path_check',
  'pre_start',
  'session_setup',
  'session_setup_script',
  'session_live',
  'scale_check',
  'on_boot',
  'on_death',
  'exec',
  'check',
  'script',
  'fix',
])

/** The commands of a pack's own files, and its executable files, by where they stand. */
export async function runsOf(dir: string, root: string, pause: () => Promise<void>): Promise<PackRun[]> {
  const agents = listable(files, join(dir, 'agents'), root).filter(({ directory }) => directory)
  const declared = [
    'pack.toml',
    ...agents.map(({ name }) => `agents/${name}/agent.toml`),
    ...tomlBelow(dir, root, 'mcp'),
    ...tomlBelow(dir, root, 'orders'),
    ...tomlBelow(dir, root, 'formulas'),
  ]
  const commands = declared.flatMap((file) => commandsIn(dir, root, file))
  const all = await treeFiles(dir, pause)
  const programs = all
    .filter(({ executable }) => executable)
    .map(({ path }) => ({ file: path, key: '', command: path }))
  return [...commands, ...programs, ...promptsOf(dir, root, all)]
}

/** Directories of a pack whose Markdown agents read as instructions: what it says, they do. */
const INSTRUCTIONS = /^(?:agents|skills|overlays?|template-fragments|prompts|formulas|orders)\//

const isInstruction = (path: string): boolean => INSTRUCTIONS.test(path) && path.toLowerCase().endsWith(ENDING)

/** Each with its beginning: it is what an upgrade may change. */
function promptsOf(dir: string, root: string, all: readonly TreeFile[]): readonly PackRun[] {
  return all
    .filter(({ path, executable }) => !executable && isInstruction(path))
    .map(({ path }) => {
      const text = readable(files, join(dir, path), root)?.toString('utf8') ?? ''
      return { file: path, key: 'instructions', command: shown(text.trim()) }
    })
}

const tomlBelow = (dir: string, root: string, name: string): string[] =>
  listable(files, join(dir, name), root)
    .filter((entry) => !entry.directory && entry.name.endsWith('.toml'))
    .map((entry) => `${name}/${entry.name}`)

function commandsIn(dir: string, root: string, file: string): PackRun[] {
  const text = readable(files, join(dir, file), root)?.toString('utf8')
  const table = text === undefined ? undefined : readToml(text, file, 'pack', new IssueList())
  if (table === undefined) return []
  const runs: PackRun[] = []
  const walk = (node: ConfigNode, path: string, key: string): void => {
    if (node.kind === 'table')
      for (const [name, child] of node.entries) walk(child, path === '' ? name : `${path}.${name}`, name)
    else if (node.kind === 'list' && key === 'command')
      runs.push({ file, key: path, command: shown(textsOf(node).join(' ')) })
    else if (node.kind === 'list') for (const child of node.items) walk(child, path, key)
    else if (COMMANDS.has(key) && typeof node.value === 'string' && node.value !== '')
      runs.push({ file, key: path, command: whole(node.value, key, table, path) })
  }
  walk(table, '', '')
  return runs
}

/** A program with the arguments beside it. */
function whole(command: string, key: string, table: TableNode, path: string): string {
  const owner = path
    .split('.')
    .slice(0, -1)
    .reduce<TableNode | undefined>((at, name) => (at === undefined ? at : tableOf(at, name)), table)
  const args = owner?.entries.get(key === 'acp_command' ? 'acp_args' : 'args')
  return shown([command, ...(args?.kind === 'list' ? textsOf(args) : [])].join(' '))
}

/** What is left out is said: it is what somebody would hide there. */
function shown(command: string): string {
  if (command.length <= MAX_SHOWN) return command
  const kept = cut(command, MAX_SHOWN - ROOM)
  return `${kept} … and ${command.length - kept.length} more characters`
}

const textsOf = ({ items }: ListNode): string[] =>
  items.map((item) => (item.kind === 'scalar' ? String(item.value) : ''))

/**
 * Hash over all of a checkout that can be run or decides what is: everything but plain Markdown. Markdown counts where
 * agents read it as instructions, and where a file that counts names it, for a shell runs any file that it is given.
 */
export async function runsHash(dir: string, pause: () => Promise<void>): Promise<string> {
  const all = await treeFiles(dir, pause)
  return `sha256:${await inTurns(hashSteps(dir, all), pause)}`
}

function* hashSteps(dir: string, all: readonly TreeFile[]): Generator<undefined, string> {
  const isProse = ({ path, executable }: TreeFile): boolean =>
    !executable && proseName(path) !== undefined && !isInstruction(path)
  const named = new Set<string>()
  const hash = createHash('sha256')
  const bytesOf = ({ path, executable }: TreeFile): Buffer => {
    const bytes = files.read(join(dir, path), dir, ASSET_BYTES) ?? Buffer.alloc(0)
    hash.update(`${path}\0${executable ? 'x' : '-'}\0${bytes.length}\0`).update(bytes)
    return bytes
  }
  for (const file of all.filter((one) => !isProse(one))) {
    for (const name of proseNamedIn(bytesOf(file).toString('latin1'))) named.add(name)
    yield
  }
  for (const file of all.filter(isProse)) {
    if (!named.has(proseName(file.path) ?? '')) continue
    bytesOf(file)
    yield
  }
  return hash.digest('hex')
}

const ENDING = '.md'
/** No file has a longer name. */
const MAX_NAME = 255
const OF_NAMES = new Set(Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.@+-'))

/**
 * The names of Markdown files in a text, in lower case. Found by their endings, and every character is looked at once: an
 * expression with the name in it would try each character of a long word as the beginning of one.
 */
export function* proseNamedIn(text: string): Generator<string> {
  let start = 0
  let passed = 0
  for (const { index } of text.matchAll(/\.md\b/gi)) {
    const own = nameStart(text, index, passed)
    // What goes on where the last name ended is a longer name: `a.md.md`.
    if (own > passed || passed === 0) start = own
    passed = index + ENDING.length
    if (index > start && passed - start <= MAX_NAME) yield text.slice(start, passed).toLowerCase()
  }
}

/** Where the word begins that goes on at `end`, looking back no further than `limit`. */
function nameStart(text: string, end: number, limit: number): number {
  let at = end
  while (at > limit && OF_NAMES.has(text.charCodeAt(at - 1))) at--
  return at
}

/** The last word of the name of a Markdown file; undefined of any other. */
function proseName(path: string): string | undefined {
  if (!path.toLowerCase().endsWith(ENDING)) return undefined
  const start = nameStart(path, path.length - ENDING.length, 0)
  return start === path.length - ENDING.length ? undefined : path.slice(start).toLowerCase()
}
