/**
 * A program on a terminal that the host holds (decisions 53, 57, 60).
 *
 * P1  Text is pasted as it is; `ESC[200~ … ESC[201~` goes around it only while the program has asked for that, and for a
 *     shell only where it makes a difference: between Enter and the end of the command what it asked for is stale.
 * P2  A delivery of which a byte was typed and not all is `uncertain`.
 * P3  An interrupt does not wait for a program that has stopped reading: then its process group is signalled.
 */
import { constants } from 'node:os'
import { type IPty, spawn } from '@lydell/node-pty'
import { delay } from '../../kernel/clock.ts'
import { ignoresTerm, readStat } from '../process/process-identity.ts'
import type { Delivery, DeliveryOutcome } from '../process/runtime.ts'
import { IdleWatch, readForeground } from '../process/shell-idle.ts'
import { type ChildContext, ChildStartError, type HostedChild, type StartChild } from './child.ts'
import { createTtyInput, type TtyInput, type Typed } from './tty-input.ts'

const TYPING_MS = 30_000
const KEY_MS = 200
const PASTE_MODE_MS = 250
const PASTE_LOOK_MS = 10
/** A terminal in canonical mode cuts lines at 4,095 bytes (decision 53). */
const MAX_LINE_BYTES = 4_000

export const startPtyChild: StartChild = async (context) => {
  const { command, args, env, workDir, columns, rows } = context.spec
  try {
    const options = { name: env['TERM'] ?? 'xterm-256color', cols: columns, rows, cwd: workDir, env, encoding: null }
    return new PtyChild(context, spawn(command, [...args], options))
  } catch (error) {
    throw new ChildStartError('spawn_failed', `could not start ${command}: ${messageOf(error)}`)
  }
}

class PtyChild implements HostedChild {
  readonly pending = undefined
  readonly conversationId = undefined
  readonly #context: ChildContext
  readonly #terminal: IPty
  readonly #input: TtyInput
  readonly #idle: IdleWatch | undefined
  readonly #pasteMode = pasteModeWatch()

  constructor(context: ChildContext, terminal: IPty) {
    this.#context = context
    this.#terminal = terminal
    context.spawned(terminal.pid)
    const { fd, onClose } = parseTerminal(terminal)
    this.#input = createTtyInput(fd, context.clock)
    onClose(() => this.#input.close())
    this.#idle = context.spec.delivery === 'line' ? this.#watchIdle() : undefined
    terminal.onData((data) => this.#onOutput(parseBytes(data)))
    terminal.onExit(({ exitCode, signal }) => this.#onExit(exitCode, signal))
  }

  get activity() {
    return this.#idle?.activity ?? 'unknown'
  }

  async deliver({ text }: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    const { delivery } = this.#context.spec
    if (delivery === 'line' && hasLongLine(text)) {
      const message = `a line of the message is longer than the ${MAX_LINE_BYTES} bytes that a terminal takes`
      return { state: 'failed', code: 'too_long', message }
    }
    const typed = await (delivery === 'line' ? this.#line(text, signal) : this.#pasteThenEnter(text, signal))
    return outcomeOf(typed, signal)
  }

  async #line(text: string, signal: AbortSignal): Promise<Typed> {
    const pasted = /[\n\t]/.test(text) && (await this.#wantsPasteMarks(signal)) ? marked(text) : text
    this.#idle?.onDelivery()
    const typed = await this.#type(`${pasted}\r`, signal)
    this.#pasteMode.entered()
    this.#idle?.onDelivery()
    return typed
  }

  /** Right after Enter a shell has not yet said whether it still does. */
  async #wantsPasteMarks(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#context
    const deadline = clock.monotonic() + PASTE_MODE_MS
    while (this.#pasteMode.stale && clock.monotonic() < deadline && !signal.aborted) await delay(clock, PASTE_LOOK_MS)
    return this.#pasteMode.on
  }

  async #pasteThenEnter(text: string, signal: AbortSignal): Promise<Typed> {
    const { clock, spec } = this.#context
    const typed = await this.#type(this.#pasteMode.on ? marked(text) : text, signal)
    if (typed !== 'all') return typed
    await delay(clock, spec.debounceMs, signal).catch(() => {})
    return (await this.#type('\r', signal)) === 'all' ? 'all' : 'part'
  }

  async interrupt(): Promise<boolean> {
    const ctrlC = this.#context.spec.interruptKey === 'ctrl-c'
    const typed = await this.#input.type(Buffer.from(ctrlC ? '\x03' : '\x1b'), { deadlineMs: KEY_MS })
    if (typed !== 'all' && ctrlC) this.#signalForeground('SIGINT')
    return true
  }

  async typeKeys(keys: string): Promise<void> {
    const typed = await this.#input.type(Buffer.from(keys), { deadlineMs: TYPING_MS })
    if (typed !== 'all') throw new Error(`the terminal took ${typed} of the keys`)
  }

  answer(): Promise<boolean> {
    return Promise.resolve(false)
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows)
  }

  terminate(): void {
    const { pid } = this.#terminal
    this.#signalForeground('SIGTERM')
    signalGroup(pid, 'SIGTERM')
    // An interactive shell ignores TERM; a terminal that goes away is what it ends by.
    if (this.#context.spec.delivery === 'line' && ignoresTerm(pid)) signalGroup(pid, 'SIGHUP')
    signalGroup(pid, 'SIGCONT')
  }

  #type(text: string, signal: AbortSignal): Promise<Typed> {
    return this.#input.type(Buffer.from(text), { deadlineMs: TYPING_MS, signal })
  }

  #watchIdle(): IdleWatch {
    const { clock, emit } = this.#context
    const foreground = () => readForeground(this.#terminal.pid)
    return new IdleWatch({ clock, foreground, onActivity: (activity) => emit({ type: 'activity', activity }) })
  }

  #onOutput(bytes: Buffer): void {
    this.#context.output(bytes)
    this.#pasteMode.look(bytes)
    this.#idle?.onOutput()
  }

  #onExit(code: number, signal: number | undefined): void {
    this.#input.close()
    this.#idle?.close()
    const name = signal === undefined || signal === 0 ? undefined : signalName(signal)
    this.#context.emit({ type: 'exit', code: name === undefined ? code : undefined, signal: name })
  }

  #signalForeground(name: NodeJS.Signals): void {
    const foreground = readStat(this.#terminal.pid)?.foreground ?? -1
    if (foreground > 0) signalGroup(foreground, name)
  }
}

function outcomeOf(typed: Typed, signal: AbortSignal): DeliveryOutcome {
  if (typed === 'all') return { state: 'delivered' }
  if (typed === 'part')
    return { state: 'uncertain', message: 'the program stopped reading in the middle of the message' }
  if (signal.aborted) return { state: 'failed', code: 'closed', message: 'the program has ended' }
  return { state: 'failed', code: 'timeout', message: `the program took no input for ${TYPING_MS / 1000} s` }
}

const hasLongLine = (text: string) => text.split('\n').some((line) => Buffer.byteLength(line) > MAX_LINE_BYTES)

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
