/**
 * Asks git about directories that others can write to.
 *
 * S1  Git never runs what a repository or worktree names. It works on a stand-in for the git directory: a private
 *     directory with a configuration of ours (`settings.ts`) and links to the objects and references. The
 *     configuration of the repository is read once, as data, so a change in between has no effect.
 * S2  The repository is the one that the caller names: the `.git` of a worktree is not followed.
 * S3  Git looks into no submodule and downloads nothing, unless the call says so.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cutStart } from '../../contract/base/text.ts'
import { look } from '../../kernel/look.ts'
import { readRegular } from '../read.ts'
import type { GitPlace } from './place.ts'
import { type GitHost, runGit } from './program.ts'
import { isHarmless, parseSettings, requiredFilters, type Setting, settingsText } from './settings.ts'

const MAX_OUTPUT = 4 * 1024 * 1024
const LOOK_MS = 20_000
const SAID = 400
const MAX_KNOWN = 2_000
const MAX_HEAD_BYTES = 8_192

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
  readonly env?: Readonly<Record<string, string>>
  /** Files are checked out: filters that the repository requires are not passed over, and blobs may be downloaded. */
  readonly checksOut?: boolean
  /** New worktrees are made in the stand-in; called with its directory of worktrees when git has succeeded. */
  readonly made?: (worktrees: string) => void
}

export interface GitResult {
  readonly code: number
  readonly stdout: string
  readonly truncated: boolean
  /** Last of what git printed, for people. */
  readonly said: string
}

interface KnownSettings {
  readonly stamp: string
  readonly settings: readonly Setting[]
}

export class StandInGit {
  readonly #host: GitHost
  readonly #scratch: string
  readonly #known = new Map<string, KnownSettings>()

  /** `scratch`: a directory that nobody else can write to, for stand-ins; what a crash left there goes. */
  constructor(host: GitHost, scratch: string) {
    this.#host = host
    this.#scratch = scratch
    rmSync(scratch, { recursive: true, force: true })
  }

