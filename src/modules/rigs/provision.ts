/**
 * Rigs that start as a clone: the job behind the 202 of `POST /rigs` with `git_url`.
 *
 * P1  A clone grows in a directory of its own below `.svc/runtime/` and is moved into place when it is whole.
 * P2  What the job made carries the id of its request (a file in its `.git`) until the request has ended; nothing else
 *     is ever removed.
 * P3  The rig is in the files if and only if its directory is in place; a failure leaves neither.
 */
import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RIG_PROVISION_STEPS, RigCreateRequest } from '../../contract/rigs.ts'
import { plainTable } from '../../files/configuration.ts'
import { readRegular } from '../../files/read.ts'
import type { Clock } from '../../kernel/clock.ts'
import { asCaller } from '../../kernel/file-modes.ts'
import { type Finish, type Job, JobFailure } from '../../kernel/jobs.ts'
import { Problem } from '../../kernel/problem.ts'
import type { UnfinishedRequest } from '../../kernel/requests.ts'
import { addRig, removeRig } from './files.ts'
import type { GitFacts } from './git-facts.ts'
import { writeOverride } from './overrides.ts'
import { findRig, type RigCity, type RigFiles, type RigsView } from './rigs.ts'

/** Where clones go, below the city. */
export const CLONES = 'rigs'
const STAGING = join('.svc', 'runtime', 'rig-create')
const MARK = join('.git', 'svc-rig-create')
const DEADLINE_MS = 20 * 60_000

/** What a crash must not lose; the source holds no secret. */
export interface CloneInput {
  readonly name: string
  readonly source: string
  readonly fields: object
}

export function cloneInput(
  { name, git_url: _url, path: _path, ...fields }: RigCreateRequest,
  source: string,
): CloneInput {
  return { name, source, fields }
}

export interface ProvisionDeps<View> extends RigFiles<View> {
  readonly clock: Clock
  readonly git: Pick<GitFacts, 'observe'>
  /** Clones into `directory`, which is empty; throws JobFailure `blocked_host` or `clone_failed`. */
  readonly clone: (source: string, directory: string, signal: AbortSignal) => Promise<void>
}

export function rigCreateJob<View extends RigsView>(deps: ProvisionDeps<View>, city: RigCity<View>): Job<'rig.create'> {
  return {
    operation: 'rig.create',
    deadlineMs: DEADLINE_MS,
    resumable: true,
    run: (request, signal) => new Provision(deps, city, request, signal).run(),
    ended: ({ input }) => rmSync(join(city.directory, CLONES, String(input['name']), MARK), { force: true }),
  }
}

type Step = (typeof RIG_PROVISION_STEPS)[number]

class Provision<View extends RigsView> {
  readonly #deps: ProvisionDeps<View>
  readonly #city: RigCity<View>
  readonly #request: UnfinishedRequest
  readonly #signal: AbortSignal
  readonly #name: string
  readonly #staging: string
  readonly #target: string

  constructor(deps: ProvisionDeps<View>, city: RigCity<View>, request: UnfinishedRequest, signal: AbortSignal) {
    this.#deps = deps
    this.#city = city
    this.#request = request
    this.#signal = signal
    this.#name = String(request.input['name'])
    this.#staging = join(city.directory, STAGING, request.id)
    this.#target = join(city.directory, CLONES, this.#name)
  }

