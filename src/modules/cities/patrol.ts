/** The safety net under the cities: lost directories, changed files, retention. */
import { join } from 'node:path'
import { SUPERVISOR_SOURCE } from '../../contract/base/names.ts'
import type { Clock } from '../../kernel/clock.ts'
import { contained } from '../../kernel/contained.ts'
import type { Retention } from '../../kernel/event-log.ts'
import type { Logger } from '../../kernel/log.ts'
import { isDirectory, look } from '../../kernel/look.ts'
import { probeWrites, type Store, tidy } from '../../kernel/store.ts'
import type { City } from './city.ts'
import type { CityRun, CityWorker } from './worker.ts'

const PATROL_MS = 10_000
/** Stores that are tended at once: a slow one holds up a part of the others only, and many at once would block the loop. */
const LANES = 4

/** What a round does with a city. */
type Patrolled<Run extends CityRun> = Pick<
  CityWorker<Run>,
  'city' | 'run' | 'dropStore' | 'directoryLost' | 'retryNow' | 'poke' | 'ensureStore'
>

export interface PatrolDeps<Run extends CityRun> {
  readonly clock: Clock
  readonly log: Logger
  readonly supervisor: Store
  readonly retention: Retention
  readonly workers: () => Iterable<Patrolled<Run>>
  /** A look at files that a watch may have missed. */
  readonly inspect: (run: Run) => void
}

export class CityPatrol<Run extends CityRun> {
  readonly #deps: PatrolDeps<Run>
  /** Who keeps the log of a store from being cleared. */
  readonly #held = new Map<string, { readonly holders: string; readonly isTold: boolean }>()
  #cancel: (() => void) | undefined
  #last: number
  #closed = false

  constructor(deps: PatrolDeps<Run>) {
    this.#deps = deps
    this.#last = deps.clock.monotonic()
  }

  /** Milliseconds since it last looked at every city. */
  get ageMs(): number {
    return this.#deps.clock.monotonic() - this.#last
  }

  start(): void {
    if (this.#closed) return
    this.#cancel = this.#deps.clock.after(PATROL_MS, () => {
      this.#round()
        .catch((error: unknown) => this.#deps.log.error({ err: error }, 'patrol failed'))
        .finally(() => this.start())
    })
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  async #round(): Promise<void> {
    const { clock, supervisor, workers } = this.#deps
    this.#last = clock.monotonic()
    // Each by itself: what one city or store fails with, or waits for, is nothing to the others.
    for (const worker of workers())
      contained(
        () => this.#inspect(worker),
        (error) => this.#deps.log.warn({ city: worker.city.name, err: error }, 'city not looked at'),
      )
    supervisor.db.checkPlace()
    const stores = this.#stores().values()
    const lane = async () => {
      for (const [name, store, kept] of stores) await this.#tend(name, store, kept)
    }
    await Promise.all(Array.from({ length: LANES }, lane))
  }

  #stores(): (readonly [string, Store, Retention])[] {
    const { supervisor, retention, workers } = this.#deps
    const ofCities = [...workers()].flatMap(({ city: { name, store, settings } }) =>
      store?.db.inPlace === true ? [[name, store, settings?.retention ?? retention] as const] : [],
    )
    return [[SUPERVISOR_SOURCE, supervisor, retention], ...ofCities]
  }

  async #tend(name: string, store: Store, retention: Retention): Promise<void> {
    try {
      if (store.db.failure !== undefined) await probeWrites(store, this.#deps.clock)
      await tidy(store, retention)
      this.#tellHolders(name, store.log.holders.join(', '))
    } catch (error) {
      this.#deps.log.warn({ store: name, err: error }, 'store not tended')
    }
  }

  /** Said once, of who was behind a round ago too: to be a little late is nothing to speak of. */
  #tellHolders(name: string, holders: string): void {
    const before = this.#held.get(name)
    if (holders === '') this.#held.delete(name)
    else if (before?.holders !== holders) this.#held.set(name, { holders, isTold: false })
    else if (!before.isTold) {
      this.#held.set(name, { holders, isTold: true })
      this.#deps.log.warn({ store: name, holders }, 'events kept beyond retention')
    }
  }

  #inspect(worker: Patrolled<Run>): void {
    const { city, run } = worker
    const lost = city.wanted !== 'gone' && city.store?.db.inPlace === false
    if (lost) worker.dropStore()
    if (lost && city.state === 'running') worker.directoryLost()
    else if (city.state === 'init_failed' && configTime(city) !== city.failedWith) worker.retryNow()
    else worker.poke()
    if (city.state === 'running' && run !== undefined) this.#deps.inspect(run)
    // The log of a stopped city is read too; its directory may be back.
    if (city.state === 'stopped' && city.store === undefined && isDirectory(city.path)) {
      worker
        .ensureStore()
        .catch((error: unknown) => this.#deps.log.warn({ city: city.name, err: error }, 'city store not opened'))
    }
  }
}

/** When `city.toml` was changed; undefined where nobody can tell. */
export function configTime({ path }: City): number | undefined {
  const found = look(join(path, 'city.toml'))
  return 'stats' in found ? found.stats.mtimeMs : undefined
}