  /** Rejects where git is missing, did not run, or took too long. */
  async ask(place: GitPlace, args: readonly string[], call: GitCall = {}): Promise<GitResult> {
    call.signal?.throwIfAborted()
    const settings = await this.#settingsOf(place)
    const standIn = this.#make(place, settings, call)
    try {
      const withoutLfs = call.checksOut === true && this.#host.env['GIT_LFS_SKIP_SMUDGE'] === '1'
      const result = await this.#run([...(withoutLfs ? LEAVE_LFS_OUT : []), ...args], {
        ...call,
        cwd: place.workTree ?? standIn,
        env: {
          GIT_DIR: standIn,
          ...(place.workTree === undefined ? {} : { GIT_WORK_TREE: place.workTree }),
          ...(call.checksOut === true ? DOWNLOADS : NO_DOWNLOADS),
          ...call.env,
        },
      })
      if (result.code === 0) call.made?.(join(standIn, 'worktrees'))
      return result
    } finally {
      rmSync(standIn, { recursive: true, force: true })
    }
  }

  async #run(args: readonly string[], call: GitCall & { readonly cwd: string }): Promise<GitResult> {
    const { cwd, env, signal, timeoutMs = LOOK_MS } = call
    const done = await runGit(this.#host, args, {
      cwd,
      signal,
      timeoutMs,
      maxBytes: MAX_OUTPUT,
      settings: ['core.quotePath=false', 'gc.auto=0', 'maintenance.auto=false'],
      ...(env === undefined ? {} : { env }),
    })
    if (done === undefined) throw new GitError('git is not on this host', true)
    const { outcome, code, stdout, stderr, truncated, error } = done
    const said = cutStart(stderr.trim() || stdout.trim(), SAID)
    if (outcome === 'exited') return { code: code ?? -1, stdout, truncated, said }
    signal?.throwIfAborted()
    throw new GitError(`git ${args[0] ?? ''} ${outcome === 'failed' ? `did not run: ${error ?? ''}` : 'took too long'}`)
  }

  /** All settings of the repository's own files, which are read as data. */
  async #settingsOf({ commonDir, gitDir }: GitPlace): Promise<readonly Setting[]> {
    const own = await this.#settingsIn(join(commonDir, 'config'))
    const hasMore = own.some(({ name, value }) => name === 'extensions.worktreeconfig' && value !== 'false')
    return hasMore ? [...own, ...(await this.#settingsIn(join(gitDir, 'config.worktree')))] : own
  }

  async #settingsIn(file: string): Promise<readonly Setting[]> {
    const seen = look(file)
    if (seen.is === 'missing') return []
    if (seen.is !== 'file') throw new GitError(`${file} is no file that can be read`)
    const { ino, size, mtimeMs, ctimeMs } = seen.stats
    const stamp = `${ino} ${size} ${mtimeMs} ${ctimeMs}`
    const known = this.#known.get(file)
    if (known?.stamp === stamp) return known.settings
    const { code, stdout, said } = await this.#run(['config', '--file', file, '--list', '-z'], {
      cwd: '/',
      env: { GIT_CEILING_DIRECTORIES: '/' },
    })
    if (code !== 0) throw new GitError(`${file}: ${said}`)
    const settings = parseSettings(stdout)
    if (this.#known.size >= MAX_KNOWN) this.#known.clear()
    this.#known.set(file, { stamp, settings })
    return settings
  }

  #make({ gitDir, commonDir, workTree }: GitPlace, settings: readonly Setting[], call: GitCall): string {
    mkdirSync(this.#scratch, { recursive: true, mode: 0o700 })
    const standIn = mkdtempSync(join(this.#scratch, 'git-'))
    try {
      const required = call.checksOut === true ? requiredFilters(settings) : []
      const shown: readonly Setting[] = [
        ...settings.filter(isHarmless),
        ...required.flatMap((name) => [
          { name: `filter.${name}.required`, value: 'true' },
          // Git passes over a required filter without a program.
          { name: `filter.${name}.smudge`, value: 'false' },
        ]),
        { name: 'core.bare', value: String(workTree === undefined) },
      ]
      writeFileSync(join(standIn, 'config'), settingsText(shown))
      writeFileSync(join(standIn, 'HEAD'), readRegular(join(gitDir, 'HEAD'), MAX_HEAD_BYTES) ?? '')
      for (const name of SHARED) link(commonDir, name, standIn)
      link(gitDir, 'index', standIn)
      for (const name of readdirSync(gitDir)) if (name.startsWith('sharedindex.')) link(gitDir, name, standIn)
      mkdirSync(join(standIn, 'info'))
      for (const name of ['exclude', 'attributes', 'grafts']) link(commonDir, join('info', name), standIn)
      link(gitDir, join('info', 'sparse-checkout'), standIn)
      if (call.made === undefined) link(commonDir, 'worktrees', standIn)
      else mkdirSync(join(standIn, 'worktrees'))
      return standIn
    } catch (error) {
      rmSync(standIn, { recursive: true, force: true })
      throw new GitError(`${gitDir} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

/** What a git directory shares with all its worktrees; the rest is left out on purpose. */
const SHARED = ['objects', 'refs', 'packed-refs', 'reftable', 'logs', 'shallow'] as const
const NO_DOWNLOADS = { GIT_ALLOW_PROTOCOL: 'none', GIT_NO_LAZY_FETCH: '1', GIT_OPTIONAL_LOCKS: '0' } as const
/** No transport that names a program: neither `ext::` nor a repository on this host. */
const DOWNLOADS = { GIT_ALLOW_PROTOCOL: 'https:http:ssh:git', GIT_PROTOCOL_FROM_USER: '0' } as const

/** Large files stay what git has of them, also where git-lfs is not on this host. */
const LEAVE_LFS_OUT = ['process=', 'smudge=', 'required=false'].flatMap((setting) => ['-c', `filter.lfs.${setting}`])

function link(from: string, name: string, standIn: string): void {
  const target = join(from, name)
  if (existsSync(target)) symlinkSync(target, join(standIn, name))
}
