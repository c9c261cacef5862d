/**
 * Processes of commands that outlive the supervisor. All that is known of a start stands in the directory of its command:
 * who claims `claim.N` runs it, `status.N` says how it ended, `output.N` is what it wrote.
 *
 * X1  A start runs its command at most once: of all that want its claim, one gets it.
 * X2  What has not claimed its start can be revoked, and then never runs.
 * X3  The wrapper of a command is not among the processes that `end` ends first: it tells how the command ended.
 */
import { spawn } from 'node:child_process'
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { type Clock, delay, nextTurn } from '../../kernel/clock.ts'
import { asCaller } from '../../kernel/file-modes.ts'
import { type Environment, findBinary } from '../../kernel/processes.ts'
import { bootId, commandLineOf, hasProc, identify, livenessOf, parseStat } from '../process/process-identity.ts'
import { markOf } from '../process/process-mark.ts'
import { killTree, membersOf, membersOfEach, type Tree } from '../process/process-tree.ts'
import { MAX_OUTPUT_BYTES, type WrapperTools, wrapperArgs } from './scripts.ts'

interface Start {
  readonly id: string
  readonly number: number
}

interface Launch extends Start {
  readonly command: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string
}

type Sight =
  | { readonly state: 'unclaimed' | 'revoked' | 'lost' }
  | { readonly state: 'running'; readonly elapsedMs: number | undefined }
  | { readonly state: 'done'; readonly status: number }

export interface ExecRuntimeDeps {
  readonly clock: Clock
  /** Where the directories of its commands are made. */
  readonly directory: string
  /** Where its tools are looked for. */
  readonly env: Environment
}

const REVOKED = 'revoked'
/** For a wrapper to write down how its command ended, and for its output to be written. */
const SETTLE_MS = 2_000
const PAUSE_MS = 10
/** Of the clock that start times of processes are told by: the same on every Linux that we run on. */
const TICKS_PER_SEC = 100

