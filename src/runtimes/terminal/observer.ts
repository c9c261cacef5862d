/**
 * Sees by its screen what an agent with a terminal does: whether it is ready, works, waits or asks (decision 60).
 * The runtime knows the process, this knows the picture.
 *
 * W1  An observer types only what it was asked to, each key after a look at a screen that has caught up: startup dialogs
 *     that it knows where the provider accepts them, the answer to a dialog that is on the screen at that moment, the
 *     probe of a harness whose prompt proves nothing, and Enter again for a message that stands alone in the input line
 *     of a screen that does not move, once it is known that the harness swallowed it: one that is only late may be about
 *     to ask. It is known by the last letter of the message, or the end of a line that Enter was taken for, which goes
 *     when it is erased.
 * W2  A dialog is announced when two looks in a row show the same one, and cleared when two show none: half a redraw is
 *     neither. Who may be asking is not idle from the first look on.
 * W3  Who is idle and quiet costs nothing: there are timers only after output, while waiting, and while a picture has
 *     not been confirmed.
 * W4  A line that says that a turn is under way counts in its region, and while its spinner or clock moves. Words that stand
 *     still are text that somebody wrote: they keep no agent busy.
 */

import { cut } from '../../contract/base/text.ts'
import { KEY, type ScreenRules } from '../../harnesses/harness.ts'
import { type Clock, delay } from '../../kernel/clock.ts'
import { optionFor } from '../process/answers.ts'
import type { OutputReader } from '../process/output-log.ts'
import { ProcessEvents } from '../process/process-events.ts'
import type { Activity, AgentProcess, Answer, MayEnter, Pending, ProcessEvent, Taken } from '../process/runtime.ts'
import { busyOn } from './busy.ts'
import { type Choosing, chooseOption } from './choosing.ts'
import {
  activityOf,
  asksForKey,
  type Dialog,
  dialogOn,
  IDLE_QUIET_MS,
  startupDialogOn,
  UNKNOWN_QUIET_MS,
} from './decisions.ts'
import { arrivalOf, emptyPrompt, promptRow, type ScreenHints, type Unsent, unsentOn } from './input-line.ts'
import { menuAtEnd } from './menu.ts'
import type { Row } from './rows.ts'
import { Screen, type ScreenPicture, type ScreenSize, type ScreenText } from './screen.ts'

const LOOK_MS = 100
const POLL_MS = 200
const MAX_DIALOG_TRIES = 3
/** A dialog that never rests, for its spinner turns, is answered all the same. */
const DRAWN_MS = 4_000
/** A menu that is none of the known ones, and rests for so long, is no step of a start. */
const ASKED_QUIET_MS = 3_000
const MAX_ENTERS = 3
/** So long a harness may take to show that a letter was erased. */
const ENTER_MS = 30_000
/** Where not all of a message is seen, no letter of it tells whether Enter was read: so long nothing moves, then. */
const UNPROVEN_MS = 10_000
/** A harness that has just drawn its prompt shows what is typed by then; less than a host waits for its answer. */
const ARRIVES_MS = 2_500
const DRAWN_QUIET_MS = 200
/** By then a shell that has printed is known to have its terminal back. */
const FRONT_MS = 600
/** A line that was just drawn moves by then, if a spinner or a clock is in it. */
const NEW_MS = 1_500
/** Between two moves of one that moves. */
const MOVING_MS = 5_000
/** What the screen alone says delays a message by no more than this, while nothing on it moves. */
const LONGEST_BUSY_MS = 600_000
const COMPARED_CHARACTERS = 2_000
const ECHO_WAIT_MS = 1_000
const PROBE = ' '
const ERASE = '\u007f'
/** So long it is looked for whether a message was taken; a harness that swallows Enter gets it three times by then. */
const TAKEN_MS = 40_000
/** So long a harness may take to put a message back into its line. */
const RESTORED_MS = 5_000
/** A program that has drawn nothing for so long has nothing to draw. */
const BLANK_MS = 30_000

