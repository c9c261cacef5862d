/**
 * What would be lost with a worktree: the question that decides whether it is removed or kept.
 *
 * N1  Whatever git does not say counts as something that would be lost.
 * N2  Files that were laid there by a start, and are as they were laid, are nobody's work.
 */
import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { cut } from '../../contract/base/text.ts'
import type { KeptReason } from '../../contract/worktrees.ts'
import { commitOf, GitError, type Listed, listed, type WorktreeGit } from './git.ts'
import type { LaidFile, WorktreeRecord } from './store.ts'

export interface Inspection {
  /** It is where it belongs, and the repository knows it. */
  readonly there: boolean
  readonly head: string | undefined
  readonly dirty: boolean
  readonly merged: boolean
  readonly pushed: boolean
  readonly ahead: number
  readonly behind: number
  /** Undefined: nothing would be lost. */
  readonly kept: KeptReason | undefined
  /** Tip of its branch where that may go too. */
  readonly branchTip: string | undefined
}

/** Every file that is not as its commit has it, to be read with `parseChanges`. */
export const STATUS = [
  '--no-optional-locks',
  'status',
  '--porcelain',
  '-z',
  '--untracked-files=all',
  '--ignore-submodules=none',
] as const

/** Operations that are under way leave these in the git directory. */
const UNDER_WAY = [
  'rebase-merge',
  'rebase-apply',
  'MERGE_HEAD',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'BISECT_LOG',
] as const

const GONE: Omit<Inspection, 'kept' | 'branchTip'> = {
  there: false,
  head: undefined,
  dirty: false,
  merged: false,
  pushed: false,
  ahead: 0,
  behind: 0,
}

export async function inspect(git: WorktreeGit, record: WorktreeRecord): Promise<Inspection> {
  const all = await listed(git, record.repository)
  const own = all.find(({ path }) => samePath(path, record.path))
  const tip = await commitOf(git, record.repository, `refs/heads/${record.branch}`)
  const elsewhere = all.some(({ path, branch }) => branch === record.branch && !samePath(path, record.path))
  const base = await basesOf(git, record)
  const safe = (commit: string | undefined) => isSafe(git, record.repository, commit, base)
  const tipState = await safe(tip)
  const branchTip = tip !== undefined && !elsewhere && (tipState.merged || tipState.pushed) ? tip : undefined
  if (own === undefined || !existsSync(record.path)) {
    // Moved by a person, it is that person's.
    const moved = own === undefined && elsewhere
    return { ...GONE, merged: tipState.merged, pushed: tipState.pushed, kept: moved ? 'moved' : undefined, branchTip }
  }
  return inspectTree(git, record, own, {
    base,
    branchTip,
    tipSafe: tip === undefined || tipState.merged || tipState.pushed,
  })
}

interface Around {
  readonly base: readonly string[]
  readonly branchTip: string | undefined
  readonly tipSafe: boolean
}

async function inspectTree(git: WorktreeGit, record: WorktreeRecord, own: Listed, around: Around): Promise<Inspection> {
  const { path, repository } = record
  if (record.state === 'removing') await git.ask(repository, ['worktree', 'repair', path])
  const dirty = (await isDirty(git, record)) || (await isUnderWay(git, path))
  const { merged, pushed } = await isSafe(git, repository, own.head, around.base)
  const [target] = around.base
  const counts =
    target === undefined || own.head === undefined ? undefined : await distance(git, path, target, own.head)
  // What is on a branch of another name stays there.
  const headSafe = merged || pushed || (own.branch !== undefined && own.branch !== record.branch)
  const submodules = await submodulesSafe(git, path)
  const commitsSafe = headSafe && around.tipSafe && submodules
  const remotes = (await git.run(repository, ['remote'])) !== ''
  const kept = own.locked
    ? 'locked'
    : dirty
      ? 'dirty'
      : commitsSafe
        ? undefined
        : remotes || !submodules
          ? 'unpushed'
          : 'unmerged'
  return {
    there: true,
    head: own.head,
    dirty,
    merged,
    pushed,
    ahead: counts?.ahead ?? 0,
    behind: counts?.behind ?? 0,
    kept,
    branchTip: around.branchTip,
  }
}

