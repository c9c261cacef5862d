/**
 * What a runtime is: a way to start a real agent process, talk to it and see what it does (architecture §7, decisions
 * 53–57). Three implementations, one conformance suite. A runtime knows no city, no database and no HTTP.
 *
 * RT1  A process belongs to exactly one (session, generation, token); whoever adopts proves all three.
 * RT2  Liveness is alive, dead or unknown; an observation that failed is unknown, never dead.
 * RT3  A delivery that was acknowledged is never typed again; one that may have been typed is `uncertain`, never retried.
 * RT4  Output goes into the log of its generation, by byte offset, and nowhere else; no flood can block control.
 * RT5  When `stop` or `kill` has resolved, no process of the session's tree runs.
 */
import type { RuntimeName } from '../../contract/session-model.ts'

/** Who a process belongs to. The token is a secret: 32 hex digits, never in argv, proved at every adoption. */
export interface Identity {
  readonly sessionId: string
  /** Grows by one with every start of the session. */
  readonly generation: number
  readonly token: string
}

/** What is to be run, resolved: no template, no default is left. */
export interface LaunchSpec {
  readonly identity: Identity
  /** Runtime name of the session: of the tmux session, and for people. `[A-Za-z0-9_-]+`. */
  readonly name: string
  /** `<city>/.svc/runtime/sessions/<id>/<generation>`: made by the caller, 0700; everything of this run is in it. */
  readonly directory: string
  readonly workDir: string
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment of the agent. */
  readonly env: Readonly<Record<string, string>>
  /** `pipes`: no terminal; interrupt answers `unsupported`. Subprocess only. */
  readonly io: 'pty' | 'pipes'
  readonly columns: number
  readonly rows: number
  /** `line`: text and Enter in one go. `tui`: paste, a pause, then Enter. */
  readonly delivery: 'line' | 'tui'
  /** Pause between paste and Enter with `tui`. */
  readonly debounceMs: number
  /** What interrupts a turn: Ctrl-C, or Escape for harnesses that die of Ctrl-C. */
  readonly interruptKey: 'ctrl-c' | 'escape'
  /** Names of programs that prove that it lives; empty: the root process does. */
  readonly processNames: readonly string[]
  /** ACP only. */
  readonly acp?: AcpLaunch
}

export interface AcpLaunch {
  /** A conversation to load instead of a new one, where the agent can. */
  readonly resumeSessionId?: string
  /** The mode that its conversation is to be in, where the agent has modes. */
  readonly mode?: string
  readonly handshakeTimeoutMs: number
}

export interface Delivery {
  /** Position in the session's queue; grows. */
  readonly seq: number
  readonly id: string
  /** Already stripped of control bytes for terminals (decision 57). */
  readonly text: string
}

/** `uncertain`: it may or may not have been typed; it must not be typed again. */
export type DeliveryOutcome =
  | { readonly state: 'delivered' }
  | { readonly state: 'failed'; readonly code: 'too_long' | 'closed' | 'refused' | 'timeout'; readonly message: string }
  | { readonly state: 'uncertain'; readonly message: string }

export interface Exit {
  readonly code: number | undefined
  readonly signal: string | undefined
  /** `protocol_error`: it broke the agent protocol and was ended for it. `host_lost`: its host died, nothing else is known. */
  readonly reason: 'exited' | 'signalled' | 'killed' | 'protocol_error' | 'handshake_failed' | 'host_lost' | 'unknown'
  readonly at: number
  /** Last words, for people. */
  readonly message?: string
}

export interface Pending {
  readonly requestId: string
  readonly kind: 'approval' | 'question'
  readonly prompt?: string
  readonly options: readonly { readonly id: string; readonly label: string; readonly kind?: PermissionKind }[]
  readonly metadata: Readonly<Record<string, string>>
}
export type PermissionKind = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always'

export type Answer =
  | { readonly action: 'approve' | 'approve_always' | 'deny'; readonly text?: string }
  | { readonly action: 'option'; readonly optionId: string }
  | { readonly action: 'cancel' }