export interface ObserverHints {
  readonly rules: ScreenRules
  /** What the prompt begins with; without one the delay decides. */
  readonly readyPrefix?: string | undefined
  readonly readyDelayMs: number
  /** The prompt is there before keys are taken: an echo must confirm it. */
  readonly readyConfirmation: boolean
  readonly acceptStartupDialogs: boolean
  /** It reads lines, as a shell does. */
  readonly lines: boolean
  /** It is a shell: while it has the terminal itself, lists on the screen are output of what it has run. */
  readonly shell: boolean
}

export interface ObserverDeps {
  readonly clock: Clock
  readonly process: Pick<
    AgentProcess,
    'on' | 'endOffset' | 'alive' | 'activity' | 'personTyping' | 'typeKeys' | 'typeLine' | 'size'
  >
  readonly output: OutputReader
  /** At its start: the host reports the size since. */
  readonly size: ScreenSize
  readonly hints: ObserverHints
}

/** `dialog`: a person must answer it; the provider does not accept startup dialogs, or it does not go away. */
export type Readiness =
  | { readonly state: 'ready' }
  | { readonly state: 'dialog'; readonly id: string }
  | { readonly state: 'timeout' }
  | { readonly state: 'exited' }

/** What one look saw. */
interface Sight {
  readonly dialog: Dialog | undefined
  readonly asks: boolean
  readonly unsent: Unsent | undefined
  readonly activity: Activity
  /** Read once: what one reading calls too early and the next one late enough would never be looked at again. */
  readonly quietMs: number
  /** For how long it counts as busy yet, if nothing moves; 0: it does not. */
  readonly busyMs: number
}

export class TerminalObserver {
  readonly #deps: Omit<ObserverDeps, 'size'>
  readonly #hints: ScreenHints
  readonly #screen: Screen
  readonly #events = new ProcessEvents()
  readonly #unsubscribe: () => void
  readonly #startedAt: number
  #changedAt: number
  #activity: Activity = 'unknown'
  #since: number
  #asks = false
  #pending: Pending | undefined
  /** The line with which it shows that it works, when it was drawn so, and whether it had another text before. */
  #busyLine: { readonly text: string; readonly since: number; readonly moved: boolean } | undefined
  /** What was typed last, until it is known that it was taken. */
  #unsent: { readonly message: string; readonly enters: number; readonly entered: boolean } | undefined
  /** The last message that was entered, in full; kept for a harness that puts it back. */
  #entered = ''
  /** What became of it. */
  #taken: Taken = 'unknown'
  /** It is being found out whether the Enter behind it was swallowed. */
  #proving = false
  /** An input line is on the screen in which a message can be seen that is about to be typed. */
  #showsInput = false
  /** What the last look saw; W2. */
  #glimpse: string | undefined
  /** The dialog that stood there at the last look, and since when. */
  #standing: { readonly requestId: string; readonly since: number } | undefined
  #cancelLook: (() => void) | undefined
  #nextLook = Number.POSITIVE_INFINITY
  /** Known startup dialogs are being answered, and are nobody else's business. */
  #accepting = false
  /** The process has ended; its last screen stays. */
  #over = false

