/**
 * An agent in a host, seen from the supervisor.
 *
 * G1  A lost connection says nothing about the agent: it is `unknown` until the host answers again or is known to be
 *     dead. A dead host is read from its exit record; without one its orphans are killed before the exit is told.
 * G2  A delivery whose connection was lost is asked for again by its id (the host types no id twice); where the host is
 *     gone its journal decides: never typed, typed, or `uncertain` (RT3).
 * G3  The exit is told once, and last.
 */
import { type Clock, delay } from '../../kernel/clock.ts'
import { endOffsetSync } from '../process/output-log.ts'
import { ProcessEvents } from '../process/process-events.ts'
import { killTree } from '../process/process-tree.ts'
import {
  type Activity,
  type AgentOffers,
  type AgentProcess,
  type Answer,
  type Delivery,
  type DeliveryGuard,
  type DeliveryOutcome,
  type Exit,
  type Identity,
  type InputDetails,
  type KeyDetails,
  LaunchError,
  type Liveness,
  type Pending,
  type ProcessEvent,
  type SettingOutcome,
  type TerminalSize,
  TypingRefused,
  type TypingReply,
} from '../process/runtime.ts'
import { ConnectionLost, connectHost, type HostConnection, HostRefused } from './client.ts'
import { clearRun, findHost, readHostFile, sendHome } from './finding.ts'
import { readDelivered } from './journal.ts'
import type { ExitRecord, HostEvent, HostStatus, Operation, Operations } from './protocol.ts'

/** Beyond the grace, for the killing of the tree and the news of it. */
const STOP_MARGIN_MS = 8_000
const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 5_000

interface HostedDeps {
  readonly identity: Identity
  readonly directory: string
  readonly clock: Clock
}

export class HostedProcess implements AgentProcess {
  readonly identity: Identity
  readonly #deps: HostedDeps
  readonly #events = new ProcessEvents()
  readonly #over = Promise.withResolvers<Exit>()
  /** Deliveries that ask before they are entered. */
  readonly #guarded = new Map<string, DeliveryGuard>()
  /** Deliveries that were typed and not seen where they should stand. */
  readonly #unseen = new Set<string>()
  #state: 'connecting' | 'connected' | 'ended' | 'released' = 'connecting'
  #changed = Promise.withResolvers<void>()
  #connection: HostConnection | undefined
  #running = false
  #startError: ExitRecord['start_error']
  #exit: Exit | undefined
  #pid: number | undefined
  #activity: Activity = 'unknown'
  #pending: Pending | undefined
  #conversationId: string | undefined
  #personTyping = false
  #size: TerminalSize | undefined
  #offers: AgentOffers | undefined
  #title: string | undefined
  #endOffset = 0
  #stopping: Promise<Exit> | undefined
  /** By us, because the host did not answer: its death is then no loss. */
  #killing = false

  constructor(deps: HostedDeps) {
    this.#deps = deps
    this.identity = deps.identity
  }

  get pid(): number | undefined {
    return this.#pid
  }

