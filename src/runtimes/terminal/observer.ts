/**
 * Sees by its screen what an agent with a terminal does: whether it is ready, works, waits or asks (decision 60).
 * The runtime knows the process, this knows the picture; together they are what an ACP agent says by itself.
 *
 * W1  An observer types only what it was asked to: startup dialogs where the provider accepts them, the answer to a
 *     dialog that is on the screen at that moment, the probe of a harness whose prompt proves nothing, and Enter again for
 *     a message that stands in the input line of a screen that has not moved for a second: the harness swallowed it.
 * W2  A dialog is announced when two looks in a row show the same one, and cleared when two show none: half a redraw is
 *     neither.
 * W3  Who is idle and quiet costs nothing: there are timers only after output, while waiting, and while a picture has
 *     not been confirmed.
 */
import { type Clock, delay } from '../../kernel/clock.ts'
import type { OutputReader } from '../process/output-log.ts'
import { ProcessEvents } from '../process/process-events.ts'
import type { Activity, AgentProcess, Answer, Pending, ProcessEvent, Typable } from '../process/runtime.ts'
import {
  type Approval,
  activityOf,
  approvalOn,
  IDLE_QUIET_MS,
  keysFor,
  showsBusy,
  showsPrompt,
  showsUnsent,
  startupDialogOn,
} from './decisions.ts'
import type { Harness, StartupDialog } from './harnesses.ts'
import { Screen, type ScreenText } from './screen.ts'

const LOOK_MS = 100
const POLL_MS = 200
const KEY_PAUSE_MS = 150
/** Three looks of half a second: a dialog that is still there then has not taken the key. */
const CLEAR_LOOKS = 3
const CLEAR_LOOK_MS = 500
const MAX_DIALOG_TRIES = 3
const ENTER = '\r'
const MAX_ENTERS = 3
const ENTER_MS = 5_000
const COMPARED_CHARACTERS = 200
const ECHO_WAIT_MS = 1_000
const PROBE = ' '
const UNDO_PROBE = '\u007f'

export interface ObserverHints {
  readonly harness: Harness
  /** What the prompt begins with; without one the delay decides. */
  readonly readyPrefix?: string
  readonly readyDelayMs: number
  /** The prompt is there before keys are taken: an echo must confirm it. */
  readonly readyConfirmation: boolean
  readonly acceptStartupDialogs: boolean
}

export interface ObserverDeps {
  readonly clock: Clock
  readonly process: Pick<AgentProcess, 'on' | 'endOffset' | 'alive'> & Typable
  readonly output: OutputReader
  readonly columns: number
  readonly rows: number
  readonly hints: ObserverHints
}

/** `dialog`: a person must answer it; the provider does not accept startup dialogs, or it does not go away. */
export type Readiness =
  | { readonly state: 'ready' }
  | { readonly state: 'dialog'; readonly id: string }
  | { readonly state: 'timeout' }
  | { readonly state: 'exited' }

export class TerminalObserver {
  readonly #deps: ObserverDeps
  readonly #screen: Screen
  readonly #events = new ProcessEvents()
  readonly #unsubscribe: () => void
  #changedAt: number
  #activity: Activity = 'unknown'
  #pending: Approval | undefined
  /** What was typed last, until it is known that it was taken. */
  #unsent: { readonly message: string; readonly enters: number } | undefined
  /** What the last look saw; W2. */
  #glimpse: string | undefined
  #cancelLook: (() => void) | undefined
  #nextLook = Number.POSITIVE_INFINITY
  /** The process has ended; its last screen stays. */
  #over = false

