/** What sessions need of their surroundings; filled by the supervisor's wiring (style R11). */
import type {
  LIMIT_SOURCES,
  RuntimeName,
  SessionResponse,
  WorkerOperationPayload,
} from '../../../contract/sessions/session-model.ts'
import type { UsageReport, UsageTotals, UsageTurn } from '../../../contract/sessions/usage.ts'
import type { InterruptRules } from '../../../harnesses/harness.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Ids } from '../../../kernel/ids.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Environment } from '../../../kernel/processes.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import type { DigestSource, DigestSourceName } from '../../../messaging/digest.ts'
import type {
  Activity,
  AgentProcess,
  Answer,
  Evidence,
  Liveness,
  MayEnter,
  Pending,
  Runtime,
  Taken,
} from '../../../runtimes/process/runtime.ts'
import type { AgentView, ProviderView, SessionsView } from './config-view.ts'
import type { Fingerprints, LaunchFacts, SessionRecord } from './record.ts'

/** The screen of a process, and what can be told from it. */
export interface Terminal {
  /** Resolves when the program takes commands; rejects where it never did. */
  ready(signal: AbortSignal): Promise<void>
  readonly activity: Activity
  /** When it became so. */
  readonly since: number
  /** Something that looks like a question is on it, also one that is not announced yet. */
  readonly asks: boolean
  readonly pending: Pending | undefined
  /** The last lines; 0: the whole screen. */
  screen(lines: number): Screen
  /** What it shows, with everything that is in its log. */
  shown(signal: AbortSignal): Promise<Shown>
  readonly size: { readonly columns: number; readonly rows: number }
  answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean>
  /** Looks at all that was printed until now, whose end it answers: whoever is about to type must know. */
  lookNow(signal: AbortSignal): Promise<number>
  /** A message is about to be typed. */
  typing(message: string): void
  /** Whether Enter would enter it now, and answer nothing: waits a little until it is seen where it was typed. */
  mayEnter(signal: AbortSignal): Promise<MayEnter>
  /** A message was typed into it. */
  delivered(message: string): void
  /** Whether the program took what was typed last: waits until it is seen that it did, or stands there. */
  taken(signal: AbortSignal): Promise<Taken>
  /** Its turn was interrupted; `restores`: the message that began it may come back into the input line. */
  interrupted(restores: boolean): void
  /** Called when activity or pending changed. */
  onChange(listener: () => void): () => void
  close(): void
}

export interface Screen {
  readonly lines: readonly string[]
  readonly observedAt: number
  readonly cursor?: { readonly row: number; readonly column: number }
}

/** A screen as somebody sees it who sits there. The functions hold until the next turn: then it may show something else. */
export interface Shown {
  readonly columns: number
  readonly rows: number
  readonly cursor: { readonly row: number; readonly column: number; readonly visible: boolean }
  readonly title: string
  /** The program draws on a screen of its own. */
  readonly alternate: boolean
  /** The program has asked for the other sequences of the cursor keys. */
  readonly applicationCursor: boolean
  /** Bytes of the log that are in it. */
  readonly offset: number
  readonly observedAt: number
  /** Its rows, without empty ones at the end. */
  lines(coloured: boolean): readonly string[]
  /** Brings a terminal of this size to show it. */
  escapeText(): string
}

/**
 * Evidence that may hold a session, the surest first. A screen is none: anybody who gets text onto it could hold the session
 * for weeks. (Records of earlier versions still name it.)
 */
export type HoldingEvidence = Exclude<(typeof LIMIT_SOURCES)[number], 'screen'>

/** A rate limit, as its source reports it. */
export interface ToldLimit {
  readonly source: HoldingEvidence
  readonly message?: string | undefined
  /** As its source says it; else what its words say counts. */
  readonly until?: number | undefined
}

/** Work that sessions hold; empty answers until somebody has some. */
export interface WorkPort {
  /** Work is assigned to it that is not closed. */
  assigned(session: SessionRecord): boolean
  /** The same for a configured identity that has no session. */
  assignedTo(name: string): boolean
  /** Bead in progress that it holds. */
  active(session: SessionRecord): string | undefined
  /** Beads that are ready and routed to this agent or session, unassigned. */
  demand(agent: string): number
  /** What it could take now, in the order in which its hook offers it. */
  offered(session: SessionRecord): readonly OfferedWork[]
  /** Their leases run on: they live, or nobody knows better (decision 63). */
  renew(sessions: readonly SessionRecord[]): Promise<void>
  /** Gives back what it holds; the ids. */
  release(tx: Tx, session: SessionRecord, reason: string): readonly string[]
  /** Which of these beads are not closed, and which there are none of. */
  beads(ids: readonly string[]): { readonly open: readonly string[]; readonly unknown: readonly string[] }
}

