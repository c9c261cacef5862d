/** What stands in a working tree that no commit has: changed files, new ones, and those that git ignores or passes over. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { cut } from '../../contract/base/text.ts'
import type { GitPlace } from '../../files/git/place.ts'
import { GitError } from '../../files/git/stand-in.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import type { WorktreeGit } from './git.ts'
import { keptOfIgnored } from './ignored.ts'
import type { LaidFile } from './store.ts'

const STATUS = [
  'status',
  '--porcelain',
  '-z',
  '--no-renames',
  '--untracked-files=all',
  '--ignored=matching',
  // Git would look into submodules with their own configuration; they are looked at one by one.
  '--ignore-submodules=dirty',
] as const

const MAX_HASHED = 500

export interface Changes {
  /** Files that are not as their commit has them, and new ones. */
  readonly changed: readonly { readonly code: string; readonly file: string }[]
  /** Files that git ignores and nobody can make again. */
  readonly ignored: readonly string[]
  /** There is more than was looked at. */
  readonly truncated: boolean
}

/** Reads a working tree; rejects where git does not say. */
export async function changesIn(
  git: WorktreeGit,
  tree: GitPlace & { readonly workTree: string },
  disposable: readonly string[],
): Promise<Changes> {
  const { code, stdout, truncated, said } = await git.ask(tree, STATUS)
  if (code !== 0) throw new GitError(said)
  const all = parseChanges(stdout)
  const named = all.filter((one) => one.code === '!!').map(({ file }) => file)
  const passedOver = await passedOverIn(git, tree)
  return {
    changed: [...all.filter((one) => one.code !== '!!'), ...passedOver],
    ignored: keptOfIgnored(tree.workTree, named, disposable),
    truncated,
  }
}

/** Files that git was told not to look at (`update-index --skip-worktree` or `--assume-unchanged`), and that have changed. */
async function passedOverIn(git: WorktreeGit, tree: GitPlace & { readonly workTree: string }) {
  const { code, stdout, truncated, said } = await git.ask(tree, ['ls-files', '-v', '-s', '-z'])
  if (code !== 0) throw new GitError(said)
  // A repository of tens of thousands of files: git's word is taken for those.
  if (truncated) return []
  const flagged = parseFlagged(stdout).filter(({ file }) => lookAtEntry(join(tree.workTree, file)).is === 'file')
  if (flagged.length === 0) return []
  const files = flagged.slice(0, MAX_HASHED).map(({ file }) => join(tree.workTree, file))
  const hashes = (await git.run(tree, ['hash-object', '--', ...files])).split('\n')
  // What is too much to be looked at counts as changed.
  return flagged.filter(({ oid }, at) => hashes[at] !== oid).map(({ file }) => ({ code: ' M', file }))
}

/** Reads `git ls-files -v -s -z`: of the files with a flag (`S`, or a lower-case letter) the hash and the name. */
const parseFlagged = (text: string): readonly { readonly oid: string; readonly file: string }[] =>
  text.split('\0').flatMap((entry) => {
    const [, tag = 'H', oid, file] = /^(\S) \d+ ([0-9a-f]+) \d\t(.+)$/s.exec(entry) ?? []
    const isFlagged = tag === 'S' || tag !== tag.toUpperCase()
    return isFlagged && oid !== undefined && file !== undefined ? [{ oid, file }] : []
  })

/** Reads `git status --porcelain -z`. */
export function parseChanges(text: string): readonly { readonly code: string; readonly file: string }[] {
  const changes: { code: string; file: string }[] = []
  const records = text.split('\0')
  for (let at = 0; at < records.length; at++) {
    const record = records[at] ?? ''
    if (record === '') continue
    changes.push({ code: cut(record, 2), file: record.slice(3) })
    // A file that was renamed or copied is followed by its old name.
    if (/^[RC]/.test(record)) at++
  }
  return changes
}

/** True of a file that a start has laid there, and that is as it was laid: it is nobody's work. */
export function isAsLaid(path: string, file: string, laid: readonly LaidFile[]): boolean {
  const known = laid.find((one) => one.file === file)
  if (known === undefined) return false
  const now = stamp(path, file)
  return now !== undefined && now.size === known.size && now.mtime === known.mtime
}

/** How a file is told from what somebody makes of it later. */
export function stamp(path: string, file: string): LaidFile | undefined {
  const seen = lookAtEntry(join(path, file))
  return 'stats' in seen ? { file, size: seen.stats.size, mtime: seen.stats.mtimeMs } : undefined
}

/** A directory of a submodule that was not fetched: git does not look into it. */
export function hasFiles(directory: string): boolean {
  try {
    return readdirSync(directory).length > 0
  } catch {
    return lookAtEntry(directory).is !== 'missing'
  }
}
