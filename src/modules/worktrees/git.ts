/**
 * Git on the repositories of people and the worktrees of sessions (`files/git/stand-in.ts` says what it is kept from).
 *
 * G1  Where a worktree's git directory is, the repository says that the record names; never the worktree.
 * G2  Of what writes the list of worktrees, or reads all of it, one runs at a time in a repository, whichever city asks.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { type GitPlace, linkIn, placeAround, placeAt, samePath, worktreeDirs } from '../../files/git/place.ts'
import { type GitCall, GitError, type GitResult, type StandInGit } from '../../files/git/stand-in.ts'
import { realPath } from '../../files/read.ts'

/** A directory at whose top a repository is, or a place that is known already. */
type Where = string | GitPlace

/** G2, by repository: what comes last there. Of the process, because cities share repositories. */
const turns = new Map<string, Promise<unknown>>()

function inTurn<T>(repository: string, work: () => Promise<T>): Promise<T> {
  const done = (turns.get(repository) ?? Promise.resolve()).then(work)
  const over = done
    .catch(() => {})
    .then(() => {
      if (turns.get(repository) === over) turns.delete(repository)
    })
  turns.set(repository, over)
  return done
}

export class WorktreeGit {
  readonly #git: Pick<StandInGit, 'ask'>

  constructor(git: Pick<StandInGit, 'ask'>) {
    this.#git = git
  }

  /** Whatever git answers; rejects where it could not be asked, or did not answer in time. */
  async ask(where: Where, args: readonly string[], call: GitCall = {}): Promise<GitResult> {
    const place = placeIn(where)
    const asked = () => this.#git.ask(place, args, call)
    return args[0] === 'worktree' ? inTurn(place.commonDir, asked) : asked()
  }

  /** What git prints where it succeeds; rejects otherwise. */
  async run(where: Where, args: readonly string[], call?: GitCall): Promise<string> {
    const { code, stdout, said } = await this.ask(where, args, call)
    if (code !== 0) throw new GitError(`git ${args[0] ?? ''}: ${said || `exit status ${code}`}`)
    return stdout.trimEnd()
  }

  /** The first line where git succeeds; undefined otherwise. */
  async maybe(where: Where, args: readonly string[]): Promise<string | undefined> {
    const { code, stdout } = await this.ask(where, args)
    const line = stdout.split('\n')[0]?.trim()
    return code === 0 && line !== '' ? line : undefined
  }

  /** Makes a worktree at `path`; `what` is a branch that is there, or `-b NEW` with where it begins. */
  async addWorktree(repository: string, path: string, what: AddedBranch, call: GitCall): Promise<void> {
    const { commonDir } = placeIn(repository)
    const how =
      what.from === undefined
        ? ['--force', '--', path, what.branch]
        : ['--no-track', '-b', what.branch, '--', path, what.from]
    const made = (worktrees: string) => moveIn(worktrees, commonDir, path)
    await this.run(repository, ['worktree', 'add', '--quiet', ...how], { ...call, checksOut: true, made })
  }

  /** Makes a repository forget the worktree that was at `path`. */
  async forgetWorktree(repository: string, path: string): Promise<void> {
    const { commonDir } = placeIn(repository)
    await inTurn(commonDir, async () => {
      for (const dir of worktreeDirs(commonDir, path)) rmSync(dir, { recursive: true, force: true })
    })
  }
}

export interface AddedBranch {
  readonly branch: string
  /** Commit at which the branch begins; undefined: the branch is there. */
  readonly from: string | undefined
}

function placeIn(where: Where): GitPlace {
  if (typeof where !== 'string') return where
  const place = placeAt(where)
  if (place === undefined) throw new GitError(`${where} is no git repository`)
  return place
}

