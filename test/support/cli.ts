/** The command line in tests: the real program in a process of its own, or its `main` in this one. */
import { spawn } from 'node:child_process'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { BrokenPipe, type Io, type Source } from '../../src/cli/base/io.ts'
import { main } from '../../src/cli/main.ts'
import { systemClock } from '../../src/kernel/clock.ts'

export const entry = resolve(import.meta.dirname, '../../tools/svcctl.mjs')

export interface CliOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly input?: string | Uint8Array
  /** Ends the program with this signal's abort, as Ctrl-C would. */
  readonly signal?: AbortSignal
  /** Sees stdout as it comes. */
  readonly onOut?: (text: string) => void
  /** Sees stderr as it comes. */
  readonly onErr?: (text: string) => void
}

export interface CliResult {
  readonly out: string
  readonly err: string
  readonly code: number
}

/** The caller's environment without anything that would lead the program to a server of its own. */
function cleanEnv(env: CliOptions['env']): NodeJS.ProcessEnv {
  const { SVC_API: _1, SVC_CITY: _2, SVC_TOKEN: _3, SVC_HOME: _4, NO_COLOR: _5, ...rest } = process.env
  return { ...rest, SVC_HOME: '/nonexistent/svc-home', ...env }
}

/** Runs `svcctl` with these words; resolves when it has ended. */
export async function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const child = spawn(process.execPath, [entry, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: cleanEnv(options.env),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const onAbort = () => child.kill('SIGINT')
  options.signal?.addEventListener('abort', onAbort, { once: true })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
    options.onOut?.(text)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
    options.onErr?.(text)
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('close', (code, signal) => {
      options.signal?.removeEventListener('abort', onAbort)
      done({ out, err, code: code ?? (signal === null ? -1 : 128) })
    })
  })
}

export interface WorldOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  readonly input?: string
  readonly terminal?: boolean
  readonly columns?: number
  readonly io?: Partial<Io>
  /** stdout is gone after so many writes. */
  readonly breakAfter?: number
}

/** A stdin that says `input`. */
export const sourceOf = (input: string, as: Partial<Source> = {}): Source => ({
  isTerminal: false,
  readAll: async () => input,
  readLine: async () => input.split('\n', 1)[0] ?? '',
  endLinesAt: () => () => undefined,
  async *chunks() {
    yield Buffer.from(input)
  },
  ...as,
})

/** As `cli`, in this process: no start-up, and the terminal can be made up. */
export async function cliHere(args: readonly string[], options: WorldOptions = {}): Promise<CliResult> {
  const { terminal = false, columns = 80, breakAfter = Number.POSITIVE_INFINITY } = options
  const [out, err]: [string[], string[]] = [[], []]
  const sink = (parts: string[], limit: number) => ({
    isTerminal: terminal,
    columns,
    async write(text: string | Uint8Array) {
      if (parts.length >= limit) throw new BrokenPipe()
      parts.push(typeof text === 'string' ? text : Buffer.from(text).toString())
    },
  })
  const code = await main(args, {
    // Nothing is kept from one test for the next.
    env: { SVC_HOME: '/nonexistent/svc-home', XDG_CACHE_HOME: '/dev/null', ...options.env },
    cwd: options.cwd ?? '/nonexistent',
    home: '/home/nobody',
    stdin: sourceOf(options.input ?? '', { isTerminal: terminal }),
    stdout: sink(out, breakAfter),
    stderr: sink(err, Number.POSITIVE_INFINITY),
    clock: systemClock,
    random: () => 0.5,
    newKey: () => crypto.randomUUID(),
    signal: new AbortController().signal,
    reading: () => options.io?.signal ?? new AbortController().signal,
    ...options.io,
  })
  return { out: out.join(''), err: err.join(''), code }
}
