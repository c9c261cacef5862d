/**
 * One agent in its tmux pane.
 *
 * T1  Typing is exactly-once (RT3): the command that types looks at the mark and sets it, and a new connection forbids
 *     what an older one had sent (C3), so after any failure the mark tells what happened. What was pasted and not entered
 *     is entered by whoever asks. Without a server nothing tells: `uncertain`.
 * T2  One delivery at a time; they are typed in the order of the calls.
 * T3  The end is known by `exit.json`. A pane or a process that is gone without one is the end as well, but only what was
 *     seen counts: a server that does not answer makes the process unknown (RT2).
 * T4  Whatever of its tree is left after its end is killed before the end is told.
 */
import { type FSWatcher, watch } from 'node:fs'
import { type Clock, delay } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/log.ts'
import { endOffsetSync, hasOutputLog, type OutputFeed, openOutputFeed } from '../process/output-log.ts'
import { ProcessEvents } from '../process/process-events.ts'
import type {
  Activity,
  AdoptSpec,
  AgentProcess,
  Delivery,
  DeliveryOutcome,
  Exit,
  Identity,
  Liveness,
  ProcessEvent,
  Typable,
} from '../process/runtime.ts'
import { IdleWatch, readForeground } from '../process/shell-idle.ts'
import { ControlError, type TmuxControl } from './control.ts'
import { EXIT_FILE, readExit, removeDelivery, writeDelivery } from './launch.ts'
import { listPanes, Pane, type PaneState, type Progress, removePane } from './pane.ts'

/** A terminal in canonical mode cuts lines at 4,095 bytes. */
const MAX_LINE_BYTES = 4_000
const DELIVERY_TRIES = 3
/** Between the end of the terminal and the record of the script, which is a few commands behind. */
const RECORD_WAIT_MS = 500
const RECORD_LOOK_MS = 20
/** The last words go from the terminal through tmux and the log writer, which may still be starting. */
const SETTLE_MS = 50
const MAX_SETTLE_MS = 2_000
const MAX_REMOVE_MS = 1_000

export interface TmuxProcessDeps {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly control: TmuxControl
  /** Kills everything of the run; resolves with what would not die. */
  readonly killTree: () => Promise<readonly number[]>
  /** Whether the agent's root process is there. */
  readonly liveness: () => Liveness
  /** Asks the agent to end (TERM to its process group). */
  readonly terminate: () => void
  /** It needs no surveys any more. */
  readonly onOver: () => void
}

export class TmuxProcess implements AgentProcess, Typable {
  readonly identity: Identity
  readonly pid: number
  readonly name: string
  readonly pending = undefined
  readonly #deps: TmuxProcessDeps
  readonly #spec: AdoptSpec
  readonly #pane: Pane
  readonly #events = new ProcessEvents()
  readonly #idle: IdleWatch | undefined
  readonly #feed: OutputFeed
  readonly #watcher: FSWatcher | undefined
  readonly #ended = Promise.withResolvers<Exit>()
  readonly #hurry = new AbortController()
  #endOffset: number
  #delivered: number
  #pasted: number
  #typing: Promise<unknown> = Promise.resolve()
  #alive: Liveness = 'alive'
  #ending: Promise<void> | undefined
  #stopping: Promise<Exit> | undefined
  #released = false
  /** By us, because it did not end by itself. */
  #killed = false

  constructor(deps: TmuxProcessDeps, spec: AdoptSpec, { pid, pane }: { pid: number; pane: PaneState }) {
    this.#deps = deps
    this.#spec = spec
    this.identity = spec.identity
    this.name = spec.name
    this.pid = pid
    this.#delivered = pane.delivered
    this.#pasted = pane.pasted
    this.#pane = new Pane(deps.control, { name: spec.name, token: spec.identity.token })
    this.#endOffset = endOffsetSync(spec.directory)
    this.#idle = spec.delivery === 'line' ? this.#watchIdle() : undefined
    this.#feed = openOutputFeed(spec.directory, deps.clock, (endOffset) => this.#onOutput(endOffset))
    this.#watcher = watchExit(spec.directory, () => void this.#lookForExit())
    void this.#lookForExit()
  }

  get alive(): Liveness {
    return this.#alive
  }

  get activity(): Activity {
    return this.#alive === 'alive' ? (this.#idle?.activity ?? 'unknown') : 'unknown'
  }

  get endOffset(): number {
    return this.#endOffset
  }

  on(listener: (event: ProcessEvent) => void): () => void {
    return this.#events.on(listener)
  }

  // ── typing ──

  deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    if (this.#spec.delivery === 'line' && hasLongLine(delivery.text)) {
      const message = `a line of the message is longer than the ${MAX_LINE_BYTES} bytes that a terminal takes`
      return Promise.resolve({ state: 'failed', code: 'too_long', message })
    }
    return this.#inTurn(() => this.#deliver(delivery, signal))
  }

  async delivered({ seq }: Pick<Delivery, 'seq'>, signal: AbortSignal): Promise<'yes' | 'no' | 'unknown'> {
    const known = await this.#progress(seq, signal).catch(rethrowAborted)
    const progress = known === 'pasted' ? await this.#pane.enter({ seq }).catch(rethrowAborted) : known
    if (progress === 'delivered') return 'yes'
    return known === 'none' ? 'no' : 'unknown'
  }

  async interrupt(signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted()
    await this.#pane.key(this.#spec.interruptKey === 'ctrl-c' ? 'C-c' : 'Escape')
    return true
  }

  async typeKeys(keys: string, signal: AbortSignal): Promise<void> {
    if (!/^[\0-\x7f]+$/.test(keys)) throw new RangeError('keys are ASCII')
    signal.throwIfAborted()
    const hex = [...Buffer.from(keys, 'latin1')].map((byte) => byte.toString(16)).join(' ')
    if (!(await this.#pane.key(`-H ${hex}`))) throw new ControlError('refused', 'its terminal takes no keys any more')
  }

  /** What is pending on a screen is read and answered above (see `TerminalObserver`). */
  answer(): Promise<boolean> {
    return Promise.resolve(false)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#typing.then(work, work)
    this.#typing = turn.catch(() => {})
    return turn
  }

  async #deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    signal.throwIfAborted()
    if (this.#alive === 'dead') return CLOSED
    if (delivery.seq <= this.#delivered) return { state: 'delivered' }
    if (delivery.seq <= this.#pasted) return this.#type(delivery, undefined, 'pasted')
    const { directory } = this.#spec
    try {
      const file = delivery.text === '' ? undefined : await writeDelivery(directory, delivery.text)
      this.#idle?.onDelivery()
      return await this.#type(delivery, file)
    } finally {
      await removeDelivery(directory)
    }
  }

  /** From here the signal does not count: what has begun is brought to an end that is known (T1). */
  async #type(delivery: Delivery, file: string | undefined, from: Progress = 'none'): Promise<DeliveryOutcome> {
    let progress: Progress | undefined = from
    let failure = ''
    for (let attempt = 0; attempt < DELIVERY_TRIES; attempt++) {
      try {
        progress = await this.#advance(delivery, file, progress)
        // Nothing was typed: because it was before, or because nobody is there to read it.
        if (progress === 'none') progress = await this.#progress(delivery.seq)
        if (progress === undefined || progress === 'none') return CLOSED
      } catch (error) {
        if (!(error instanceof ControlError)) throw error
        failure = error.message
        progress = await this.#progress(delivery.seq).catch(() => undefined)
        if (progress === undefined) return error.code === 'lost' ? uncertain(failure) : { ...CLOSED, message: failure }
      }
      if (progress === 'delivered') {
        this.#delivered = delivery.seq
        return { state: 'delivered' }
      }
    }
    return progress === 'pasted' ? uncertain(failure) : { state: 'failed', code: 'refused', message: failure }
  }

  async #advance(delivery: Delivery, file: string | undefined, progress: Progress): Promise<Progress> {
    if (this.#spec.delivery === 'line') return this.#pane.deliverLine(delivery, file)
    if (progress === 'none') {
      if ((await this.#pane.paste(delivery, file)) === 'none') return 'none'
      this.#pasted = delivery.seq
    }
    await delay(this.#deps.clock, this.#spec.debounceMs)
    return this.#pane.enter(delivery)
  }

  /** What the marks say; undefined where there is no pane to ask. */
  async #progress(seq: number, signal?: AbortSignal): Promise<Progress | undefined> {
    const panes = await listPanes(this.#deps.control, signal)
    const pane = panes.find(({ token }) => token === this.identity.token)
    if (pane === undefined) return undefined
    if (seq <= pane.delivered) return 'delivered'
    return seq <= pane.pasted ? 'pasted' : 'none'
  }

  // ── watching ──

  /** What a survey of the server has shown; undefined: it did not answer. */
  observe(panes: readonly PaneState[] | undefined): void {
    if (this.#ending !== undefined || this.#released) return
    if (panes === undefined) this.#alive = 'unknown'
    else {
      const pane = panes.find(({ token }) => token === this.identity.token)
      if (pane === undefined) this.#end(() => this.#lostExit('host_lost', 'its tmux session is gone'))
      else if (pane.dead) this.#end(() => this.#lostExit('unknown', 'its terminal has hung up'))
      else if (this.#deps.liveness() === 'dead') this.#end(() => this.#lostExit('unknown', 'its launcher was killed'))
      else this.#alive = 'alive'
    }
    void this.#lookForExit()
  }

  #watchIdle(): IdleWatch {
    return new IdleWatch({
      clock: this.#deps.clock,
      foreground: () => readForeground(this.pid),
      onActivity: (activity) => this.#events.tell({ type: 'activity', activity }),
    })
  }

  #onOutput(endOffset: number): void {
    if (endOffset <= this.#endOffset) return
    this.#endOffset = endOffset
    this.#idle?.onOutput()
    this.#events.tell({ type: 'output', endOffset })
  }

  async #lookForExit(): Promise<void> {
    if (this.#ending !== undefined || this.#released) return
    const exit = await readExit(this.#spec.directory)
    if (exit !== undefined) this.#end(() => Promise.resolve(exit))
  }

  /** The record may be under way; if it is not, whatever still runs has lost its terminal. */
  async #lostExit(reason: Exit['reason'], message: string): Promise<Exit> {
    const { clock } = this.#deps
    for (let waited = 0; waited < RECORD_WAIT_MS; waited += RECORD_LOOK_MS) {
      const exit = await readExit(this.#spec.directory)
      if (exit !== undefined) return exit
      if (this.#killed) return this.#killedExit()
      await delay(clock, RECORD_LOOK_MS)
    }
    return { code: undefined, signal: undefined, reason, message, at: clock.now() }
  }

  #killedExit(): Exit {
    return { code: undefined, signal: 'SIGKILL', reason: 'killed', at: this.#deps.clock.now() }
  }

  #end(how: () => Promise<Exit>): void {
    if (this.#ending !== undefined || this.#released) return
    this.#ending = this.#finish(how)
  }

  async #finish(how: () => Promise<Exit>): Promise<void> {
    this.#alive = 'dead'
    this.#idle?.close()
    this.#watcher?.close()
    const exit = await how()
    await this.#killTree().catch((error) => this.#deps.log.warn({ error: String(error) }, 'tree of an ended agent'))
    await this.#settle()
    await this.#removePane()
    this.#feed.close()
    this.#deps.onOver()
    this.#ended.resolve(exit)
    this.#events.tell({ type: 'exit', exit })
  }

  /**
   * The terminal of an agent that has ended, and with it the writer of its log. Before its end is told: whoever dies before
   * that is followed by an adoption, which removes it. A server that stands still does not keep the end back for long.
   */
  async #removePane(): Promise<void> {
    const { control, clock, log } = this.#deps
    const removed = removePane(control, this.name, this.identity.token).catch((error) => {
      log.warn({ session: this.name, error: String(error) }, 'tmux session not removed')
    })
    const waited = new AbortController()
    await Promise.race([removed, delay(clock, MAX_REMOVE_MS, waited.signal).catch(() => {})])
    waited.abort()
  }

  /** Waits, not long, until the last words are in the log. */
  async #settle(): Promise<void> {
    const { clock } = this.#deps
    const { directory } = this.#spec
    for (let waited = 0; waited < MAX_SETTLE_MS; waited += SETTLE_MS) {
      const before = endOffsetSync(directory)
      await delay(clock, SETTLE_MS)
      if (hasOutputLog(directory) && endOffsetSync(directory) === before) break
    }
    this.#onOutput(endOffsetSync(directory))
  }

  // ── ending ──

  /** A second call with no grace cuts the grace of the first short. */
  stop(graceMs: number): Promise<Exit> {
    if (graceMs <= 0) this.#hurry.abort()
    this.#stopping ??= this.#stop(graceMs).catch((error) => {
      this.#stopping = undefined
      throw error
    })
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<Exit> {
    const { clock } = this.#deps
    if (this.#ending === undefined && graceMs > 0) {
      this.#deps.terminate()
      const grace = delay(clock, graceMs, this.#hurry.signal).catch(() => {})
      await Promise.race([grace, this.#ended.promise])
    }
    this.#killed ||= this.#ending === undefined
    // RT5: this also takes what an agent that has ended left behind, and rejects where it cannot.
    await this.#killTree()
    this.#end(() => Promise.resolve(this.#killedExit()))
    return this.#ended.promise
  }

  async #killTree(): Promise<void> {
    const survivors = await this.#deps.killTree()
    if (survivors.length > 0) throw new Error(`processes that could not be killed: ${survivors.join(', ')}`)
  }

  release(): void {
    this.#released = true
    this.#idle?.close()
    this.#feed.close()
    this.#watcher?.close()
    this.#events.clear()
    this.#deps.onOver()
  }
}

const CLOSED = { state: 'failed', code: 'closed', message: 'the agent has ended' } as const

const uncertain = (message: string): DeliveryOutcome => ({ state: 'uncertain', message })

const hasLongLine = (text: string) => text.split('\n').some((line) => Buffer.byteLength(line) > MAX_LINE_BYTES)

/** An observation that fails is none; a caller who gave up is told so. */
function rethrowAborted(error: unknown): undefined {
  if (error instanceof ControlError) return undefined
  throw error
}

function watchExit(directory: string, onExit: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, (_, file) => {
      if (file === EXIT_FILE) onExit()
    })
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    return undefined // No watches left: the surveys find it.
  }
}
