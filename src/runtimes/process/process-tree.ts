/**
 * All processes of a session, and their end (decision 64). Members are the descendants of the root, whatever is in the
 * kernel session of the root or of a member, whatever carries the session's token in its environment, and whatever has its
 * mark: each alone can be escaped (double fork, setsid, a cleaned environment, a limit set back), all at once only on
 * purpose.
 *
 * T1  Our own process and its ancestors are never members.
 * T2  Members are stopped before any is killed, until a scan finds no new one: nothing can fork its way out.
 * T3  `killTree` ends by its deadline and names whom it could not kill.
 * T4  A root whose pid now means another process is no root.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { type Clock, delay } from '../../kernel/clock.ts'
import { hasProc, type ProcessIdentity, type ProcessStat, readStat } from './process-identity.ts'
import { hasMark, markOf, runIdOf } from './process-mark.ts'

/** The variables by which a process is known to belong to a session, or to a command of a city. */
export const TOKEN_VARIABLE = 'SVC_INSTANCE_TOKEN'
const EXEC_VARIABLE = 'SVC_EXEC_ID'
/** In place of the token, where a process is to know no secret of ours. */
export const RUN_VARIABLE = 'SVC_SERVICE_RUN'
const SESSION_VARIABLE = 'SVC_SESSION_ID'
const SERVICE_VARIABLE = 'SVC_SERVICE_NAME'
const CITY_VARIABLE = 'SVC_CITY_PATH'

export interface Tree {
  readonly root?: ProcessIdentity
  /** Of a session; of a command its id. */
  readonly token?: string
  /** A process that carries the token: none that is older can be a member by it, and looking at all takes its time. */
  readonly first?: ProcessIdentity
}

export interface TokenHolder {
  readonly pid: number
  readonly token: string
  readonly session_id: string
  readonly city_path: string
}

const DEADLINE_MS = 5_000
const LONGEST_PAUSE_MS = 50

/** Kills every member; resolves with the pids that are still there at the deadline, which should be none. */
export async function killTree(tree: Tree, clock: Clock, deadlineMs = DEADLINE_MS): Promise<readonly number[]> {
  const deadline = clock.monotonic() + deadlineMs
  const known = new Map<number, string>()
  for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    const left = stopAll(tree, known, () => clock.monotonic() < deadline)
    if (left.length === 0 || clock.monotonic() >= deadline) return left
    for (const pid of left) signal(pid, 'SIGKILL')
    await delay(clock, pause)
  }
}

/** T2: the members, all stopped. `known` has the start times of all that were ever members. */
function stopAll(tree: Tree, known: Map<number, string>, inTime: () => boolean): number[] {
  for (;;) {
    const found = membersAmong(processTable(), tree, known)
    const fresh = found.filter((process) => known.get(process.pid) !== process.startTime)
    for (const process of fresh) {
      known.set(process.pid, process.startTime)
      signal(process.pid, 'SIGSTOP')
    }
    if (fresh.length === 0 || !inTime()) return found.map((process) => process.pid)
  }
}

/** Members right now, without touching them. */
export function membersOf(tree: Tree): readonly number[] {
  return membersAmong(processTable(), tree, new Map()).map((process) => process.pid)
}

/** The same of several trees, with one look at all processes. */
export function membersOfEach(trees: readonly Tree[]): readonly (readonly number[])[] {
  const table = processTable()
  return trees.map((tree) => membersAmong(table, tree, new Map()).map(({ pid }) => pid))
}

function membersAmong(table: readonly ProcessStat[], tree: Tree, known: ReadonlyMap<number, string>): ProcessStat[] {
  const untouchable = ourselves(table)
  const members = new Set<number>()
  const sessions = new Set<number>()
  const now = new Map(table.map((process) => [process.pid, process.startTime]))
  const once = [...known, ...(tree.root === undefined ? [] : [[tree.root.pid, tree.root.start_time] as const])]
  for (const [pid, startTime] of once) {
    // The number of a dead leader cannot be given away while its session lives: what is in it is ours (T4).
    if (!now.has(pid)) sessions.add(pid)
    else if (now.get(pid) === startTime) members.add(pid)
  }
  if (tree.token !== undefined) {
    const mark = markOf(tree.token)
    const entries = entriesOf(tree.token)
    for (const process of youngerThan(tree.first, table))
      if (hasAny(process, entries) || hasMark(process.pid, mark)) members.add(process.pid)
  }
  for (let grown = true; grown; ) {
    const before = members.size
    for (const process of table) if (belongs(process, members, sessions)) members.add(process.pid)
    grown = members.size > before
  }
  return table.filter((process) => members.has(process.pid) && !untouchable.has(process.pid))
}

const youngerThan = (first: ProcessIdentity | undefined, table: readonly ProcessStat[]) =>
  first === undefined || !hasProc
    ? table
    : table.filter(({ startTime }) => Number(startTime) >= Number(first.start_time))

/** A child of a member, or in a kernel session that a member leads or led. */
const belongs = (process: ProcessStat, members: ReadonlySet<number>, sessions: ReadonlySet<number>) =>
  members.has(process.parent) || members.has(process.session) || sessions.has(process.session)

