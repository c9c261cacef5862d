/**
 * An agent behind the Agent Client Protocol (decisions 59, 60, 73): JSON-RPC over its stdin and stdout.
 *
 * AC1  One turn at a time: a prompt is written only when the response to the one before is here. Idle means just that.
 * AC2  A delivery is `delivered` when its request is with the operating system, `uncertain` when that cannot be said any
 *      more, and `failed` only where not a byte of it was written.
 * AC3  After a cancel every permission request of the turn is answered `cancelled`, also those that come later.
 * AC4  The exit is told once and last, when what the agent left on its stdout is in the output.
 * AC5  Every wait has a deadline: the handshake, the turn before a delivery, a write, the output after the exit.
 */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import {
  type ClientConnection,
  client,
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from '@agentclientprotocol/sdk'
import { cut } from '../../contract/base/text.ts'
import { isoTime } from '../../kernel/clock.ts'
import {
  type ChildContext,
  ChildStartError,
  type HostedChild,
  type StartChild,
  tokensOf,
} from '../process/hosted-child.ts'
import type {
  Activity,
  AgentOffers,
  Answer,
  Delivery,
  DeliveryOutcome,
  Exit,
  LaunchSpec,
  Pending,
  SettingOutcome,
} from '../process/runtime.ts'
import { reasonOf } from './errors.ts'
import { type FileRequests, fileRequests } from './files.ts'
import { type Conversation, changeSetting, openConversation } from './handshake.ts'
import { type Json, objectOf, textOf } from './json.ts'
import { Permissions } from './permissions.ts'
import { contentOf } from './prompt.ts'
import { keepStderr, lastWordsOf, type StderrLog } from './stderr.ts'
import { KnownTools } from './tools.ts'
import { Meter } from './usage.ts'
import { first } from './waiting.ts'
import { openWire, type Wire } from './wire.ts'

const HANDSHAKE_MS = 30_000
/** How long a delivery waits for the turn before it. */
const BUSY_MS = 60_000
const WRITE_MS = 30_000
const CANCEL_MS = 5_000
/** How long a process that outlives the agent may keep its pipes, and with them its exit, back. */
const DRAIN_MS = 500
/** How long an agent that has closed its pipes has to end. */
const LEAVE_MS = 2_000
/** For an agent to set what it was asked to. */
const SETTING_MS = 8_000
const MAX_TITLE = 500
const MAX_NOTES_PER_TURN = 100

export const startAcpChild: StartChild = async (context) => {
  const agent = await spawned(context.spec)
  const child = new AcpChild(context, agent)
  if (agent.pid !== undefined) context.spawned(agent.pid)
  await child.open()
  return child
}

/** In a process group of its own, so that one signal reaches what it starts. */
async function spawned({ command, args, env, workDir }: LaunchSpec): Promise<ChildProcessWithoutNullStreams> {
  try {
    const agent = spawn(command, args, { cwd: workDir, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    await new Promise((resolve, reject) => agent.once('spawn', resolve).on('error', reject))
    return agent
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    const why = error instanceof Error ? error.message : String(error)
    throw new ChildStartError(missing ? 'not_found' : 'spawn_failed', `could not start ${command}: ${why}`)
  }
}

interface Turn {
  /** Whether the agent answered; false where it is gone. */
  readonly ended: PromiseWithResolvers<boolean>
  cancelled: boolean
}

type Ending = Pick<Exit, 'code' | 'signal'>

class AcpChild implements HostedChild {
  readonly #context: ChildContext
  readonly #agent: ChildProcessWithoutNullStreams
  readonly #wire: Wire
  readonly #connection: ClientConnection
  readonly #stderr: StderrLog
  readonly #files: FileRequests
  readonly #permissions: Permissions
  readonly #tools = new KnownTools()
  readonly #meter = new Meter()
  readonly #exited = Promise.withResolvers<Ending>()
  readonly #drained = Promise.withResolvers<void>()
  #fileQueue: Promise<unknown> = Promise.resolve()
  #conversation: Conversation | undefined
  #activity: Activity = 'unknown'
  #turn: Turn | undefined
  #cancelling: Promise<void> | undefined
  #notes = 0
  #finished = false

  constructor(context: ChildContext, agent: ChildProcessWithoutNullStreams) {
    const { spec } = context
    this.#context = context
    this.#agent = agent
    this.#files = fileRequests(spec.workDir)
    this.#stderr = keepStderr(agent.stderr, spec.directory, tokensOf(spec))
    this.#permissions = new Permissions(String(spec.identity.generation), {
      pending: (pending) => context.emit({ type: 'pending', pending }),
      cleared: (requestId) => context.emit({ type: 'pending-cleared', requestId }),
      record: (permission) => this.#record({ permission }),
    })
    this.#wire = openWire(agent.stdin, agent.stdout, {
      line: (bytes) => context.output(bytes),
      note: (text) => this.#note(text),
      update: (update) => this.#learn(update),
      broken: (message) => this.#broken(message),
      ended: () => this.#drained.resolve(),
    })
    agent.once('exit', (code, signal) => this.#exited.resolve({ code: code ?? undefined, signal: signal ?? undefined }))
    this.#connection = this.#app().connect(this.#wire.stream)
  }

  get activity(): Activity {
    return this.#activity
  }

  get pending(): Pending | undefined {
    return this.#permissions.pending
  }

  get conversationId(): string | undefined {
    return this.#conversation?.id
  }

  get offers(): AgentOffers | undefined {
    return this.#conversation?.offers.current
  }

  /** The handshake; afterwards the child tells its exit by itself. */
  async open(): Promise<void> {
    const { acp, workDir, env } = this.#context.spec
    const opening = openConversation(
      this.#connection.agent,
      { ...acp, workDir, env },
      { replay: (phase) => this.#record({ replay: phase }), note: (text) => this.#note(text) },
    )
    const timeoutMs = acp?.handshakeTimeoutMs ?? HANDSHAKE_MS
    const result = await first(this.#context.clock, timeoutMs, undefined, opening)
    if (result === 'done') {
      const conversation = await opening
      this.#conversation = conversation
      this.#context.emit({ type: 'conversation', conversationId: conversation.id })
      this.#context.emit({ type: 'offers', offers: conversation.offers.current })
      this.#become('idle')
      this.#watchExit()
      return
    }
    const why = result === 'late' ? `no handshake within ${timeoutMs} ms` : await failureOf(opening)
    throw await this.#startError(why)
  }

  async #startError(why: string): Promise<ChildStartError> {
    // Its pipes close before its exit is known.
    const exited = this.#connection.signal.aborted && (await this.#within(LEAVE_MS, this.#exited.promise))
    const lastWords = lastWordsOf(this.#stderr.tail(), this.#wire.unread(), tokensOf(this.#context.spec))
    this.#finished = true
    this.#connection.close()
    if (!exited)
      return new ChildStartError('handshake_failed', `the agent did not open a conversation: ${why}${lastWords}`)
    const { code, signal } = await this.#exited.promise
    const how = signal === undefined ? `with code ${code}` : `by ${signal}`
    return new ChildStartError('exited', `the agent ended ${how} before it opened a conversation${lastWords}`)
  }

  /** A turn that goes on takes no message: whoever is killed meanwhile was told nothing. */
  async untilFree(signal: AbortSignal): Promise<DeliveryOutcome | undefined> {
    if (this.#turn === undefined) return undefined
    const waited = await first(this.#context.clock, BUSY_MS, signal, this.#turn.ended.promise)
    if (waited !== 'late') return undefined
    return { state: 'failed', code: 'timeout', message: 'the turn before it has not ended' }
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<DeliveryOutcome> {
    const { clock } = this.#context
    if (signal.aborted || this.#closed) {
      return { state: 'failed', code: 'closed', message: 'the agent takes no messages any more' }
    }
    const content = await contentOf(delivery).catch((error: unknown) => reasonOf(error))
    if (typeof content === 'string')
      return { state: 'failed', code: 'refused', message: `what is attached cannot be read: ${content}` }
    const { turn, written } = this.#prompt(delivery, content)
    const result = await first(clock, WRITE_MS, signal, Promise.race([written, answered(turn)]))
    if (result === 'done') return { state: 'delivered' }
    return { state: 'uncertain', message: `the message may not have reached the agent (${result})` }
  }

  async interrupt(): Promise<boolean> {
    const turn = this.#turn
    if (turn === undefined || this.#conversation === undefined) return true
    turn.cancelled = true
    this.#cancelling ??= this.#connection.agent
      .notify(methods.agent.session.cancel, { sessionId: this.#conversation.id })
      .catch(() => {}) // Its connection is lost, so its turn ends by that.
      .finally(() => (this.#cancelling = undefined))
    this.#permissions.cancelAll()
    await this.#within(CANCEL_MS, this.#cancelling)
    return true
  }

  async answer(requestId: string, answer: Answer): Promise<boolean> {
    return this.#permissions.answer(requestId, answer)
  }

  async set(key: string, value: string): Promise<SettingOutcome> {
    const conversation = this.#conversation
    if (conversation === undefined || this.#closed) return { state: 'unsupported' }
    const setting = changeSetting(this.#connection.agent, conversation.id, conversation.offers, key, value)
    const result = await first(this.#context.clock, SETTING_MS, undefined, setting)
    if (result === 'late') return { state: 'refused', message: `the agent did not answer within ${SETTING_MS} ms` }
    if (result !== 'done') return { state: 'refused', message: await failureOf(setting) }
    this.#tellOffers()
    return setting
  }

  terminate(): void {
    const { pid } = this.#agent
    if (pid === undefined) return
    try {
      process.kill(-pid, 'SIGTERM')
    } catch {
      // ESRCH: it has ended.
    }
    this.#agent.stdin.end()
  }

  get #closed(): boolean {
    return this.#finished || this.#connection.signal.aborted
  }

  #app() {
    const { requestPermission } = methods.client.session
    const { readTextFile, writeTextFile } = methods.client.fs
    return client({ name: 'svcctl' })
      .onRequest(requestPermission, ({ params, signal }) => this.#permission(params, signal))
      .onRequest(readTextFile, ({ params: { path, line, limit } }) =>
        this.#inTurn(async () => ({ content: await this.#files.read(path, line, limit) })),
      )
      .onRequest(writeTextFile, ({ params: { path, content } }) =>
        this.#inTurn(async () => {
          await this.#files.write(path, content)
          return {}
        }),
      )
  }

  /** File requests one after the other: in the order of the agent, and with the memory of one. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#fileQueue.then(work)
    this.#fileQueue = result.catch(() => {})
    return result
  }

  async #permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse> {
    if (this.#turn?.cancelled || this.#closed) return { outcome: { outcome: 'cancelled' } }
    const known = this.#tools.get(request.toolCall.toolCallId)
    const gone = AbortSignal.any([signal, this.#connection.signal])
    return { outcome: await this.#permissions.ask(request, known, gone) }
  }

  #prompt(
    { id, text, attachments }: Delivery,
    prompt: Awaited<ReturnType<typeof contentOf>>,
  ): { readonly turn: Turn; readonly written: Promise<void> } {
    const turn: Turn = { ended: Promise.withResolvers(), cancelled: false }
    this.#turn = turn
    this.#notes = 0
    this.#tools.clear()
    this.#meter.begin()
    const shown = attachments?.map(({ name, mimeType, size }) => ({ name, mime_type: mimeType, size }))
    this.#record({ prompt: text, delivery_id: id, ...(shown && { attachments: shown }), at: this.#now() })
    this.#become('in-turn')
    const written = this.#wire.nextWritten(methods.agent.session.prompt)
    written.catch(() => {})
    const sessionId = this.#conversation?.id ?? ''
    void this.#connection.agent
      .request(methods.agent.session.prompt, { sessionId, prompt })
      .then(
        (response) => this.#stop(objectOf(response)),
        (error: unknown) => ({ stop_reason: 'error', message: reasonOf(error) }),
      )
      .then((stop) => this.#endTurn(turn, stop))
    return { turn, written }
  }

  /** The end of a turn as the transcript tells it; agents answer what they like. */
  #stop(answer: Json): Json {
    return { stop_reason: textOf(answer['stopReason']) ?? 'unknown', ...this.#meter.end(answer) }
  }

  /** AW4: what an update says beyond the transcript. Those of an agent newer than us say nothing here, and do no harm. */
  #learn(update: Json): void {
    this.#tools.learn(update)
    this.#meter.learn(update)
    if (this.#conversation?.offers.learn(update)) this.#tellOffers()
    const title = update['sessionUpdate'] === 'session_info_update' ? textOf(update['title'])?.trim() : undefined
    if (title) this.#context.emit({ type: 'title', title: cut(title, MAX_TITLE) })
  }

  #tellOffers(): void {
    if (this.#conversation !== undefined && !this.#finished)
      this.#context.emit({ type: 'offers', offers: this.#conversation.offers.current })
  }

  #endTurn(turn: Turn, stop: Json): void {
    if (this.#turn !== turn) return
    this.#turn = undefined
    // A question of a turn that is over has nobody to hear the answer.
    this.#permissions.cancelAll()
    const answered = !this.#closed
    this.#record({ ...(answered ? stop : { stop_reason: 'exited' }), at: this.#now() })
    turn.ended.resolve(answered)
    if (answered) this.#become('idle')
  }

  #become(activity: Activity): void {
    if (this.#activity === activity || this.#finished) return
    this.#activity = activity
    this.#context.emit({ type: 'activity', activity })
  }

  #watchExit(): void {
    void this.#exited.promise.then(async (ending) => {
      await this.#within(DRAIN_MS, this.#drained.promise)
      this.#finish(ending)
    })
    void this.#connection.closed.then(async () => {
      // It has closed a pipe. Where it does not end now, nothing can reach it any more.
      if (!(await this.#within(LEAVE_MS, this.#exited.promise)))
        this.#broken('it closed its input or output and ran on')
    })
  }

  #broken(message: string): void {
    const whole = `the agent broke the protocol: ${message}`
    this.#note(whole)
    // During the handshake the lost connection fails it, and the exit is told by that.
    if (this.#conversation === undefined) this.#connection.close(new Error(message))
    else this.#finish({ code: undefined, signal: undefined }, 'protocol_error', whole)
  }

  #finish(ending: Ending, reason?: Exit['reason'], message = this.#stderr.tail()): void {
    if (this.#finished) return
    this.#connection.close()
    if (this.#turn !== undefined) this.#endTurn(this.#turn, {})
    this.#permissions.cancelAll()
    this.#finished = true
    for (const pipe of [this.#agent.stdin, this.#agent.stdout, this.#agent.stderr]) pipe.destroy()
    const said = message === '' ? {} : { message }
    this.#context.emit({ type: 'exit', ...ending, ...(reason !== undefined && { reason }), ...said })
  }

  #note(note: string): void {
    if (++this.#notes <= MAX_NOTES_PER_TURN) this.#record({ note })
  }

  #record(svc: Readonly<Record<string, unknown>>): void {
    if (!this.#finished) this.#context.output(Buffer.from(`${JSON.stringify({ svc })}\n`))
  }

  #now(): string {
    return isoTime(this.#context.clock.now())
  }

  async #within(ms: number, work: Promise<unknown>): Promise<boolean> {
    return (await first(this.#context.clock, ms, undefined, work)) === 'done'
  }
}

/** An answered prompt was written, whatever the callback of the write says. */
async function answered(turn: Turn): Promise<void> {
  if (!(await turn.ended.promise)) throw new Error('the agent is gone')
}

const failureOf = (failed: Promise<unknown>) => failed.then(() => '', reasonOf)