/** Git has made the worktree in a stand-in: what it noted there goes into the repository, under a name that is free. */
function moveIn(worktrees: string, commonDir: string, path: string): void {
  const root = join(realPath(commonDir), 'worktrees')
  mkdirSync(root, { recursive: true })
  let dir = join(root, basename(path))
  for (let next = 1; existsSync(dir); next++) dir = join(root, `${basename(path)}${next}`)
  const [noted = basename(path)] = readdirSync(worktrees)
  cpSync(join(worktrees, noted), dir, { recursive: true })
  writeFileSync(join(path, '.git'), `gitdir: ${dir}\n`)
}

/**
 * The worktree at `path`, as its repository knows it. Throws where the `.git` there is another than the one that was
 * made: what git would say of it is then about another repository.
 */
export function worktreePlace(repository: string, path: string): GitPlace {
  const { commonDir } = placeIn(repository)
  const dirs = worktreeDirs(commonDir, path)
  const leadsTo = linkIn(join(path, '.git'))
  const gitDir = dirs.find((dir) => leadsTo !== undefined && samePath(dir, leadsTo))
  if (gitDir !== undefined) return { gitDir, commonDir, workTree: path }
  throw new GitError(
    leadsTo === undefined
      ? `${join(path, '.git')} is not the file that was made there: it is no worktree any more`
      : `${join(path, '.git')} leads to ${leadsTo}, which is not where ${repository} has this worktree`,
  )
}

export interface Repository {
  /** Top of the working tree, or the bare repository. */
  readonly directory: string
  /** From there to the directory that was asked about; empty for the top. */
  readonly prefix: string
}

/** The repository that a directory is in; undefined where it is in none. A rig may be a part of a larger repository. */
export function repositoryOf(directory: string): Repository | undefined {
  const place = placeAround(directory)
  if (place === undefined) return undefined
  if (place.workTree === undefined) return { directory: realPath(place.commonDir), prefix: '' }
  const top = realPath(place.workTree)
  return { directory: top, prefix: relative(top, realPath(directory)) }
}

/** A worktree as the repository knows it. */
export interface Listed {
  readonly path: string
  /** Undefined: none is checked out. */
  readonly branch: string | undefined
  readonly head: string | undefined
  readonly locked: boolean
}

export async function listed(git: WorktreeGit, repository: string): Promise<readonly Listed[]> {
  const [main, ...others] = parseListed(await git.run(repository, ['worktree', 'list', '--porcelain', '-z']))
  // The first one is the repository itself, which git was asked about through a stand-in.
  return main === undefined ? [] : [{ ...main, path: repository }, ...others]
}

/** Reads `git worktree list --porcelain -z`. */
export function parseListed(text: string): readonly Listed[] {
  return text
    .split('\0\0')
    .filter((entry) => entry.startsWith('worktree '))
    .map((entry) => {
      const lines = entry.split('\0')
      const value = (key: string) =>
        lines.find((line) => line === key || line.startsWith(`${key} `))?.slice(key.length + 1)
      return {
        path: value('worktree') ?? '',
        branch: value('branch')?.replace(/^refs\/heads\//, ''),
        head: value('HEAD'),
        locked: value('locked') !== undefined,
      }
    })
}

/** The commit that something names; undefined where it names none. */
export const commitOf = (git: WorktreeGit, where: Where, ref: string): Promise<string | undefined> =>
  git.maybe(where, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`])

export const branchExists = async (git: WorktreeGit, repository: string, branch: string): Promise<boolean> =>
  (await git.ask(repository, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).code === 0

/** A branch that makes `branch` impossible: it is called as a directory of it, or the other way round. */
export async function branchInTheWay(
  git: WorktreeGit,
  repository: string,
  branch: string,
): Promise<string | undefined> {
  const above = branch
    .split('/')
    .slice(0, -1)
    .map((_, at, parts) => parts.slice(0, at + 1).join('/'))
  for (const name of above) if (await branchExists(git, repository, name)) return name
  const below = await git.maybe(repository, [
    'for-each-ref',
    '--count=1',
    '--format=%(refname)',
    `refs/heads/${branch}/`,
  ])
  return below?.replace(/^refs\/heads\//, '')
}
