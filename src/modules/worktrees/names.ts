/** Names of worktrees: the last part of a path and of a branch, whatever a session is called. */

import { cut } from '../../contract/base/text.ts'

const MAX_NAME = 80

/** What git takes in the name of a branch, and every file system in that of a directory. */
export function worktreeName(handle: string): string {
  const plain = handle
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|[.-]+$/g, '')
  const name = cut(plain, MAX_NAME).replace(/(?:\.lock|[.-]+)$/i, '')
  return name === '' ? 'session' : name
}

/** The name itself, then with numbers behind it. */
export function* candidates(name: string): Generator<string> {
  yield name
  for (let next = 2; next < 1_000; next++) yield `${name}-${next}`
}

/** Branches that a worktree may get, the usual one first: a branch that is called `svc` leaves no room below `svc/`. */
export const branchesOf = (name: string): readonly string[] => [`svc/${name}`, `svc-worktree/${name}`]
