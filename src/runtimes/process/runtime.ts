/**
 * What a runtime is: a way to start a real agent process, talk to it and see what it does (architecture §7, decisions
 * 53–57). Two implementations, one conformance suite. A runtime knows no city, no database and no HTTP.
 *
 * RT1  A process belongs to exactly one (session, generation, token); whoever adopts proves all three.
 * RT2  Liveness is alive, dead or unknown; an observation that failed is unknown, never dead.
 * RT3  A delivery that was acknowledged is never typed again; one that may have been typed is `uncertain`, never retried.
 * RT4  Output goes into the log of its generation, by byte offset, and nowhere else; no flood can block control.
 * RT5  When `stop` or `kill` has resolved, no process of the session's tree runs.
 */
import type { RuntimeName } from '../../contract/sessions/session-model.ts'

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
  /** For people. `[A-Za-z0-9_-]+`. */
  readonly name: string
  /** `<city>/.svc/runtime/sessions/<id>/<generation>`: made by the caller, 0700; everything of this run is in it. */
  readonly directory: string
  readonly workDir: string
  readonly command: string
  readonly args: readonly string[]
  /** The whole environment of the agent. */
  readonly env: Readonly<Record<string, string>>
  /** Its processes are known by a name of the run that tells nothing, and not by the token. */
  readonly hidesToken?: boolean
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
  /** A shell that somebody types into: it is at work until its first prompt. */
  readonly shell?: boolean
  /** ACP only. */
  readonly acp?: AcpLaunch
}

export interface AcpLaunch {
  /** A conversation to load instead of a new one, where the agent can. */
  readonly resumeSessionId?: string
  /** A conversation to begin a new one from, where the agent can. */
  readonly forkSessionId?: string
  /** What the agent is to be set to before its first turn, by the keys of its offers: `mode`, `model`, words of its own. */
  readonly settings?: Readonly<Record<string, string>>
  readonly mcpServers?: readonly McpServerSpec[]
  /** It may read and write files through the client; false: it does so by itself. */
  readonly files?: boolean
  readonly handshakeTimeoutMs: number
}

/** A server of tools that the agent is to use: a program, or an address. */
export type McpServerSpec = { readonly name: string } & (
  | {
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
    }
  | { readonly url: string; readonly type: 'http' | 'sse'; readonly headers: Readonly<Record<string, string>> }
)

export interface Delivery {
  /** Position in the session's queue; grows. */
  readonly seq: number
  readonly id: string
  /** Already stripped of control bytes for terminals (decision 57). */
  readonly text: string
  /** A half line at the terminal was left behind: it is taken back first. Earlier hosts answer `held`. */
  readonly clearsLine?: boolean
  /** ACP only. */
  readonly attachments?: readonly DeliveredAttachment[]
  /** Set by the runtime from a `DeliveryGuard`: what the host does of it. */
  readonly guard?: { readonly at?: number }
}

/** `moved`: Enter would answer something; `unseen`: the input line does not show what was typed. */
export type MayEnter = 'yes' | 'moved' | 'unseen'

/** `stands`: a message is in the input line still, or was not seen to leave it; `unknown`: nobody can tell. */
export type Taken = 'taken' | 'stands' | 'unknown'

/** Between a look at a screen and the Enter it may have become a dialog, which any Enter answers. */
export interface DeliveryGuard {
  /** Nothing is typed where anything was printed behind this offset. */
  readonly at?: number
  /** Asked when the text was typed; anything but `yes`, or no answer within seconds: it is taken back. */
  mayEnter(): Promise<MayEnter>
}

/** `file`: its bytes, in a private file of the run; `link`: a file in the work directory, which the agent reads itself. */
export interface DeliveredAttachment {
  readonly kind: 'file' | 'link'
  readonly name: string
  readonly mimeType?: string
  readonly path: string
  readonly size: number
}

/**
 * `uncertain`: it may or may not have been typed; it must not be typed again. `failed`: certainly not entered. `held`: a
 * person has half a line in the terminal; `interrupted`: an interrupt came between the paste and its Enter; `moved`: its
 * screen is not the one any more that was looked at.
 */
export type DeliveryOutcome =
  | { readonly state: 'delivered' }
  | {
      readonly state: 'failed'
      readonly code: 'too_long' | 'closed' | 'refused' | 'timeout' | 'held' | 'interrupted' | 'moved' | 'unseen'
      readonly message: string
    }
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
  /** What an approval is for, where the agent says so: what rules are matched against. */
  readonly tool?: PendingTool
}

export interface PendingTool {
  /** Its name, where the agent has told it; `kind` is the protocol's word: `edit`, `execute`, `read`, … */
  readonly name?: string
  readonly kind?: string
  /** What it would run. */
  readonly command?: string
  /** The files that it is about, as the agent spells them. */
  readonly paths: readonly string[]
  /** Its raw input, as JSON text; absent where there is none, or more than 64 kB of it. */
  readonly input?: string
}
export type PermissionKind = 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always'

export type Answer = (
  | { readonly action: 'approve' | 'approve_always' | 'deny' }
  | { readonly action: 'option'; readonly optionId: string }
  | { readonly action: 'cancel' }
) & {
  /** Who answers. */
  readonly by?: string
  /** What they say with it. */
  readonly text?: string
}

/** What an agent behind the protocol takes and can be set to, as it said itself. */
export interface AgentOffers {
  readonly accepts: { readonly image: boolean; readonly audio: boolean; readonly embedded: boolean }
  /** A conversation of its can be the beginning of another one. */
  readonly forks: boolean
  readonly settings: readonly AgentSetting[]
}

