/**
 * One agent from its start to the end of its tree, inside the host.
 *
 * N1  Deliveries go to the agent one at a time, each with its intent on disk first (D1); an id is never typed twice. What
 *     is no text goes here, in front of every runtime, whoever wrote it (decision 138): a control byte is a key.
 * N2  The end is told once, when nothing of the tree runs (RT5) and the last output is in the log.
 * N3  What fails here ends the agent visibly; it never leaves one running that nobody controls.
 * N5  A token of ours is stars wherever output is kept: what an agent prints is read by more people than may use it.
 * N4  An end that cannot be written, for the disk is full, is written as soon as there is room.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clock, delay } from '../../kernel/clock.ts'
import { maskText, StreamMask } from '../../kernel/masking.ts'
import { plainText } from '../../messaging/hostile-text.ts'
import {
  type ChildContext,
  type ChildEvent,
  ChildStartError,
  type HostedChild,
  type HostedTerminal,
  type StartChild,
  tokensOf,
} from '../process/hosted-child.ts'
import type { OutputWriter } from '../process/output-log.ts'
import { identify, type ProcessIdentity } from '../process/process-identity.ts'
import { killTree } from '../process/process-tree.ts'
import type { Delivery, DeliveryOutcome, Exit, TypingReply } from '../process/runtime.ts'
import { type ControlSocket, openControlSocket } from './control-socket.ts'
import { type Journal, openJournal } from './journal.ts'
import { type ExitRecord, FILES, type HostSpec, type HostStatus, PROTOCOL, type StartError } from './protocol.ts'
import { HELD, MOVED } from './typing.ts'

const MAX_QUEUED = 1_000
/** Between the death of the tree and the news of it. */
const EXIT_NEWS_MS = 2_000
/** How long the beginning of a token waits for its rest, before it is shown. */
const HELD_MS = 250
/** Between two tries to write an end. */
const WRITE_AGAIN_MS = 1_000

type Ending = Extract<ChildEvent, { type: 'exit' }>

export interface RunDeps {
  readonly spec: HostSpec
  readonly output: OutputWriter
  readonly clock: Clock
  readonly writeExit: (record: ExitRecord) => void
}

export class Run {
  readonly #deps: RunDeps
  readonly #journal: Journal
  readonly #tokens: readonly string[]
  readonly #mask: StreamMask
  #cancelFlush: (() => void) | undefined
  readonly #ended = Promise.withResolvers<ExitRecord>()
  readonly #written = Promise.withResolvers<void>()
  readonly #dismissed = Promise.withResolvers<void>()
  readonly #over = new AbortController()
  /** It is to end: nothing more is typed into its terminal, and what has no Enter yet gets none. */
  readonly #leaving = new AbortController()
  readonly #inFlight = new Map<string, Promise<DeliveryOutcome>>()
  #turn: Promise<unknown> = Promise.resolve()
  #socket: ControlSocket | undefined
  #child: HostedChild | undefined
  #root: ProcessIdentity | undefined
  #record: ExitRecord | undefined
  #killed = false
  #title: string | undefined

  constructor(deps: RunDeps) {
    this.#deps = deps
    const { launch } = deps.spec
    this.#journal = openJournal(launch.directory)
    this.#tokens = tokensOf(launch)
    this.#mask = new StreamMask(this.#tokens)
  }

  /** The end, when all of it is known and written. */
  get ended(): Promise<ExitRecord> {
    return this.#ended.promise
  }

  /** The end is on disk. */
  get written(): Promise<void> {
    return this.#written.promise
  }

  /** A supervisor has read the end. */
  get dismissed(): Promise<void> {
    return this.#dismissed.promise
  }

