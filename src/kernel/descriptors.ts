/** How many files and sockets this process may have open. */
import { readFileSync } from 'node:fs'

/** Where the system does not show it: what macOS gives at least. */
const USUAL = 10_240
const LINE = /^Max open files\s+(\d+)/m

/** Node has raised the soft limit to the hard one by then. */
export function descriptorLimit(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  try {
    const limit = Number(LINE.exec(read())?.[1])
    return Number.isSafeInteger(limit) && limit > 0 ? limit : USUAL
  } catch {
    return USUAL
  }
}
