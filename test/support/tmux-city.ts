/** A city's tmux server and runs in it, for tests; whatever a test leaves is ended and removed. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import { findByToken } from '../../src/runtimes/process/process-tree.ts'
import type {
  AgentProcess,
  Attachable,
  Exit,
  LaunchSpec,
  ProcessEvent,
  Runtime,
} from '../../src/runtimes/process/runtime.ts'
import { createTmuxRuntime } from '../../src/runtimes/tmux/runtime.ts'

/** Why these tests cannot run here; false: they can. */
export const withoutTmux = spawnSync('tmux', ['-V']).status === 0 ? false : 'tmux is not installed on this machine'

export const soon = () => AbortSignal.timeout(20_000)

export class TmuxCity implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-tmux-'))
  readonly socket = join(this.path, 'tmux')
  readonly #tokens: string[] = []
  readonly #runtimes: Runtime[] = []
  #runs = 0

  runtime(): Runtime & Attachable {
    const log = { warn: () => {} }
    const runtime = createTmuxRuntime({ clock: systemClock, log, socket: this.socket, env: process.env })
    this.#runtimes.push(runtime)
    return runtime
  }

  spec(command: string, args: readonly string[], more: Partial<LaunchSpec> = {}): LaunchSpec {
    const token = randomBytes(16).toString('hex')
    this.#tokens.push(token)
    const name = `run-${++this.#runs}`
    const directory = join(this.path, name)
    mkdirSync(directory, { mode: 0o700 })
    const path = process.env['PATH'] ?? ''
    const env = { PATH: path, HOME: this.path, TERM: 'xterm-256color', LANG: 'C.UTF-8', SVC_INSTANCE_TOKEN: token }
    const identity = { sessionId: `s-${name}`, generation: 1, token }
    const terminal = { io: 'pty', columns: 200, rows: 50, delivery: 'line', debounceMs: 30 } as const
    const place = { identity, name, directory, workDir: this.path, command, args, env }
    return { ...place, ...terminal, interruptKey: 'ctrl-c', processNames: [], ...more }
  }

  /** A client of a person's. */
  tmux(...args: string[]): string {
    return spawnSync('tmux', ['-S', this.socket, ...args], { encoding: 'utf8' }).stdout.trim()
  }

  serverPid(): number {
    return Number(this.tmux('display-message', '-p', '#{pid}'))
  }

  async [Symbol.asyncDispose]() {
    for (const runtime of this.#runtimes) await runtime.close()
    for (const pid of this.#tokens.flatMap(findByToken)) process.kill(pid, 'SIGKILL')
    this.tmux('kill-server')
    // A log writer that is just starting would make its directory anew.
    const writers = () => spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout.includes(`${this.path}/run-`)
    await until('the log writers have ended', () => !writers())
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** Waits for a condition; fails with `what` after its deadline. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export async function outputOf(spec: Pick<LaunchSpec, 'directory'>): Promise<string> {
  return (await openOutputReader(spec.directory).read(0, 10_000_000)).bytes.toString('utf8')
}

export const printed = (spec: LaunchSpec, text: string) =>
  until(`output ${text}`, async () => (await outputOf(spec)).includes(text))

export function exitOf(agent: AgentProcess): Promise<Exit> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('it did not end')), 15_000)
    agent.on((event: ProcessEvent) => {
      if (event.type !== 'exit') return
      clearTimeout(timer)
      resolve(event.exit)
    })
  })
}

export function isRunning(pid: number): boolean {
  const state = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).stdout.trim()
  return state !== '' && !state.startsWith('Z')
}
