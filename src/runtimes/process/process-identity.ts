/**
 * Which process a pid means: a pid is reused, (pid, start time, boot) is not (decision 55). On systems without /proc,
 * `ps` answers; a failed observation is `unknown`, never `dead` (RT2).
 */
import { existsSync, readFileSync } from 'node:fs'
import type { Liveness } from './runtime.ts'

export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since boot on Linux, the text of `ps -o lstart` elsewhere. Only ever compared. */
  readonly start_time: string
  /** Empty where the system has none. */
  readonly boot_id: string
}

/** What /proc/<pid>/stat says, as far as we need it. */
export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly group: number
  readonly session: number
  /** Foreground process group of its terminal; -1 without one. */
  readonly foreground: number
  readonly startTime: string
  /** Dead but not reaped. */
  readonly zombie: boolean
  /** It runs, or would if it got a processor: it does not wait for anything. */
  readonly runnable: boolean
}

export const hasProc = existsSync('/proc/self/stat')

/** Undefined: no such process, or it cannot be seen, or it is dead and not reaped. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = hasProc ? readStat(pid) : undefined
  const startTime = hasProc ? (stat?.zombie ? undefined : stat?.startTime) : startTimeByPs(pid)
  return startTime === undefined ? undefined : { pid, start_time: startTime, boot_id: bootId() }
}

export function livenessOf(identity: ProcessIdentity): Liveness {
  if (identity.boot_id !== bootId()) return 'dead'
  try {
    process.kill(identity.pid, 0)
  } catch (error) {
    if (isGone(error)) return 'dead'
  }
  if (!hasProc) {
    const startTime = startTimeByPs(identity.pid)
    if (startTime === undefined) return 'unknown'
    return startTime === identity.start_time ? 'alive' : 'dead'
  }
  const stat = readStat(identity.pid)
  if (stat === undefined) return existsSync(`/proc/${identity.pid}`) ? 'unknown' : 'dead'
  return stat.startTime === identity.start_time && !stat.zombie ? 'alive' : 'dead'
}

/** Its command line, words apart by blanks; empty where it is not there or cannot be seen. */
export function commandLineOf(pid: number): string {
  if (!hasProc) return textByPs('args=', pid)
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

const TERM_BIT = 1n << 14n

/** Interactive shells do. True where the system does not tell. */
export function ignoresTerm(pid: number): boolean {
  try {
    const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return mask === undefined || (BigInt(`0x${mask}`) & TERM_BIT) !== 0n
  } catch {
    return true
  }
}

export function readStat(pid: number): ProcessStat | undefined {
  try {
    // latin1: the name in it is bytes of the program's choice.
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return undefined
  }
}

/** The name is in parentheses and may itself hold some: what counts starts after the last one. */
export function parseStat(text: string): ProcessStat | undefined {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, parent, group, session, , foreground] = fields
  const startTime = fields[19]
  const pid = Number.parseInt(text, 10)
  if (startTime === undefined || !Number.isInteger(pid)) return undefined
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    foreground: Number(foreground),
    startTime,
    runnable: state === 'R',
    zombie: state === 'Z' || state === 'X',
  }
}

let knownBootId: string | undefined
/** Which run of the machine this is; empty where it does not tell. */
export function bootId(): string {
  knownBootId ??= readBootId()
  return knownBootId
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

function startTimeByPs(pid: number): string | undefined {
  const text = textByPs('lstart=', pid)
  return text === '' ? undefined : text
}

function textByPs(column: string, pid: number): string {
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const found = spawnSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8', timeout: 2_000 })
  return found.status === 0 ? found.stdout.trim() : ''
}

const isGone = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ESRCH'
