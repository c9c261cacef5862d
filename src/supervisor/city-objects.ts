/** Where providers, rigs and patches meet cities, their configuration and their jobs. */

import type { Clock } from '../kernel/clock.ts'
import type { Job } from '../kernel/jobs.ts'
import { problem } from '../kernel/problem.ts'
import type { Environment } from '../kernel/processes.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'
import type { EffectiveConfig } from '../modules/config/compose/effective.ts'
import { referrersOfProvider, referrersOfRig } from '../modules/config/compose/references.ts'
import type { ConfigService } from '../modules/config/edit/service.ts'
import { createPatchHandlers } from '../modules/patches/handlers.ts'
import { createProviderHandlers } from '../modules/providers/handlers.ts'
import { PRESETS } from '../modules/providers/presets.ts'
import { GitFacts } from '../modules/rigs/git-facts.ts'
import { createRigHandlers, type RigHandlersDeps } from '../modules/rigs/handlers.ts'
import { rigCreateJob, sweepClones } from '../modules/rigs/provision.ts'
import type { RigCity, RigSessions } from '../modules/rigs/rigs.ts'
import { declaredProvider, declaredRig, storedPatches, treeFiles } from './config-views.ts'
import type { RigClones } from './rig-clones.ts'

export interface CityObjectsDeps {
  readonly clock: Clock
  readonly env: Environment
  readonly clones: RigClones
  /** The spec's 404 for a city that is not running. */
  readonly config: (city: string) => ConfigService
  readonly sessions: (city: string) => RigSessions
  /** Beads of a rig that are not closed. */
  readonly openBeads: (city: string, rig: string) => readonly string[]
}

type RunningCity = City & { readonly store: CityStore }

export class CityObjects {
  readonly #deps: CityObjectsDeps
  readonly #git: GitFacts
  readonly #rigFiles = { declaration: declaredRig, referrers: referrersOfRig, tree: treeFiles }

  constructor(deps: CityObjectsDeps) {
    this.#deps = deps
    this.#git = new GitFacts({ clock: deps.clock, env: deps.env })
  }

  /** Before jobs are taken up: clears what crashed ones left, and has a first look at the rigs. */
  get hook(): PhaseHook {
    return {
      phase: 'starting_agents',
      run: async (city) => {
        if (city.store === undefined) return
        sweepClones(this.#rigCity({ ...city, store: city.store }))
        this.follow(this.#deps.config(city.name).current())
      },
    }
  }

  /** A configuration is in force: its rigs are worth a look. */
  follow({ rigs }: EffectiveConfig): void {
    for (const { path } of rigs) if (path !== undefined) this.#git.of(path)
  }

  jobs(city: City): readonly Job[] {
    const { store } = city
    if (store === undefined) throw problem('city-not-found', `city not found or not running: ${city.name}`)
    const clone = (
      source: string,
      directory: string,
      { directory: of }: { readonly directory: string },
      signal: AbortSignal,
    ) => this.#deps.clones.clone(source, directory, of, signal)
    return [
      rigCreateJob(
        { ...this.#rigFiles, clock: this.#deps.clock, git: this.#git, clone },
        this.#rigCity({ ...city, store }),
      ),
    ]
  }

  handlers(running: (name: string) => RunningCity, launch: RigHandlersDeps<EffectiveConfig>['launch']) {
    const city = (name: string) => this.#rigCity(running(name))
    return {
      ...createProviderHandlers({
        city,
        presets: new Map(Object.entries(PRESETS)),
        declaration: declaredProvider,
        referrers: referrersOfProvider,
        tree: treeFiles,
      }),
      ...createRigHandlers({
        ...this.#rigFiles,
        city,
        launch,
        clock: this.#deps.clock,
        git: this.#git,
        checkSource: this.#deps.clones.checkSource,
        openBeads: this.#deps.openBeads,
      }),
      ...createPatchHandlers({ city, patches: storedPatches, tree: treeFiles }),
    }
  }

  close(): void {
    this.#git.close()
  }

  #rigCity({ name, path, store }: RunningCity): RigCity<EffectiveConfig> {
    return { name, directory: path, store, config: this.#deps.config(name), sessions: this.#deps.sessions(name) }
  }
}
