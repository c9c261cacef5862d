/**
 * Finding programs and running them briefly. Environments are arguments (style R10).
 *
 * I1  nothing that `runBriefly` started runs on after it has settled, save what left its process group.
 * I2  `runBriefly` settles by its deadline, even when a stray grandchild keeps the output open.
 * I3  at most `maxBytes` of each output stream are kept; the rest is read and dropped, so that no writer blocks.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { type Readable, Writable } from 'node:stream'
import { type Clock, systemClock } from './clock.ts'
import { asCaller } from './file-modes.ts'

export type Environment = Readonly<Record<string, string | undefined>>

// A supervisor that a login manager started has a bare PATH; people's tools are in these.
const USER_DIRS = [
  '.local/bin',
  'bin',
  '.npm-global/bin',
  '.bun/bin',
  '.cargo/bin',
  '.claude/local',
  '.deno/bin',
  '.volta/bin',
  '.local/share/pnpm',
  '.local/share/mise/shims',
  '.asdf/shims',
  '.opencode/bin',
  '.grok/bin',
  'go/bin',
] as const
const SYSTEM_DIRS = [
  '/opt/homebrew/bin',
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
  '/home/linuxbrew/.linuxbrew/bin',
  '/snap/bin',
] as const

/** Directories to look for programs in: PATH first, then per-user tool directories, then the system's. */
export function programDirs(env: Environment): readonly string[] {
  // A relative entry would make the answer depend on the working directory.
  const ambient = (env['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  const home = env['HOME']
  const user = home === undefined || !isAbsolute(home) ? [] : USER_DIRS.map((dir) => join(home, dir))
  return [...new Set([...ambient, ...user, ...SYSTEM_DIRS])]
}

/** The absolute path of a program, or nothing. A name with a slash must be absolute already. */
export async function findBinary(name: string, env: Environment): Promise<string | undefined> {
  if (name.includes('/')) return isAbsolute(name) && (await isProgram(name)) ? name : undefined
  if (name === '') return undefined
  for (const dir of programDirs(env)) {
    const file = join(dir, name)
    if (await isProgram(file)) return file
  }
  return undefined
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK)
    return (await stat(file)).isFile()
  } catch {
    return false
  }
}

const PASSED_ON = ['HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR'] as const

/** What a helper gets to see: home, paths, locale and XDG; no credentials, no colours, no terminal. */
export function minimalEnvironment(env: Environment): Readonly<Record<string, string>> {
  const kept: Record<string, string> = { PATH: programDirs(env).join(delimiter), TERM: 'dumb', NO_COLOR: '1' }
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isPlain(name)) kept[name] = value
  }
  return kept
}

/** What a program needs to find its way: home, locale, XDG. */
export const isPlain = (name: string): boolean =>
  PASSED_ON.some((passed) => passed === name) || name.startsWith('LC_') || name.startsWith('XDG_')

/** `$NAME` and `${NAME}` alone stand for a variable of the supervisor. */
export function expanded(value: string, env: Environment): string {
  const name = /^\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?$/.exec(value)?.[1]
  return name === undefined ? value : (env[name] ?? '')
}

export interface BriefOptions {
  /** The whole environment of the child. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly signal?: AbortSignal
  /** Per stream; 64 KiB where absent. */
  readonly maxBytes?: number
  /** Ends the program when it says more than that: what it says is endless, or of no use in parts. */
  readonly endAtMax?: boolean
  readonly cwd?: string
  /** Gets all that it says, from both streams, as it comes. */
  readonly onOutput?: (chunk: Buffer) => void
  readonly clock?: Clock
  /** What it reads from its standard input; nothing where absent. */
  readonly input?: string
  /** What it, or a program that it starts, reads from descriptor 3: it stands in no file, argument or environment. */
  readonly secret?: string
}