  constructor(deps: ObserverDeps) {
    const { size, ...others } = deps
    const { clock, output, process, hints } = others
    this.#deps = others
    this.#hints = { rules: hints.rules, prompt: hints.readyPrefix }
    this.#changedAt = clock.monotonic()
    this.#startedAt = this.#changedAt
    this.#since = clock.now()
    this.#screen = new Screen({ clock, output, size: process.size ?? size, onChange: () => this.#changed() })
    this.#unsubscribe = process.on((event) => {
      if (event.type === 'output') this.#screen.grow(event.endOffset)
      else if (event.type === 'resized') this.#screen.resize(event.columns, event.rows)
      else if (event.type === 'exit') this.#end()
      // Of what stands there it may be said now that it is output.
      else if (event.type === 'activity' && hints.shell) this.#lookIn(LOOK_MS)
    })
    this.#screen.grow(process.endOffset)
    this.#lookIn(IDLE_QUIET_MS)
  }

  get activity(): Activity {
    return this.#activity
  }

  /** When it became so. */
  get since(): number {
    return this.#since
  }

  /** Something that looks like a question is on the screen, also one that is not announced yet. */
  get asks(): boolean {
    return this.#asks
  }

  get pending(): Pending | undefined {
    return this.#pending
  }

  /** The last `count` lines, or with 0 all; as of the moment they were observed. */
  text(count = 0): ScreenText {
    return this.#screen.text(count)
  }

  /** What is shown, with everything that is in the log. */
  async picture(signal: AbortSignal): Promise<ScreenPicture> {
    await this.#screen.caughtUp(signal)
    return this.#screen.picture
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return this.#screen.size
  }

  /** `activity`, `pending` and `pending-cleared`; nothing else. */
  on(listener: (event: ProcessEvent) => void): () => void {
    return this.#events.on(listener)
  }

  /** A message was typed: who was idle is not known to be so any more. */
  onDelivery(message: string): void {
    this.#unsent = { message: cut(message, COMPARED_CHARACTERS), enters: 0, entered: true }
    this.#entered = message
    this.#taken = this.#hints.prompt === undefined ? 'unknown' : 'stands'
    this.#changedAt = this.#deps.clock.monotonic()
    this.#become('unknown')
    this.#lookIn(LOOK_MS)
  }

  /** Looks at once at all that was printed until now, whose end it answers: whoever is about to type must know. */
  async lookNow(signal: AbortSignal): Promise<number> {
    await this.#screen.caughtUp(signal)
    this.#look()
    return this.#screen.offset
  }

  /** A message is about to be typed: it may stand in the input line. */
  onTyping(message: string): void {
    const typed = cut(message, COMPARED_CHARACTERS)
    const rows = this.#screen.rows()
    // Said before, it stands in the conversation as well.
    const entered = unsentOn(rows, this.#hints, typed, false) !== undefined
    this.#unsent = { message: typed, enters: MAX_ENTERS, entered }
    this.#showsInput = arrivalOf(rows, this.#hints, typed) === 'empty'
  }

  /**
   * Whether Enter would enter the message that was typed, and answer nothing. A harness may draw its prompt before it
   * reads, and lose what comes until then: where the input line was seen to be empty, the message must be seen in it.
   */
  async mayEnter(signal: AbortSignal): Promise<MayEnter> {
    const { clock } = this.#deps
    const deadline = clock.monotonic() + ARRIVES_MS
    for (;;) {
      await this.#screen.caughtUp(signal)
      if (this.#sight().asks) return 'moved'
      const arrival = this.#showsInput
        ? arrivalOf(this.#screen.rows(), this.#hints, this.#unsent?.message ?? '')
        : 'seen'
      const late = clock.monotonic() >= deadline
      // An Enter that is read right behind a paste is taken for a line of it.
      if (arrival === 'seen' && (late || !this.#showsInput || this.#quietMs >= DRAWN_QUIET_MS)) return 'yes'
      if (late) return arrival === 'empty' ? 'unseen' : 'yes'
      await delay(clock, LOOK_MS, signal)
    }
  }

  /** Whether the program took the message that was entered last; waits until that is seen. */
  async taken(signal: AbortSignal): Promise<Taken> {
    const { clock } = this.#deps
    const deadline = clock.monotonic() + TAKEN_MS
    while (this.#taken === 'stands' && !this.#over && clock.monotonic() < deadline) {
      await this.#screen.caughtUp(signal)
      this.#see(this.#sight())
      if (this.#taken === 'stands') await delay(clock, LOOK_MS, signal)
    }
    return this.#taken
  }

  /** A turn was interrupted: nothing of its message is typed again, and what comes back into the line is taken out. */
  onInterrupt(restores: boolean): void {
    const message = this.#entered
    this.#unsent = undefined
    this.#entered = ''
    if (restores && message !== '') void this.#takeOut(message).catch(() => {})
  }

  async #takeOut(message: string): Promise<void> {
    const { clock, process } = this.#deps
    const signal = AbortSignal.timeout(RESTORED_MS)
    const shown = cut(message, COMPARED_CHARACTERS)
    while (!signal.aborted && !this.#over && !process.personTyping && this.#unsent === undefined) {
      await delay(clock, LOOK_MS, signal)
      await this.#screen.caughtUp(signal)
      if (unsentOn(this.#screen.rows(), this.#hints, shown, true) === undefined) continue
      // More of them than there are letters do no harm.
      return process.typeKeys(ERASE.repeat([...message].length), signal)
    }
  }

  /** Waits until the agent takes messages. `signal` ends it early, by rejecting. */
  async ready(timeoutMs: number, signal: AbortSignal): Promise<Readiness> {
    this.#accepting = this.#deps.hints.acceptStartupDialogs
    try {
      return await this.#untilReady(timeoutMs, signal)
    } finally {
      this.#accepting = false
      this.#lookIn(LOOK_MS)
    }
  }

  /** False: that dialog is not on the screen any more. Rejects where it does not take the answer. */
  async answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    await this.#screen.caughtUp(signal)
    const open = this.#dialog(this.#screen.rows())
    if (open?.pending.requestId !== requestId) return false
    const option = answer.action === 'cancel' ? -1 : optionFor(open.pending, answer)
    if (answer.action !== 'cancel' && option === -1) throw new Error('the dialog has no such option')
    if (answer.action === 'cancel') await this.#leave(signal)
    else await chooseOption(this.#choosing(requestId), option, signal)
    return this.#untilGone(requestId, signal)
  }

  /** Ctrl-C is a signal of the terminal, whoever reads it. */
  #leave(signal: AbortSignal): Promise<void> {
    const { process, hints } = this.#deps
    if (hints.lines) return process.typeKeys(CTRL_C, signal)
    return process.typeKeys(KEY.escape, signal, { keyByKey: true })
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

  async #untilReady(timeoutMs: number, signal: AbortSignal): Promise<Readiness> {
    const { clock, process, hints } = this.#deps
    const startedAt = clock.monotonic()
    const tries = new Map<string, number>()
    let drawnSince: number | undefined
    while (clock.monotonic() - startedAt < timeoutMs) {
      if (this.#over || process.alive === 'dead') return { state: 'exited' }
      await this.#screen.caughtUp(signal)
      const found = startupDialogOn(this.#screen.rows(), this.#hints)
      drawnSince = found === undefined ? undefined : (drawnSince ?? clock.monotonic())
      if (found !== undefined && drawnSince !== undefined && this.#takesKeys(drawnSince)) {
        const { id } = found.dialog
        const tried = (tries.get(id) ?? 0) + 1
        if (!hints.acceptStartupDialogs || tried > MAX_DIALOG_TRIES) return { state: 'dialog', id }
        tries.set(id, tried)
        await this.#accept(id, found.option, signal)
        drawnSince = undefined
      } else if (
        found === undefined &&
        this.#looksReady(clock.monotonic() - startedAt) &&
        (await this.#confirmed(signal))
      ) {
        return { state: 'ready' }
      } else if (found === undefined && this.#sight().dialog !== undefined && this.#quietMs >= ASKED_QUIET_MS) {
        // What nobody knows of it asks somebody: whoever does not hear of it cannot answer.
        return { state: 'dialog', id: 'unknown' }
      }
      await delay(clock, POLL_MS, signal)
    }
    return { state: 'timeout' }
  }

  /** A harness that has just drawn a dialog may not read keys as it means them yet: an arrow was taken twice. */
  #takesKeys(drawnSince: number): boolean {
    const now = this.#deps.clock.monotonic()
    return now - this.#changedAt >= IDLE_QUIET_MS || now - drawnSince >= DRAWN_MS
  }

  #looksReady(waitedMs: number): boolean {
    const { readyPrefix, readyDelayMs, readyConfirmation } = this.#deps.hints
    // Before the prompt, the terminal itself echoes what is typed, and whatever is printed moves the cursor.
    if (readyPrefix !== undefined && !this.#showsPrompt(this.#screen.rows(), readyPrefix)) return false
    if (readyPrefix === undefined && this.#isBlank()) return false
    return waitedMs >= readyDelayMs || (readyPrefix !== undefined && !readyConfirmation)
  }

  /** It has drawn nothing yet: what is typed now may be thrown away when it sets up its terminal. */
  #isBlank(): boolean {
    const { clock, hints } = this.#deps
    if (hints.lines || clock.monotonic() - this.#startedAt >= BLANK_MS) return false
    return this.#screen.rows().every(({ text }) => text.trim() === '')
  }

  /** With something in it, too: a hint of its own words, or what somebody types already. */
  #showsPrompt(rows: readonly Row[], prompt: string): boolean {
    if (emptyPrompt(rows, this.#hints) !== undefined) return true
    return promptRow(rows, prompt) !== -1 && menuAtEnd(rows) === undefined
  }

  /** Types a space and waits for the cursor to move; then takes it back. */
  async #confirmed(signal: AbortSignal): Promise<boolean> {
    const { clock, process, hints } = this.#deps
    if (!hints.readyConfirmation) return true
    await this.#screen.caughtUp(signal)
    if (this.#sight().asks) return false
    const before = this.#screen.cursor
    await process.typeKeys(PROBE, signal)
    for (let waited = 0; waited < ECHO_WAIT_MS; waited += LOOK_MS) {
      await delay(clock, LOOK_MS, signal)
      await this.#screen.caughtUp(signal)
      if (this.#screen.cursor === before) continue
      await process.typeKeys(ERASE, signal)
      return true
    }
    return false
  }

  /** One try; whether it went is seen by the next look. */
  async #accept(id: string, option: number, signal: AbortSignal): Promise<void> {
    const choosing: Choosing = {
      ...this.#choosing(id),
      menu: async () => {
        await this.#screen.caughtUp(signal)
        const found = startupDialogOn(this.#screen.rows(), this.#hints)
        return found?.dialog.id === id ? found.menu : undefined
      },
    }
    await chooseOption(choosing, option, signal).catch(() => signal.throwIfAborted())
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
    if (this.#over) return
    const sight = this.#sight()
    this.#see(sight)
    const { activity, unsent, dialog, asks, quietMs, busyMs } = sight
    this.#asks = asks
    const early = this.#isEarly(dialog, quietMs)
    const settled = this.#confirm(early ? undefined : dialog?.pending) && !early
    const proves = unsent !== undefined && this.#provesItself(unsent)
    const patience = unsent === undefined || proves ? IDLE_QUIET_MS : UNPROVEN_MS
    const swallowed = this.#swallowed(unsent !== undefined, quietMs, patience)
    this.#become(activity)
    if (swallowed) this.#enterAgain(proves ? unsent : undefined)
    const quiet = this.#hints.prompt === undefined ? UNKNOWN_QUIET_MS : Math.max(IDLE_QUIET_MS, patience)
    const blankMs = this.#isBlank() ? BLANK_MS - (this.#deps.clock.monotonic() - this.#startedAt) : 0
    const left = settled && !swallowed ? Math.max(quiet - quietMs, blankMs) : LOOK_MS
    if (left > 0) this.#lookIn(left)
    if (busyMs > 0) this.#lookIn(busyMs)
  }

  /** Whether a program stands in front of a shell is known a moment after its last output only; one that never rests does. */
  #isEarly(dialog: Dialog | undefined, quietMs: number): boolean {
    const now = this.#deps.clock.monotonic()
    const requestId = dialog?.pending.requestId
    if (requestId !== this.#standing?.requestId)
      this.#standing = requestId === undefined ? undefined : { requestId, since: now }
    if (this.#standing === undefined || !this.#deps.hints.shell) return false
    return quietMs < FRONT_MS && now - this.#standing.since < DRAWN_MS
  }

  get #quietMs(): number {
    return this.#deps.clock.monotonic() - this.#changedAt
  }

  #sight(): Sight {
    const quietMs = this.#quietMs
    const rows = this.#screen.rows()
    const busyMs = this.#busyMs(rows, quietMs)
    const stands = this.#unsentOn(rows)
    const dialog = this.#dialog(rows)
    const asks = dialog !== undefined || (!stands && !this.#hasTerminal() && asksForKey(rows, this.#hints))
    const unsent = asks ? undefined : stands
    const prompt = this.#showsFreeLine(rows)
    const activity = unsent === undefined ? activityOf({ busy: busyMs > 0, prompt, asks, quietMs }) : 'unknown'
    const announced = this.#accepting && startupDialogOn(rows, this.#hints) !== undefined ? undefined : dialog
    return { dialog: announced, asks, unsent, activity, quietMs, busyMs }
  }

  /** W4. */
  #busyMs(rows: readonly Row[], quietMs: number): number {
    const line = busyOn(rows, this.#hints)
    const before = this.#busyLine
    const now = this.#deps.clock.monotonic()
    if (line === undefined) this.#busyLine = undefined
    else if (line.text !== before?.text) this.#busyLine = { text: line.text, since: now, moved: before !== undefined }
    if (line === undefined || this.#busyLine === undefined) return 0
    if (!line.moves) return Math.max(0, LONGEST_BUSY_MS - quietMs)
    const { since, moved } = this.#busyLine
    return Math.max(0, since + (moved ? MOVING_MS : NEW_MS) - now)
  }

  /** Undefined: nobody knows what its input line looks like, and it has drawn something. */
  #showsFreeLine(rows: readonly Row[]): boolean | undefined {
    if (this.#hints.prompt !== undefined) return emptyPrompt(rows, this.#hints) !== undefined
    return this.#isBlank() ? false : undefined
  }

  /** It was taken where a turn shows, or where the line is empty in which it was seen. From then on it is never entered again. */
  #see({ unsent, asks, busyMs }: Sight): void {
    if (this.#taken !== 'stands' || unsent !== undefined || this.#proving) return
    const isEmpty = this.#showsInput && emptyPrompt(this.#screen.rows(), this.#hints) !== undefined
    if (!asks && busyMs === 0 && !isEmpty) return
    this.#taken = 'taken'
    this.#unsent = undefined
  }

  #unsentOn(rows: readonly Row[]): Unsent | undefined {
    return this.#unsent && unsentOn(rows, this.#hints, this.#unsent.message, this.#unsent.entered)
  }

  /** What was typed and stands there is no menu, though its lines may look like one. */
  #dialog(rows: readonly Row[]): Dialog | undefined {
    const dialog = dialogOn(rows, this.#hints, this.#unsentOn(rows)?.behind)
    return this.#hasTerminal() && dialog?.menu.by !== 'word' ? undefined : dialog
  }

  /** A shell that waits for its next line: what asks then is its own `read`, in one line. */
  #hasTerminal(): boolean {
    const { hints, process } = this.#deps
    return hints.shell && process.activity === 'idle'
  }

  /** True where what was typed last is not on its way, though nothing moves. */
  #swallowed(stands: boolean, quietMs: number, patience: number): boolean {
    const unsent = this.#unsent
    if (unsent === undefined || this.#proving || quietMs < patience) return false
    const { endOffset, personTyping } = this.#deps.process
    // What a person adds to it is theirs to enter.
    if (this.#screen.offset < endOffset || personTyping) return false
    if (stands) return unsent.enters < MAX_ENTERS
    this.#unsent = undefined
    return false
  }

  /** One line of which the last letter is seen, and can be taken for no other; or an end of a line behind it. */
  #provesItself({ whole, newline }: Unsent): boolean {
    return whole && (newline || /^[ -~]+[!-~]$/.test(this.#unsent?.message ?? ''))
  }

  /** `proof`: by what it is known that it was swallowed. */
  #enterAgain(proof: Unsent | undefined): void {
    const { clock, process } = this.#deps
    if (this.#unsent === undefined) return
    const { message } = this.#unsent
    this.#unsent = { ...this.#unsent, enters: this.#unsent.enters + 1 }
    this.#changedAt = clock.monotonic()
    this.#proving = true
    const limit = new AbortController()
    const cancel = clock.after(ENTER_MS, () => limit.abort())
    const known = proof === undefined ? Promise.resolve(true) : this.#isSwallowed(message, proof, limit.signal)
    void known
      .then((swallowed) => (swallowed ? process.typeKeys(KEY.enter, limit.signal) : undefined))
      .catch(() => {
        // Who takes no keys any more shows that in another way, and what stands there then is not known.
        if (this.#unsent !== undefined) this.#unsent = { ...this.#unsent, enters: MAX_ENTERS }
      })
      .finally(() => {
        cancel()
        this.#proving = false
        this.#lookIn(LOOK_MS)
      })
  }

  /**
   * Keys are read in their order: where its last letter goes when it is erased, the Enter before that was read, and did
   * nothing. A dialog, or an empty line, does not heed it.
   */
  async #isSwallowed(message: string, { newline }: Unsent, signal: AbortSignal): Promise<boolean> {
    const { process } = this.#deps
    await process.typeKeys(ERASE, signal)
    if (newline) return this.#comesToStand(message, signal)
    if (!(await this.#comesToStand(message.slice(0, -1), signal))) return false
    await process.typeKeys(message.slice(-1), signal)
    return this.#comesToStand(message, signal)
  }

  /** False where the line is empty, something asks or a person types: it was taken, or is theirs. */
  async #comesToStand(message: string, signal: AbortSignal): Promise<boolean> {
    const { clock, process } = this.#deps
    const mine = this.#unsent && { ...this.#unsent, message }
    this.#unsent = mine
    while (mine !== undefined && this.#unsent === mine && !this.#over && !process.personTyping) {
      await delay(clock, LOOK_MS, signal)
      await this.#screen.caughtUp(signal)
      const rows = this.#screen.rows()
      if (emptyPrompt(rows, this.#hints) !== undefined || this.#sight().asks) return false
      const stands = this.#unsentOn(rows)
      if (stands?.whole === true && !stands.newline) return true
    }
    return false
  }

  /** W2; false: one more look is needed. */
  #confirm(dialog: Pending | undefined): boolean {
    const seen = dialog?.requestId
    const settled = seen === this.#glimpse
    this.#glimpse = seen
    if (!settled) return false
    if (seen === this.#pending?.requestId) return true
    const before = this.#pending
    this.#pending = dialog
    if (before !== undefined) this.#events.tell({ type: 'pending-cleared', requestId: before.requestId })
    if (dialog !== undefined) this.#events.tell({ type: 'pending', pending: dialog })
    return true
  }

  // ── answers ──

  #choosing(requestId: string): Choosing {
    const { clock, process } = this.#deps
    return {
      clock,
      type: (keys, signal) => process.typeKeys(keys, signal),
      press: (key, signal) => process.typeKeys(key, signal, { keyByKey: true }),
      typeLine: (line, signal) => process.typeLine(line, signal),
      menu: async (signal) => {
        await this.#screen.caughtUp(signal)
        const dialog = this.#dialog(this.#screen.rows())
        return dialog?.pending.requestId === requestId ? dialog.menu : undefined
      },
      lastLine: () => this.#screen.rows().findLast(({ text }) => text !== '')?.text ?? '',
    }
  }

  /** Two looks in a row do not show it. */
  async #untilGone(requestId: string, signal: AbortSignal): Promise<true> {
    const { clock } = this.#deps
    for (let look = 0, gone = 0; look < GONE_LOOKS; look++) {
      await delay(clock, LOOK_MS, signal)
      await this.#screen.caughtUp(signal)
      gone = this.#dialog(this.#screen.rows())?.pending.requestId === requestId ? 0 : gone + 1
      if (gone === 2) return true
    }
    throw new Error('the dialog did not take the answer')
  }

  #become(activity: Activity): void {
    const told = activity === this.#activity
    this.#activity = activity
    if (told) return
    this.#since = this.#deps.clock.now()
    this.#events.tell({ type: 'activity', activity })
  }
}

/** Two seconds: a dialog that is still there then has not taken the key. */
const GONE_LOOKS = 20
const CTRL_C = '\u0003'