/** Where its work is to end up: what it began at, the same on a remote, and what is checked out in the repository. */
async function basesOf(git: WorktreeGit, { repository, base_ref }: WorktreeRecord): Promise<readonly string[]> {
  const names = [
    `refs/heads/${base_ref}`,
    `refs/remotes/${base_ref}`,
    `refs/remotes/origin/${base_ref}`,
    'refs/remotes/origin/HEAD',
    'HEAD',
  ]
  const found = await Promise.all(names.map((name) => commitOf(git, repository, name)))
  return [...new Set(found.filter((commit) => commit !== undefined))]
}

async function isSafe(
  git: WorktreeGit,
  repository: string,
  commit: string | undefined,
  bases: readonly string[],
): Promise<{ readonly merged: boolean; readonly pushed: boolean }> {
  if (commit === undefined) return { merged: false, pushed: false }
  let merged = false
  for (const base of bases) {
    merged ||= (await git.ask(repository, ['merge-base', '--is-ancestor', commit, base])).code === 0
    merged ||= await addsNothing(git, repository, commit, base)
  }
  const pushed = await git.maybe(repository, ['for-each-ref', '--count=1', '--contains', commit, 'refs/remotes'])
  return { merged, pushed: pushed !== undefined }
}

/** True where a merge would change nothing: it was squashed, or rebased. Older git cannot tell. */
async function addsNothing(git: WorktreeGit, repository: string, commit: string, base: string): Promise<boolean> {
  const { code, stdout } = await git.ask(repository, ['merge-tree', '--write-tree', base, commit])
  if (code !== 0) return false
  const tree = await git.maybe(repository, ['rev-parse', `${base}^{tree}`])
  return tree !== undefined && stdout.trim() === tree
}

async function distance(git: WorktreeGit, path: string, base: string, head: string) {
  const text = await git.maybe(path, ['rev-list', '--left-right', '--count', `${base}...${head}`])
  const [behind = 0, ahead = 0] = (text ?? '').split('\t').map(Number)
  return { ahead, behind }
}

async function isUnderWay(git: WorktreeGit, path: string): Promise<boolean> {
  const directory = await git.maybe(path, ['rev-parse', '--absolute-git-dir'])
  if (directory === undefined || !isAbsolute(directory)) throw new GitError('it is no worktree any more')
  return UNDER_WAY.some((name) => existsSync(join(directory, name)))
}

async function isDirty(git: WorktreeGit, { path, laid, state }: WorktreeRecord): Promise<boolean> {
  const { code, stdout, truncated, said } = await git.ask(path, STATUS)
  if (code !== 0) throw new GitError(said)
  if (truncated) return true
  const changed = parseChanges(stdout)
  // Its removal was cut off: what is missing was committed, and is nobody's loss.
  const counts = state === 'removing' ? changed.filter(({ code: xy }) => xy !== ' D') : changed
  return counts.some(({ file }) => !isAsLaid(path, file, laid))
}

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

/** N2. */
export function isAsLaid(path: string, file: string, laid: readonly LaidFile[]): boolean {
  const known = laid.find((one) => one.file === file)
  if (known === undefined) return false
  const now = stamp(path, file)
  return now !== undefined && now.size === known.size && now.mtime === known.mtime
}

/** How a file is told from what somebody makes of it later. */
export function stamp(path: string, file: string): LaidFile | undefined {
  const stat = lstatSync(join(path, file), { throwIfNoEntry: false })
  return stat === undefined ? undefined : { file, size: stat.size, mtime: stat.mtimeMs }
}

/** Repositories inside it are removed with it: their commits must be on a remote of theirs. */
async function submodulesSafe(git: WorktreeGit, path: string): Promise<boolean> {
  if (!existsSync(join(path, '.gitmodules'))) return true
  const command = 'git rev-list -n1 HEAD --branches --not --remotes'
  const { code, stdout } = await git.ask(path, ['submodule', '--quiet', 'foreach', '--recursive', command])
  return code === 0 && stdout.trim() === ''
}

export function samePath(one: string, other: string): boolean {
  return real(one) === real(other)
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