export interface BriefResult {
  /** `failed`: it could not be started at all. */
  readonly outcome: 'exited' | 'timed_out' | 'aborted' | 'failed'
  /** Exit code; absent where a signal ended it or it never started. */
  readonly code?: number
  readonly stdout: string
  readonly stderr: string
  /** Output was dropped (I3). */
  readonly truncated: boolean
  readonly error?: string
}

/** Runs a program without a shell, stdin or terminal and waits for its end; never rejects. */
export async function runBriefly(file: string, args: readonly string[], options: BriefOptions): Promise<BriefResult> {
  if (options.signal?.aborted) return { ...SILENT, outcome: 'aborted' }
  try {
    // `detached` makes it the leader of a group of its own, so that one signal reaches whatever it starts.
    const { env, cwd = '/', input, secret } = options
    const pipeFor = (text: string | undefined): 'pipe' | 'ignore' => (text === undefined ? 'ignore' : 'pipe')
    const stdio: StdioOptions = [pipeFor(input), 'pipe', 'pipe', ...(secret === undefined ? [] : ['pipe' as const])]
    const child = asCaller(() => spawn(file, args, { env, cwd, detached: true, stdio }))
    feed(child.stdin, input)
    feed(child.stdio[3], secret)
    return await watched(child, options)
  } catch (error) {
    // Not every failure to start comes as an event: E2BIG and bytes that argv cannot hold are thrown.
    return { ...SILENT, outcome: 'failed', error: error instanceof Error ? error.message : String(error) }
  }
}

const SILENT = { stdout: '', stderr: '', truncated: false } as const

function watched(child: ChildProcess, options: BriefOptions): Promise<BriefResult> {
  const { timeoutMs, signal, maxBytes = 65_536, clock = systemClock } = options
  const onDropped = options.endAtMax === true ? () => killGroup(child) : undefined
  const stdout = capture(child.stdout, maxBytes, onDropped)
  const stderr = capture(child.stderr, maxBytes, onDropped)
  if (options.onOutput !== undefined)
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', options.onOutput)
  return new Promise((resolve) => {
    const settle = (outcome: BriefResult['outcome'], more: { code?: number; error?: string } = {}) => {
      cancelDeadline()
      signal?.removeEventListener('abort', onAbort)
      const truncated = stdout.truncated() || stderr.truncated()
      resolve({ outcome, stdout: stdout.close(), stderr: stderr.close(), truncated, ...more })
    }
    const cut = (outcome: BriefResult['outcome']) => {
      killGroup(child)
      settle(outcome)
    }
    const onAbort = () => cut('aborted')
    const cancelDeadline = clock.after(timeoutMs, () => cut('timed_out'))
    signal?.addEventListener('abort', onAbort, { once: true })
    child.once('error', (error) => settle('failed', { error: error.message }))
    // Children that it left behind hold the pipes open: without this, `close` would wait for them.
    child.once('exit', () => killGroup(child))
    child.once('close', (code) => settle('exited', code === null ? {} : { code }))
  })
}

/** One that has ended, or does not read, gets nothing. */
function feed(pipe: unknown, text: string | undefined): void {
  if (!(pipe instanceof Writable) || text === undefined) return
  pipe.on('error', () => {})
  pipe.end(text)
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // ESRCH: the group is empty already.
  }
}

/** Output of a child; there is none where it could not even get its pipes. */
function capture(stream: Readable | null | undefined, maxBytes: number, onDropped: (() => void) | undefined) {
  const chunks: Buffer[] = []
  let room = maxBytes
  let dropped = false
  stream?.on('error', () => {})
  stream?.on('data', (chunk: Buffer) => {
    if (chunk.length > room) {
      dropped = true
      onDropped?.()
    }
    if (room > 0) chunks.push(chunk.subarray(0, room))
    room -= Math.min(room, chunk.length)
  })
  return {
    truncated: () => dropped,
    close() {
      stream?.destroy()
      return Buffer.concat(chunks).toString('utf8')
    },
  }
}
