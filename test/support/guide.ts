/**
 * Runs the examples of a guide as a reader would type them: in a terminal, in order, in a home of their own, against a
 * real supervisor; and compares what comes with what the guide shows.
 *
 * Only fences of `console` are run: lines with `$ ` are typed, what follows is what is to be seen. `…` stands for
 * anything, on a line of its own for any lines. Ids, times, ages, ports and the reader's home are as they come; an id that
 * was shown stands for the same one further down. A comment before a fence says what is special about it:
 *
 *   <!-- run: skip: it needs an account -->        not run, with the reason
 *   <!-- run: exit 3 -->                            its last command ends with 3
 *   <!-- run: wait -->                              repeated until it shows that
 *   <!-- run: follow -->                            goes on for ever: Ctrl-C once it has shown that
 *   <!-- run: types - 1 -->                         answers these, each with Enter, when it is asked (`-`: Enter alone)
 *   <!-- run: write demo/agents/ana/prompt.md -->   what a person would put into that file; `append` adds to it.
 *                                                   `wrong` behind it: it is refused
 *   <!-- run: needs curl -->                        only where that program is
 *   <!-- run: restart -->                           the server, which has been killed before, is started again
 *   <!-- run: with opencode -->                     only where that stands ready (test/agents); behind others too
 *
 * With SVC_SHOW_EXAMPLES=1 it tells what came, to be copied into the guide. `<!-- run: first`, then lines of shell, is what
 * only the test needs.
 */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { spawn } from '@lydell/node-pty'
import { compileCache } from '../../src/runtimes/compile-cache.ts'
import { endProcessesOf } from './city-processes.ts'
import { type RunningSupervisor, startSupervisor } from './supervisor.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const COMMAND_MS = 120_000
/** A look is a process: of a long wait a fifth is between looks. */
const POLL_MS = { shortest: 200, longest: 1_000, share: 0.2 } as const
const COLUMNS = 160
const ESCAPE = '\u001b'
/** A line that is drawn anew, with what stood there. */
const REDRAWN = new RegExp(`[^\\n]*\\r${ESCAPE}\\[K`, 'g')
const CONTROLS = new RegExp(`\\r|${ESCAPE}\\[[0-9;?]*[A-Za-z]`, 'g')
const LAST_WORDS = '-- the example has ended:'
const SAID_LAST = new RegExp(`\\n${LAST_WORDS} (\\d+) (.*)\\n$`)
const SHOWS = process.env['SVC_SHOW_EXAMPLES'] === '1'
/** What guides write for the reader's home, and for the address of the server. */
const SHOWN_HOME = '/home/ana'
const SHOWN_ADDRESS = '127.0.0.1:8372'

// ---- what stands in a guide -----------------------------------------------------------------------------------------

export interface Fence {
  readonly line: number
  readonly language: string
  readonly mark: string
  readonly lines: readonly string[]
}

type Part =
  | { readonly kind: 'fence'; readonly fence: Fence }
  | { readonly kind: 'first'; readonly script: string; readonly companion: string | undefined }

/** Fences with the marks before them, and scripts that only the test needs, in order. */
export function partsOf(text: string): readonly Part[] {
  const lines = text.split('\n')
  const parts: Part[] = []
  let mark = ''
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    const first = /^<!-- run: first(?: with (\w+))?$/.exec(line)
    if (first !== null) {
      const end = lines.indexOf('-->', at)
      parts.push({ kind: 'first', script: lines.slice(at + 1, end).join('\n'), companion: first[1] })
      at = end
      continue
    }
    mark = /^<!-- run: (.+) -->$/.exec(line)?.[1] ?? mark
    const language = /^```(\w*)$/.exec(line)?.[1]
    if (language === undefined) continue
    const end = lines.indexOf('```', at + 1)
    assert.notEqual(end, -1, `line ${at + 1}: the fence does not end`)
    parts.push({ kind: 'fence', fence: { line: at + 1, language, mark, lines: lines.slice(at + 1, end) } })
    mark = ''
    at = end
  }
  return parts
}

interface Typed {
  readonly line: number
  readonly command: string
  readonly shown: readonly string[]
}