/** `key` is `mode`, `model`, or the agent's own word. */
export interface AgentSetting {
  readonly key: string
  readonly label: string
  readonly current?: string
  readonly choices: readonly { readonly value: string; readonly label: string }[]
}

export type SettingOutcome =
  | { readonly state: 'set' }
  /** The runtime or the agent has no such setting. */
  | { readonly state: 'unsupported' }
  | { readonly state: 'refused'; readonly message: string }

export type Activity = 'idle' | 'in-turn' | 'unknown'

/**
 * Who says what an agent does: the protocol that it speaks or, of a shell, the terminal whose foreground it has; the
 * harness itself by a report; its screen; nobody.
 */
export type EvidenceSource = 'protocol' | 'report' | 'screen' | 'none'

/** What an agent does, as far as it is known (decision 224). */
export interface Evidence {
  readonly activity: Activity
  /** What it asks and waits for; who asks is in its turn. */
  readonly pending: Pending | undefined
  /** When `activity` became what it is. */
  readonly since: number
  readonly source: EvidenceSource
}

/** What is seen of an agent while it lives, whoever looks. */
export type AgentEvent =
  | { readonly type: 'activity'; readonly activity: Activity }
  | { readonly type: 'pending'; readonly pending: Pending }
  | { readonly type: 'pending-cleared'; readonly requestId: string }
  /** ACP: the conversation's id, to resume it by. */
  | { readonly type: 'conversation'; readonly conversationId: string }
  | { readonly type: 'person-typing'; readonly typing: boolean }
  | ({ readonly type: 'resized' } & TerminalSize)
  /** ACP: what the agent takes and is set to. */
  | { readonly type: 'offers'; readonly offers: AgentOffers }
  /** ACP: what the agent calls its conversation. */
  | { readonly type: 'title'; readonly title: string }

/** What a process tells while it lives. Listeners are called in order, never re-entrantly. */
export type ProcessEvent =
  | AgentEvent
  | { readonly type: 'output'; readonly endOffset: number }
  | { readonly type: 'exit'; readonly exit: Exit }

export interface InputDetails {
  /** Counts per viewer from 1: what was typed before is not typed again, also after a restart of ours. */
  readonly seq?: number
  /** It asks something, and the keys go there: they are no part of a line. Earlier hosts count them. */
  readonly toDialog?: boolean
}

export interface KeyDetails {
  /** Not typed where the terminal is read line by line: `lines`. Earlier hosts type it. */
  readonly keyByKey?: boolean
}

export interface AgentProcess {
  readonly identity: Identity
  /** Root process of the agent, where known. */
  readonly pid: number | undefined
  readonly alive: Liveness
  /** Last known; `unknown` where the runtime cannot tell by itself. */
  readonly activity: Activity
  readonly pending: Pending | undefined
  /** A person has typed since the last Enter: a delivery now is `held`. */
  readonly personTyping: boolean
  /** Of its terminal now; undefined without one, or where a host of an earlier version does not tell. */
  readonly size: TerminalSize | undefined
  readonly endOffset: number
  /** Resolves with what is known to have happened; never rejects but with the signal's reason. */
  deliver(delivery: Delivery, signal: AbortSignal, guard?: DeliveryGuard): Promise<DeliveryOutcome>
  /** After a crash of ours: was this delivery typed? */
  delivered(delivery: Pick<Delivery, 'seq' | 'id'>, signal: AbortSignal): Promise<'yes' | 'no' | 'unknown'>
  /** Interrupts the turn; false where the runtime cannot (the API answers 501). */
  interrupt(signal: AbortSignal): Promise<boolean>
  /**
   * What a person types, as the terminal sends it; in the order of the calls, nothing is journalled. `viewer`: whose half
   * line deliveries wait for. Rejects with `TypingRefused` where it was not typed.
   */
  input(viewer: string, bytes: Uint8Array, signal: AbortSignal, details?: InputDetails): Promise<void>
  /** Single key presses, for dialogs and bots, never for messages; refused while a delivery types. */
  typeKeys(keys: string, signal: AbortSignal, details?: KeyDetails): Promise<void>
  /** An answer and its Enter, as `typeKeys`; false: its program reads keys, or nobody can tell, and nothing was typed. */
  typeLine(line: string, signal: AbortSignal): Promise<boolean>
  /** Of the terminal; nothing without one. */
  resize(columns: number, rows: number, signal: AbortSignal): Promise<void>
  /** Answers the pending interaction; false where that one is no longer open. */
  answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean>
  /** Sets something of the living agent: one of `AgentOffers.settings`. */
  set(key: string, value: string, signal: AbortSignal): Promise<SettingOutcome>
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

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/**
 * Why keys or a person's input were not typed. `early`: what the viewer sent before it has not come. `unsupported`: no
 * terminal, or a host of an earlier version. `lines`: its program reads lines, of which the key would be a part.
 */
export class TypingRefused extends Error {
  readonly code: 'busy' | 'early' | 'closed' | 'timeout' | 'unsupported' | 'lines'

  constructor(code: TypingRefused['code'], message: string) {
    super(message)
    this.name = 'TypingRefused'
    this.code = code
  }
}

/** How a host answers what a person or a bot types; hosts of an earlier version say `typed` alone. */
export interface TypingReply {
  readonly typed: boolean
  /** A line was to be typed, and its program does not read lines. */
  readonly reads_keys?: boolean
  readonly code?: TypingRefused['code']
  readonly message?: string
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