  async run(): Promise<Finish<'rig.create'>> {
    try {
      // After a crash it may be in place already (P2).
      if (markOf(this.#target) !== this.#request.id) await this.#clone()
      await this.#configure()
      if (this.#signal.aborted) throw this.#signal.reason
      return this.#finish()
    } catch (error) {
      if (!this.#isLeft()) await this.#undo()
      throw toFailure(error)
    }
  }

  /** The supervisor ends: the next one goes on from here. */
  #isLeft(): boolean {
    const { aborted, reason } = this.#signal
    return aborted && reason instanceof JobFailure && reason.code === 'interrupted'
  }

  async #clone(): Promise<void> {
    const source = String(this.#request.input['source'])
    await this.#progress('clone', source)
    rmSync(this.#staging, { recursive: true, force: true })
    asCaller(() => mkdirSync(this.#staging, { recursive: true }))
    await this.#deps.clone(source, this.#staging, this.#signal)
    this.#signal.throwIfAborted()
    writeFileSync(join(this.#staging, MARK), this.#request.id)
    if (existsSync(this.#target)) throw new JobFailure('already_exists', `${CLONES}/${this.#name} is there already`)
    asCaller(() => mkdirSync(join(this.#city.directory, CLONES), { recursive: true }))
    renameSync(this.#staging, this.#target)
  }

  async #configure(): Promise<void> {
    const { config } = this.#city
    if (findRig(config.current(), this.#name)?.path === this.#target) return
    const imports = Object.keys(config.current().default_rig_imports)
    if (imports.length > 0) await this.#progress('packs', `imports ${imports.join(', ')}`)
    await this.#progress('config', 'city.toml')
    const branch = (await this.#deps.git.observe(this.#target))?.branch ?? ''
    const given = this.#request.input['fields']
    const fields = plainTable({
      ...(branch === '' ? {} : { default_branch: branch }),
      ...(typeof given === 'object' ? given : {}),
    })
    this.#signal.throwIfAborted()
    await config.edit({
      actor: 'supervisor',
      change: (files) => {
        if (findRig(config.current(), this.#name) !== undefined)
          throw new JobFailure('already_exists', `there is a rig ${this.#name} already`)
        const place = { directory: this.#target, inCity: `${CLONES}/${this.#name}` }
        addRig(this.#deps.tree(files), this.#name, place, fields, config.current().default_rig_imports)
      },
      events: () => [
        { type: 'rig.created', actor: 'supervisor', subject: this.#name, payload: { rig: this.#name, changed: [] } },
      ],
      alsoWrite: (tx) => writeOverride(tx, this.#name, undefined, this.#deps.clock.now()),
    })
  }

  #finish(): Finish<'rig.create'> {
    const rig = findRig(this.#city.config.current(), this.#name)
    const branch = rig?.default_branch
    return () => ({
      type: 'request.result.rig.create',
      actor: 'supervisor',
      subject: this.#name,
      payload: {
        request_id: this.#request.id,
        rig: this.#name,
        prefix: rig?.prefix ?? '',
        ...(branch === undefined ? {} : { default_branch: branch }),
      },
    })
  }

  /** Removes exactly what this request made. */
  async #undo(): Promise<void> {
    rmSync(this.#staging, { recursive: true, force: true })
    if (markOf(this.#target) !== this.#request.id) return
    const { config } = this.#city
    if (findRig(config.current(), this.#name)?.path === this.#target) {
      await config.edit({
        actor: 'supervisor',
        change: (files) => removeRig(this.#deps.tree(files), this.#name),
        events: () => [
          { type: 'rig.deleted', actor: 'supervisor', subject: this.#name, payload: { rig: this.#name, changed: [] } },
        ],
      })
    }
    removeClone(this.#target)
  }

  async #progress(step: Step, detail: string): Promise<void> {
    const { store } = this.#city
    this.#signal.throwIfAborted()
    await store.db.write((tx) => {
      store.log.append(tx, {
        type: 'rig.provision.progress',
        actor: 'supervisor',
        subject: this.#name,
        payload: { request_id: this.#request.id, rig: this.#name, step, detail },
      })
    })
  }
}

/** Before jobs are taken up again: what requests that have ended left behind. Completed ones stay. */
export function sweepClones<View extends RigsView>({ directory, store, config, name }: RigCity<View>): void {
  const unfinished = new Set(store.requests.unfinished(name).map(({ id }) => id))
  const staging = join(directory, STAGING)
  for (const id of namesIn(staging))
    if (!unfinished.has(id)) rmSync(join(staging, id), { recursive: true, force: true })
  for (const rig of namesIn(join(directory, CLONES))) {
    const target = join(directory, CLONES, rig)
    const mark = markOf(target)
    if (mark === undefined || unfinished.has(mark)) continue
    if (findRig(config.current(), rig)?.path === target) rmSync(join(target, MARK), { force: true })
    else removeClone(target)
  }
}

function removeClone(target: string): void {
  rmSync(target, { recursive: true, force: true })
  try {
    rmdirSync(join(target, '..'))
  } catch {
    // There are other rigs in it.
  }
}

/** Id of the request that made the directory and has not ended. */
function markOf(target: string): string | undefined {
  try {
    return readRegular(join(target, MARK))?.toString('utf8')
  } catch {
    return undefined
  }
}

function namesIn(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

function toFailure(error: unknown): unknown {
  if (error instanceof JobFailure) return error
  if (error instanceof Problem) return new JobFailure('provision_failed', error.message, error.options.issues)
  return error
}