/** What is typed; a backslash at the end goes on in the next line. */
function typedIn({ line, lines }: Fence): readonly Typed[] {
  const typed: { line: number; command: string; shown: string[] }[] = []
  let open = false
  for (const [at, text] of lines.entries()) {
    const last = typed.at(-1)
    if (open && last !== undefined) last.command += `\n${text}`
    else if (text.startsWith('$ ')) typed.push({ line: line + at + 1, command: text.slice(2), shown: [] })
    else if (last === undefined) assert.fail(`line ${line + at + 1}: nothing was typed before this`)
    else last.shown.push(text)
    open = text.endsWith('\\')
  }
  return typed.map((one) => ({ ...one, shown: one.shown.at(-1) === '' ? one.shown.slice(0, -1) : one.shown }))
}

// ---- comparing ------------------------------------------------------------------------------------------------------

/** What differs from run to run, and what an example of it looks like. The first ones are remembered. */
const IDS = [
  /(?:req|run)-[0-9a-f]{24}/,
  /\b(?:s|dlv|ml)-[0-9a-f]{16}\b/,
  /\bthread-[0-9a-f]{12}\b/,
  /\bcv-[0-9a-f]{32}\b/,
  /\b(?:de|sh)-[0-9a-z]{3,10}\b/,
]
const VARYING = [
  /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/,
  /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/,
  /\b\d+(?:ms|s|m|h|d) ago\b|\bnow\b/,
  /\b[0-9a-f]{40}\b/,
  /\b\d+\.\d+s\b/,
  /-adhoc-[0-9a-f]{10}\b/,
  /"pid":\d+/,
  /\b\d+\.\d+\.\d+\b/,
]
const TOKEN = new RegExp([...IDS, ...VARYING, /…/, /\s+/].map(({ source }) => `(?:${source})`).join('|'), 'g')

/** Compares what came with what is shown, and learns which ids stand for which. */
export class Comparison {
  readonly #known = new Map<string, string>()

  /** A command with the ids that were seen for those that the guide shows. */
  actual(command: string): string {
    return [...this.#known].reduce((text, [shown, seen]) => text.replaceAll(shown, seen), command)
  }

  matches(shown: readonly string[], output: string): boolean {
    if (shown.length === 0) return true
    const ids: string[] = []
    const pattern = shown.map((line) =>
      line.trim() === '…' ? '(?:.*\\n)*?' : `${this.#pattern(line.trimEnd(), ids)}[ \\t]*\\n`,
    )
    const text = `${output.replaceAll(/[ \t]+$/gm, '').trim()}\n`
    const found = new RegExp(`^${pattern.join('')}$`).exec(text)
    if (found === null) return false
    for (const [at, id] of ids.entries()) this.#known.set(id, found[at + 1] ?? id)
    return true
  }

  /** Of one line; ids that are new are captured, in order. */
  #pattern(line: string, ids: string[]): string {
    let pattern = ''
    let from = 0
    for (const match of line.matchAll(TOKEN)) {
      pattern += RegExp.escape(line.slice(from, match.index)) + this.#token(match[0], ids)
      from = match.index + match[0].length
    }
    return pattern + RegExp.escape(line.slice(from))
  }

  #token(token: string, ids: string[]): string {
    if (token === '…') return '.*'
    if (/^\s+$/.test(token)) return '\\s+'
    const id = IDS.find((one) => one.test(token))
    if (id === undefined) return `(?:${VARYING.find((one) => one.test(token))?.source})`
    const known = this.#known.get(token)
    if (known !== undefined) return RegExp.escape(known)
    if (ids.includes(token)) return `\\${ids.indexOf(token) + 1}`
    ids.push(token)
    return `(${id.source})`
  }
}

// ---- running --------------------------------------------------------------------------------------------------------

export interface Told {
  readonly ran: readonly string[]
  readonly skipped: readonly string[]
}

export interface GuideOptions {
  /** What stands ready beyond svcctl: fences that are `with` it are run, and no others. */
  readonly only?: string
  readonly env?: Readonly<Record<string, string>>
  /** Directories of programs that readers have. */
  readonly path?: readonly string[]
  /** Addresses that the guide shows, and where what it speaks of really is. */
  readonly places?: Readonly<Record<string, string>>
}

/** A reader's home with a supervisor; gone afterwards, with every process that was started in it. */
export class Reader implements AsyncDisposable {
  readonly home: string
  #server: RunningSupervisor
  readonly #options: GuideOptions
  readonly #comparison = new Comparison()
  #directory: string

