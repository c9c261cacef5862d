/**
 * Whether keys go to a program that a shell has in front of it and that reads key by key: an editor, a pager. They are
 * no part of the shell's next line. What is typed while a program reads lines, or nothing, waits for the shell: it is.
 */
import { readStat } from '../process/process-identity.ts'
import { isRaw } from './stty.ts'

/** `pid`: of the shell; `fd`: the master of its terminal. */
export function keyReaderWatch(pid: number, fd: number): () => boolean {
  /** The process group that was seen to read keys: it is not asked at each of them. */
  let known: number | undefined
  return () => {
    const stat = readStat(pid)
    const isInFront = stat !== undefined && stat.foreground > 0 && stat.foreground !== stat.group
    if (!isInFront) known = undefined
    else if (known !== stat.foreground) known = isRaw(fd) === true ? stat.foreground : undefined
    return known !== undefined
  }
}
