/**
 * Worktrees of the sessions of one running city: made before the first start of a session, kept while it lives, and
 * removed or kept when it is closed.
 *
 * W1  One thing at a time with a worktree; its row is written before git is run and goes when nothing else is left.
 * W2  What carries the token of its row is ended before anything is done anew: a crash leaves git and set-ups running.
 * W3  Only directories below our root and branches of our making are removed, and no commit or change that is nowhere
 *     else, unless somebody says so.
 */
import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { rm, rmdir, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { KeptReason, WorktreePruned } from '../../contract/worktrees.ts'
import { samePath } from '../../files/git/place.ts'
import { GitError, type StandInGit } from '../../files/git/stand-in.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import type { Logger } from '../../kernel/log.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import { problem } from '../../kernel/problem.ts'
import { type Environment, runBriefly } from '../../kernel/processes.ts'
import type { Store } from '../../kernel/store.ts'
import { changesIn, isAsLaid, stamp } from './changes.ts'
import { Facts } from './facts.ts'
import {
  branchExists,
  branchInTheWay,
  commitOf,
  listed,
  type Repository,
  repositoryOf,
  WorktreeGit,
  worktreePlace,
} from './git.ts'
import { type Inspection, inspect } from './inspect.ts'
import { branchesOf, candidates, worktreeName } from './names.ts'
import { SetupLog } from './setup-log.ts'
import type { WorktreeRecord } from './store.ts'
import * as rows from './store.ts'

export interface WorktreesDeps {
  readonly city: { readonly name: string; readonly path: string }
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  readonly log: Logger
  readonly env: Environment
  readonly git: Pick<StandInGit, 'ask'>
  /** Patterns of ignored files that nobody misses; as configured now. */
  readonly disposable: () => readonly string[]
  readonly random: (bytes: number) => string
  /** True while a session is there that is not closed. */
  readonly isOpen: (sessionId: string) => boolean
  /** Ends whatever carries a token. */
  readonly kill: (token: string) => Promise<void>
}

/** What a session wants. */
export interface Wanted {
  readonly sessionId: string
  /** What people call it, or what it works on. */
  readonly handle: string
  /** Empty: the city itself. */
  readonly rig: string
  /** Where it would work without a worktree. */
  readonly directory: string
  /** Undefined: what is checked out there. */
  readonly baseRef: string | undefined
}

export interface SetUp {
  readonly commands: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** Why a session has no worktree to work in. */
class WorktreeError extends Error {
  readonly reason: 'worktree-failed' | 'worktree-setup-failed'

  constructor(reason: WorktreeError['reason'], message: string) {
    super(message)
    this.name = 'WorktreeError'
    this.reason = reason
  }
}

/** A large repository is checked out in this time. */
const ADD_MS = 10 * 60_000
const LITTLE_ROOM = 256 * 1024 ** 2
const MAX_LAID = 2_000
const MAX_PRUNED = 200
const SAID_LINES = 20

export class Worktrees {
  readonly git: WorktreeGit
  readonly #deps: WorktreesDeps
  readonly #facts: Facts
  readonly #turns = new Map<string, Promise<unknown>>()
  readonly #tokens = new Set<string>()
  readonly #closing = new AbortController()

  constructor(deps: WorktreesDeps) {
    this.#deps = deps
    this.git = new WorktreeGit(deps.git)
    this.#facts = new Facts({
      ...deps,
      inspect: (record) => this.#inspect(record),
      record: (name) => rows.byName(deps.store.db, name),
    })
  }

  #inspect(record: WorktreeRecord): Promise<Inspection> {
    return inspect({ git: this.git, disposable: this.#deps.disposable() }, record)
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  get db() {
    return this.#deps.store.db
  }

  get facts(): Facts {
    return this.#facts
  }

  ofSession(id: string): WorktreeRecord | undefined {
    return rows.ofSession(this.db, id)
  }

  all(): readonly WorktreeRecord[] {
    return rows.all(this.db)
  }

  need(name: string): WorktreeRecord {
    const found = rows.byName(this.db, name)
    if (found === undefined) throw problem('worktree-not-found', `there is no worktree ${name}`)
    return found
  }

  logOf(name: string): string {
    return join(this.#deps.city.path, '.svc', 'runtime', 'worktrees', `${name}.log`)
  }

  /** True of what runs for a worktree now: it is nobody's orphan. */
  runs(token: string): boolean {
    return this.#tokens.has(token)
  }

  // --- Making ------------------------------------------------------------------------------------------------------

  /** Why there cannot be one of that directory; looked at before anything is promised. */
  async refusal(directory: string, baseRef: string | undefined): Promise<string | undefined> {
    try {
      const repository = repositoryOf(directory)
      if (repository === undefined) return `${directory} is in no git repository`
      await this.#baseOf(repository, baseRef)
      return undefined
    } catch (error) {
      if (error instanceof WorktreeError) return error.message
      if (error instanceof GitError && error.missing) throw problem('missing-dependency', error.message)
      // It may be busy: the start will see.
      return undefined
    }
  }

  /** The worktree of a session: made, made anew where it is gone, or as it is. */
  async add(wanted: Wanted, signal: AbortSignal): Promise<WorktreeRecord> {
    const either = AbortSignal.any([signal, this.#closing.signal])
    try {
      const record = rows.ofSession(this.db, wanted.sessionId) ?? (await this.#reserve(wanted))
      return await this.#inTurn(record.name, () => this.#add(record.name, either))
    } catch (error) {
      either.throwIfAborted()
      if (error instanceof WorktreeError) throw error
      throw new WorktreeError('worktree-failed', textOf(error))
    }
  }

  async #reserve({ sessionId, handle, rig, directory, baseRef }: Wanted): Promise<WorktreeRecord> {
    const repository = repositoryOf(directory)
    if (repository === undefined) throw new WorktreeError('worktree-failed', `${directory} is in no git repository`)
    const { ref, commit } = await this.#baseOf(repository, baseRef)
    const root = join(this.#root, rig === '' ? 'city' : rig)
    for (const name of candidates(worktreeName(handle))) {
      const path = join(root, name)
      const branch = existsSync(path) ? undefined : await this.#freeBranch(repository.directory, name)
      if (branch === undefined) continue
      const now = this.#deps.clock.now()
      const record: WorktreeRecord = {
        name,
        session_id: sessionId,
        rig,
        repository: repository.directory,
        prefix: repository.prefix,
        path,
        branch,
        base_ref: ref,
        base: commit,
        state: 'adding',
        token: this.#deps.random(16),
        kept_reason: undefined,
        error: undefined,
        laid: [],
        created_at: now,
        updated_at: now,
      }
      const reserved = await this.db.write((tx) => {
        if (rows.byName(tx, name) !== undefined) return false
        rows.insert(tx, record)
        return true
      })
      if (reserved) return record
    }
    throw new WorktreeError('worktree-failed', `there is no free name for a worktree like ${worktreeName(handle)}`)
  }

  /** A name that git can make a branch of: neither taken, nor a directory of another branch's name. */
  async #freeBranch(repository: string, name: string): Promise<string | undefined> {
    for (const branch of branchesOf(name)) {
      if (await branchExists(this.git, repository, branch)) return undefined
      if ((await branchInTheWay(this.git, repository, branch)) === undefined) return branch
    }
    return undefined
  }

  async #baseOf({ directory }: Repository, baseRef: string | undefined): Promise<{ ref: string; commit: string }> {
    const git = this.git
    if (baseRef === undefined) {
      const commit = await commitOf(git, directory, 'HEAD')
      if (commit === undefined) throw new WorktreeError('worktree-failed', `${directory} has no commit yet`)
      return { ref: (await git.maybe(directory, ['symbolic-ref', '--quiet', '--short', 'HEAD'])) ?? commit, commit }
    }
    const commit =
      (await commitOf(git, directory, baseRef)) ?? (await commitOf(git, directory, `refs/remotes/origin/${baseRef}`))
    if (commit === undefined)
      throw new WorktreeError('worktree-failed', `there is no ${baseRef} in ${directory} to begin at`)
    return { ref: baseRef, commit }
  }

  async #add(name: string, signal: AbortSignal): Promise<WorktreeRecord> {
    signal.throwIfAborted()
    const record = this.need(name)
    await this.#deps.kill(record.token)
    if (record.state !== 'adding' && (await this.#isThere(record))) return record
    const token = this.#deps.random(16)
    const begun = await this.db.write((tx) =>
      this.#change(tx, name, { state: 'adding', token, error: undefined }, LIVING),
    )
    try {
      await this.#holding(begun, () => this.#makeAnew(begun, signal))
    } catch (error) {
      if (!signal.aborted) await this.#failed(begun, textOf(error))
      throw error
    }
    const made = await this.db.write((tx) => {
      const after = this.#change(tx, name, { state: 'setting_up' }, LIVING)
      this.#tell(tx, 'worktree.created', after)
      return after
    })
    void this.#facts.look(name)
    return made
  }

  /** What an earlier attempt left is half of something, and nobody's. */
  async #makeAnew(record: WorktreeRecord, signal: AbortSignal): Promise<void> {
    const { repository, path, branch, base, token, session_id } = record
    await this.#clear(record)
    this.#makeRoot(dirname(path))
    const env = { SVC_INSTANCE_TOKEN: token, SVC_SESSION_ID: session_id, SVC_CITY_PATH: this.#deps.city.path }
    const from = (await branchExists(this.git, repository, branch)) ? undefined : base
    try {
      await this.git.addWorktree(repository, path, { branch, from }, { timeoutMs: ADD_MS, signal, env })
    } catch (error) {
      if (!(error instanceof GitError) || error.missing) throw error
      throw new GitError(`${error.message}${filterHelp(error.message)}${await littleRoom(this.#root)}`)
    }
  }

  async #isThere({ name, path, repository, branch }: WorktreeRecord): Promise<boolean> {
    const known = await listed(this.git, repository)
    if (existsSync(path) && known.some((one) => samePath(one.path, path))) return true
    const moved = known.find((one) => one.branch === branch && !samePath(one.path, path) && existsSync(one.path))
    if (moved === undefined) return false
    const how = `move it back to ${path}, or close the session`
    throw new WorktreeError('worktree-failed', `the worktree ${name} has been moved to ${moved.path}: ${how}`)
  }

  /** Runs its commands; told line by line in its log. The first that fails is a failed set-up, which is tried again. */
  async setUp(name: string, { commands, env, timeoutMs }: SetUp, signal: AbortSignal): Promise<WorktreeRecord> {
    return this.#inTurn(name, async () => {
      const record = this.need(name)
      if (record.state === 'ready') return record
      const either = AbortSignal.any([signal, this.#closing.signal])
      const token = this.#deps.random(16)
      // The error of an earlier one stays until this one has ended: who has looked into it may have worked there.
      const begun = await this.db.write((tx) => this.#change(tx, name, { state: 'setting_up', token }, LIVING))
      // Where no set-up has failed, one may have been cut off: what it left there is nobody's work.
      const theirs = begun.error === undefined ? new Set<string>() : await this.#worked(begun)
      const failure = await this.#holding(begun, () =>
        this.#runAll(begun, { commands, env: { ...env, SVC_INSTANCE_TOKEN: token }, timeoutMs }, either),
      )
      either.throwIfAborted()
      const laid = await this.#madeBySetUp(begun, theirs)
      if (failure !== undefined) {
        await this.#failed({ ...begun, laid }, failure)
        throw new WorktreeError('worktree-setup-failed', failure)
      }
      const ready = await this.db.write((tx) => {
        const after = this.#change(tx, name, { state: 'ready', laid, error: undefined }, LIVING)
        this.#tell(tx, 'worktree.ready', after)
        return after
      })
      void this.#facts.look(name)
      return ready
    })
  }

  async #runAll(
    record: WorktreeRecord,
    { commands, env, timeoutMs }: SetUp,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { clock } = this.#deps
    const until = clock.monotonic() + timeoutMs
    using output = new SetupLog(this.logOf(record.name))
    for (const command of commands) {
      if (signal.aborted) return undefined
      output.write(`$ ${command}\n`)
      const result = await runBriefly('/bin/sh', ['-c', command], {
        env,
        cwd: join(record.path, record.prefix),
        timeoutMs: Math.max(until - clock.monotonic(), 1),
        signal,
        maxBytes: 0,
        onOutput: (chunk) => output.write(chunk),
        clock,
      })
      if (result.outcome === 'exited' && result.code === 0) continue
      const how =
        result.outcome === 'exited'
          ? `exit status ${result.code ?? 'unknown'}`
          : result.outcome === 'timed_out'
            ? 'no end within `[worktrees] setup_timeout`'
            : (result.error ?? result.outcome)
      output.write(`(${how})\n`)
      const last = output.lastLines(SAID_LINES)
      return `${command}: ${how}${last === '' ? '' : `\n${last}`}\nall of its output: ${this.logOf(record.name)}`
    }
    return undefined
  }

  /** Files that somebody has changed before the set-up, such as a person who saw it fail. */
  async #worked(record: WorktreeRecord): Promise<ReadonlySet<string>> {
    const { path, laid } = record
    return new Set((await this.#changes(record)).filter((file) => !isAsLaid(path, file, laid)))
  }

  /** What the set-up has changed is nobody's work while it stays so. */
  async #madeBySetUp(record: WorktreeRecord, theirs: ReadonlySet<string>): Promise<readonly rows.LaidFile[]> {
    const { path, laid } = record
    const made = (await this.#changes(record)).filter((file) => !theirs.has(file))
    return made.length > MAX_LAID ? laid : made.flatMap((file) => stamp(path, file) ?? [])
  }

  async #changes({ repository, path }: WorktreeRecord): Promise<readonly string[]> {
    try {
      const tree = { ...worktreePlace(repository, path), workTree: path }
      const { changed, ignored, truncated } = await changesIn(this.git, tree, this.#deps.disposable())
      return truncated ? [] : [...changed.map(({ file }) => file), ...ignored]
    } catch (error) {
      if (error instanceof GitError) return []
      throw error
    }
  }

  /** A start has laid these files there; relative to its work directory. */
  async laid(sessionId: string, files: readonly string[]): Promise<void> {
    const record = rows.ofSession(this.db, sessionId)
    if (record === undefined || files.length === 0) return
    const added = files.flatMap((file) => stamp(record.path, join(record.prefix, file)) ?? [])
    const names = new Set(added.map(({ file }) => file))
    const laid = [...record.laid.filter(({ file }) => !names.has(file)), ...added].slice(-MAX_LAID)
    await this.db.write((tx) => this.#change(tx, record.name, { laid }))
  }

  async #failed({ name, path, state: during, laid }: WorktreeRecord, error: string): Promise<void> {
    await this.db.write((tx) => {
      if (!LIVING.has(rows.byName(tx, name)?.state ?? 'kept')) return
      // What git could not make is made anew; what is there and not ready is only set up again.
      const state = existsSync(path) && during === 'setting_up' ? 'failed' : 'adding'
      this.#tell(tx, 'worktree.failed', this.#change(tx, name, { state, error, laid }))
    })
  }

  // --- Ending ------------------------------------------------------------------------------------------------------

  /** Its session is closed in this write: it is looked at, and removed or kept. */
  close(tx: Tx, sessionId: string): void {
    const record = rows.ofSession(tx, sessionId)
    if (record === undefined || !LIVING.has(record.state)) return
    // Nobody has worked there yet.
    const isHalf = record.state === 'adding' || (record.state === 'setting_up' && record.error === undefined)
    this.#change(tx, record.name, { state: isHalf ? 'discarding' : 'closing' })
    tx.afterCommit(() => this.#settleLater(record.name))
  }

  /** What a crash has left: ends what still runs of it, and goes on. */
  recover(): void {
    for (const record of this.all()) {
      if (record.state === 'kept') continue
      if (ENDING.has(record.state)) this.#settleLater(record.name)
      else if (!this.#deps.isOpen(record.session_id))
        void this.db
          .write((tx) => this.close(tx, record.session_id))
          .catch((error: unknown) => this.#warn(record.name, error))
      else void this.#facts.look(record.name)
    }
  }

  #settleLater(name: string): void {
    void this.#inTurn(name, () => this.#settle(name)).catch((error: unknown) => {
      if (!this.#closing.signal.aborted) this.#warn(name, error)
    })
  }

  async #settle(name: string): Promise<void> {
    const record = rows.byName(this.db, name)
    if (record === undefined || !ENDING.has(record.state)) return
    await this.#deps.kill(record.token)
    try {
      if (!existsSync(record.repository)) throw new GitError(`there is no ${record.repository} any more`)
      const found = await this.#inspect(record)
      // It was still being made: nobody has worked there.
      if (record.state !== 'discarding' && found.kept !== undefined) await this.#keep(record, found.kept, found)
      else await this.#remove(record, found)
    } catch (error) {
      if (this.#closing.signal.aborted) throw error
      await this.#keep(record, 'unknown', { said: textOf(error) })
    }
  }

  async #keep(record: WorktreeRecord, why: KeptReason, { files, headBranch, said }: KeptDetail): Promise<void> {
    const message = said ?? (files === undefined ? undefined : `${SAYS[why]}: ${files}`)
    await this.db.write((tx) => {
      const after = this.#change(tx, record.name, { state: 'kept', kept_reason: why, error: message })
      if (record.state === 'kept' && record.kept_reason === why) return
      this.#deps.store.log.append(tx, {
        type: 'worktree.kept',
        actor: 'supervisor',
        subject: after.name,
        payload: { ...aboutOf(after), ...onBranch(headBranch), why, ...(message === undefined ? {} : { message }) },
      })
    })
    void this.#facts.look(record.name)
  }

  /** Its directory, then its branch where that may go, then its row; true: the branch went too. */
  async #remove(record: WorktreeRecord, { branchTip, headBranch }: Removing): Promise<boolean> {
    const { name, repository, branch } = record
    const removing = await this.db.write((tx) =>
      this.#change(tx, name, { state: record.state === 'discarding' ? 'discarding' : 'removing' }),
    )
    await this.#clear(removing)
    const gone =
      branchTip !== undefined &&
      (await this.git.ask(repository, ['update-ref', '-d', `refs/heads/${branch}`, branchTip])).code === 0
    await rm(this.logOf(name), { force: true })
    await this.db.write((tx) => {
      rows.remove(tx, name)
      this.#deps.store.log.append(tx, {
        type: 'worktree.removed',
        actor: 'supervisor',
        subject: name,
        payload: { ...aboutOf(record), ...onBranch(headBranch), branch_deleted: gone },
      })
    })
    this.#facts.forget(name)
    return gone
  }

  /** W3: nothing of it is left on the disk, and the repository knows it no longer. */
  async #clear({ path, repository }: WorktreeRecord): Promise<void> {
    if (lookAtEntry(path).is !== 'missing') {
      this.#checkOurs(path)
      await rm(path, { recursive: true, force: true })
      // Empty only where it was the last one of its rig.
      await rmdir(dirname(path)).catch(() => {})
    }
    if (existsSync(repository)) await this.git.forgetWorktree(repository, path)
  }

  /** Of a closed session: refused while it has what is nowhere else, unless that is to go. */
  async delete(name: string, force: boolean): Promise<{ readonly branch: string; readonly branch_deleted: boolean }> {
    return this.#inTurn(name, async () => {
      const record = this.need(name)
      if (LIVING.has(record.state))
        throw problem('conflict-wrong-state', `session ${record.session_id} works in it: close the session first`)
      const found = await this.#looked(record)
      const why = found instanceof Error ? 'unknown' : found.kept
      if (why !== undefined && !force)
        throw problem('conflict-wrong-state', `${SAYS[why]}: \`force\` removes it all the same`)
      if (why === 'moved') throw problem('conflict-wrong-state', SAYS.moved)
      const removing = found instanceof Error ? NOTHING_KNOWN : found
      return { branch: record.branch, branch_deleted: await this.#remove(record, removing) }
    })
  }

  /** Looks again at what was kept. */
  async prune(dryRun: boolean): Promise<WorktreePruned> {
    const kept = this.all().filter(({ state }) => state === 'kept')
    const removed: string[] = []
    const stays: { name: string; reason: KeptReason }[] = []
    for (const { name } of kept.slice(0, MAX_PRUNED)) {
      const reason = await this.#inTurn(name, () => this.#pruneOne(name, dryRun))
      if (reason === undefined) removed.push(name)
      else if (reason !== 'gone') stays.push({ name, reason })
    }
    return { dry_run: dryRun, removed, kept: stays, ...(kept.length > MAX_PRUNED ? { truncated: true } : {}) }
  }

  async #pruneOne(name: string, dryRun: boolean): Promise<KeptReason | 'gone' | undefined> {
    const record = rows.byName(this.db, name)
    if (record?.state !== 'kept') return 'gone'
    const found = await this.#looked(record)
    const why = found instanceof Error ? 'unknown' : found.kept
    if (dryRun) return why
    if (why !== undefined) await this.#keep(record, why, found instanceof Error ? { said: found.message } : found)
    else if (!(found instanceof Error)) await this.#remove(record, found)
    return why
  }

  #looked(record: WorktreeRecord): Promise<Inspection | Error> {
    return this.#inspect(record).catch((error: unknown) => (error instanceof Error ? error : new Error(String(error))))
  }

  /** The supervisor or the city ends: what git is doing is cut, and begun again by the next start. */
  async shut(): Promise<void> {
    this.#closing.abort(new Error('the city stops'))
    this.#facts.close()
    await Promise.allSettled(this.#turns.values())
  }

  // --- Helpers -----------------------------------------------------------------------------------------------------

  get #root(): string {
    return join(this.#deps.city.path, '.svc', 'worktrees')
  }

  #makeRoot(directory: string): void {
    mkdirSync(directory, { recursive: true })
    this.#checkOurs(join(directory, 'any'))
  }

  /** W3: no link leads out of our root. */
  #checkOurs(path: string): void {
    const [root, above] = [realpathSync(this.#root), realpathSync(dirname(path))]
    const city = realpathSync(this.#deps.city.path)
    if (root !== join(city, '.svc', 'worktrees') || dirname(above) !== root)
      throw new WorktreeError('worktree-failed', `${path} leads out of ${this.#root}`)
    if (lookAtEntry(path).is === 'link') throw new WorktreeError('worktree-failed', `${path} is a link`)
  }

  /** W1. */
  async #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name) ?? Promise.resolve()
    const turn = before.then(work, work)
    this.#turns.set(name, turn)
    try {
      return await turn
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name)
    }
  }

  async #holding<T>({ token }: WorktreeRecord, work: () => Promise<T>): Promise<T> {
    this.#tokens.add(token)
    try {
      return await work()
    } finally {
      this.#tokens.delete(token)
    }
  }

  /** Of what is there; with `only`: while it is in one of these states. */
  #change(tx: Tx, name: string, change: rows.Change, only?: ReadonlySet<rows.StoredState>): WorktreeRecord {
    const before = rows.byName(tx, name)
    if (before === undefined || only?.has(before.state) === false)
      throw new WorktreeError('worktree-failed', `the worktree ${name} is being removed: its session is closed`)
    return rows.change(tx, before, this.#deps.clock.now(), change)
  }

  #tell(tx: Tx, type: 'worktree.created' | 'worktree.ready' | 'worktree.failed', record: WorktreeRecord): void {
    const { base_ref, base, error, name } = record
    const failed =
      error === undefined ? {} : { error, ...(existsSync(this.logOf(name)) ? { log: this.logOf(name) } : {}) }
    this.#deps.store.log.append(tx, {
      type,
      actor: 'supervisor',
      subject: name,
      payload: { ...aboutOf(record), base_ref, base, ...failed },
    })
  }

  #warn(name: string, error: unknown): void {
    this.#deps.log.warn({ worktree: name, err: error }, 'worktree not settled')
  }
}

