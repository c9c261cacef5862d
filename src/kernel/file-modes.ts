/**
 * Who may read what we write. Our own state is for our user alone; what people share with us (their configuration, their
 * repositories, whatever agents write) is made with the umask that we were started with.
 *
 * M1  After `restrictUmask` every file is made for its owner alone, unless it is made in `asCaller`.
 * M2  Programs that we start (agents, hooks, git) run with the caller's umask: they work on people's files.
 */
import { chmodSync } from 'node:fs'
import { lookAtEntry } from './look.ts'

/** The umask is the process's, so this is too. Undefined while nobody restricted it: in tests, on the command line. */
let callers: number | undefined

/** M1; before anything is written. */
export function restrictUmask(): void {
  callers ??= process.umask(0o077)
}

/** Does `work` with the caller's umask; it must be synchronous, since the umask is that of the whole process. */
export function asCaller<T>(work: () => T): T {
  if (callers === undefined) return work()
  process.umask(callers)
  try {
    return work()
  } finally {
    process.umask(0o077)
  }
}

/** What is left of `mode` after the caller's umask: for files that are made while others may run. */
export function callersMode(mode: number): number {
  if (callers !== undefined) return mode & ~callers
  // Reading the umask means setting it.
  const own = process.umask(0o077)
  process.umask(own)
  return mode & ~own
}

/** Takes away what others may do with a file or directory of ours; of one that is a link, or not there, nothing. */
export function keepPrivate(path: string): void {
  const found = lookAtEntry(path)
  if (found.is === 'missing' || found.is === 'unknown' || found.is === 'link') return
  const { mode } = found.stats
  if ((mode & 0o077) === 0) return
  try {
    chmodSync(path, mode & 0o700)
  } catch {
    // A file system without modes, or somebody else's file: what stands in it is as visible as its owner wants.
  }
}
