/**
 * What would be lost with a worktree: the question that decides whether it is removed or kept.
 *
 * N1  Whatever git does not say counts as something that would be lost.
 * N2  Files that were laid there by a start, and are as they were laid, are nobody's work.
 * N3  Git is not all: files that it ignores are work too (`ignored.ts`), and so are those that it was told to pass over.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { KeptReason } from '../../contract/worktrees.ts'
import { type GitPlace, placeAt, samePath } from '../../files/git/place.ts'
import { GitError } from '../../files/git/stand-in.ts'
import { type Changes, changesIn, hasFiles, isAsLaid } from './changes.ts'
import { commitOf, type Listed, listed, type WorktreeGit, worktreePlace } from './git.ts'
import type { WorktreeRecord } from './store.ts'

export interface Inspection {
  /** It is where it belongs, and the repository knows it. */
  readonly there: boolean
  readonly head: string | undefined
  /** Branch that is checked out, where it is another than that of the record. */
  readonly headBranch: string | undefined
  readonly dirty: boolean
  readonly merged: boolean
  readonly pushed: boolean
  readonly ahead: number
  readonly behind: number
  /** Undefined: nothing would be lost. */
  readonly kept: KeptReason | undefined
  /** The files for which it is kept, for people. */
  readonly files: string | undefined
  /** Tip of its branch where that may go too. */
  readonly branchTip: string | undefined
}

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
  headBranch: undefined,
  dirty: false,
  merged: false,
  pushed: false,
  ahead: 0,
  behind: 0,
  files: undefined,
}

export interface Looker {
  readonly git: WorktreeGit
  /** Patterns of `[worktrees] disposable`: ignored files that nobody misses. */
  readonly disposable: readonly string[]
}