  static async start(options: GuideOptions = {}): Promise<Reader> {
    const home = mkdtempSync(join(tmpdir(), 'svc-guide-'))
    return new Reader(
      home,
      await startSupervisor({ home: join(home, '.svc'), env: environment(home, options) }),
      options,
    )
  }

  private constructor(home: string, server: RunningSupervisor, options: GuideOptions) {
    this.home = home
    this.#directory = home
    this.#server = server
    this.#options = options
    const bin = join(home, '.bin')
    mkdirSync(bin)
    writeFileSync(
      join(bin, 'svcctl'),
      `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, 'tools/svcctl.mjs')}" "$@"\n`,
    )
    chmodSync(join(bin, 'svcctl'), 0o755)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
    endProcessesOf(this.home)
    rmSync(this.home, { recursive: true, force: true })
  }

  /** Everything in the guide that is to be run; throws where something else is to be seen. */
  async follow(guide: string): Promise<Told> {
    const ran: string[] = []
    const skipped: string[] = []
    for (const part of partsOf(readFileSync(join(ROOT, guide), 'utf8'))) {
      if (part.kind === 'first') {
        if (part.companion !== this.#options.only) continue
        const { output, exitCode } = await this.#run(part.script)
        assert.equal(exitCode, 0, `${guide}: $ ${part.script}\n${output}`)
        continue
      }
      const { fence } = part
      const why = whyNot(fence, this.#options.only)
      if (why === undefined) ran.push(...(await this.#do(guide, fence)))
      else if (why !== '') skipped.push(`${guide}:${fence.line}: ${why}`)
    }
    return { ran, skipped }
  }

  async #do(guide: string, fence: Fence): Promise<readonly string[]> {
    const [kind = '', name = ''] = fence.mark.split(' ')
    if (kind === 'write' || kind === 'append') return [this.#put(kind, name, fence)]
    if (kind === 'restart') return [await this.#restart(fence)]
    const typed = typedIn(fence)
    for (const [at, one] of typed.entries()) {
      const code = kind === 'exit' && at === typed.length - 1 ? Number(name) : 0
      await this.#type(`${guide}:${one.line}`, one, fence.mark, code)
    }
    return typed.map(({ line, command }) => `${guide}:${line}: ${command}`)
  }

  async #restart({ line }: Fence): Promise<string> {
    await this.#server.kill('SIGKILL')
    this.#server = await startSupervisor({ home: join(this.home, '.svc'), env: environment(this.home, this.#options) })
    return `line ${line}: the server is started again`
  }

  #put(kind: 'write' | 'append', name: string, { line, lines }: Fence): string {
    const path = join(this.home, name)
    mkdirSync(dirname(path), { recursive: true })
    const text = this.#actual(`${lines.join('\n')}\n`)
    if (kind === 'write') writeFileSync(path, text)
    else appendFileSync(path, `\n${text}`)
    return `line ${line}: ${kind} ${name}`
  }

  async #type(where: string, { command, shown }: Typed, mark: string, code: number): Promise<void> {
    const [kind] = mark.split(' ')
    const begun = performance.now()
    for (;;) {
      const seen = (text: string) => this.#comparison.matches(shown, this.#shown(text))
      const { output, exitCode } = await this.#run(this.#actual(command), {
        ...(kind === 'follow' ? { until: seen } : {}),
        answers: kind === 'types' ? answersIn(mark) : [],
      })
      const right = seen(output) && (kind === 'follow' || exitCode === code)
      const isLast = right || kind !== 'wait' || performance.now() - begun > COMMAND_MS
      if (isLast && SHOWS) process.stderr.write(`$ ${command}\n${this.#shown(output)}`)
      if (right) return
      if (isLast) {
        assert.fail(
          `${where}: $ ${command}\nexit code ${exitCode}, not ${code}, or not what is shown:\n${this.#shown(output)}\nshown is:\n${shown.join('\n')}`,
        )
      }
      const pause = Math.min(Math.max((performance.now() - begun) * POLL_MS.share, POLL_MS.shortest), POLL_MS.longest)
      await new Promise((later) => setTimeout(later, pause))
    }
  }

