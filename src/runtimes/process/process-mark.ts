/**
 * The mark of a session's processes: their limit of file locks. The kernel has not looked at that limit since 2.4, and
 * every child inherits it, also with a cleaned environment, in a session of its own, when its parents are gone. Only who
 * sets the limit back on purpose is rid of it. Without `prlimit` (util-linux) or /proc nobody is marked.
 */
import { readFileSync } from 'node:fs'
import { cut } from '../../contract/base/text.ts'

/** Of a token; everybody may see it, so it does not tell the token. */
export const markOf = (token: string): string => String(Number.parseInt(cut(hashOf(token), 12), 16) + 1)

/** The same as a name, for the environment of processes that are to know no secret. */
export const runIdOf = (token: string): string => hashOf(token).slice(-32)

function hashOf(token: string): string {
  // Loaded when somebody is to be killed: in a host that only waits it would be a megabyte and a half.
  const { createHash } = process.getBuiltinModule('node:crypto')
  return createHash('sha256').update(token).digest('hex')
}

export const hasMark = (pid: number, mark: string): boolean => limitOf(pid) === mark

/** The arguments of `prlimit` by which it becomes that program, with the mark. */
export const markedArgs = (token: string, command: string, args: readonly string[]): readonly string[] => [
  `--locks=${markOf(token)}:`,
  command,
  ...args,
]

/** A number, or `unlimited`; undefined where it cannot be seen. */
function limitOf(pid: number): string | undefined {
  try {
    return /^Max file locks\s+(\S+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))?.[1]
  } catch {
    return undefined
  }
}
