/** A real supervisor process for a test: its own home, a free port, gone when the test ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { endProcessesOf } from './city-processes.ts'
import { HeldServer } from './held.ts'
import { removeTree } from './temporary.ts'

/** As `npm start` runs it. */
const MAIN = resolve(import.meta.dirname, '..', '..', 'tools', 'svcctl.mjs')
const START_DEADLINE_MS = 60_000
/** `SVC_TEST_AUTH=1 npm test -- WORD`: the same tests before servers that ask for a token. */
const ASKS_FOR_TOKENS = process.env['SVC_TEST_AUTH'] === '1'

export interface StartOptions {
  /** A home to start on again; a new one where absent. */
  readonly home?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

export interface RunningSupervisor extends AsyncDisposable {
  readonly url: string
  readonly home: string
  /** Where test cities can be made; removed with the home. */
  readonly work: string
  readonly pid: number
  readonly child: ChildProcess
  stderr(): string
  /** Sends the signal and waits for the end; answers with the exit code (null after SIGKILL). */
  kill(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts `svcctl serve` and waits for its ready line. */
export async function startSupervisor(options: StartOptions = {}): Promise<RunningSupervisor> {
  const root = options.home === undefined ? mkdtempSync(join(tmpdir(), 'svc-test-')) : resolve(options.home, '..')
  const home = options.home ?? join(root, 'home')
  // Where the hosts of its cities have their sockets: they outlive it, and are found by it.
  const runtimeDir = join(root, 'run')
  mkdirSync(runtimeDir, { recursive: true, mode: 0o700 })
  const held = new HeldServer()
  const args = [...(options.args ?? []), ...(ASKS_FOR_TOKENS ? ['--auth'] : [])]
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', '--home', home, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      HOME: root,
      SVC_HOME: '',
      SVC_API: '',
      SVC_CITY: '',
      XDG_RUNTIME_DIR: runtimeDir,
      ...held.env,
      ...options.env,
    },
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)))
  const url = await readyUrl(child, () => stderr)
  const kill = (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    return ended
  }
  return {
    url,
    home,
    work: root,
    pid: child.pid ?? 0,
    child,
    stderr: () => stderr,
    kill,
    async [Symbol.asyncDispose]() {
      await kill('SIGKILL')
      // One who asked for a home of its own starts on it again.
      if (options.home === undefined) {
        endProcessesOf(root)
        removeTree(root)
      }
      held.assertNone()
    },
  }
}

function readyUrl(child: ChildProcess, stderr: () => string): Promise<string> {
  return new Promise((done, fail) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      fail(new Error(`no ready line within ${START_DEADLINE_MS} ms: ${stderr()}`))
    }, START_DEADLINE_MS)
    let stdout = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      const [, url] = /^listening on (http:\/\/\S+)$/m.exec(stdout) ?? []
      if (url === undefined) return
      clearTimeout(timer)
      done(url)
    })
    // Behind the last of what it said: that is why.
    child.once('close', (code) => {
      clearTimeout(timer)
      fail(new Error(`the supervisor ended with ${code}: ${stderr()}`))
    })
  })
}
