/** What the files of a run and the process table say about its host, without talking to it. */
import { readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { livenessOf } from '../process/process-identity.ts'
import { type ExitRecord, FILES, type HostFile, parseExitRecord, parseHostFile } from './protocol.ts'

export type HostState =
  /** The end is on record. */
  | { readonly state: 'ended'; readonly record: ExitRecord }
  /** It runs, or that cannot be ruled out. */
  | { readonly state: 'there'; readonly file: HostFile }
  /** It ran and died without a record. */
  | { readonly state: 'gone' }
  /** It has not said yet where it is. */
  | { readonly state: 'absent' }

export function findHost(directory: string): HostState {
  const file = readHostFile(directory)
  const dead = file === undefined || livenessOf(file) === 'dead'
  // Read after the look at the process: what a host records before it dies is then seen. A record counts also while its
  // host still waits for somebody to read it: nothing of the agent runs once there is one (H3).
  const record = readExit(directory)
  if (record !== undefined) return { state: 'ended', record }
  if (!dead) return { state: 'there', file }
  return { state: file === undefined ? 'absent' : 'gone' }
}

function readExit(directory: string): ExitRecord | undefined {
  const text = readIfThere(join(directory, FILES.exit))
  return text === undefined ? undefined : parseExitRecord(text)
}

export function readHostFile(directory: string): HostFile | undefined {
  const text = readIfThere(join(directory, FILES.host))
  return text === undefined ? undefined : parseHostFile(text)
}

/** What a host leaves that was killed, or that never ran: its socket, and the whole environment of its agent. */
export function clearRun(directory: string): void {
  rmSync(join(directory, FILES.spec), { force: true })
  const socket = readHostFile(directory)?.socket
  if (socket !== undefined) dropSocket(socket)
}

/** With the directory, where it was the last one there. */
export function dropSocket(socket: string): void {
  rmSync(socket, { force: true })
  try {
    rmdirSync(dirname(socket))
  } catch {
    // Others have their sockets there.
  }
}

/**
 * Who cleans up directories of sockets (`/run/user/<uid>` goes with the last log-in) leaves hosts that live and cannot be
 * reached: such a one is told a new place, and listens there (a host of an earlier version does not).
 */
export function callBack(directory: string, { pid }: HostFile, socket: string): void {
  writeFileSync(join(directory, FILES.socket), socket, { mode: 0o600 })
  try {
    process.kill(pid, 'SIGHUP')
  } catch {
    // It has ended.
  }
}

/** Its end is on record and was read: a host that still waits for a reader need not, and would hold its memory. */
export function sendHome(directory: string): void {
  const host = readHostFile(directory)
  if (host === undefined || livenessOf(host) !== 'alive') return
  try {
    process.kill(host.pid, 'SIGTERM')
  } catch {
    // It has left by itself.
  }
}

/** A host that has not told where it is will not start its agent any more (H1). */
export function revoke(directory: string): void {
  try {
    writeFileSync(join(directory, FILES.revoked), '', { mode: 0o600 })
  } catch {
    // No directory: no host can start from it either.
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
