/** What views have to work with: what the cities of this supervisor share, and one of them while it runs. */

import type { StandInGit } from '../../files/git/stand-in.ts'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Retention } from '../../kernel/event-log.ts'
import type { Ids } from '../../kernel/ids.ts'
import type { Jobs } from '../../kernel/jobs.ts'
import type { Logger } from '../../kernel/log.ts'
import type { NeedSource } from '../../kernel/needs.ts'
import type { Listeners } from '../../kernel/peers/listeners.ts'
import type { Environment } from '../../kernel/processes.ts'
import type { Store } from '../../kernel/store.ts'
import type { LogStream } from '../../kernel/streams/log-stream.ts'
import type { MergedLog } from '../../kernel/streams/merged-log.ts'
import type { Programs } from '../../modules/agents/programs.ts'
import type { City, CitySettings } from '../../modules/cities/city.ts'
import type { Cities } from '../../modules/cities/service.ts'
import type { CityRun } from '../../modules/cities/worker.ts'
import type { HealthDeps } from '../../modules/health/handlers.ts'
import type { Metrics } from '../../modules/health/metrics.ts'
import type { Readiness } from '../../modules/health/readiness.ts'
import type { GitFacts } from '../../modules/rigs/git-facts.ts'
import type { Tokens } from '../../modules/tokens/tokens.ts'
import type { PackHost } from './packs.ts'
import type { RigClones } from './rig-clones.ts'

export interface Host {
  readonly settings: {
    readonly home: string
    /** The API asks for a token. */
    readonly auth: boolean
    readonly allowedPackHosts: readonly string[]
    readonly retention: Retention
  }
  readonly clock: Clock
  readonly env: Environment
  readonly userHome: string
  readonly version: string
  readonly random: () => number
  readonly log: Logger
  readonly ids: Ids
  /** Ends what those follow whose rights have ended. */
  readonly revoked: (isMeant: (caller: Caller) => boolean) => void
  readonly metrics: Metrics
  readonly packs: PackHost
  readonly clones: RigClones
  /** Git on directories that agents can write to. */
  readonly repositories: StandInGit
  readonly git: GitFacts
  readonly programs: Programs
  /** Who is behind ports of services. */
  readonly listeners: Listeners
}

/** The supervisor, as families see it. */
export interface Service extends Host {
  readonly store: Store
  readonly merged: MergedLog
  readonly cities: Pick<
    Cities<Running & CityRun>,
    | 'all'
    | 'list'
    | 'running'
    | 'runs'
    | 'create'
    | 'adopt'
    | 'startCity'
    | 'restartCity'
    | 'stopCity'
    | 'unregister'
    | 'setSuspended'
    | 'patrolAgeMs'
    | 'storageFailures'
  >
  readonly readiness: Readiness
  readonly withInitializer: boolean
  readonly url: () => string
  /** Monotonic time of the start of the process. */
  readonly startedAt: number
  readonly eventLoopMs: () => number | undefined
  readonly draining: () => boolean
  /** Who may connect. */
  readonly callers: HealthDeps['callers']
  readonly tokens: Tokens
}

export interface Running {
  readonly name: string
  readonly path: string
  readonly host: Host
  /** It is opened to be mended only: its files need not be valid. */
  readonly isMended?: boolean
  /** What is known of the city, as it is at the moment. */
  readonly record: City
  readonly store: Store
  readonly stream: LogStream
  readonly launch: Jobs['launch']
  readonly launchAnswering: Jobs['launchAnswering']
  /** What of its families may need a person. */
  readonly needs: () => readonly NeedSource[]
  /** What is in force in its files. */
  readonly observe: (settings: CitySettings) => void
}