export async function inspect(looker: Looker, record: WorktreeRecord): Promise<Inspection> {
  const { git } = looker
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
  return inspectTree(looker, record, own, {
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

async function inspectTree(looker: Looker, record: WorktreeRecord, own: Listed, around: Around): Promise<Inspection> {
  const { git } = looker
  const { repository } = record
  const files = await lostFiles(looker, record)
  const { merged, pushed } = await isSafe(git, repository, own.head, around.base)
  const [target] = around.base
  const counts =
    target === undefined || own.head === undefined ? undefined : await distance(git, repository, target, own.head)
  const headBranch = own.branch === record.branch ? undefined : own.branch
  // What is on a branch of another name stays there.
  const headSafe = merged || pushed || headBranch !== undefined
  const remotes = (await git.run(repository, ['remote'])) !== ''
  return {
    there: true,
    head: own.head,
    headBranch,
    dirty: files.why === 'dirty',
    merged,
    pushed,
    ahead: counts?.ahead ?? 0,
    behind: counts?.behind ?? 0,
    kept: keptFor({ locked: own.locked, files, commitsSafe: headSafe && around.tipSafe, remotes }),
    files: files.names,
    branchTip: around.branchTip,
  }
}

interface Keeping {
  readonly locked: boolean
  readonly files: LostFiles
  readonly commitsSafe: boolean
  readonly remotes: boolean
}

function keptFor({ locked, files, commitsSafe, remotes }: Keeping): KeptReason | undefined {
  if (locked) return 'locked'
  if (files.why === 'dirty') return 'dirty'
  if (!files.submodulesSafe) return 'unpushed'
  if (!commitsSafe) return remotes ? 'unpushed' : 'unmerged'
  return files.why
}

interface LostFiles {
  readonly why: 'dirty' | 'ignored' | undefined
  readonly names: string | undefined
  /** Every commit of a repository inside is on a remote of it: they are removed with it. */
  readonly submodulesSafe: boolean
}

async function lostFiles({ git, disposable }: Looker, record: WorktreeRecord): Promise<LostFiles> {
  const { path, laid, state, repository } = record
  // Its removal was cut off while the files went: what is left of it was looked at before.
  if (state === 'removing') return { why: undefined, names: undefined, submodulesSafe: true }
  const tree = { ...worktreePlace(repository, path), workTree: path }
  const { changed, ignored, truncated } = await changesIn(git, tree, disposable)
  const mine = (file: string) => !isAsLaid(path, file, laid)
  const dirty = changed.map(({ file }) => file).filter(mine)
  const inside = await submodulesIn(git, tree, disposable, 0)
  const underWay = UNDER_WAY.some((name) => existsSync(join(tree.gitDir, name)))
  const submodulesSafe = inside.every(({ safe }) => safe)
  const all = [...dirty, ...inside.filter((one) => one.dirty).map(({ name }) => name)]
  if (truncated || underWay || all.length > 0) return { why: 'dirty', names: named(all), submodulesSafe }
  const lost = [...ignored.filter(mine), ...inside.flatMap((one) => one.ignored)]
  return lost.length > 0
    ? { why: 'ignored', names: named(lost), submodulesSafe }
    : { why: undefined, names: undefined, submodulesSafe }
}

/** The first names, for people. */
function named(files: readonly string[]): string | undefined {
  if (files.length === 0) return undefined
  const more = files.length > NAMED ? ` and ${files.length - NAMED} more` : ''
  return `${files.slice(0, NAMED).join(', ')}${more}`
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

async function distance(git: WorktreeGit, repository: string, base: string, head: string) {
  const text = await git.maybe(repository, ['rev-list', '--left-right', '--count', `${base}...${head}`])
  const [behind = 0, ahead = 0] = (text ?? '').split('\t').map(Number)
  return { ahead, behind }
}

interface Submodule {
  readonly name: string
  readonly dirty: boolean
  readonly ignored: readonly string[]
  readonly safe: boolean
}

/** Repositories inside it, which go with it. Each is asked by itself: git would use their own configuration. */
async function submodulesIn(
  git: WorktreeGit,
  tree: GitPlace & { readonly workTree: string },
  disposable: readonly string[],
  depth: number,
): Promise<readonly Submodule[]> {
  if (!existsSync(join(tree.workTree, '.gitmodules')) && !existsSync(join(tree.gitDir, 'modules'))) return []
  const { code, stdout, truncated, said } = await git.ask(tree, ['ls-files', '--stage', '-z'])
  if (code !== 0) throw new GitError(said)
  const links = stdout.split('\0').flatMap((entry) => {
    const [, commit, name] = /^160000 ([0-9a-f]+) \d\t(.+)$/s.exec(entry) ?? []
    return commit === undefined || name === undefined ? [] : [{ commit, name }]
  })
  if (truncated || links.length > MAX_SUBMODULES || depth > MAX_DEPTH)
    throw new GitError('it has more submodules than can be looked at')
  const found: Submodule[] = []
  for (const link of links) {
    const directory = join(tree.workTree, link.name)
    const place = existsSync(join(directory, '.git')) ? placeAt(directory) : undefined
    if (place === undefined) {
      if (hasFiles(directory)) found.push({ name: link.name, dirty: true, ignored: [], safe: true })
      continue
    }
    const inner = { ...place, workTree: directory }
    found.push(await oneSubmodule(git, inner, link, await changesIn(git, inner, disposable)))
    for (const below of await submodulesIn(git, inner, disposable, depth + 1))
      found.push({ ...below, name: join(link.name, below.name) })
  }
  return found
}

async function oneSubmodule(
  git: WorktreeGit,
  place: GitPlace,
  { name, commit }: { readonly name: string; readonly commit: string },
  { changed, ignored, truncated }: Changes,
): Promise<Submodule> {
  const head = await commitOf(git, place, 'HEAD')
  const { code, stdout } = await git.ask(place, ['rev-list', '-n1', 'HEAD', '--branches', '--not', '--remotes'])
  return {
    name,
    dirty: truncated || changed.length > 0 || head !== commit,
    ignored: ignored.map((file) => join(name, file)),
    safe: code === 0 && stdout.trim() === '',
  }
}

const NAMED = 5
const MAX_SUBMODULES = 100
const MAX_DEPTH = 5
