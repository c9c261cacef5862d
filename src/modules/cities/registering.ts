/**
 * Making and adopting cities: the registry gets a city and the ledger its request in one write, and nothing is left of one
 * that is refused.
 */
import { basename } from 'node:path'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import { cut } from '../../contract/base/text.ts'
import type { CityInfo } from '../../contract/cities.ts'
import { FileRefused } from '../../files/read.ts'
import { accepted, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { contained } from '../../kernel/contained.ts'
import type { EventDraft } from '../../kernel/event-log.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import type { Ids } from '../../kernel/ids.ts'
import type { Logger } from '../../kernel/log.ts'
import { look } from '../../kernel/look.ts'
import { invalidField, type Problem, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import type { MergedLog } from '../../kernel/streams/merged-log.ts'
import { type City, cityInfo } from './city.ts'
import type { CityStore } from './city-store.ts'
import { isCityName } from './lifecycle.ts'
import type { CityRow, Registry, Scaffold } from './registry.ts'
import {
  codeOf,
  forgetScaffold,
  holdsCity,
  noteOf,
  planScaffold,
  refuseHome,
  removeLeftover,
  removeMade,
  resolveDirectory,
  type ScaffoldInput,
  writeScaffold,
} from './scaffold.ts'
import type { CityStores } from './stores.ts'

export interface RegistrarDeps {
  readonly supervisor: Store
  readonly registry: Registry
  readonly merged: MergedLog
  readonly stores: CityStores
  readonly clock: Clock
  readonly log: Logger
  readonly ids: Ids
  /** Home of the user, for relative directories. */
  readonly home: string
  /** Where the supervisor keeps its own state: no city lies in it or around it. */
  readonly stateHome: string
  readonly hostId: string
  /** Name that a directory's own files give it, if they do. */
  readonly nameFromFiles: (directory: string) => string | undefined
  /** Throws where the host cannot run a city with this provider (spec §4: 422, 503). */
  readonly checkHost: (provider: string | undefined, signal: AbortSignal) => Promise<void>
  readonly all: () => readonly City[]
  /** The city is registered, with its store; what is returned lets it act. */
  readonly joined: (row: CityRow, store: CityStore) => () => void
}

export interface CreateInput {
  readonly dir: string
  readonly name?: string
  readonly provider?: string
  readonly start_command?: string
  readonly bootstrap_profile?: string
}

interface Registration {
  readonly name: string
  readonly path: string
  readonly store: CityStore
  readonly requestId: string
  readonly cursor: string
  readonly claim: IdempotencyClaim | undefined
}

type AsyncReply = Reply<AsyncAcceptedResponse>

export class CityRegistrar {
  readonly #deps: RegistrarDeps
  /** Names and paths that a create or adopt under way has taken. */
  readonly #claimed = new Set<string>()

  constructor(deps: RegistrarDeps) {
    this.#deps = deps
  }

  /** Takes back what creates that were interrupted had begun to make. */
  async sweep(): Promise<void> {
    const { registry, log } = this.#deps
    for (const scaffold of registry.unfinishedScaffolds()) {
      // One that cannot be taken back now is tried again by the next create there, and at the next start.
      await this.#takeBackLeftover(scaffold).catch((error: unknown) =>
        log.warn({ path: scaffold.path, err: error }, 'scaffold not taken back'),
      )
    }
  }

  async create(input: CreateInput, claim: IdempotencyClaim | undefined, signal: AbortSignal): Promise<AsyncReply> {
    const { provider, start_command: startCommand, bootstrap_profile: bootstrapProfile } = input
    if (provider !== undefined && startCommand !== undefined) {
      throw invalidField('body.start_command', 'cannot be combined with provider', startCommand)
    }
    const path = resolveDirectory(input.dir, this.#deps.home, 'body.dir')
    refuseHome(path, this.#deps.stateHome, 'body.dir', this.#deps.home)
    const name = nameFor(input.name, path)
    return this.#claiming(name, path, async () => {
      const unfinished = this.#deps.registry.unfinishedScaffold(path)
      if (unfinished !== undefined) await this.#takeBackLeftover(unfinished)
      if (holdsCity(path)) throw alreadyCity(path)
      this.#refuseTaken(name, path)
      refuseFile(path)
      const chosen = startCommand === undefined ? (provider ?? 'shell') : undefined
      await this.#deps.checkHost(chosen, signal)
      return this.#scaffold(path, { name, provider: chosen, startCommand, bootstrapProfile }, claim)
    })
  }

  async adopt(
    input: { readonly path: string; readonly name?: string },
    claim: IdempotencyClaim | undefined,
  ): Promise<Reply<AsyncAcceptedResponse | CityInfo>> {
    const path = resolveDirectory(input.path, this.#deps.home, 'body.path')
    const registered = this.#atPath(path)
    if (registered !== undefined && registered.wanted !== 'gone') return this.#alreadyRegistered(registered, input.name)
    refuseHome(path, this.#deps.stateHome, 'body.path', this.#deps.home)
    refuseUnreadable(path, 'body.path')
    if (look(path).is !== 'directory' || !holdsCity(path)) throw problem('directory-not-found', `no city at ${path}`)
    const name = nameFor(input.name ?? this.#deps.nameFromFiles(path), path)
    return this.#claiming(name, path, async () => {
      this.#refuseTaken(name, path)
      const cursor = this.#deps.merged.head()
      const store = this.#deps.stores.take(path) ?? (await this.#deps.stores.open(path, name).catch(refusedStore))
      try {
        this.#refuseCopy(store, path)
        return await this.#register({ name, path, store, requestId: this.#deps.ids.requestId(), cursor, claim })
      } catch (error) {
        store.db.close()
        throw error
      }
    })
  }

  async #scaffold(path: string, input: ScaffoldInput, claim: IdempotencyClaim | undefined): Promise<AsyncReply> {
    const { supervisor, registry, merged, ids } = this.#deps
    const requestId = ids.requestId()
    const cursor = merged.head()
    if (holdsCity(path)) throw alreadyCity(path)
    const plan = planScaffold(path, input, requestId)
    const note = noteOf(plan)
    await supervisor.db.write((tx) => registry.beginScaffold(tx, path, note))
    const made: string[] = []
    let store: CityStore | undefined
    try {
      writeScaffold(plan, made)
      store = await this.#deps.stores.open(path, input.name)
      return await this.#register({ name: input.name, path, store, requestId, cursor, claim })
    } catch (error) {
      store?.db.close()
      // Where even that fails the journal stays: the next create there, or the next start, tries again.
      await this.#takeBack(path, () => removeMade({ ...note, directory: path }, made)).catch((failure: unknown) =>
        this.#deps.log.warn({ path, err: failure }, 'scaffold not taken back'),
      )
      throw scaffoldProblem(error, path)
    }
  }

  async #takeBack(path: string, remove: () => void): Promise<void> {
    remove()
    await this.#deps.supervisor.db.write((tx) => this.#deps.registry.endScaffold(tx, path))
  }

  #takeBackLeftover({ path, note }: Scaffold): Promise<void> {
    return this.#takeBack(path, () => removeLeftover(path, note))
  }

  async #register({ name, path, store, requestId, cursor, claim }: Registration): Promise<AsyncReply> {
    const { supervisor, registry, clock } = this.#deps
    const payload = { name, path }
    let wake = () => {}
    const reply = await supervisor.db.write((tx) => {
      const registeredAt = supervisor.log.append(tx, {
        type: 'city.created',
        actor: 'api',
        subject: name,
        city: name,
        payload,
      } satisfies EventDraft)
      supervisor.requests.giveBack(tx, store.requests.ended())
      const row = registry.add(tx, { name, uid: store.uid, path, registeredAt, startHead: store.log.head }, clock.now())
      supervisor.requests.accept(tx, {
        id: requestId,
        operation: 'city.create',
        city: name,
        subject: name,
        eventCursor: cursor,
        input: payload,
      })
      tx.afterCommit(() => {
        wake = this.#deps.joined(row, store)
      })
      return supervisor.keys.remember(tx, claim, accepted({ request_id: requestId, event_cursor: cursor }))
    })
    wake()
    this.#forgetScaffold(path)
    return reply
  }

  /** The city is registered, so a mark that cannot be removed changes nothing: only an unfinished scaffold looks for one. */
  #forgetScaffold(path: string): void {
    contained(
      () => forgetScaffold(path),
      (error) => this.#deps.log.warn({ path, err: error }, 'mark of a scaffold not removed'),
    )
  }

  async #claiming<T>(name: string, path: string, work: () => Promise<T>): Promise<T> {
    const keys = [`name ${name}`, `path ${path}`]
    if (this.#claimed.has(keys[1] ?? ''))
      throw problem('operation-in-progress', `city initialization already in progress at ${path}`, { retryAfterSec: 1 })
    if (this.#claimed.has(keys[0] ?? '')) throw problem('city-name-taken', `a city named ${name} is being created`)
    for (const key of keys) this.#claimed.add(key)
    try {
      return await work()
    } finally {
      for (const key of keys) this.#claimed.delete(key)
    }
  }

  #atPath(path: string): City | undefined {
    return this.#deps.all().find((city) => city.path === path)
  }

  #refuseTaken(name: string, path: string): void {
    const there = this.#atPath(path)
    if (there !== undefined) throw registeredAt(there)
    const named = this.#deps.all().find((city) => city.name === name)
    if (named === undefined) return
    if (named.wanted === 'gone') throw isLeaving(named)
    throw problem('city-name-taken', `a city named ${name} is registered at ${named.path}`)
  }

  #refuseCopy(store: CityStore, path: string): void {
    const original = this.#deps.all().find(({ uid }) => uid === store.uid)
    if (original === undefined) return
    throw problem(
      'city-name-taken',
      `${path} is a copy of the city ${original.name} at ${original.path}: remove .svc/city.db from the copy to make it a city of its own`,
    )
  }

  #alreadyRegistered(city: City, name: string | undefined): Reply<CityInfo> {
    if (name !== undefined && name !== city.name) {
      throw problem(
        'city-name-taken',
        `${city.path} is registered as ${city.name}; unregister it to give it another name`,
      )
    }
    return { status: 200, body: cityInfo(city, this.#deps.hostId, this.#deps.clock.now()) }
  }
}

