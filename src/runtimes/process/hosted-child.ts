/**
 * What the host holds: one agent, on a terminal, on pipes or behind ACP. The host journals, deduplicates, orders and
 * kills; a child only acts. Three implementations: pty-child, pipes-child, acp/child.
 */
import type { Clock } from '../../kernel/clock.ts'
import type {
  Activity,
  AgentEvent,
  AgentOffers,
  Answer,
  Delivery,
  DeliveryOutcome,
  Exit,
  InputDetails,
  KeyDetails,
  LaunchError,
  LaunchSpec,
  Pending,
  SettingOutcome,
  TerminalSize,
  TypingReply,
} from './runtime.ts'

/** What the child tells the host, through `ChildContext.emit`. */
export type ChildEvent =
  | AgentEvent
  | { readonly type: 'pasted'; readonly deliveryId: string }
  /**
   * The root process has ended, or (`reason: 'protocol_error'`) must be ended: the host then kills its whole tree. Once;
   * nothing follows it. Without a reason the host decides from code and signal.
   */
  | {
      readonly type: 'exit'
      readonly code: number | undefined
      readonly signal: string | undefined
      readonly reason?: Exit['reason']
      readonly message?: string
    }

/** What the host gives a child. */
export interface ChildContext {
  /** `command` is absolute and `env` complete. */
  readonly spec: LaunchSpec
  readonly clock: Clock
  /** Raw bytes into the output log; synchronous, never fails, keeps no reference to `bytes`. */
  output(bytes: Uint8Array): void
  emit(event: ChildEvent): void
  /** To be called as soon as the root process exists, also before a handshake: so that it can be killed. */
  spawned(pid: number): void
}

/**
 * Starts the agent's process before it first waits; resolves when it can take messages (ACP: when its conversation is open). Rejects with
 * `ChildStartError`; the host then kills whatever was spawned. Events may be emitted before it resolves.
 */
export type StartChild = (context: ChildContext) => Promise<HostedChild>

export interface HostedChild {
  readonly activity: Activity
  readonly pending: Pending | undefined
  /** ACP only. */
  readonly conversationId: string | undefined
  readonly offers?: AgentOffers | undefined
  /** Waits until a message can be written; asked before it is journalled. An outcome: it cannot, and nothing was written. */
  untilFree?(signal: AbortSignal): Promise<DeliveryOutcome | undefined>
  /**
   * Called one at a time, after the intent is on disk and never twice for one id. Never rejects. It has deadlines of its
   * own; `signal` aborts when the child's exit or a kill makes the rest pointless (the outcome then is `uncertain` once a
   * byte may have been seen by the agent, else `failed` with `closed`).
   */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome>
  /** Interrupts the turn, also while a delivery is under way; false: this child cannot. */
  interrupt(): Promise<boolean>
  /** False: that interaction is no longer open. */
  answer(requestId: string, answer: Answer): Promise<boolean>
  /** What only a child on a terminal has. */
  readonly terminal?: HostedTerminal
  /** Absent where nothing of it can be set. */
  set?(key: string, value: string): Promise<SettingOutcome>
  /** Asks it to end (TERM to its process group, or the protocol's way). The host kills the tree after the grace. */
  terminate(): void
}

export interface HostedTerminal {
  /** A person has half a line in it: a delivery would be `held`. */
  readonly personTyping: boolean
  readonly size: TerminalSize
  /** Single keys, raw and not journalled. */
  typeKeys(keys: string, details: KeyDetails): Promise<TypingReply>
  /** With its Enter, and only where lines are read. */
  typeLine(line: string): Promise<TypingReply>
  /** What a person types; a `seq` that was there before is not typed again. */
  input(viewer: string, bytes: Uint8Array, details: InputDetails): Promise<TypingReply>
  resize(columns: number, rows: number): void
  /** Answers `pasted`. */
  enter(deliveryId: string, enter: boolean): void
}

/** Why a child could not be started; becomes the `LaunchError` of the supervisor's side. */
export class ChildStartError extends Error {
  readonly code: LaunchError['code']

  constructor(code: LaunchError['code'], message: string) {
    super(message)
    this.name = 'ChildStartError'
    this.code = code
  }
}

/** Tokens of ours that an agent has: whatever it prints, they are stars wherever that is kept. */
export const tokensOf = ({ identity, env }: Pick<LaunchSpec, 'identity' | 'env'>): readonly string[] => [
  ...new Set([identity.token, env['SVC_TOKEN'] ?? '']),
]
