/** What sessions need of their surroundings; filled by the supervisor's wiring (style R11). */
import type { RuntimeName, SessionResponse, WorkerOperationPayload } from '../../../contract/session-model.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Ids } from '../../../kernel/ids.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Environment } from '../../../kernel/processes.ts'
import type { Store } from '../../../kernel/store.ts'
import type {
  Activity,
  AgentProcess,
  Answer,
  Attachable,
  LaunchSpec,
  Liveness,
  Pending,
  Runtime,
} from '../../../runtimes/process/runtime.ts'
import type { AgentView, ProviderView, SessionsView } from './config-view.ts'
import type { Fingerprints, LaunchFacts, SessionRecord } from './record.ts'

/** The screen of a process, and what can be told from it. */
export interface Terminal {
  /** Resolves when the program takes commands; rejects where it never did. */
  ready(signal: AbortSignal): Promise<void>
  readonly activity: Activity
  readonly pending: Pending | undefined
  /** The last lines; 0: the whole screen. */
  screen(lines: number): Screen
  answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean>
  /** A message was typed into it. */
  delivered(message: string): void
  /** Called when activity or pending changed. */
  onChange(listener: () => void): () => void
  close(): void
}

export interface Screen {
  readonly lines: readonly string[]
  readonly observedAt: number
  readonly cursor?: { readonly row: number; readonly column: number }
}

/** Work that sessions hold; empty answers until somebody has some. */
export interface WorkPort {
  /** Work is assigned to it that is not closed. */
  assigned(session: SessionRecord): boolean
  /** The same for a configured identity that has no session. */
  assignedTo(name: string): boolean
  /** Bead in progress that it holds. */
  active(session: SessionRecord): string | undefined
  /** Beads that are ready and routed to this agent, unassigned. */
  demand(agent: string): number
  /** Their leases run on: they live, or nobody knows better (decision 63). */
  renew(sessions: readonly SessionRecord[]): Promise<void>
  /** Gives back what it holds; the ids. */
  release(tx: Tx, session: SessionRecord, reason: string): readonly string[]
  /** Which of these beads are not closed, and which there are none of. */
  beads(ids: readonly string[]): { readonly open: readonly string[]; readonly unknown: readonly string[] }
}

export interface RenderedPrompt {
  readonly text: string
  readonly sha256: string
}

export interface SessionsDeps {
  readonly city: { readonly name: string; readonly path: string }
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly ids: Ids
  readonly random: (bytes: number) => string
  /** 0 … 1, for jitter. */
  readonly chance: () => number
  readonly env: Environment
  /** Home of the supervisor, and the directory with `svcctl`. */
  readonly home: string
  readonly bin: string
  /** The API asks for a token: every process gets one of its own. */
  readonly auth: boolean
  /** The process of a session is gone, and its token with it. */
  readonly accessEnded: (id: string) => void
  readonly config: () => SessionsView
  readonly provider: (name: string) => { readonly spec: ProviderView; readonly family: string } | undefined
  readonly interruptKey: (family: string) => LaunchSpec['interruptKey']
  readonly prompt: (agent: AgentView, workDir: string) => RenderedPrompt
  readonly fingerprints: (agent: AgentView) => Fingerprints
  readonly render: (template: string, values: Readonly<Record<string, string>>) => string
  readonly runtimes: ReadonlyMap<RuntimeName, Runtime>
  /** Where nothing says which: tmux where it is present. */
  readonly defaultRuntime: RuntimeName
  readonly attachable: (runtime: RuntimeName) => Attachable | undefined
  /** Undefined where the runtime itself knows all of it. */
  readonly terminal: (process: AgentProcess, session: SessionRecord, facts: LaunchFacts) => Terminal | undefined
  readonly work: WorkPort
  readonly suspended: { readonly city: () => boolean; readonly rig: (name: string) => boolean }
  /** Processes that carry a token and belong to a session of this city: whatever a crash left. */
  readonly orphans: {
    list(): Promise<readonly { readonly sessionId: string; readonly token: string }[]>
    kill(token: string): Promise<void>
  }
  readonly insight: InsightPort
}

/** What the transcripts add to what is known of a session. */
export interface InsightPort {
  /** What was seen last; never waits. */
  known(session: SessionRecord): Known
  /** There is more output. */
  grew(id: string): void
  /** What a turn that has ended cost, as far as it was told; bounded in time, never rejects. */
  turn(sessionId: string, deliveryId: string): Promise<TurnCost>
}
export type Known = Pick<SessionResponse, 'model' | 'context_pct' | 'context_window'>
export type TurnCost = Pick<
  WorkerOperationPayload,
  'model' | 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_creation_tokens'
>

/** What is observed of a session and is in no row. */
export interface LiveFacts {
  readonly liveness: Liveness
  readonly activity: Activity
  readonly pending: Pending | undefined
  readonly pendingSince: number | undefined
  readonly attached: boolean
  readonly observedAt: number
  readonly lastActive: number | undefined
}