  #actual(text: string): string {
    const places = Object.entries(this.#options.places ?? {})
    return places
      .reduce((said, [shown, actual]) => said.replaceAll(shown, actual), this.#comparison.actual(text))
      .replaceAll(SHOWN_HOME, this.home)
      .replaceAll(SHOWN_ADDRESS, new URL(this.#server.url).host)
  }

  #shown(text: string): string {
    const places = Object.entries(this.#options.places ?? {})
    return places
      .reduce((said, [shown, actual]) => said.replaceAll(actual, shown), text)
      .replaceAll(this.home, SHOWN_HOME)
      .replaceAll(new URL(this.#server.url).host, SHOWN_ADDRESS)
  }

  /**
   * In a terminal, in the directory that the last command ended in. The shell stays until its last words were read: what
   * a terminal still holds when its last process ends can be lost. And what was left to run is not hung up: `setsid -f`
   * comes back before it has left the terminal, and a person does not close that in the same moment.
   */
  #run(command: string, { until, answers = [] }: Handling = {}): Promise<{ output: string; exitCode: number }> {
    const left = [...answers]
    const script = `trap : INT; trap '' HUP\ncd "${this.#directory}"\n${command}\nprintf '\\n${LAST_WORDS} %s %s\\n' "$?" "$PWD"\nread -r _`
    // Questions are asked only where a terminal can do more than print.
    const TERM = answers.length > 0 ? 'xterm' : 'dumb'
    const env = { ...environment(this.home, this.#options), TERM, NO_COLOR: '1' }
    const terminal = spawn('bash', ['--norc', '--noprofile', '-c', script], { cols: COLUMNS, rows: 50, env })
    const ended = Promise.withResolvers<{ output: string; exitCode: number }>()
    const timer = setTimeout(() => terminal.kill('SIGKILL'), COMMAND_MS)
    let [raw, text] = ['', '']
    terminal.onData((data) => {
      raw += data
      text = raw.replaceAll(REDRAWN, '').replaceAll(CONTROLS, '')
      const [whole, code, directory = this.#directory] = SAID_LAST.exec(text) ?? []
      if (whole !== undefined) {
        this.#directory = directory
        ended.resolve({ output: text.slice(0, -whole.length), exitCode: Number(code) })
        terminal.write('\r')
      } else if (until?.(text) === true) terminal.write('\x03')
      else if (left.length > 0 && text.endsWith(': ')) terminal.write(`${left.shift()}\r`)
    })
    terminal.onExit(({ exitCode }) => {
      clearTimeout(timer)
      ended.resolve({ output: text, exitCode })
    })
    return ended.promise
  }
}

/** What a person does while a command runs. */
interface Handling {
  /** Then Ctrl-C. */
  readonly until?: (output: string) => boolean
  readonly answers?: readonly string[]
}

const answersIn = (mark: string): readonly string[] =>
  mark
    .replace(/^types | with \w+$/g, '')
    .split(' ')
    .map((answer) => (answer === '-' ? '' : answer))

/** Undefined: it is run. Empty: it is nothing that could be run. */
function whyNot({ language, mark, line, lines }: Fence, only: string | undefined): string | undefined {
  const companion = /\bwith (\w+)$/.exec(mark)?.[1]
  if (only !== undefined) return companion === only ? undefined : ''
  if (companion !== undefined) return `with ${companion}: in test/agents`
  const program = /\bneeds (\S+)$/.exec(mark)?.[1]
  if (program !== undefined && !isInstalled(program)) return `needs ${program}`
  if (mark.startsWith('skip: ')) return mark.slice('skip: '.length)
  if (/^(?:write|append) /.test(mark)) return undefined
  if (language === 'console') return undefined
  const typed = lines.some((text) => /^(?:\$ |svcctl )/.test(text))
  assert.ok(!typed, `line ${line}: what is typed stands in a fence of console, which is run`)
  return ''
}

const isInstalled = (program: string): boolean =>
  (process.env['PATH'] ?? '').split(delimiter).some((directory) => existsSync(join(directory, program)))

function environment(home: string, { env, path = [] }: GuideOptions): Record<string, string> {
  const { PATH = '', LANG = 'C.UTF-8' } = process.env
  return {
    // A reader has run svcctl before.
    ...compileCache(),
    HOME: home,
    PATH: [join(home, '.bin'), ...path, PATH].join(delimiter),
    LANG,
    SHELL: '/bin/bash',
    XDG_RUNTIME_DIR: join(home, 'run'),
    XDG_CACHE_HOME: join(home, '.cache'),
    ...env,
  }
}
