/**
 * A program on a terminal that the host holds (decisions 53, 57, 60).
 *
 * P1  Text is pasted as it is; `ESC[200~ … ESC[201~` goes around it only while the program has asked for that, and for a
 *     shell only where it makes a difference: between Enter and the end of the command what it asked for is stale.
 * P2  An interrupt does not wait for a program that has stopped reading: then its process group is signalled.
 */
import { constants } from 'node:os'
import { type IPty, spawn } from '@lydell/node-pty'
import { delay } from '../../kernel/clock.ts'
import {
  type ChildContext,
  ChildStartError,
  type HostedChild,
  type HostedTerminal,
  type StartChild,
} from '../process/hosted-child.ts'
import { ignoresTerm, readStat } from '../process/process-identity.ts'
import type { Delivery, DeliveryOutcome, InputDetails, KeyDetails, TypingReply } from '../process/runtime.ts'
import { IdleWatch, readForeground } from '../process/shell-idle.ts'
import { keyReaderWatch } from './key-reader.ts'
import { hasLongLine, LineLimit } from './line-limit.ts'
import { promptWatch } from './prompt-watch.ts'
import { Queries } from './queries.ts'
import { isRaw } from './stty.ts'
import { createTtyInput, type TtyInput } from './tty-input.ts'
import { type Paste, Typing } from './typing.ts'

const PASTE_MODE_MS = 250
const PASTE_LOOK_MS = 10
/** Who has not read an answer by then does not wait for it. */
const ANSWER_MS = 1_000
/** How long a message with a long line waits for a prompt. */
const IDLE_MS = 2_000

export const startPtyChild: StartChild = async (context) => {
  const { command, args, env, workDir, columns, rows } = context.spec
  try {
    const options = { name: env['TERM'] ?? 'xterm-256color', cols: columns, rows, cwd: workDir, env, encoding: null }
    return new PtyChild(context, spawn(command, [...args], options))
  } catch (error) {
    throw new ChildStartError('spawn_failed', `could not start ${command}: ${messageOf(error)}`)
  }
}

class PtyChild implements HostedChild, HostedTerminal {
  readonly terminal: HostedTerminal = this
  readonly pending = undefined
  readonly conversationId = undefined
  readonly #context: ChildContext
  readonly #pty: IPty
  readonly #limit: LineLimit
  readonly #input: TtyInput
  readonly #typing: Typing
  readonly #idle: IdleWatch | undefined
  readonly #pasteMode = pasteModeWatch()
  readonly #queries: Queries
  readonly #prompt: ReturnType<typeof promptWatch>