/** T1. */
function ourselves(table: readonly ProcessStat[]): ReadonlySet<number> {
  const parents = new Map(table.map((process) => [process.pid, process.parent]))
  const found = new Set([0, 1])
  for (let pid: number | undefined = process.pid; pid !== undefined && !found.has(pid); pid = parents.get(pid))
    found.add(pid)
  return found
}

/** Processes with this token in their environment: what an agent left behind whose host is gone. */
export function findByToken(token: string): readonly number[] {
  const entries = entriesOf(token)
  return processTable()
    .filter((process) => hasAny(process, entries))
    .map((process) => process.pid)
}

/** Every process that says which session of which city it belongs to; for the reconciler's orphans. */
export function listTokens(): readonly TokenHolder[] {
  if (!hasProc) return []
  return processTable().flatMap((process) => {
    const environment = environmentOf(process.pid)
    if (!environment.includes(TOKEN_VARIABLE)) return []
    const variables = new Map(environment.toString('utf8').split('\0').map(pair))
    const token = variables.get(TOKEN_VARIABLE)
    const session = variables.get(SESSION_VARIABLE)
    const city = variables.get(CITY_VARIABLE)
    if (token === undefined || session === undefined || city === undefined) return []
    return [{ pid: process.pid, token, session_id: session, city_path: city }]
  })
}

/** Tokens of everything that a city has started, whatever it is. */
export function tokensIn(cityPath: string): ReadonlySet<string> {
  const entry = Buffer.from(`${CITY_VARIABLE}=${cityPath}\0`)
  const found = (hasProc ? processTable() : []).flatMap(({ pid }) => {
    if (!environmentOf(pid).includes(entry) || variableOf(pid, CITY_VARIABLE) !== cityPath) return []
    return variableOf(pid, TOKEN_VARIABLE) ?? variableOf(pid, EXEC_VARIABLE) ?? variableOf(pid, RUN_VARIABLE) ?? []
  })
  return new Set(found)
}

/** Runs (`runIdOf`) of what says that it is a service of this city. */
export function serviceRuns(cityPath: string): ReadonlySet<string> {
  const entry = Buffer.from(`${CITY_VARIABLE}=${cityPath}\0`)
  const found = (hasProc ? processTable() : []).flatMap(({ pid }) => {
    const environment = environmentOf(pid)
    if (!environment.includes(entry)) return []
    const variables = new Map(environment.toString('utf8').split('\0').map(pair))
    const isService = variables.has(SERVICE_VARIABLE) && variables.get(CITY_VARIABLE) === cityPath
    return isService ? (variables.get(RUN_VARIABLE) ?? []) : []
  })
  return new Set(found)
}

function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** What processes of the token carry one of; a run stands for itself. */
function entriesOf(token: string): readonly Buffer[] {
  const named = [TOKEN_VARIABLE, EXEC_VARIABLE, RUN_VARIABLE].map((name) => `${name}=${token}\0`)
  return [...named, `${RUN_VARIABLE}=${runIdOf(token)}\0`].map((entry) => Buffer.from(entry))
}

function hasAny(process: ProcessStat, entries: readonly Buffer[]): boolean {
  const environment = environmentOf(process.pid)
  return entries.some(
    (entry) => environment.subarray(0, entry.length).equals(entry) || environment.includes(`\0${entry.toString()}`),
  )
}

/** One variable of a process' environment, as it was at exec. */
export function variableOf(pid: number, name: string): string | undefined {
  const entries = environmentOf(pid).toString('utf8').split('\0')
  return new Map(entries.map(pair)).get(name)
}

const NOTHING = Buffer.alloc(0)

/** As it was at exec; empty for processes of others, for kernel threads and where there is no /proc. */
function environmentOf(pid: number): Buffer {
  if (!hasProc) return NOTHING
  try {
    return readFileSync(`/proc/${pid}/environ`)
  } catch {
    return NOTHING
  }
}

function processTable(): ProcessStat[] {
  if (!hasProc) return tableByPs()
  const found: ProcessStat[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    const stat = Number.isInteger(pid) ? readStat(pid) : undefined
    if (stat !== undefined && !stat.zombie) found.push(stat)
  }
  return found
}

/** Without /proc: no tokens, and the process group stands in for the kernel session, which `ps` spells differently. */
function tableByPs(): ProcessStat[] {
  const columns = ['pid=', 'ppid=', 'pgid=', 'stat=', 'lstart='].flatMap((name) => ['-o', name])
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const { stdout } = spawnSync('ps', ['-A', ...columns], { encoding: 'utf8', timeout: 2_000, maxBuffer: 16_777_216 })
  return (stdout ?? '').split('\n').flatMap((line) => {
    const found = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(.*\S)\s*$/.exec(line)
    const [, pid, parent, group, state = '', startTime = ''] = found ?? []
    if (found === null || state.startsWith('Z')) return []
    const leader = Number(group)
    return [
      {
        pid: Number(pid),
        parent: Number(parent),
        group: leader,
        session: leader,
        foreground: -1,
        startTime,
        runnable: state.startsWith('R'),
        zombie: false,
      },
    ]
  })
}

function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch {
    // Gone meanwhile, or not ours to signal (a setuid program): the deadline reports it (T3).
  }
}
