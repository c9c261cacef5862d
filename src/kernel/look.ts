/**
 * Looks at a path without ever throwing. `statSync(path, { throwIfNoEntry: false })` still throws EACCES, ELOOP, EIO, ESTALE
 * and ENAMETOOLONG: one unreadable directory then breaks a list, a round or a process that only wanted to know.
 */
import { lstatSync, type Stats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

/**
 * `missing` is certain: nothing has this name. `unknown` is not: the system could not tell, `code` says why (an errno name).
 * Callers that act on an absence must treat `unknown` as "there may be something".
 */
export type Look =
  | { readonly is: 'directory' | 'file' | 'link' | 'special'; readonly stats: Stats }
  | { readonly is: 'missing' }
  | { readonly is: 'unknown'; readonly code: string }

/** What `path` leads to, links followed. */
export const look = (path: string): Look => seen(() => statSync(path))

/** What stands at `path` itself: a link is `link`, wherever it leads. */
export const lookAtEntry = (path: string): Look => seen(() => lstatSync(path))

/** `look` off the event loop: a network home may take seconds to answer. */
export async function lookLater(path: string): Promise<Look> {
  try {
    return kindOf(await stat(path))
  } catch (error) {
    return failed(error)
  }
}

export const isDirectory = (path: string): boolean => look(path).is === 'directory'

function seen(read: () => Stats): Look {
  try {
    return kindOf(read())
  } catch (error) {
    return failed(error)
  }
}

function kindOf(stats: Stats): Look {
  if (stats.isDirectory()) return { is: 'directory', stats }
  if (stats.isFile()) return { is: 'file', stats }
  return { is: stats.isSymbolicLink() ? 'link' : 'special', stats }
}

function failed(error: unknown): Look {
  const code = codeOf(error)
  // ENOTDIR: a parent is a file, so nothing can have this name.
  return code === 'ENOENT' || code === 'ENOTDIR' ? { is: 'missing' } : { is: 'unknown', code }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
