/** Every process of a city, found by what the kernel knows of it and not by what we say; and the end of all that a test has started. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { readStat } from '../../src/runtimes/process/process-identity.ts'
import { listTokens, variableOf } from '../../src/runtimes/process/process-tree.ts'
import { eventually } from './crash-client.ts'

/** A process of an agent's tree: it has the token of its run in its environment. */
export interface AgentMember {
  readonly pid: number
  readonly parent: number
  readonly token: string
  readonly session_id: string
  readonly generation: number
}

/** A process that serves one run: a host. */
export interface Attendant {
  readonly pid: number
  /** Name of its program's file. */
  readonly entry: string
  readonly session_id: string
  readonly generation: number
}

export class CityProcesses {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  agents(): readonly AgentMember[] {
    return listTokens()
      .filter(({ city_path: of }) => of === this.#path)
      .flatMap(({ pid, token, session_id }) => {
        const generation = Number(variableOf(pid, 'SVC_RUNTIME_EPOCH'))
        const parent = readStat(pid)?.parent
        // It may have ended meanwhile.
        return parent === undefined || Number.isNaN(generation) ? [] : [{ pid, parent, token, session_id, generation }]
      })
  }

  /** The processes of trees that no other member has begun. */
  roots(): readonly AgentMember[] {
    const agents = this.agents()
    const tokens = new Map(agents.map(({ pid, token }) => [pid, token]))
    return agents.filter(({ parent, token }) => tokens.get(parent) !== token)
  }

  attendants(): readonly Attendant[] {
    const runs = `${this.#path}/.svc/runtime/sessions/`
    return commandLines().flatMap(({ pid, args }) => {
      const at = args.findIndex((arg) => arg.includes(runs))
      const [, session_id = '', generation = ''] = /^([^/]+)\/(\d+)/.exec(args[at]?.split(runs)[1] ?? '') ?? []
      if (session_id === '') return []
      const script = args.find((arg) => /\.(ts|js|sh)$/.test(arg)) ?? args[0] ?? ''
      return [{ pid, entry: basename(script).replace(/\.\w+$/, ''), session_id, generation: Number(generation) }]
    })
  }

  hosts(): readonly Attendant[] {
    return this.attendants().filter(({ entry }) => entry === 'host')
  }

  /** Nothing of any agent runs. */
  async none(what: string): Promise<void> {
    let left: readonly { readonly pid: number }[] = []
    await eventually(what, () => {
      left = [...this.agents(), ...this.attendants()]
      return left.length === 0 ? true : undefined
    }).catch((error: unknown) => assert.fail(`${String(error)}; still there: ${JSON.stringify(left)}`))
  }
}

const ROUNDS = 50

/**
 * Kills whatever runs for the cities below a directory of a test's own: agents, hosts and who serves them;
 * and whatever has that directory for its home, as a supervisor that was started in it.
 * Their supervisor must have ended, or it starts them again.
 */
export function endProcessesOf(root: string): void {
  for (let round = 0; round < ROUNDS; round++) {
    const pids = commandLines()
      .filter(({ pid, args }) => args.some((arg) => arg.includes(`${root}/`)) || belongsTo(pid, root))
      .map(({ pid }) => pid)
    if (pids.length === 0) return
    // Stopped first: who forks faster than it is killed does not.
    for (const pid of pids) kill(pid, 'SIGSTOP')
    for (const pid of pids) kill(pid)
  }
}

/**
 * Kills what a test has begun that had no time to end it: all that has this variable, and whatever runs for the cities of
 * the supervisors among them.
 */
export function endProcessesWith(name: string, value: string): void {
  const left = everyPid().filter((pid) => variableOf(pid, name) === value)
  const homes = new Set(left.map((pid) => variableOf(pid, 'HOME') ?? ''))
  for (const pid of left) kill(pid)
  for (const home of homes) if (home.startsWith(join(tmpdir(), 'svc-'))) endProcessesOf(home)
}

const cityOf = (pid: number): string => variableOf(pid, 'SVC_CITY_PATH') ?? ''

const belongsTo = (pid: number, root: string): boolean =>
  cityOf(pid).startsWith(`${root}/`) || variableOf(pid, 'HOME') === root

/** True where it was there to be killed. */
export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch {
    return false
  }
}

/** Every process that this one has begun, and what those have begun. */
export function descendantsOf(pid: number): readonly number[] {
  const children = everyPid().filter((child) => readStat(child)?.parent === pid)
  return children.flatMap((child) => [child, ...descendantsOf(child)])
}

function commandLines(): readonly { readonly pid: number; readonly args: readonly string[] }[] {
  return everyPid().flatMap((pid) => {
    try {
      return [{ pid, args: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0') }]
    } catch {
      return []
    }
  })
}

const everyPid = (): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

export function isRunning(pid: number): boolean {
  return readStat(pid)?.zombie === false
}
