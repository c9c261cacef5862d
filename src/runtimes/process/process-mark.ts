/**
 * The mark of a session's processes: their limit of file locks. The kernel has not looked at that limit since 2.4, and
 * every child inherits it, also with a cleaned environment, in a session of its own, when its parents are gone. Only who
 * sets the limit back on purpose is rid of it. Without `prlimit` (util-linux) or /proc nobody is marked.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const PRLIMIT_MS = 2_000

/** Of a token; everybody may see it, so it does not tell the token. */
export const markOf = (token: string): string =>
  String(Number.parseInt(createHash('sha256').update(token).digest('hex').slice(0, 12), 16) + 1)

export const hasMark = (pid: number, mark: string): boolean => limitOf(pid) === mark

/** What `spawn` starts has the mark; `spawn` is called at once, and this process has it only meanwhile. */
export function marked<T>(token: string, spawn: () => T): T {
  const own = limitOf(process.pid)
  if (own === undefined || !limitSelf(markOf(token))) return spawn()
  try {
    return spawn()
  } finally {
    limitSelf(own)
  }
}

/** A number, or `unlimited`; undefined where it cannot be seen. */
function limitOf(pid: number): string | undefined {
  try {
    return /^Max file locks\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1]
  } catch {
    return undefined
  }
}

function limitSelf(limit: string): boolean {
  const args = ['--pid', String(process.pid), `--locks=${limit}:`]
  return spawnSync('prlimit', args, { stdio: 'ignore', timeout: PRLIMIT_MS }).status === 0
}
