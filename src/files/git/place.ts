/** Where a repository keeps what git knows: read from its files, so that no program is asked which repository it is. */
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { look } from '../../kernel/look.ts'
import { readRegular, realPath } from '../read.ts'

export interface GitPlace {
  /** Holds `HEAD` and the index. */
  readonly gitDir: string
  /** Holds the objects and the references: another directory than `gitDir` for a worktree. */
  readonly commonDir: string
  /** Undefined: a bare repository, or one that is only asked about commits. */
  readonly workTree: string | undefined
}

/** A link to a git directory is one short line. */
const MAX_LINK_BYTES = 8_192

/** The repository whose top is `directory`; undefined: there is none right there. */
export function placeAt(directory: string): GitPlace | undefined {
  const entry = join(directory, '.git')
  const seen = look(entry)
  if (seen.is === 'directory') return placeOf(entry, directory)
  if (seen.is === 'file') {
    const leadsTo = linkIn(entry)
    return leadsTo === undefined ? undefined : placeOf(leadsTo, directory)
  }
  return isGitDirectory(directory) ? placeOf(directory, undefined) : undefined
}

/** The repository that `directory` is in. */
export function placeAround(directory: string): GitPlace | undefined {
  for (let at = realPath(directory); ; at = dirname(at)) {
    const found = placeAt(at)
    if (found !== undefined || at === dirname(at)) return found
  }
}

/** The git directories of the worktrees that a repository has at `path`. */
export function worktreeDirs(commonDir: string, path: string): readonly string[] {
  const root = join(commonDir, 'worktrees')
  return namesIn(root)
    .map((name) => join(root, name))
    .filter((dir) => {
      const entry = lineOf(join(dir, 'gitdir'))
      return entry !== undefined && samePath(dirname(resolve(dir, entry)), path)
    })
}

/** What the file `.git` of a worktree leads to; undefined: it is no such file. */
export function linkIn(file: string): string | undefined {
  const target = /^gitdir: (.+)$/.exec(lineOf(file) ?? '')?.[1]
  return target === undefined ? undefined : resolve(dirname(file), target)
}

/** True where both name one place; parts that are not there are compared by their names. */
export const samePath = (one: string, other: string): boolean => realPath(one) === realPath(other)

function placeOf(gitDir: string, workTree: string | undefined): GitPlace | undefined {
  const common = lineOf(join(gitDir, 'commondir'))
  const commonDir = common === undefined ? gitDir : resolve(gitDir, common)
  return isGitDirectory(commonDir) ? { gitDir, commonDir, workTree } : undefined
}

const isGitDirectory = (directory: string): boolean =>
  existsSync(join(directory, 'HEAD')) && existsSync(join(directory, 'objects')) && existsSync(join(directory, 'refs'))

function lineOf(file: string): string | undefined {
  try {
    return readRegular(file, MAX_LINK_BYTES)
      ?.toString('utf8')
      .replace(/\r?\n[\s\S]*$/, '')
  } catch {
    return undefined
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