  constructor(context: ChildContext, terminal: IPty) {
    this.#context = context
    this.#pty = terminal
    context.spawned(terminal.pid)
    const { fd, onClose } = parseTerminal(terminal)
    this.#limit = new LineLimit(fd, context.clock)
    this.#input = createTtyInput(fd, context.clock)
    // A shell at its prompt reads keys for its next line: only programs in front of it are answered.
    const goesToProgram = keyReaderWatch(terminal.pid, fd)
    const isShell = context.spec.delivery === 'line'
    this.#prompt = promptWatch(context, { pid: terminal.pid, isRaw: () => isRaw(fd) === true })
    this.#queries = new Queries({
      clock: context.clock,
      size: () => this.size,
      readsKeys: () => (isShell ? goesToProgram() : isRaw(fd) === true),
      answer: (text) => void this.#input.type(Buffer.from(text), { deadlineMs: ANSWER_MS }),
    })
    this.#typing = new Typing({
      input: this.#input,
      clock: context.clock,
      isShell,
      readsLines: () => isRaw(fd) === false,
      goesToProgram: isShell ? goesToProgram : () => false,
      onPersonTyping: (typing) => context.emit({ type: 'person-typing', typing }),
      onPasted: (deliveryId) => context.emit({ type: 'pasted', deliveryId }),
    })
    onClose(() => {
      this.#input.close()
      this.#limit.close()
    })
    this.#idle = context.spec.delivery === 'line' ? this.#watchIdle() : undefined
    terminal.onData((data) => this.#onOutput(parseBytes(data)))
    terminal.onExit(({ exitCode, signal }) => this.#onExit(exitCode, signal))
  }

  get activity() {
    return this.#idle?.activity ?? 'unknown'
  }

  get personTyping() {
    return this.#typing.personTyping
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    const { text, clearsLine = false } = delivery
    const how = { clearsLine, signal }
    if (this.#context.spec.delivery === 'tui') return this.#typing.deliver(() => this.#pasteOf(delivery), how)
    if (hasLongLine(text) && !(await this.#takesLongLines(signal))) return TOO_LONG
    const outcome = await this.#typing.deliver(() => this.#lineOf(text, signal), how)
    this.#limit.typed()
    this.#pasteMode.entered()
    this.#idle?.onDelivery()
    return outcome
  }

  /** A shell that is on its way to its prompt has a mode of its own in a moment. */
  async #takesLongLines(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#context
    const deadline = clock.monotonic() + IDLE_MS
    while (this.activity !== 'idle' && clock.monotonic() < deadline && !signal.aborted)
      await delay(clock, PASTE_LOOK_MS)
    return this.#limit.lift()
  }

  /** A shell takes what is marked at once; else it shows a long line anew with each of its characters. */
  async #lineOf(text: string, signal: AbortSignal): Promise<Paste> {
    const marks = (/[\n\t]/.test(text) || hasLongLine(text)) && (await this.#wantsPasteMarks(signal))
    this.#idle?.onDelivery()
    return pasteOf(text, marks, undefined)
  }

  async #pasteOf({ text, id, guard }: Delivery): Promise<Paste> {
    const paste = pasteOf(text, this.#pasteMode.on, this.#context.spec.debounceMs)
    return guard === undefined ? paste : { ...paste, asksAs: id }
  }

  /** Right after Enter a shell has not yet said whether it still does. */
  async #wantsPasteMarks(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#context
    const deadline = clock.monotonic() + PASTE_MODE_MS
    while (this.#pasteMode.stale && clock.monotonic() < deadline && !signal.aborted) await delay(clock, PASTE_LOOK_MS)
    return this.#pasteMode.on
  }

  async interrupt(): Promise<boolean> {
    const ctrlC = this.#context.spec.interruptKey === 'ctrl-c'
    const typed = await this.#typing.interrupt(ctrlC ? '\x03' : '\x1b')
    if (!typed && ctrlC) this.#signalForeground('SIGINT')
    return true
  }

  enter(deliveryId: string, enter: boolean): void {
    this.#typing.enter(deliveryId, enter)
  }

  typeKeys(keys: string, details: KeyDetails): Promise<TypingReply> {
    return this.#typing.keys(keys, details)
  }

  typeLine(line: string): Promise<TypingReply> {
    return this.#typing.line(line)
  }

  input(viewer: string, bytes: Uint8Array, details: InputDetails): Promise<TypingReply> {
    return this.#typing.input(viewer, this.#queries.withoutAnswers(bytes), details)
  }

  answer(): Promise<boolean> {
    return Promise.resolve(false)
  }

  get size() {
    return { columns: this.#pty.cols, rows: this.#pty.rows }
  }

  resize(columns: number, rows: number): void {
    this.#pty.resize(columns, rows)
    this.#context.emit({ type: 'resized', columns, rows })
  }

  terminate(): void {
    const { pid } = this.#pty
    this.#signalForeground('SIGTERM')
    signalGroup(pid, 'SIGTERM')
    // An interactive shell ignores TERM; a terminal that goes away is what it ends by.
    if (this.#context.spec.delivery === 'line' && ignoresTerm(pid)) signalGroup(pid, 'SIGHUP')
    signalGroup(pid, 'SIGCONT')
  }

  #watchIdle(): IdleWatch {
    const { clock, emit } = this.#context
    const foreground = () => (this.#prompt.isUp() ? readForeground(this.#pty.pid) : 'other')
    return new IdleWatch({ clock, foreground, onActivity: (activity) => emit({ type: 'activity', activity }) })
  }

  #onOutput(bytes: Buffer): void {
    this.#context.output(bytes)
    this.#pasteMode.look(bytes)
    this.#queries.look(bytes)
    this.#prompt.look(bytes)
    this.#limit.onOutput()
    this.#idle?.onOutput()
  }

  #onExit(code: number, signal: number | undefined): void {
    this.#input.close()
    this.#limit.close()
    this.#idle?.close()
    const name = signal === undefined || signal === 0 ? undefined : signalName(signal)
    this.#context.emit({ type: 'exit', code: name === undefined ? code : undefined, signal: name })
  }

  #signalForeground(name: NodeJS.Signals): void {
    const foreground = readStat(this.#pty.pid)?.foreground ?? -1
    if (foreground > 0) signalGroup(foreground, name)
  }
}

const pasteOf = (text: string, marks: boolean, enterAfterMs: number | undefined): Paste => ({
  text: marks ? marked(text) : text,
  whole: marks || !text.includes('\n'),
  enterAfterMs,
  characters: [...text].length,
})

const TOO_LONG: DeliveryOutcome = {
  state: 'failed',
  code: 'too_long',
  message: 'a line of it is longer than the terminal takes, and there is no `stty` to change that',
}

const marked = (text: string) => `\x1b[200~${text}\x1b[201~`

const PASTE_ON = Buffer.from('\x1b[?2004h')
const PASTE_OFF = Buffer.from('\x1b[?2004l')

/** Whether the program wants pastes marked; sees sequences that are cut in two by a read as well. */
function pasteModeWatch() {
  let on = false
  let stale = false
  let tail = Buffer.alloc(0)
  return {
    get on() {
      return on
    },
    get stale() {
      return stale
    },
    /** Enter was typed: a shell that runs a command switches it off. */
    entered() {
      stale = on
    },
    look(bytes: Buffer) {
      // Nearly all output has no such sequence and does not follow half of one: nothing is copied for it.
      const whole = tail.length === 0 ? bytes : Buffer.concat([tail, bytes])
      const last = { on: whole.lastIndexOf(PASTE_ON), off: whole.lastIndexOf(PASTE_OFF) }
      if (last.on !== last.off) {
        on = last.on > last.off
        stale = false
      }
      const at = whole.lastIndexOf(0x1b)
      const cut = at !== -1 && whole.length - at < PASTE_ON.length
      tail = cut ? Buffer.from(whole.subarray(at)) : Buffer.alloc(0)
    },
  }
}

function signalGroup(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(-pid, name)
  } catch {
    // ESRCH: it has ended.
  }
}

const signalName = (number: number): string =>
  Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? `signal ${number}`

/** With `encoding: null` node-pty passes buffers, whatever its types say. */
function parseBytes(data: unknown): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(String(data))
}

/** The descriptor of the terminal and the moment it is closed: there, but not in node-pty's types. */
function parseTerminal(terminal: IPty): { fd: number; onClose(listener: () => void): void } {
  const found = terminal as IPty & { fd?: unknown; on?(event: 'close', listener: () => void): void }
  if (typeof found.fd !== 'number') throw new Error('node-pty does not tell its descriptor')
  return { fd: found.fd, onClose: (listener) => found.on?.('close', listener) }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
