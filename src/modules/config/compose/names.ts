/** Names that a city derives for itself: the id prefixes of city and rigs, and where its services keep what they have. */
import { join, resolve } from 'node:path'
import { cut } from '../../../contract/base/text.ts'

const SERVICES = join('.svc', 'services')

/** Where a service keeps what it has: `written` is a path in the city, or one below `.svc/services/`. */
export function stateRootOf(city: string, written: string): string {
  return written.startsWith(`${SERVICES}/`) ? resolve(city, written) : resolve(city, SERVICES, written)
}

/**
 * The id prefix for a name: initials of its parts (`-`, `_`, `.` or camel case), of a single word the whole when it has
 * at most three letters, else the first two. A trailing `-py` or `-go` does not count.
 */
export function derivePrefix(name: string): string {
  const base = name.replace(/-(?:py|go)$/, '') || name
  const separated = base.split(/[-_.]+/).filter((part) => part !== '')
  const words = separated.length > 1 ? separated : (separated[0] ?? base).split(/(?<=[a-z0-9])(?=[A-Z])/)
  const first = words[0] ?? base
  const prefix =
    words.length > 1 ? words.map((word) => cut(word, 1)).join('') : first.length <= 3 ? first : cut(first, 2)
  return prefix.toLowerCase()
}
