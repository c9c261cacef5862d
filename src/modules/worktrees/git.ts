/**
 * The `git` program on people's repositories: worktrees are added, looked at and removed.
 *
 * G1  It runs off the event loop, with a deadline, and sees no `GIT_*` of ours and no variable that holds a secret.
 * G2  It runs no hook and no monitor of the repository: what a new worktree needs is its set-up's business.
 * G3  It finds no repository around the directory that it is asked about.
 * G4  Of what writes the list of worktrees, or reads all of it, one runs at a time in a repository, whichever city asks: git
 *     fails where it meets a worktree that is half made.
 */
import { dirname } from 'node:path'
import { cutStart } from '../../contract/base/text.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Environment, findBinary, minimalEnvironment, runBriefly } from '../../kernel/processes.ts'

const MAX_OUTPUT = 4 * 1024 * 1024
const LOOK_MS = 20_000
const SAID = 400
const HARMLESS = ['-c', 'core.fsmonitor=false', '-c', 'core.hooksPath=/dev/null', '-c', 'core.quotePath=false'] as const

export class GitError extends Error {
  readonly missing: boolean

  constructor(message: string, missing = false) {
    super(message)
    this.name = 'GitError'
    this.missing = missing
  }
}

export interface GitCall {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Variables beside the harmless ones: who it is run for. */
  readonly env?: Readonly<Record<string, string>>
  /** Look for a repository around the directory too. */
  readonly around?: boolean
}

export interface GitResult {
  readonly code: number
  readonly stdout: string
  readonly truncated: boolean
  /** What it said, for people. */
  readonly said: string
}

/** G4, by repository: what comes last there. Of the process, for the repository is nobody's alone. */
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
  readonly #clock: Clock
  readonly #env: Environment

  constructor({ clock, env }: { readonly clock: Clock; readonly env: Environment }) {
    this.#clock = clock
    this.#env = env
  }

  /** Whatever it answers; rejects where it could not be asked, or did not answer in time. */
  ask(directory: string, args: readonly string[], call: GitCall = {}): Promise<GitResult> {
    const asked = () => this.#ask(directory, args, call)
    return args[0] === 'worktree' ? inTurn(directory, asked) : asked()
  }

  async #ask(directory: string, args: readonly string[], call: GitCall): Promise<GitResult> {
    call.signal?.throwIfAborted()
    const git = await findBinary('git', this.#env)
    if (git === undefined) throw new GitError('git is not on this host', true)
    const { outcome, code, stdout, stderr, truncated, error } = await runBriefly(git, [...HARMLESS, ...args], {
      env: {
        ...minimalEnvironment(this.#env),
        LC_ALL: 'C',
        GIT_TERMINAL_PROMPT: '0',
        ...(call.around === true ? {} : { GIT_CEILING_DIRECTORIES: dirname(directory) }),
        ...call.env,
      },
      cwd: directory,
      timeoutMs: call.timeoutMs ?? LOOK_MS,
      maxBytes: MAX_OUTPUT,
      clock: this.#clock,
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    })
    const said = cutStart(stderr.trim() || stdout.trim(), SAID)
    if (outcome === 'exited') return { code: code ?? -1, stdout, truncated, said }
    call.signal?.throwIfAborted()
    throw new GitError(`git ${args[0] ?? ''} ${outcome === 'failed' ? `did not run: ${error ?? ''}` : 'took too long'}`)
  }

  /** What it says where it succeeds; rejects else. */
  async run(directory: string, args: readonly string[], call?: GitCall): Promise<string> {
    const { code, stdout, said } = await this.ask(directory, args, call)
    if (code !== 0) throw new GitError(`git ${args[0] ?? ''}: ${said || `exit status ${code}`}`)
    return stdout.trimEnd()
  }

  /** The first line where it succeeds; undefined else. */
  async maybe(directory: string, args: readonly string[]): Promise<string | undefined> {
    const { code, stdout } = await this.ask(directory, args)
    const line = stdout.split('\n')[0]?.trim()
    return code === 0 && line !== '' ? line : undefined
  }
}

export interface Repository {
  /** Where git is run: the top of the working tree, or the bare repository. */
  readonly directory: string
  /** From there to the directory that was asked about; empty for the top. */
  readonly prefix: string
}

/** The repository that a directory is in; undefined where it is in none. A rig may be a part of a larger repository. */
export async function repositoryOf(git: WorktreeGit, directory: string): Promise<Repository | undefined> {
  const { code, stdout } = await git.ask(directory, ['rev-parse', '--is-bare-repository', '--show-prefix'], {
    around: true,
  })
  if (code !== 0) return undefined
  const [bare, prefix = ''] = stdout.split('\n')
  if (bare === 'true')
    return { directory: await git.run(directory, ['rev-parse', '--absolute-git-dir'], AROUND), prefix: '' }
  return {
    directory: await git.run(directory, ['rev-parse', '--show-toplevel'], AROUND),
    prefix: prefix.replace(/\/$/, ''),
  }
}

const AROUND = { around: true } as const

/** A worktree as the repository knows it. */
export interface Listed {
  readonly path: string
  /** Undefined: none is checked out. */
  readonly branch: string | undefined
  readonly head: string | undefined
  readonly locked: boolean
}

export async function listed(git: WorktreeGit, repository: string): Promise<readonly Listed[]> {
  return parseListed(await git.run(repository, ['worktree', 'list', '--porcelain', '-z']))
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
export const commitOf = (git: WorktreeGit, directory: string, ref: string): Promise<string | undefined> =>
  git.maybe(directory, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`])

export const branchExists = async (git: WorktreeGit, repository: string, branch: string): Promise<boolean> =>
  (await git.ask(repository, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`])).code === 0
