/**
 * Writes to files that are whole or not there. A plain `writeSync` may write a part of its bytes and report no error: on a
 * disk that fills up, half a line then stands in a log and swallows the next one.
 */
import { fdatasyncSync, fstatSync, ftruncateSync, renameSync, rmSync, writeFileSync, writeSync } from 'node:fs'

/** The system calls of `appendWhole`; only tests pass their own. */
export interface AppendCalls {
  write(fd: number, bytes: Uint8Array, from: number): number
  sync(fd: number): void
  truncate(fd: number, size: number): void
}

const CALLS: AppendCalls = { write: writeSync, sync: fdatasyncSync, truncate: ftruncateSync }

/**
 * Appends `text` to a file that this process alone writes, and returns when it is on disk. Throws where it is not: then
 * nothing of it is left in the file, unless the system refuses to cut the file as well.
 */
export function appendWhole(fd: number, text: string, calls: AppendCalls = CALLS): void {
  const bytes = Buffer.from(text)
  const before = fstatSync(fd).size
  try {
    for (let from = 0; from < bytes.length; ) {
      const written = calls.write(fd, bytes, from)
      if (written <= 0) throw new Error('the system wrote nothing and reported no error')
      from += written
    }
    calls.sync(fd)
  } catch (error) {
    undo(() => calls.truncate(fd, before))
    throw error
  }
}

/** Undoes as far as the system lets it. */
function undo(step: () => void): void {
  try {
    step()
  } catch {
    // The reader skips a line that is not whole.
  }
}

/** Writes `text` beside `path`, flushes it and renames it to `path`. Throws where that fails: `path` is then as before. */
export function replaceFile(path: string, text: string, mode = 0o600): void {
  const next = `${path}.new`
  try {
    writeFileSync(next, text, { mode, flush: true })
    renameSync(next, path)
  } catch (error) {
    undo(() => rmSync(next, { force: true }))
    throw error
  }
}
