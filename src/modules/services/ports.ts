/** What services need of the city around them, and what they are to the proxy in front of them. */
import type { Clock } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/log.ts'
import type { Listeners } from '../../kernel/peers/listeners.ts'
import type { Environment } from '../../kernel/processes.ts'
import type { Store } from '../../kernel/store.ts'
import type { Runtime } from '../../runtimes/process/runtime.ts'

/** A service as it is declared. */
export interface ServiceSettings {
  readonly name: string
  readonly command: readonly string[]
  readonly healthPath: string | undefined
  readonly listen: 'socket' | 'port'
  /** As written: `$NAME` alone stands for a variable of the supervisor. */
  readonly env: Readonly<Record<string, string>>
  readonly direct: boolean
  readonly websockets: boolean
  readonly sandbox: boolean
  readonly firstByteMs: number
  readonly idleMs: number
  /** Where it runs. */
  readonly directory: string
  readonly stateRoot: string
  /** The import that brings it. */
  readonly pack: string | undefined
  /** That import, where nobody has trusted it: it is not started. */
  readonly untrustedPack: string | undefined
}

export interface ServicesDeps {
  readonly city: { readonly name: string; readonly path: string }
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  readonly log: Logger
  /** The supervisor's. */
  readonly env: Environment
  readonly home: string
  /** Directory of `svcctl`, which services find as agents do. */
  readonly bin: string
  /** The API asks for a token. */
  readonly auth: boolean
  readonly random: (bytes: number) => string
  /** From 0 up to 1. */
  readonly chance: () => number
  readonly settings: () => readonly ServiceSettings[]
  readonly runtime: Runtime
  /** Directory of the sockets of the city, made where it is missing. */
  readonly socketDirectory: () => string
  readonly freePort: () => Promise<number>
  /** Whether a service is behind its port. */
  readonly listeners: Listeners
  readonly output: (directory: string) => RunOutput
  /** Ends what a start has left, with the host of that run; throws where something of it is still there. */
  readonly endAll: (directory: string | undefined, token: string) => Promise<void>
  /** What says that it is a service of this city, and has none of these tokens; to be ended by what stands for its token. */
  readonly strays: (known: readonly string[]) => readonly string[]
  /** Its token to the API is good no more. */
  readonly accessEnded: (service: string) => void
}

/** What one start wrote, by the offset of its bytes. */
export interface RunOutput {
  /** More than 0 where the oldest was dropped. */
  startOffset(): Promise<number>
  endOffset(): Promise<number>
  read(offset: number, maxBytes: number): Promise<{ readonly offset: number; readonly bytes: Buffer }>
}

// --- What the proxy sees ---------------------------------------------------------------------------------------------

export type Upstream = { readonly socketPath: string } | { readonly host: string; readonly port: number }

/** A place at the process of a service. */
export interface Visit {
  readonly upstream: Upstream
  /** The same object for the whole life of one process. */
  readonly life: object
  /** Aborts when the process is about to be ended; the reason is the Problem of who is cut. */
  readonly cut: AbortSignal
  /** Once; again changes nothing. */
  leave(): void
}