  get alive(): Liveness {
    if (this.#exit !== undefined) return 'dead'
    return this.#state === 'connected' ? 'alive' : 'unknown'
  }

  get activity(): Activity {
    return this.alive === 'alive' ? this.#activity : 'unknown'
  }

  get pending(): Pending | undefined {
    return this.#pending
  }

  get personTyping(): boolean {
    return this.#personTyping
  }

  get size(): TerminalSize | undefined {
    return this.#size
  }

  get endOffset(): number {
    return this.#endOffset
  }

  /** Whoever comes late is told what cannot come again. */
  on(listener: (event: ProcessEvent) => void): () => void {
    const off = this.#events.on(listener)
    const known: ProcessEvent[] = []
    const exit = this.#exit
    if (this.#conversationId !== undefined) known.push({ type: 'conversation', conversationId: this.#conversationId })
    if (this.#offers !== undefined) known.push({ type: 'offers', offers: this.#offers })
    if (this.#title !== undefined) known.push({ type: 'title', title: this.#title })
    if (known.length > 0) queueMicrotask(() => known.forEach(listener))
    if (exit !== undefined) queueMicrotask(() => listener({ type: 'exit', exit }))
    return off
  }

  /** One attempt; rejects with `ConnectionLost`, `HostRefused` or the signal's reason. */
  async connect(socket: string, signal?: AbortSignal): Promise<void> {
    const connection = await connectHost({
      socket,
      identity: this.identity,
      clock: this.#deps.clock,
      onStatus: (status) => this.#onStatus(status),
      onEvent: (event) => this.#onEvent(event),
      onLost: () => this.#onLost(),
      ...(signal !== undefined && { signal }),
    })
    if (this.#state === 'released' || this.#state === 'ended') return this.#dismiss(connection)
    this.#connection = connection
    this.#become('connected')
  }

  /** Resolves when the agent runs; rejects with `LaunchError` where it never will, or with the signal's reason. */
  async untilRunning(signal: AbortSignal): Promise<void> {
    while (!this.#running) {
      if (this.#exit !== undefined) throw launchFailure(this.#exit, this.#startError)
      await this.#nextChange(signal)
    }
  }

  /** The end, where it has come. */
  get exit(): Exit | undefined {
    return this.#exit
  }

  // ---- what the supervisor asks ---------------------------------------------------------------------------------------

  async deliver(delivery: Delivery, signal: AbortSignal, guard?: DeliveryGuard): Promise<DeliveryOutcome> {
    const { id } = delivery
    if (guard !== undefined) this.#guarded.set(id, guard)
    const given = guard && { guard: guard.at === undefined ? {} : { at: guard.at } }
    try {
      const outcome = await this.#ask('deliver', { delivery: { ...delivery, ...given } }, signal)
      const isUnseen = outcome?.state === 'failed' && outcome.code === 'moved' && this.#unseen.has(id)
      return isUnseen ? UNSEEN : (outcome ?? this.#outcomeOnRecord(delivery))
    } catch (error) {
      if (!(error instanceof HostRefused)) throw error
      return { state: 'uncertain', message: error.message }
    } finally {
      this.#guarded.delete(id)
      this.#unseen.delete(id)
    }
  }

  /** The host waits a few seconds for it; without an answer it takes the text back. */
  async #onPasted(id: string): Promise<void> {
    const may = await this.#guarded
      .get(id)
      ?.mayEnter()
      .catch(() => 'moved')
    if (may === 'unseen') this.#unseen.add(id)
    const enter = may === 'yes'
    await this.#connection?.request('enter', { delivery_id: id, enter }).catch(() => {})
  }

  async delivered(delivery: Pick<Delivery, 'seq' | 'id'>, signal: AbortSignal): Promise<'yes' | 'no' | 'unknown'> {
    const { seq, id } = delivery
    const answer = await this.#ask('delivered', { delivery: { seq, id } }, signal)
    return answer?.delivered ?? readDelivered(this.#deps.directory, delivery)
  }

  async interrupt(signal: AbortSignal): Promise<boolean> {
    return (await this.#ask('interrupt', {}, signal))?.interrupted ?? false
  }

  async answer(requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    const input = { request_id: requestId, answer }
    return (await this.#ask('answer', input, signal))?.answered ?? false
  }

  async set(key: string, value: string, signal: AbortSignal): Promise<SettingOutcome> {
    try {
      return (await this.#ask('set', { key, value }, signal)) ?? { state: 'unsupported' }
    } catch (error) {
      // A host of an earlier version.
      if (error instanceof HostRefused && error.code === 'unsupported') return { state: 'unsupported' }
      throw error
    }
  }

  /** Without a number nobody can tell whether it was typed when the connection was lost: then it is not asked again. */
  async input(viewer: string, bytes: Uint8Array, signal: AbortSignal, details: InputDetails = {}): Promise<void> {
    const input = { viewer, data: Buffer.from(bytes).toString('base64'), ...details }
    await typed(details.seq === undefined ? this.#askOnce('input', input, signal) : this.#ask('input', input, signal))
  }

  typeKeys(keys: string, signal: AbortSignal, details: KeyDetails = {}): Promise<void> {
    return typed(this.#askOnce('type_keys', { keys, ...details }, signal))
  }

  async typeLine(line: string, signal: AbortSignal): Promise<boolean> {
    try {
      const reply = await replyTo(this.#askOnce('type_line', { line }, signal))
      if (reply?.reads_keys !== true) assertTyped(reply)
      return reply?.reads_keys !== true
    } catch (error) {
      // A host of an earlier version; without a terminal, no key comes there either, and says so.
      if (error instanceof TypingRefused && error.code === 'unsupported') return false
      throw error
    }
  }

  async resize(columns: number, rows: number, signal: AbortSignal): Promise<void> {
    await this.#ask('resize', { columns, rows }, signal)
  }

  stop(graceMs: number): Promise<Exit> {
    this.#stopping ??= this.#stop(graceMs)
    return this.#stopping
  }

  release(): void {
    if (this.#state === 'ended') return
    this.#become('released')
    this.#connection?.close()
    this.#events.clear()
  }

  /** Asks the host; undefined when the agent has ended. After a lost connection it asks again (G2), never twice at once. */
  async #ask<Op extends Operation>(
    op: Op,
    input: Operations[Op]['in'],
    signal: AbortSignal,
  ): Promise<Operations[Op]['out'] | undefined> {
    for (;;) {
      signal.throwIfAborted()
      if (this.#state === 'ended') return undefined
      if (this.#state !== 'connected' || this.#connection === undefined) {
        await this.#nextChange(signal)
        continue
      }
      try {
        return await this.#connection.request(op, input, signal)
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error
      }
    }
  }

  #askOnce<Op extends Operation>(
    op: Op,
    input: Operations[Op]['in'],
    signal: AbortSignal,
  ): Promise<Operations[Op]['out'] | undefined> {
    if (this.#state === 'ended') return Promise.resolve(undefined)
    if (this.#connection === undefined) return Promise.reject(new ConnectionLost())
    return this.#connection.request(op, input, signal)
  }

  async #stop(graceMs: number): Promise<Exit> {
    const limit = new AbortController()
    const cancel = this.#deps.clock.after(graceMs + STOP_MARGIN_MS, () => limit.abort())
    try {
      const record = await this.#ask('stop', { grace_ms: graceMs }, limit.signal)
      if (record !== undefined) this.#finish(record)
    } catch {
      await this.#killFromOutside()
    } finally {
      cancel()
    }
    return this.#over.promise
  }

  /** A host that does not do as it is told goes with its tree. */
  async #killFromOutside(): Promise<void> {
    const { directory, clock, identity } = this.#deps
    this.#killing = true
    const host = readHostFile(directory)
    await killTree({ token: identity.token, ...(host !== undefined && { root: host }) }, clock)
    clearRun(directory)
    const message = 'its host did not answer and was killed with it'
    this.#finish(
      recordOf(directory, { code: undefined, signal: 'SIGKILL', reason: 'killed', at: clock.now(), message }),
    )
  }

  #outcomeOnRecord(delivery: Delivery): DeliveryOutcome {
    const known = readDelivered(this.#deps.directory, delivery)
    if (known === 'yes') return { state: 'delivered' }
    if (known === 'unknown') return { state: 'uncertain', message: 'the agent ended while it was typed' }
    return { state: 'failed', code: 'closed', message: 'the agent has ended' }
  }

  // ---- what the host tells --------------------------------------------------------------------------------------------

  /** At every connection: what has changed meanwhile is told as if it came now. */
  #onStatus(status: HostStatus): void {
    if (status.pid !== undefined) this.#pid = status.pid
    if (status.conversation_id !== undefined) this.#onConversation(status.conversation_id)
    if (status.offers !== undefined) this.#onOffers(status.offers)
    if (status.title !== undefined) this.#onTitle(status.title)
    this.#onOutput(status.end_offset)
    this.#onActivity(status.activity)
    if (status.pending?.requestId !== this.#pending?.requestId) {
      if (this.#pending !== undefined) this.#onPendingCleared(this.#pending.requestId)
      if (status.pending !== undefined) this.#onPending(status.pending)
    }
    this.#onPersonTyping(status.person_typing ?? false)
    if (status.size !== undefined) this.#onResized(status.size)
    this.#running ||= status.state === 'running'
    if (status.ended !== undefined) this.#finish(status.ended)
    this.#notify()
  }

  #onEvent(event: HostEvent): void {
    if (this.#state === 'ended' || this.#state === 'released') return
    switch (event.event) {
      case 'started':
        this.#onStatus(event.status)
        break
      case 'output':
        this.#onOutput(event.end_offset)
        break
      case 'activity':
        this.#onActivity(event.activity)
        break
      case 'pending':
        this.#onPending(event.pending)
        break
      case 'pending_cleared':
        this.#onPendingCleared(event.request_id)
        break
      case 'person_typing':
        this.#onPersonTyping(event.typing)
        break
      case 'pasted':
        void this.#onPasted(event.delivery_id)
        break
      case 'resized':
        this.#onResized(event)
        break
      case 'conversation':
        this.#onConversation(event.conversation_id)
        break
      case 'offers':
        this.#onOffers(event.offers)
        break
      case 'title':
        this.#onTitle(event.title)
        break
      case 'exit':
        this.#finish(event)
        break
    }
  }

  #onOutput(endOffset: number): void {
    if (endOffset <= this.#endOffset) return
    this.#endOffset = endOffset
    this.#events.tell({ type: 'output', endOffset })
  }

  #onActivity(activity: Activity): void {
    if (activity === this.#activity) return
    this.#activity = activity
    this.#events.tell({ type: 'activity', activity })
  }

  #onPending(pending: Pending): void {
    this.#pending = pending
    this.#events.tell({ type: 'pending', pending })
  }

  #onPendingCleared(requestId: string): void {
    if (this.#pending?.requestId === requestId) this.#pending = undefined
    this.#events.tell({ type: 'pending-cleared', requestId })
  }

  #onPersonTyping(typing: boolean): void {
    if (typing === this.#personTyping) return
    this.#personTyping = typing
    this.#events.tell({ type: 'person-typing', typing })
  }

  #onResized({ columns, rows }: TerminalSize): void {
    if (columns === this.#size?.columns && rows === this.#size.rows) return
    this.#size = { columns, rows }
    this.#events.tell({ type: 'resized', columns, rows })
  }

  #onConversation(conversationId: string): void {
    if (conversationId === this.#conversationId) return
    this.#conversationId = conversationId
    this.#events.tell({ type: 'conversation', conversationId })
  }

  #onOffers(offers: AgentOffers): void {
    this.#offers = offers
    this.#events.tell({ type: 'offers', offers })
  }

  #onTitle(title: string): void {
    if (title === this.#title) return
    this.#title = title
    this.#events.tell({ type: 'title', title })
  }

  /** G3. */
  #finish({ exit, end_offset, start_error }: ExitRecord): void {
    if (this.#exit !== undefined || this.#state === 'released') return
    if (this.#pending !== undefined) this.#onPendingCleared(this.#pending.requestId)
    this.#onOutput(end_offset)
    this.#exit = exit
    this.#startError = start_error
    this.#become('ended')
    if (this.#connection !== undefined) this.#dismiss(this.#connection)
    this.#events.tell({ type: 'exit', exit })
    this.#over.resolve(exit)
  }

  /** The end was read: the host need not wait for another supervisor. */
  #dismiss(connection: HostConnection): void {
    if (this.#state !== 'ended') {
      connection.close()
      return
    }
    void connection.request('bye', {}).then(
      () => connection.close(),
      () => connection.close(),
    )
  }

  // ---- the connection -------------------------------------------------------------------------------------------------

  #onLost(): void {
    if (this.#state !== 'connected') return
    this.#connection = undefined
    this.#become('connecting')
    void this.#reconnect()
  }

  /** G1. Ends with a connection, the end of the agent, or `release`. */
  async #reconnect(): Promise<void> {
    const { directory, clock } = this.#deps
    for (let pause = FIRST_PAUSE_MS; this.#state === 'connecting'; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      const found = findHost(directory)
      if (this.#killing) return
      if (found.state === 'ended') {
        sendHome(directory)
        return this.#finish(found.record)
      }
      if (found.state !== 'there') return this.#finish(await buryHost(this.#deps))
      try {
        return await this.connect(found.file.socket)
      } catch {
        await delay(clock, pause)
      }
    }
  }

  #become(state: 'connecting' | 'connected' | 'ended' | 'released'): void {
    this.#state = state
    this.#notify()
  }

  #notify(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    void this.#changed.promise.then(resolve)
    return promise.finally(() => signal.removeEventListener('abort', onAbort))
  }
}

const UNSEEN: DeliveryOutcome = {
  state: 'failed',
  code: 'unseen',
  message: 'its input line does not show what is typed: it was taken back',
}

async function typed(asked: Promise<TypingReply | undefined>): Promise<void> {
  assertTyped(await replyTo(asked))
}

function replyTo(asked: Promise<TypingReply | undefined>): Promise<TypingReply | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof HostRefused && error.code === 'unsupported')
      throw new TypingRefused('unsupported', 'the host of this agent is of an earlier version: restart the session')
    if (error instanceof ConnectionLost) throw new TypingRefused('closed', error.message)
    throw error
  })
}

function assertTyped(reply: TypingReply | undefined): void {
  if (reply?.typed === true) return
  throw new TypingRefused(reply?.code ?? 'closed', reply?.message ?? 'there is no terminal to type into')
}

/** What a start comes to whose agent has ended before it was seen to run. */
export function launchFailure(exit: Exit, startError: ExitRecord['start_error']): LaunchError {
  const { code, message } = startError ?? { code: 'exited', message: exit.message ?? 'it has ended' }
  return new LaunchError(code, message, exit)
}

/** The end of an agent whose host died without a record: kills what it left (RT5). */
export async function buryHost({ identity, directory, clock }: HostedDeps): Promise<ExitRecord> {
  const survivors = await killTree({ token: identity.token }, clock)
  clearRun(directory)
  const left = survivors.length === 0 ? '' : `; these processes could not be killed: ${survivors.join(', ')}`
  const message = `its host died${left}`
  return recordOf(directory, { code: undefined, signal: undefined, reason: 'host_lost', at: clock.now(), message })
}

const recordOf = (directory: string, exit: Exit): ExitRecord => ({ exit, end_offset: endOffsetSync(directory) })