export type Activity = 'idle' | 'in-turn' | 'unknown'

/** What a process tells while it lives. Listeners are called in order, never re-entrantly. */
export type ProcessEvent =
  | { readonly type: 'output'; readonly endOffset: number }
  | { readonly type: 'activity'; readonly activity: Activity }
  | { readonly type: 'pending'; readonly pending: Pending }
  | { readonly type: 'pending-cleared'; readonly requestId: string }
  /** ACP: the conversation's id, to resume it by. */
  | { readonly type: 'conversation'; readonly conversationId: string }
  | { readonly type: 'exit'; readonly exit: Exit }

export interface AgentProcess {
  readonly identity: Identity
  /** Root process of the agent, where known. */
  readonly pid: number | undefined
  readonly alive: Liveness
  /** Last known; `unknown` where the runtime cannot tell by itself. */
  readonly activity: Activity
  readonly pending: Pending | undefined
  readonly endOffset: number
  /** Resolves with what is known to have happened; never rejects but with the signal's reason. */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome>
  /** After a crash of ours: was this delivery typed? */
  delivered(delivery: Pick<Delivery, 'seq' | 'id'>, signal: AbortSignal): Promise<'yes' | 'no' | 'unknown'>
  /** Interrupts the turn; false where the runtime cannot (the API answers 501). */
  interrupt(signal: AbortSignal): Promise<boolean>
  /** Answers the pending interaction; false where that one is no longer open. */
  answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean>
  /** TERM to the group, then, after the grace, the whole tree is killed. Idempotent. */
  stop(graceMs: number): Promise<Exit>
  /** Forgets the process and lets it run on: the supervisor ends (decision 24). */
  release(): void
  on(listener: (event: ProcessEvent) => void): () => void
}
export type Liveness = 'alive' | 'dead' | 'unknown'

export type Adoption =
  | { readonly state: 'alive'; readonly process: AgentProcess }
  | { readonly state: 'dead'; readonly exit: Exit }
  | { readonly state: 'unknown'; readonly message: string }

export interface Runtime {
  readonly name: RuntimeName
  readonly abilities: {
    readonly interrupt: boolean
    readonly pending: boolean
    /** There is a terminal: a screen can be read and a person can attach. */
    readonly screen: boolean
  }
  /** Why it cannot be used on this host; undefined: it can. */
  unavailable(): Promise<string | undefined>
  /**
   * Starts the process; resolves when it runs (for ACP: when its conversation is open). Rejects with `LaunchError`, and
   * then nothing of it runs. Aborting kills what was begun.
   */
  start(spec: LaunchSpec, signal: AbortSignal): Promise<AgentProcess>
  /** Takes over what an earlier supervisor started, by identity; bounded by the signal. */
  adopt(spec: AdoptSpec, signal: AbortSignal): Promise<Adoption>
  /** Lets go of shared things (control connections); agents run on. */
  close(): Promise<void>
}

/** What is still known of a launch after a restart of ours. */
export type AdoptSpec = Pick<
  LaunchSpec,
  'identity' | 'name' | 'directory' | 'io' | 'delivery' | 'debounceMs' | 'interruptKey'
>

/** How a person gets to the agent's own terminal. */
export interface Attachable {
  attachCommand(identity: Identity, name: string): { readonly command: string; readonly args: readonly string[] }
  /** True while some client is attached. */
  attached(name: string): Promise<Liveness>
}

/** A process on a terminal that takes single key presses: for dialogs, never for messages. */
export interface Typable {
  /** Raw bytes as the terminal sends them, ASCII only; nothing is journalled. Rejects where they could not be typed. */
  typeKeys(keys: string, signal: AbortSignal): Promise<void>
}

export class LaunchError extends Error {
  readonly code: 'spawn_failed' | 'not_found' | 'exited' | 'handshake_failed' | 'unavailable' | 'timeout' | 'aborted'
  readonly exit: Exit | undefined

  constructor(code: LaunchError['code'], message: string, exit?: Exit) {
    super(message)
    this.name = 'LaunchError'
    this.code = code
    this.exit = exit
  }
}