  /** Called again, it listens there instead. */
  async listen(path: string): Promise<void> {
    const { spec, clock } = this.#deps
    const before = this.#socket
    this.#socket = await openControlSocket(path, {
      identity: spec.launch.identity,
      clock,
      status: () => this.#status(),
      handlers: {
        status: () => this.#status(),
        deliver: ({ delivery }) => this.#deliver(delivery),
        enter: ({ delivery_id, enter }) => {
          this.#terminal?.enter(delivery_id, enter)
          return {}
        },
        delivered: async ({ delivery }) => {
          await this.#inFlight.get(delivery.id)
          return { delivered: this.#journal.delivered(delivery) }
        },
        interrupt: async () => ({ interrupted: (await this.#running?.interrupt()) ?? false }),
        answer: async ({ request_id, answer }) => ({
          answered: (await this.#running?.answer(request_id, answer)) ?? false,
        }),
        input: ({ viewer, data, ...details }) =>
          this.#terminal?.input(viewer, Buffer.from(data, 'base64'), details) ?? NO_TERMINAL,
        type_keys: ({ keys, ...details }) => this.#terminal?.typeKeys(keys, details) ?? NO_TERMINAL,
        type_line: ({ line }) => this.#terminal?.typeLine(line) ?? NO_TERMINAL,
        set: async ({ key, value }) => (await this.#running?.set?.(key, value)) ?? { state: 'unsupported' },
        resize: ({ columns, rows }) => {
          this.#terminal?.resize(columns, rows)
          return {}
        },
        stop: ({ grace_ms }) => this.stop(grace_ms),
        bye: () => {
          if (this.#record !== undefined) this.#dismissed.resolve()
          return {}
        },
      },
    })
    before?.close()
  }

  /** Starts the agent; a failure is an end like any other. */
  async start(start: StartChild): Promise<void> {
    const { spec, clock } = this.#deps
    try {
      const context: ChildContext = {
        spec: spec.launch,
        clock,
        output: (bytes) => this.#output(bytes),
        emit: (event) => this.#onEvent(event),
        spawned: (pid) => {
          this.#root = identify(pid) ?? { pid, start_time: '', boot_id: '' }
        },
      }
      const child = await start(context)
      if (this.#over.signal.aborted) return void (await this.#killTree())
      this.#child = child
      this.#socket?.tell({ event: 'started', status: this.#status() })
    } catch (error) {
      const code = error instanceof ChildStartError ? error.code : 'spawn_failed'
      const reason = code === 'handshake_failed' ? 'handshake_failed' : 'unknown'
      const message = messageOf(error)
      const ending: Ending = { type: 'exit', code: undefined, signal: undefined, reason, message }
      await this.#end(ending, { code, message })
    }
  }

  /** N5. */
  #output(bytes: Uint8Array): void {
    this.#append(this.#mask.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)))
    this.#cancelFlush?.()
    this.#cancelFlush = this.#mask.holds ? this.#deps.clock.after(HELD_MS, () => this.#flush()) : undefined
  }

  #flush(): void {
    this.#append(this.#mask.flush())
  }

  #append(bytes: Buffer): void {
    if (bytes.length === 0) return
    const { output } = this.#deps
    output.append(bytes)
    this.#socket?.outputGrew(() => output.endOffset)
  }

  /** TERM, the grace, then the whole tree. Resolves at the end; also before the agent has started and when it is over. */
  async stop(graceMs: number): Promise<ExitRecord> {
    if (this.#record !== undefined) return this.#record
    this.#leaving.abort()
    if (graceMs > 0 && this.#running !== undefined) {
      this.#running.terminate()
      await this.#within(graceMs)
    }
    if (this.#over.signal.aborted) return this.ended
    this.#killed = true
    await this.#killTree()
    await this.#within(EXIT_NEWS_MS)
    await this.#end({ type: 'exit', code: undefined, signal: 'SIGKILL' })
    return this.ended
  }

  /** An error that nobody expected: the agent is ended, and the error kept for people. */
  async fail(error: unknown): Promise<void> {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    try {
      appendFileSync(join(this.#deps.spec.launch.directory, FILES.log), `${text}\n`, { mode: 0o600 })
    } catch {
      // The directory is gone, and with it whoever would read it.
    }
    await this.#killTree()
    const message = `the host failed: ${messageOf(error)}`
    await this.#end({ type: 'exit', code: undefined, signal: undefined, reason: 'host_lost', message })
  }

  close(): void {
    this.#socket?.close()
  }

  get #running(): HostedChild | undefined {
    return this.#over.signal.aborted ? undefined : this.#child
  }

  get #terminal(): HostedTerminal | undefined {
    return this.#running?.terminal
  }

  #status(): HostStatus {
    const child = this.#child
    const state = this.#record !== undefined ? 'ended' : child === undefined ? 'starting' : 'running'
    return {
      protocol: PROTOCOL,
      state,
      ...(this.#root !== undefined && { pid: this.#root.pid }),
      activity: this.#running?.activity ?? 'unknown',
      ...(this.#running?.pending !== undefined && { pending: this.#running.pending }),
      ...(child?.conversationId !== undefined && { conversation_id: child.conversationId }),
      ...(child?.terminal !== undefined && { person_typing: child.terminal.personTyping, size: child.terminal.size }),
      ...(child?.offers !== undefined && { offers: child.offers }),
      ...(this.#title !== undefined && { title: this.#title }),
      end_offset: this.#deps.output.endOffset,
      ...(this.#record !== undefined && { ended: this.#record }),
    }
  }

  // ---- deliveries ---------------------------------------------------------------------------------------------------

  #deliver(delivery: Delivery): Promise<DeliveryOutcome> {
    const known = this.#inFlight.get(delivery.id)
    if (known !== undefined) return known
    if (this.#inFlight.size >= MAX_QUEUED) {
      return Promise.resolve({ state: 'failed', code: 'refused', message: 'too many messages wait for the agent' })
    }
    const outcome = this.#turn.then(() => this.#deliverNow(delivery))
    this.#turn = outcome
    this.#inFlight.set(delivery.id, outcome)
    void outcome.then(() => this.#inFlight.delete(delivery.id))
    return outcome
  }

  /** N1; never rejects. */
  async #deliverNow(delivery: Delivery): Promise<DeliveryOutcome> {
    const before = this.#journal.delivered(delivery)
    if (before === 'yes') return { state: 'delivered' }
    if (before === 'unknown')
      return { state: 'uncertain', message: 'it was begun before, and how that ended is not known' }
    const child = this.#running
    if (child === undefined) return { state: 'failed', code: 'closed', message: 'the agent has ended' }
    const text = plainText(delivery.text)
    if (text.trim() === '' && delivery.attachments === undefined) return NOTHING_TO_SAY
    if (child.terminal?.personTyping === true && delivery.clearsLine !== true) return HELD
    const at = delivery.guard?.at
    if (at !== undefined && this.#deps.output.endOffset !== at) return MOVED
    const { signal } = child.terminal === undefined ? this.#over : this.#leaving
    const refused = await child.untilFree?.(signal)
    if (refused !== undefined) return refused
    try {
      this.#journal.intent(delivery)
    } catch (error) {
      return { state: 'failed', code: 'refused', message: `the delivery could not be recorded: ${messageOf(error)}` }
    }
    const outcome = await child.deliver({ ...delivery, text }, signal).catch(uncertainBy)
    this.#journal.outcome(delivery, outcome)
    return outcome
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  #onEvent(event: ChildEvent): void {
    if (event.type === 'exit') return void this.#end(event)
    if (this.#over.signal.aborted) return
    switch (event.type) {
      case 'activity':
        this.#socket?.tell({ event: 'activity', activity: event.activity })
        break
      case 'pending':
        this.#socket?.tell({ event: 'pending', pending: event.pending })
        break
      case 'pending-cleared':
        this.#socket?.tell({ event: 'pending_cleared', request_id: event.requestId })
        break
      case 'person-typing':
        this.#socket?.tell({ event: 'person_typing', typing: event.typing })
        break
      case 'pasted':
        this.#socket?.tell({ event: 'pasted', delivery_id: event.deliveryId })
        break
      case 'resized':
        this.#socket?.tell({ event: 'resized', columns: event.columns, rows: event.rows })
        break
      case 'conversation':
        this.#socket?.tell({ event: 'conversation', conversation_id: event.conversationId })
        break
      case 'offers':
        this.#socket?.tell({ event: 'offers', offers: event.offers })
        break
      case 'title':
        this.#title = event.title
        this.#socket?.tell({ event: 'title', title: event.title })
        break
    }
  }

  /** N2, H3. */
  async #end(ending: Ending, startError?: StartError): Promise<void> {
    if (this.#over.signal.aborted) return
    this.#over.abort()
    this.#leaving.abort()
    const survivors = await this.#killTree()
    await this.#turn
    const { output, clock } = this.#deps
    const words = lastWords(ending.message, survivors)
    const message = words === undefined ? undefined : maskText(words, this.#tokens)
    this.#cancelFlush?.()
    this.#flush()
    const exit: Exit = {
      code: ending.code,
      signal: ending.signal,
      reason: ending.reason ?? this.#reasonOf(ending),
      at: clock.now(),
      ...(message !== undefined && { message }),
    }
    const record = { exit, end_offset: output.endOffset, ...(startError !== undefined && { start_error: startError }) }
    output.close()
    this.#write(record)
    this.#record = record
    this.#socket?.tell({ event: 'exit', ...record })
    this.#ended.resolve(record)
  }

  /** N4. Supervisors that are connected learn of the end meanwhile. */
  #write(record: ExitRecord): void {
    const { writeExit, clock } = this.#deps
    try {
      writeExit(record)
      this.#written.resolve()
    } catch {
      clock.after(WRITE_AGAIN_MS, () => this.#write(record))
    }
  }

  #reasonOf({ signal }: Ending): Exit['reason'] {
    if (this.#killed) return 'killed'
    return signal === undefined ? 'exited' : 'signalled'
  }

  #killTree(): Promise<readonly number[]> {
    const { token } = this.#deps.spec.launch.identity
    return killTree({ token, ...(this.#root !== undefined && { root: this.#root }) }, this.#deps.clock)
  }

  #within(ms: number): Promise<unknown> {
    return Promise.race([this.ended, delay(this.#deps.clock, ms, this.#over.signal).catch(() => {})])
  }
}

function lastWords(message: string | undefined, survivors: readonly number[]): string | undefined {
  if (survivors.length === 0) return message
  return [message, `these processes could not be killed: ${survivors.join(', ')}`].filter(Boolean).join('; ')
}

const NO_TERMINAL: TypingReply = { typed: false, code: 'unsupported', message: 'there is no terminal to type into' }

const NOTHING_TO_SAY: DeliveryOutcome = {
  state: 'failed',
  code: 'refused',
  message: 'there is nothing in it but blanks and control characters',
}

const uncertainBy = (error: unknown): DeliveryOutcome => ({ state: 'uncertain', message: messageOf(error) })
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
