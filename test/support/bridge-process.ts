/** The bridge to IRC as people start it: a process of its own, beside a supervisor. */
import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { eventually } from './http.ts'

const ENTRY = resolve(import.meta.dirname, '../../tools/svcctl.mjs')

export class BridgeProcess implements AsyncDisposable {
  readonly child: ChildProcess
  /** Its exit code; null after SIGKILL. */
  readonly ended: Promise<number | null>
  #logged = ''

  constructor(home: string, words: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [ENTRY, 'bridge', ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, SVC_HOME: home, SVC_API: '', SVC_CITY: '', SVC_TOKEN: '', ...env },
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#logged += text
    })
    // Behind the last of what it said.
    this.ended = new Promise((done) => this.child.once('close', (code) => done(code)))
  }

  /** What it told of itself, line by line. */
  get logged(): string {
    return this.#logged
  }

  /** Until it says so. */
  async says(message: string): Promise<void> {
    await eventually(
      `the bridge says ${message}: ${this.#logged}`,
      () => this.#logged.includes(`"msg":"${message}"`) || undefined,
    )
  }

  /** Resolves with the exit code; null after SIGKILL. */
  kill(signal: NodeJS.Signals): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal)
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGKILL')
  }
}
