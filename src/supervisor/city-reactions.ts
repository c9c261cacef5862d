/** The reactions of each running city: what its families do about events in its log. */
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/log.ts'
import { type Reaction, Reactions } from '../kernel/reactions.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'

export interface CityReactionsDeps {
  readonly clock: Clock
  readonly log: Logger
  /** The reactions of all families in one city. */
  readonly reactionsOf: (city: City & { readonly store: CityStore }) => readonly Reaction[]
  /** An event was passed over. */
  readonly skipped: (reaction: string) => void
}

export class CityReactions {
  readonly #deps: CityReactionsDeps
  readonly #running = new Map<string, Reactions>()

  constructor(deps: CityReactionsDeps) {
    this.#deps = deps
  }

  /** Takes up what a crash cut off as soon as the families of the city are there. */
  get hook(): PhaseHook {
    return {
      phase: 'starting_agents',
      run: async (city) => {
        const { store } = city
        if (store === undefined) return
        const { clock, log, reactionsOf, skipped } = this.#deps
        const reactions = new Reactions({
          db: store.db,
          log: store.log,
          clock,
          logger: log,
          reactions: reactionsOf({ ...city, store }),
          skipped,
        })
        await this.#running.get(city.name)?.stop()
        this.#running.set(city.name, reactions)
        await reactions.start()
      },
      stop: async (city) => {
        const reactions = this.#running.get(city.name)
        this.#running.delete(city.name)
        await reactions?.stop()
      },
    }
  }

  /** The supervisor ends: what is not done yet is done after the next start. */
  async closeAll(): Promise<void> {
    const all = [...this.#running.values()]
    this.#running.clear()
    await Promise.all(all.map((reactions) => reactions.stop()))
  }
}