const LIVING: ReadonlySet<rows.StoredState> = new Set(['adding', 'setting_up', 'ready', 'failed'])
const ENDING: ReadonlySet<rows.StoredState> = new Set(['closing', 'removing', 'discarding'])

const SAYS: { readonly [Why in KeptReason]: string } = {
  dirty: 'it has changes that are in no commit',
  ignored: 'it has files that git ignores and that are nowhere else',
  unmerged: 'it has commits that are merged nowhere',
  unpushed: 'it has commits that are neither merged nor pushed',
  locked: 'somebody has locked it with `git worktree lock`',
  moved: 'somebody has moved it',
  unknown: 'git does not say what would be lost',
}

/** What is known of a worktree that is kept. */
interface KeptDetail {
  readonly files?: string | undefined
  readonly headBranch?: string | undefined
  /** Instead of a sentence about the files. */
  readonly said?: string
}

type Removing = Pick<Inspection, 'branchTip' | 'headBranch'>
const NOTHING_KNOWN: Removing = { branchTip: undefined, headBranch: undefined }

const onBranch = (branch: string | undefined) => (branch === undefined ? {} : { head_branch: branch })

/** Git names the filter that failed, and no way to go on. */
function filterHelp(message: string): string {
  const named = /(?:smudge|clean) filter '?([^\s']+)'? failed/.exec(message)?.[1]
  const filter = named ?? (message.includes('git-lfs') ? 'lfs' : undefined)
  if (filter === undefined) return ''
  return filter === 'lfs'
    ? '\ninstall git-lfs and run `git lfs install`, or start the supervisor with GIT_LFS_SKIP_SMUDGE=1 to leave the large files out'
    : `\nthe supervisor runs no filter that the repository's own configuration names: install its program, and name it in yours with \`git config --global filter.${filter}.smudge …\``
}

/** Git does not say that a disk is full, and takes away what it has half written there. */
async function littleRoom(directory: string): Promise<string> {
  const { bavail, bsize } = await statfs(directory)
  const room = bavail * bsize
  return room < LITTLE_ROOM
    ? `\nthe disk of ${directory} is nearly full: ${(room / 1024 ** 2).toFixed(1)} MiB left`
    : ''
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const aboutOf = ({ name, session_id, rig, path, branch }: WorktreeRecord) => ({
  name,
  session_id,
  ...(rig === '' ? {} : { rig }),
  path,
  branch,
})
