/** A supervisor to be fuzzed: its cities filled, its user's home its own, and nothing of it left over afterwards. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { killTree, listTokens } from '../../src/runtimes/process/process-tree.ts'
import { kill } from './city-processes.ts'
import { eventually } from './crash-client.ts'
import { HARMLESS_SHELL, prepareCities, stopCities, unregisterOthers } from './fuzzed-city.ts'
import { FuzzedWorld } from './fuzzed-world.ts'
import { type RunningSupervisor, startSupervisor } from './supervisor.ts'
import { removeTree } from './temporary.ts'

const END_MS = 30_000
const ANSWER_MS = 5_000

interface Process {
  readonly pid: number
  readonly args: string
}

export class FuzzedSupervisor implements AsyncDisposable {
  readonly server: RunningSupervisor
  readonly world: FuzzedWorld

  private constructor(server: RunningSupervisor, world: FuzzedWorld) {
    this.server = server
    this.world = world
  }

  static async start(): Promise<FuzzedSupervisor> {
    const root = mkdtempSync(join(tmpdir(), 'svc-fuzz-'))
    const runtimeDir = join(root, 'run')
    mkdirSync(runtimeDir, { mode: 0o700 })
    const env = { ...HARMLESS_SHELL, XDG_RUNTIME_DIR: runtimeDir }
    const server = await startSupervisor({ home: join(root, 'home'), env })
    try {
      const requestId = await prepareCities(server.url)
      return new FuzzedSupervisor(server, await FuzzedWorld.open(server.url, root, requestId))
    } catch (error) {
      await destroy(server)
      throw error
    }
  }

  get url(): string {
    return this.server.url
  }
  /** Where fuzzed cities are made. */
  get work(): string {
    return this.server.work
  }

  /** Resident bytes of the supervisor. */
  memory(): number {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(this.server.pid)], { encoding: 'utf8' }).trim()) * 1024
  }

  /** Bytes on its heap, garbage included. */
  async heap(): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(ANSWER_MS) })).text()
    return Number(/^nodejs_heap_size_used_bytes (\S+)$/m.exec(text)?.[1])
  }

  /** How many processes agents have, with those that serve them. */
  processes(): number {
    return processesBelow(this.work).filter(({ pid }) => pid !== this.server.pid).length
  }

  /** What is wrong with the server after all of it: dead, not well, or with errors in its log. */
  async faults(): Promise<string[]> {
    const { child, home } = this.server
    const found: string[] = []
    if (child.exitCode !== null || child.signalCode !== null)
      return [`the server ended with ${child.exitCode ?? child.signalCode}: ${this.server.stderr().slice(-2_000)}`]
    const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(ANSWER_MS) })
    const text = await answer.text()
    if (answer.status !== 200 || !text.includes('"status":"ok"')) found.push(`/health: ${answer.status} ${text}`)
    const log = readFileSync(join(home, 'supervisor.log'), 'utf8').split('\n')
    const errors = log.filter((line) => /"level":[56]0/.test(line)).map((line) => line.slice(0, 1_500))
    if (errors.length > 0) found.push(`${errors.length} errors in the log:\n${errors.slice(0, 20).join('\n')}`)
    return found
  }

  /** Stops every city, then the supervisor; answers with what runs on although nothing of it should. */
  async end(): Promise<string[]> {
    await unregisterOthers(this.url)
    await stopCities(this.url)
    // The unregistered ones stop in the background.
    await eventually('every agent has ended', () => (this.processes() === 0 ? true : undefined), END_MS).catch(() => {})
    await this.server.kill('SIGTERM')
    return processesBelow(this.work).map(({ pid, args }) => `process ${pid} is left: ${args.slice(0, 300)}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await destroy(this.server)
  }
}

async function destroy(server: RunningSupervisor): Promise<void> {
  await server.kill('SIGKILL')
  for (const { pid } of processesBelow(server.work)) kill(pid)
  for (const { token, city_path: path } of listTokens())
    if (path.startsWith(server.work)) await killTree({ token }, systemClock)
  await server[Symbol.asyncDispose]()
  removeTree(server.work)
}

/** Of agents and of those that serve them: by their token, and by what their command lines name. */
function processesBelow(root: string): Process[] {
  const agents = new Set(listTokens().flatMap(({ pid, city_path: path }) => (path.startsWith(root) ? [pid] : [])))
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), args: commandLine(name) }))
    .filter(({ pid, args }) => agents.has(pid) || args.includes(`${root}/`))
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