export async function createExecRuntime({ clock, directory, env }: ExecRuntimeDeps) {
  const tools = await findTools(env)
  /** Leaders of the wrappers that this process has started. */
  const leaders = new Map<string, number>()
  const of = ({ id, number }: Start, file: 'claim' | 'status' | 'output') => join(directory, id, `${file}.${number}`)
  const keyOf = ({ id, number }: Start) => `${id} ${number}`

  function look(start: Start): Sight {
    const status = linkAt(of(start, 'status'))
    if (status !== undefined) return { state: 'done', status: Number(status) }
    const claim = linkAt(of(start, 'claim'))
    if (claim === undefined) return { state: 'unclaimed' }
    if (claim === REVOKED) return { state: 'revoked' }
    const { wrapper } = parseClaim(claim)
    if (livenessOf(wrapper) !== 'dead') return { state: 'running', elapsedMs: elapsedSince(wrapper.start_time) }
    // It may have ended between the two looks.
    const last = linkAt(of(start, 'status'))
    return last === undefined ? { state: 'lost' } : { state: 'done', status: Number(last) }
  }

  /** Of the wrapper's own session: the one that outlives the command until its output is written. */
  function leaderOf(start: Start): number | undefined {
    const own = leaders.get(keyOf(start))
    if (own !== undefined) return own
    const claim = linkAt(of(start, 'claim'))
    const leader = claim === undefined || claim === REVOKED ? undefined : parseClaim(claim).leader
    // The number may be another's by now.
    return leader !== undefined && commandLineOf(leader).includes(join(directory, start.id)) ? leader : undefined
  }

  /** All of the command's processes are younger than its wrapper. */
  function treeOf(start: Start): Tree {
    const claim = linkAt(of(start, 'claim'))
    const token = start.id
    return claim === undefined || claim === REVOKED ? { token } : { token, first: parseClaim(claim).wrapper }
  }

  let asked: Tree[] = []
  let answer: Promise<readonly (readonly number[])[]> | undefined
  /** To look at all processes takes milliseconds: commands that end at once share a look. */
  async function membersSoon(tree: Tree): Promise<readonly number[]> {
    const place = asked.push(tree) - 1
    answer ??= nextTurn().then(() => {
      const trees = asked
      asked = []
      answer = undefined
      return membersOfEach(trees)
    })
    return (await answer)[place] ?? []
  }

  /** True: so it is, in time. */
  async function until(isSo: () => boolean): Promise<boolean> {
    const deadline = clock.monotonic() + SETTLE_MS
    while (!isSo()) {
      if (clock.monotonic() >= deadline) return false
      await delay(clock, PAUSE_MS)
    }
    return true
  }

  async function end(start: Start): Promise<readonly number[]> {
    let left: readonly number[] = []
    const deadline = clock.monotonic() + SETTLE_MS
    do {
      const tree = treeOf(start)
      left = (await membersSoon(tree)).length === 0 ? [] : await killTree(tree, clock)
      // One that has just claimed it may be about to begin the command.
      if (look(start).state !== 'running') break
      await delay(clock, PAUSE_MS)
    } while (clock.monotonic() < deadline)
    if (await until(() => leaderOf(start) === undefined)) return left
    const leader = leaderOf(start)
    const root = leader === undefined ? undefined : identify(leader)
    return root === undefined ? left : [...left, ...(await killTree({ root }, clock))]
  }

  return {
    boot: bootId(),
    maxOutputBytes: MAX_OUTPUT_BYTES,
    look,
    end,
    start(launch: Launch, gone: (error?: string) => void): void {
      const home = join(directory, launch.id)
      if (launch.number === 1) rmSync(home, { recursive: true, force: true })
      mkdirSync(home, { recursive: true, mode: 0o700 })
      writeFileSync(join(home, 'stdin'), launch.stdin, { mode: 0o600 })
      // The wrapper has the umask of who started us.
      writeFileSync(of(launch, 'output'), '', { mode: 0o600, flag: 'a' })
      const key = keyOf(launch)
      const stdin = openSync(join(home, 'stdin'), 'r')
      try {
        const wrapped = { ...launch, directory: home, mark: markOf(launch.id) }
        const child = asCaller(() =>
          spawn('/bin/sh', wrapperArgs(wrapped, tools), {
            cwd: launch.cwd,
            env: launch.env,
            detached: true,
            stdio: [stdin, 'ignore', 'ignore'],
          }),
        )
        if (child.pid !== undefined) leaders.set(key, child.pid)
        child.once('error', ({ message }) => gone(message))
        child.once('exit', () => {
          leaders.delete(key)
          gone()
        })
        child.unref()
      } finally {
        closeSync(stdin)
      }
    },
    revoke(start: Start): boolean {
      mkdirSync(join(directory, start.id), { recursive: true, mode: 0o700 })
      try {
        symlinkSync(REVOKED, of(start, 'claim'))
        return true
      } catch (error) {
        if (isCode(error, 'EEXIST')) return false
        throw error
      }
    },
    outputBytes: (start: Start): number => sizeOf(of(start, 'output')),
    tail: (start: Start, maxBytes: number): Buffer => lastBytes(of(start, 'output'), maxBytes),
    dropOutput: (start: Start): Promise<void> => rm(of(start, 'output'), { force: true }).catch(() => {}),
    terminate(start: Start): void {
      for (const pid of membersOf(treeOf(start))) signal(pid, 'SIGTERM')
    },
    remove: (id: string): Promise<void> => rm(join(directory, id), { recursive: true, force: true }),
    list(): readonly string[] {
      try {
        return readdirSync(directory)
      } catch {
        return []
      }
    },
  }
}

async function findTools(env: Environment): Promise<WrapperTools> {
  const find = async (name: string) => (await findBinary(name, env)) ?? `/bin/${name}`
  const prlimit = hasProc ? await findBinary('prlimit', env) : undefined
  return { ln: await find('ln'), cat: await find('cat'), prlimit: prlimit ?? '' }
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** As the wrapper wrote it: its pid, that of the leader of its session, the run of the machine, its start. */
function parseClaim(text: string) {
  const [pid, leader, boot = '', ...rest] = text.split('|')
  const stat = rest.join('|')
  const start = hasProc ? (parseStat(stat)?.startTime ?? '') : stat.trim()
  return { wrapper: { pid: Number(pid), start_time: start, boot_id: boot }, leader: Number(leader) }
}

const elapsedSince = (startTime: string): number | undefined =>
  hasProc ? Math.max(0, (uptime() - Number(startTime) / TICKS_PER_SEC) * 1000) : undefined

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch {
    return 0
  }
}

function lastBytes(path: string, maxBytes: number): Buffer {
  try {
    const file = openSync(path, 'r')
    try {
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(size, maxBytes))
      return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, size - bytes.length))
    } finally {
      closeSync(file)
    }
  } catch {
    // It wrote nothing.
    return Buffer.alloc(0)
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code
