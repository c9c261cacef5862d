/** Where beads and convoys meet cities: one store of work per running city, its leases, and its reactions. */
import { parseDurationMs } from '../contract/base/durations.ts'
import { DEFAULT_LIMIT } from '../contract/base/paging.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import type { Reaction } from '../kernel/reactions.ts'
import { createBeadHandlers } from '../modules/beads/handlers.ts'
import { createInterchangeHandlers } from '../modules/beads/interchange-handlers.ts'
import { createBeadReadHandlers } from '../modules/beads/read-handlers.ts'
import { KeptCounts, openBeadsOfRig, type WorkCounts } from '../modules/beads/store/counts.ts'
import { BeadStore } from '../modules/beads/store/store.ts'
import type { WorkCity, WorkPeople } from '../modules/beads/work/city.ts'
import { Claims } from '../modules/beads/work/claim.ts'
import { LeaseTimer } from '../modules/beads/work/lease.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'
import type { ConfigService } from '../modules/config/edit/service.ts'
import { convoyReaction } from '../modules/convoys/completion.ts'
import { createConvoyHandlers } from '../modules/convoys/handlers.ts'
import { convoyBeads } from './city-convoys.ts'

export interface CityWorkDeps {
  readonly clock: Clock
  readonly log: Logger
  /** The spec's 404 for a city that is not running. */
  readonly config: (city: string) => ConfigService
  /** Who is meant by a name. */
  readonly people: (city: string) => WorkPeople
  /** The session is known to have ended, or is to end: it gets no more work. */
  readonly sessionEnded: (city: string, sessionId: string) => boolean
  /** False where it is known that no such session runs. */
  readonly sessionLives: (city: string, sessionId: string) => boolean
}

interface OpenWork {
  readonly work: WorkCity
  readonly leases: LeaseTimer
  readonly counts: KeptCounts
}

export class CityWork {
  readonly #deps: CityWorkDeps
  readonly #open = new Map<string, OpenWork>()

  constructor(deps: CityWorkDeps) {
    this.#deps = deps
  }

  /** Before anybody works: leases that nobody could renew while the city was down begin anew. */
  get hook(): PhaseHook {
    return {
      phase: 'starting_bead_store',
      run: async (city) => {
        if (city.store === undefined) return
        this.#close(city.name)
        const opened = this.#openWork(city, city.store)
        this.#open.set(city.name, opened)
        await opened.leases.start()
      },
      stop: (city) => this.#close(city.name),
    }
  }

  /** The work of a running city. */
  of(name: string): WorkCity {
    return this.#need(name).work
  }

  handlers(running: (name: string) => unknown) {
    const { clock } = this.#deps
    const city = (name: string): WorkCity => {
      running(name)
      return this.of(name)
    }
    return {
      ...createBeadHandlers({ city, clock }),
      ...createBeadReadHandlers({ city, clock, sessionEnded: this.#deps.sessionEnded }),
      ...createInterchangeHandlers({ city, clock }),
      ...createConvoyHandlers({ clock, city: (name) => convoyCity(city(name)) }),
    }
  }

  /** How much work a running city has. */
  counts(name: string): WorkCounts {
    return this.#need(name).counts.read(this.#deps.clock.now())
  }

  /** Work that keeps a rig from being deleted, at most a page of it. */
  openBeadsOfRig(name: string, rig: string): readonly string[] {
    return openBeadsOfRig(this.of(name).store.db, rig, DEFAULT_LIMIT)
  }

  /** What work does about events in the log of a city. */
  reactions(name: string): readonly Reaction[] {
    const { store, beads } = convoyCity(this.of(name))
    return [convoyReaction({ db: store.db, log: store.log, beads })]
  }

  close(): void {
    for (const name of [...this.#open.keys()]) this.#close(name)
  }

  #need(name: string): OpenWork {
    const opened = this.#open.get(name)
    if (opened === undefined) throw problem('city-not-found', `city not found or not running: ${name}`)
    return opened
  }

  #close(name: string): void {
    this.#open.get(name)?.leases.stop()
    this.#open.delete(name)
  }

  #openWork({ name }: City, store: CityStore): OpenWork {
    const { clock, log } = this.#deps
    const config = () => this.#deps.config(name).current()
    const beads = new BeadStore({ db: store.db, log: store.log, clock })
    const people = this.#deps.people(name)
    const claims = new Claims({
      beads,
      db: store.db,
      log: store.log,
      clock,
      people,
      leaseMs: () => parseDurationMs(config().work.lease_ttl ?? DEFAULT_LEASE),
      lives: (sessionId) => this.#deps.sessionLives(name, sessionId),
      leased: (expiresAt) => leases.noticed(expiresAt),
    })
    const leases = new LeaseTimer({ db: store.db, claims, clock, log })
    return { work: { name, store, beads, claims, people, config }, leases, counts: new KeptCounts(store) }
  }
}

const DEFAULT_LEASE = '15m'

const convoyCity = (work: WorkCity) => ({ store: work.store, beads: convoyBeads(work) })
