/** The real program in a terminal of its own: what somebody who sits there sees, and types. */
import { resolve } from 'node:path'
import { type IPty, spawn as spawnPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'
import { eventually } from './http.ts'

const ENTRY = resolve(import.meta.dirname, '../../tools/svcctl.mjs')

export interface TerminalOptions {
  readonly env: Readonly<Record<string, string>>
  readonly columns?: number
  readonly rows?: number
  /** A shell, to which the program is a job. */
  readonly inShell?: boolean
}

export class TestTerminal implements AsyncDisposable {
  readonly #screen: InstanceType<typeof xterm.Terminal>
  readonly #pty: IPty
  readonly #ended: Promise<number>
  /** Everything that was written, escape codes and all. */
  raw = ''

  constructor(words: readonly string[], { env, columns = 80, rows = 24, inShell = false }: TerminalOptions) {
    const { SVC_API: _1, SVC_CITY: _2, SVC_TOKEN: _3, NO_COLOR: _4, ...others } = process.env
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true })
    const command = [process.execPath, ENTRY, ...words]
    const [program = '', ...rest] = inShell ? ['bash', '--norc', '--noprofile', '-i'] : command
    this.#pty = spawnPty(program, rest, {
      cols: columns,
      rows,
      env: { ...others, TERM: 'xterm-256color', ...env },
    })
    this.#pty.onData((data) => {
      this.raw += data
      this.#screen.write(data)
    })
    this.#screen.onData((answer) => this.#pty.write(answer))
    if (inShell) this.#pty.write(`${command.join(' ')}\r`)
    this.#ended = new Promise((done) => this.#pty.onExit(({ exitCode }) => done(exitCode)))
  }

  get pid(): number {
    return this.#pty.pid
  }

  /** Rows of the screen, without what is empty at the end. */
  lines(): readonly string[] {
    const { active } = this.#screen.buffer
    const rows = Array.from(
      { length: this.#screen.rows },
      (_, at) => active.getLine(active.baseY + at)?.translateToString(true) ?? '',
    )
    return rows.slice(0, rows.findLastIndex((row) => row !== '') + 1)
  }

  text(): string {
    return this.lines().join('\n')
  }

  /** It shows another screen than the one that a shell writes to. */
  get isFullScreen(): boolean {
    return this.#screen.buffer.active.type === 'alternate'
  }

  get columnOfCursor(): number {
    return this.#screen.buffer.active.cursorX
  }

  type(text: string): void {
    this.#pty.write(text)
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows)
    this.#pty.resize(columns, rows)
  }

  kill(signal: NodeJS.Signals): void {
    this.#pty.kill(signal)
  }

  /** Waits until the screen shows this. */
  async shows(what: RegExp | ((text: string) => boolean)): Promise<string> {
    const found = (text: string) => (what instanceof RegExp ? what.test(text) : what(text))
    try {
      return await eventually(`the terminal shows ${what}`, async () => (found(this.text()) ? this.text() : undefined))
    } catch (error) {
      throw new Error(`the terminal does not show ${what}:\n${this.text()}`, { cause: error })
    }
  }

  /** The exit code, once the screen shows all that was written. */
  async ends(): Promise<number> {
    const code = await this.#ended
    await new Promise<void>((done) => this.#screen.write('', done))
    return code
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#pty.kill('SIGKILL')
    } catch {
      // It has ended.
    }
    await this.#ended
    this.#screen.dispose()
  }
}
