/**
 * The stores of cities and their place in the merged stream.
 *
 * ST1  One file is opened once, also while the log of a city that has left is kept for its two minutes.
 */
import type { Clock } from '../../kernel/clock.ts'
import type { Migrations } from '../../kernel/database.ts'
import type { StoreObserver } from '../../kernel/store.ts'
import type { Framing } from '../../kernel/streams/hub.ts'
import { LogStream } from '../../kernel/streams/log-stream.ts'
import type { MergedLog } from '../../kernel/streams/merged-log.ts'
import type { City } from './city.ts'
import { type CityStore, cityDatabasePath, openCityStore } from './city-store.ts'

export interface CityStoresDeps {
  readonly merged: MergedLog
  readonly framing: Framing
  readonly clock: Clock
  readonly migrations: Migrations
  readonly watch: StoreObserver
}

/** The log of a city that has left, until its grace is over. */
interface Departed {
  readonly store: CityStore
  readonly path: string
  readonly cancel: () => void
}

export class CityStores {
  readonly #deps: CityStoresDeps
  readonly #departed = new Map<string, Departed>()

  constructor(deps: CityStoresDeps) {
    this.#deps = deps
  }

  open(path: string, name: string): Promise<CityStore> {
    const { clock, migrations, watch } = this.#deps
    return openCityStore(path, name, clock, migrations, watch)
  }

  /** Feeds the city's own event streams. */
  stream(store: CityStore): LogStream {
    return new LogStream(store.log, this.#deps.framing, this.#deps.clock)
  }

  /** Puts the city in the merged stream, with its log or with what is known of it. */
  announce({ name, uid, store, registeredAt, startHead, knownHead, previousUid }: City): void {
    this.#deps.merged.put({ name, uid, log: store?.log, registeredAt, startHead, knownHead, previousUid })
  }

  /** The city has left: its log stays part of the merged stream until then. */
  keep({ name, path, store }: City, until: number): void {
    const { clock, merged } = this.#deps
    this.forget(name)
    if (store === undefined) {
      merged.remove(name)
      return
    }
    const cancel = clock.after(Math.max(until - clock.now(), 0), () => {
      this.forget(name)
      merged.remove(name)
    })
    this.#departed.set(name, { store, path, cancel })
  }

  /** Uids of the logs that are kept. */
  get kept(): readonly string[] {
    return [...this.#departed.values()].map(({ store }) => store.uid)
  }

  /** The name has come back, or everything ends. */
  forget(name: string): void {
    const left = this.#departed.get(name)
    this.#departed.delete(name)
    left?.cancel()
    left?.store.db.close()
  }

  /** The open store of a city that left this directory a moment ago. */
  take(path: string): CityStore | undefined {
    for (const [name, { store, path: left, cancel }] of this.#departed) {
      if (!store.db.isAt(cityDatabasePath(path))) continue
      this.#departed.delete(name)
      cancel()
      this.#deps.merged.remove(name)
      if (left === path) return store
      // It was moved since: the open file would write its side files where it came from.
      store.db.close()
    }
    return undefined
  }

  close(): void {
    for (const name of [...this.#departed.keys()]) this.forget(name)
  }
}