/** What is there is no create under way: those are refused by what they have claimed. */
function registeredAt(city: City): Problem {
  const { name, path, wanted, state } = city
  if (wanted === 'gone') return isLeaving(city)
  return problem('city-already-initialized', `${path} is registered already, as the city ${name}, which is ${state}`)
}

/** Directory and name are free in a moment; the request says when. */
const isLeaving = ({ name, path, departure }: City): Problem =>
  problem('operation-in-progress', `the city ${name} at ${path} is being unregistered`, {
    retryAfterSec: 1,
    ...(departure === undefined ? {} : { request_id: departure }),
  })

function nameFor(given: string | undefined, path: string): string {
  const name = given ?? basename(path)
  if (isCityName(name)) return name
  const location = given === undefined ? 'body.dir' : 'body.name'
  throw invalidField(
    location,
    `"${cut(name, 80)}" cannot be the name of a city: use letters, digits, dot, underscore and hyphen, or give "name"`,
    name.slice(0, 80),
  )
}

/** What stands where the store belongs is for the caller to move away. */
function refusedStore(error: unknown): never {
  if (error instanceof FileRefused)
    throw invalidField('body.path', `its .svc/city.db cannot be opened: ${error.message}`)
  throw error
}

function refuseFile(path: string): void {
  refuseUnreadable(path, 'body.dir')
  const { is } = look(path)
  if (is !== 'missing' && is !== 'directory') throw invalidField('body.dir', 'is not a directory', path)
}

function refuseUnreadable(path: string, location: string): void {
  const found = look(path)
  if (found.is === 'unknown') throw invalidField(location, `cannot be looked at: ${found.code}`, path)
}

const alreadyCity = (path: string): Problem =>
  problem('city-already-initialized', `city already initialized at ${path}`)

function scaffoldProblem(error: unknown, path: string): unknown {
  const code = codeOf(error)
  // Somebody has made what was planned, between the plan and us.
  if (code === 'EEXIST')
    return holdsCity(path) ? alreadyCity(path) : invalidField('body.dir', 'was changed meanwhile: look again', path)
  if (code === 'ENOSPC' || code === 'EROFS' || code === 'EDQUOT')
    return problem('unavailable', `cannot write to ${path}: ${code}`, { cause: error, retryAfterSec: 5 })
  // ENOENT: its parent is there and lets nobody make anything, as in /proc.
  if (['EACCES', 'EPERM', 'ENOTDIR', 'ENAMETOOLONG', 'ENOENT'].includes(code ?? ''))
    return invalidField('body.dir', `cannot be written: ${code}`, path)
  return error
}