export interface OfferedWork {
  readonly id: string
  readonly tier: 'in_progress' | 'assigned' | 'routed'
}

/** Git worktrees of sessions that work isolated. */
export interface WorktreePort {
  /** Undefined: it has none. */
  ofSession(id: string): SessionWorktree | undefined
  /** Why there cannot be one of that directory, as far as that can be told quickly. */
  refusal(directory: string, baseRef: string | undefined): Promise<string | undefined>
  /** Makes it, or makes it anew; as it is where it is there. */
  add(wanted: WantedWorktree, signal: AbortSignal): Promise<SessionWorktree>
  /** Nothing where it is ready; rejects with why, the end of the output and where all of it is. */
  setUp(name: string, how: WorktreeSetUp, signal: AbortSignal): Promise<unknown>
  /** A start has laid these files into it: they are nobody's work. */
  laid(sessionId: string, files: readonly string[]): Promise<void>
  /** Its session is closed in this write. */
  close(tx: Tx, sessionId: string): void
  /** True of what runs for a worktree now. */
  runs(token: string): boolean
}

export interface SessionWorktree {
  readonly name: string
  readonly path: string
  /** From there to where it works. */
  readonly prefix: string
  readonly branch: string
  readonly state: string
}

export interface WantedWorktree {
  readonly sessionId: string
  readonly handle: string
  readonly rig: string
  readonly directory: string
  readonly baseRef: string | undefined
}

export interface WorktreeSetUp {
  readonly commands: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
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
  /** How a turn of that harness is interrupted on its terminal. */
  readonly interruptOf: (family: string) => InterruptRules
  readonly prompt: (agent: AgentView, workDir: string) => RenderedPrompt
  readonly fingerprints: (agent: AgentView) => Fingerprints
  readonly render: (template: string, values: Readonly<Record<string, string>>) => string
  readonly runtimes: ReadonlyMap<RuntimeName, Runtime>
  /** Undefined where the runtime itself knows all of it. */
  readonly terminal: (process: AgentProcess, session: SessionRecord, facts: LaunchFacts) => Terminal | undefined
  /** The last lines that a run in this directory wrote to its terminal, all of its output read; empty where it has none. */
  readonly lastOutput: (directory: string) => Promise<string>
  readonly work: WorkPort
  readonly worktrees: WorktreePort
  readonly suspended: { readonly city: () => boolean; readonly rig: (name: string) => boolean }
  /** Processes that carry a token and belong to a session of this city: whatever a crash left. */
  readonly orphans: {
    list(): Promise<readonly { readonly sessionId: string; readonly token: string }[]>
    kill(token: string): Promise<void>
  }
  readonly insight: InsightPort
  readonly usage: UsagePort
  readonly digests: DigestPort
  readonly chat: ChatPort
}

/** Conversations of chats that belong to sessions. */
export interface ChatPort {
  /** In the write that closes it: what is for this session alone ends with it. */
  closed(tx: Tx, session: SessionRecord): void
}

/** Who tells sessions of mail and chat, and for whom they read. */
export interface DigestPort {
  /** Undefined: this city has none. */
  source(name: DigestSourceName): DigestSource | undefined
  mailboxOf(session: SessionRecord): Mailbox
}

/** What the transcripts add to what is known of a session. */
export interface InsightPort {
  /** What was seen last; never waits. */
  known(session: SessionRecord): Known
  /** There is more output. */
  grew(id: string): void
  /** Why the turn of a delivery came to nothing; undefined where it did not, or nobody says. Never rejects. */
  failureOf(sessionId: string, deliveryId: string): Promise<string | undefined>
}

/** What sessions have used; kept by the usage family. */
export interface UsagePort {
  /** In all; undefined: nothing was recorded. */
  of(sessionId: string): UsageTotals | undefined
  /** Its logs may tell more. */
  grew(id: string): void
  /** The turn of a delivery that has ended, as far as it was told; bounded in time, never rejects. */
  turn(sessionId: string, deliveryId: string): Promise<UsageTurn | undefined>
  /** False: the turn counts already, or a log tells of this session. */
  report(tx: Tx, session: SessionRecord, report: UsageReport): boolean
}
export type Known = Pick<SessionResponse, 'model' | 'context_pct' | 'context_window'>
export type TurnCost = Pick<
  WorkerOperationPayload,
  'model' | 'input_tokens' | 'output_tokens' | 'cache_read_tokens' | 'cache_creation_tokens'
>

/** What is observed of a session and is in no row. */
export interface LiveFacts extends Evidence {
  readonly liveness: Liveness
  readonly pendingSince: number | undefined
  readonly attached: boolean
  readonly observedAt: number
  readonly lastActive: number | undefined
}
