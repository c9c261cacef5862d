/**
 * The services of a running city, as they are declared.
 *
 * S1  Each name has one actor at a time: one that comes back under its name is there at once, and begins when the one before
 *     has ended.
 * S2  None of them delays the city, nor another one.
 */
import { cut } from '../../contract/base/text.ts'
import { delay } from '../../kernel/clock.ts'
import { problem } from '../../kernel/problem.ts'
import type { ServiceSettings, ServicesDeps } from './ports.ts'
import { Service } from './service.ts'
import * as rows from './store.ts'

const RETRY_MS = 1_000

export class Services {
  readonly #deps: ServicesDeps
  readonly #services = new Map<string, Service>()
  /** They end, and are declared no more; or were not when they began to. */
  readonly #leaving = new Map<string, Promise<void>>()
  readonly #dropped = new Set<Service>()
  readonly #over = new AbortController()
  #state: 'opened' | 'starting' | 'started' | 'over' = 'opened'

  constructor(deps: ServicesDeps) {
    this.#deps = deps
    const known = new Map(rows.all(deps.store.db).map((row) => [row.name, row]))
    for (const settings of deps.settings()) this.#add(settings, known.get(settings.name))
  }

  get all(): readonly Service[] {
    return [...this.#services.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  find(name: string): Service | undefined {
    return this.#services.get(name)
  }

  need(name: string): Service {
    const found = this.#services.get(name)
    if (found === undefined) throw problem('service-not-found', `service not found: ${cut(name, 200)}`)
    return found
  }

  /** Whose process speaks to the API with the token of this hash. */
  withAccess(hash: string): string | undefined {
    return rows.nameWithAccess(this.#deps.store.db, hash)
  }

  /** Nobody waits for them. */
  start(): void {
    this.#state = 'starting'
    void this.#begin()
  }

  async #begin(): Promise<void> {
    await this.#endStrays()
    if (this.#state !== 'starting') return
    this.#state = 'started'
    this.#endForgotten()
    for (const service of this.#services.values()) service.begin()
  }

  reconfigured(): void {
    if (this.#state === 'over') return
    const declared = new Map(this.#deps.settings().map((settings) => [settings.name, settings]))
    for (const service of [...this.#services.values()]) {
      const settings = declared.get(service.name)
      if (settings === undefined) this.#drop(service)
      else service.configure(settings)
    }
    for (const settings of declared.values()) if (!this.#services.has(settings.name)) this.#add(settings, undefined)
  }

  /** Nothing of them runs when this resolves. */
  async stop(force: boolean): Promise<void> {
    this.#leave()
    await Promise.all([...this.all.map((service) => service.end('city_stopped', force)), ...this.#leaving.values()])
  }

  /** The supervisor ends; they run on. */
  async release(): Promise<void> {
    this.#leave()
    await Promise.all([...this.all, ...this.#dropped].map((service) => service.release()))
  }

  #leave(): void {
    this.#state = 'over'
    this.#over.abort(new Error('services end'))
  }

  #add(settings: ServiceSettings, row: rows.ServiceRow | undefined): void {
    const { name } = settings
    const known = row ?? rows.newRow(name, this.#deps.clock.now())
    const service = new Service(this.#deps, settings, known, this.#leaving.get(name) ?? Promise.resolve())
    this.#services.set(name, service)
    if (this.#state === 'started') service.begin()
  }

  /** S1. */
  #drop(service: Service): void {
    const { name } = service
    this.#services.delete(name)
    this.#dropped.add(service)
    const gone = service.end('removed', false).then(() => {
      this.#dropped.delete(service)
      if (this.#leaving.get(name) === gone) this.#leaving.delete(name)
    })
    this.#leaving.set(name, gone)
  }

  /**
   * What is of no start that is known here, because the store is an older one: nothing is started beside it, so it is ended
   * first, however long that takes.
   */
  async #endStrays(): Promise<void> {
    const { store, clock, log, strays, endAll } = this.#deps
    const known = rows.all(store.db).flatMap(({ token }) => token ?? [])
    for (const token of strays(known))
      for (let isThere = true; isThere && !this.#over.signal.aborted; )
        try {
          await endAll(undefined, token)
          isThere = false
        } catch (error) {
          log.warn({ err: error }, 'a stray service not ended')
          await delay(clock, RETRY_MS, this.#over.signal).catch(() => {})
        }
  }

  /** Those that were declared no more while no supervisor ran. */
  #endForgotten(): void {
    const { store, city } = this.#deps
    for (const row of rows.all(store.db)) {
      if (this.#services.has(row.name) || this.#leaving.has(row.name)) continue
      const service = new Service(this.#deps, undeclared(row.name, city.path), row, Promise.resolve())
      this.#services.set(row.name, service)
      this.#drop(service)
    }
  }
}

/** It is only to be ended. */
const undeclared = (name: string, directory: string): ServiceSettings => ({
  name,
  command: [],
  healthPath: undefined,
  listen: 'socket',
  env: {},
  direct: false,
  websockets: false,
  sandbox: true,
  firstByteMs: 0,
  idleMs: 0,
  directory,
  stateRoot: directory,
  pack: undefined,
  untrustedPack: undefined,
})