  constructor(deps: ObserverDeps) {
    const { clock, output, columns, rows, process } = deps
    this.#deps = deps
    this.#changedAt = clock.monotonic()
    this.#screen = new Screen({ clock, output, columns, rows, onChange: () => this.#changed() })
    this.#unsubscribe = process.on((event) => {
      if (event.type === 'output') this.#screen.grow(event.endOffset)
      else if (event.type === 'exit') this.#end()
    })
    this.#screen.grow(process.endOffset)
    this.#lookIn(IDLE_QUIET_MS)
  }

  get activity(): Activity {
    return this.#activity
  }

  get pending(): Pending | undefined {
    return this.#pending
  }

  /** The last `count` lines, or with 0 all; as of the moment they were observed. */
  text(count = 0): ScreenText {
    return this.#screen.text(count)
  }

  /** `activity`, `pending` and `pending-cleared`; nothing else. */
  on(listener: (event: ProcessEvent) => void): () => void {
    return this.#events.on(listener)
  }

  /** A message was typed: who was idle is not known to be so any more. */
  onDelivery(message: string): void {
    this.#unsent = { message: message.slice(0, COMPARED_CHARACTERS), enters: 0 }
    this.#changedAt = this.#deps.clock.monotonic()
    this.#become('unknown')
    this.#lookIn(LOOK_MS)
  }

  /** Waits until the agent takes messages. `signal` ends it early, by rejecting. */
  async ready(timeoutMs: number, signal: AbortSignal): Promise<Readiness> {
    const { clock, process, hints } = this.#deps
    const startedAt = clock.monotonic()
    const tries = new Map<StartupDialog, number>()
    while (clock.monotonic() - startedAt < timeoutMs) {
      if (this.#over || process.alive === 'dead') return { state: 'exited' }
      const dialog = startupDialogOn(this.#lines(), hints.harness)
      if (dialog !== undefined) {
        const tried = (tries.get(dialog) ?? 0) + 1
        if (!hints.acceptStartupDialogs || tried > MAX_DIALOG_TRIES) return { state: 'dialog', id: dialog.id }
        tries.set(dialog, tried)
        await this.#accept(dialog, signal)
      } else if (this.#looksReady(clock.monotonic() - startedAt) && (await this.#confirmed(signal))) {
        return { state: 'ready' }
      }
      await delay(clock, POLL_MS, signal)
    }
    return { state: 'timeout' }
  }

  /** False: that dialog is not on the screen any more. Rejects where it does not take the answer. */
  async answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    const { clock, process, hints } = this.#deps
    const dialog = hints.harness.approval
    await this.#screen.caughtUp(signal)
    const open = dialog && approvalOn(this.#lines(), dialog)
    if (dialog === undefined || open?.requestId !== requestId) return false
    const keys = keysFor(open, answer, dialog)
    if (keys === undefined) throw new Error('the dialog has no such option')
    await process.typeKeys(keys, signal)
    for (let look = 0; look < CLEAR_LOOKS; look++) {
      if (await this.#cleared(requestId, signal)) return true
      await delay(clock, CLEAR_LOOK_MS, signal)
    }
    if (await this.#cleared(requestId, signal)) return true
    throw new Error('the dialog did not take the answer')
  }

  close(): void {
    this.#end()
    this.#screen.close()
  }

  #end(): void {
    this.#over = true
    this.#unsubscribe()
    this.#cancelLook?.()
  }

  // ── readiness ──

  #lines(): readonly string[] {
    return this.#screen.text(this.#deps.rows * 2).lines
  }

  #looksReady(waitedMs: number): boolean {
    const { readyPrefix, readyDelayMs, readyConfirmation } = this.#deps.hints
    // Before the prompt, the terminal itself echoes what is typed, and whatever is printed moves the cursor.
    if (readyPrefix !== undefined && !showsPrompt(this.#lines(), readyPrefix)) return false
    return waitedMs >= readyDelayMs || (readyPrefix !== undefined && !readyConfirmation)
  }

  /** Types a space and waits for the cursor to move; then takes it back. */
  async #confirmed(signal: AbortSignal): Promise<boolean> {
    const { clock, process, hints } = this.#deps
    if (!hints.readyConfirmation) return true
    await this.#screen.caughtUp(signal)
    const before = this.#screen.cursor
    await process.typeKeys(PROBE, signal)
    for (let waited = 0; waited < ECHO_WAIT_MS; waited += LOOK_MS) {
      await delay(clock, LOOK_MS, signal)
      await this.#screen.caughtUp(signal)
      if (this.#screen.cursor === before) continue
      await process.typeKeys(UNDO_PROBE, signal)
      return true
    }
    return false
  }

  async #accept(dialog: StartupDialog, signal: AbortSignal): Promise<void> {
    const { clock, process, hints } = this.#deps
    for (const key of dialog.keys) {
      await process.typeKeys(key, signal)
      await delay(clock, KEY_PAUSE_MS, signal)
    }
    for (let look = 0; look < CLEAR_LOOKS; look++) {
      if (startupDialogOn(this.#lines(), hints.harness) !== dialog) return
      await delay(clock, CLEAR_LOOK_MS, signal)
    }
  }

  // ── activity and dialogs ──

  #changed(): void {
    this.#changedAt = this.#deps.clock.monotonic()
    this.#lookIn(LOOK_MS)
  }

  /** The earliest look counts: a flood does not push it away. */
  #lookIn(ms: number): void {
    const { clock } = this.#deps
    const due = clock.monotonic() + ms
    if (this.#over || due >= this.#nextLook) return
    this.#cancelLook?.()
    this.#nextLook = due
    this.#cancelLook = clock.after(ms, () => {
      this.#nextLook = Number.POSITIVE_INFINITY
      this.#look()
    })
  }

  #look(): void {
    const { clock, hints } = this.#deps
    if (this.#over) return
    const { harness, readyPrefix = '' } = hints
    const lines = this.#lines()
    const approval = harness.approval && approvalOn(lines, harness.approval)
    const settled = this.#confirm(approval)
    const quietMs = clock.monotonic() - this.#changedAt
    const [busy, prompt] = [showsBusy(lines, harness), showsPrompt(lines, readyPrefix)]
    const activity = activityOf({ busy, prompt, dialog: approval !== undefined, quietMs })
    const swallowed = this.#swallowed(lines, activity)
    this.#become(swallowed ? 'unknown' : activity)
    if (swallowed) this.#enterAgain()
    if (!settled || swallowed) this.#lookIn(LOOK_MS)
    else if (quietMs < IDLE_QUIET_MS) this.#lookIn(IDLE_QUIET_MS - quietMs)
  }

  /** True where what was typed last is not on its way, though nothing moves. */
  #swallowed(lines: readonly string[], activity: Activity): boolean {
    const unsent = this.#unsent
    const { hints, process } = this.#deps
    if (activity === 'unknown' || unsent === undefined || this.#screen.offset < process.endOffset) return false
    const stands = activity === 'idle' && showsUnsent(lines, hints.readyPrefix ?? '', unsent.message)
    if (stands && unsent.enters < MAX_ENTERS) return true
    this.#unsent = undefined
    return false
  }

  #enterAgain(): void {
    const { clock, process } = this.#deps
    if (this.#unsent !== undefined) this.#unsent = { ...this.#unsent, enters: this.#unsent.enters + 1 }
    this.#changedAt = clock.monotonic()
    const limit = new AbortController()
    const cancel = clock.after(ENTER_MS, () => limit.abort())
    // Who takes no keys any more shows that in another way.
    void process
      .typeKeys(ENTER, limit.signal)
      .catch(() => {})
      .finally(cancel)
  }

  /** W2; false: one more look is needed. */
  #confirm(approval: Approval | undefined): boolean {
    const seen = approval?.requestId
    const settled = seen === this.#glimpse
    this.#glimpse = seen
    if (!settled) return false
    if (seen === this.#pending?.requestId) return true
    const before = this.#pending
    this.#pending = approval
    if (before !== undefined) this.#events.tell({ type: 'pending-cleared', requestId: before.requestId })
    if (approval !== undefined) this.#events.tell({ type: 'pending', pending: approval })
    return true
  }

  async #cleared(requestId: string, signal: AbortSignal): Promise<boolean> {
    const dialog = this.#deps.hints.harness.approval
    await delay(this.#deps.clock, LOOK_MS, signal)
    await this.#screen.caughtUp(signal)
    return dialog === undefined || approvalOn(this.#lines(), dialog)?.requestId !== requestId
  }

  #become(activity: Activity): void {
    if (activity === this.#activity) return
    this.#activity = activity
    this.#events.tell({ type: 'activity', activity })
  }
}
