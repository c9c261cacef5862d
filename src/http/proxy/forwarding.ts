/**
 * One request on its way to a service, and the reply on its way back.
 *
 * F1  A client gets the reply, a Problem, or a connection that is cut: a reply that was cut never looks whole.
 * F2  Either side's end is the other's, at once; bytes wait for who takes them, and nowhere in between.
 * F3  Only a request without a body that changes nothing uses a kept connection, and is sent once more, on a fresh one, where
 *     that one was closed before it said a word (decision 179).
 * F4  The visit is left once, when nothing of it is left at the process.
 * F5  An exception in one of its events ends this exchange and nothing else.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { formatDuration } from '../../contract/base/durations.ts'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { contained } from '../../kernel/contained.ts'
import type { Listeners } from '../../kernel/peers/listeners.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import type { Member } from './crowd.ts'
import { type Framing, passingTrailers, replyHeaders, requestHead } from './headers.ts'
import { BadReply, type ReplyHead, ReplyReader, type ReplySink } from './reply-reader.ts'
import { type ProxiedService, type Visit, whyCut } from './services.ts'
import { Tunnel } from './tunnel.ts'
import { Upload } from './upload.ts'
import { ForeignListener, type KeptUpstreams, Upstream, type UpstreamUser } from './upstream.ts'

/** Between looks at a socket whose queue of connections is full. */
const QUEUE_RETRY_MS = 10
/** How long what a client still sends is thrown away once it has its answer, so that it sees that and not a reset. */
const DISCARD_MS = 2_000
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The side that asks. */
export interface Asker {
  readonly request: IncomingMessage
  readonly answer: ServerResponse
  /** Begins the answer with the head of the reply, and what every answer of ours has. */
  begin(head: ReplyHead, headers: string[]): void
  /** The end of the body, where its length was said. */
  finish(body: Buffer): void
  /** What is answered in this turn may leave together. */
  expect(): void
  refuse(reason: Problem): void
  /** Something of ours threw: the answer is cut. */
  broke(error: unknown): void
  /** It sends its body once it is told to. */
  waitsToSend(): boolean
  letSend(): void
  /** It does not wait. */
  sends(): void
  /** Where it asks for another protocol: its connection, and what of that has come already. */
  readonly upgrade: Upgrade | undefined
  /** Headers of a 101 that are ours. */
  ownHeaders(): readonly string[]
}

export interface Upgrade {
  readonly socket: Socket
  /** Gives up the connection to the other protocol. */
  take(): Buffer
}

export interface ForwardingDeps {
  readonly clock: Clock
  readonly kept: KeptUpstreams
  readonly listeners: Listeners
  /** It is over. */
  over(forwarding: Forwarding): void
}

export interface Asked {
  readonly service: ProxiedService
  readonly visit: Visit
  readonly caller: Caller
  /** Whose share of all requests it takes. */
  readonly share: string | undefined
  /** The service was `direct` when it was asked, so that nothing was looked at of who asks. */
  readonly isForEverybody: boolean
  readonly framing: Framing
  readonly target: string
  readonly authority: string | undefined
  readonly added: string
  isOurs(authorization: string): boolean
}

export class Forwarding implements UpstreamUser, ReplySink, Member {
  place = -1
  readonly #asker: Asker
  readonly #asked: Asked
  readonly #deps: ForwardingDeps
  readonly #method: string
  readonly #mayKeep: boolean
  #reader: ReplyReader
  #upstream: Upstream
  #upload: Upload | undefined
  #tunnel: Tunnel | undefined
  #isReused = false
  #isConnected = false
  #isDeaf = false
  #hasHeard = false
  #head: ReplyHead | undefined
  #moved: number
  #isOver = false
  /** The end of the answer is on its way. */
  #isFinished = false
  #cancelRetry: (() => void) | undefined

  constructor(asker: Asker, asked: Asked, deps: ForwardingDeps) {
    this.#asker = asker
    this.#asked = asked
    this.#deps = deps
    this.#method = asker.request.method ?? ''
    this.#mayKeep = asked.framing.kind === 'none' && IDEMPOTENT.has(this.#method) && asker.upgrade === undefined
    this.#reader = new ReplyReader(this.#method, this)
    this.#moved = deps.clock.monotonic()
    const kept = this.#mayKeep ? deps.kept.take(asked.visit.life, this) : undefined
    this.#isReused = kept !== undefined
    this.#upstream = kept ?? new Upstream(asked.visit.upstream, this, deps.listeners)
    if (kept !== undefined) this.#contained(() => this.connected())
  }

  get caller(): Caller {
    return this.#asked.caller
  }

  get share(): string | undefined {
    return this.#asked.share
  }

  get visit(): Visit {
    return this.#asked.visit
  }

  /** It goes on for as long as both sides like: a stream of events, or another protocol. */
  get isEndless(): boolean {
    return this.#tunnel !== undefined || (this.#head !== undefined && isEventStream(this.#head))
  }

  connected(): void {
    const { request, upgrade } = this.#asker
    const { framing, target, authority, added, isOurs } = this.#asked
    this.#isConnected = true
    const { socket } = this.#upstream
    const hasBody = framing.kind !== 'none'
    const { rawHeaders, httpVersionMinor } = request
    const head = requestHead(
      { method: this.#method, rawHeaders, httpVersionMinor },
      {
        target,
        authority,
        framing,
        added,
        isOurs,
        upgrades: upgrade !== undefined,
        keepAlive: this.#mayKeep,
      },
    )
    // A small body that is here already leaves together with the head.
    if (hasBody) socket.cork()
    socket.write(head, 'latin1')
    if (!hasBody) return
    this.#upload = new Upload(request, framing, this.#upstream, () => this.#sent())
    process.nextTick(() => process.nextTick(() => socket.uncork()))
  }

  arrived(bytes: Buffer): void {
    this.#note()
    this.#hasHeard = true
    this.#asker.expect()
    const hadHead = this.#head !== undefined
    try {
      this.#reader.read(bytes)
    } catch (error) {
      this.#fail(this.#badReply(error))
      return
    }
    // A stream that has said nothing yet is open all the same. Not by `flushHeaders`, which writes them as UTF-8.
    if (!hadHead && this.#head !== undefined && !this.#isOver) this.#asker.answer.write('', 'latin1')
  }

  drained(): void {
    this.#note()
    this.#upload?.resume()
  }

  deafened(): void {
    this.#isDeaf = true
    this.#upload?.stop()
    this.#note()
  }

  ended(error: NodeJS.ErrnoException | undefined): void {
    if (this.#isOver) return
    const { service, visit } = this.#asked
    // Nothing was sent yet: its queue is full, because very many come at once.
    if (!this.#isConnected && error?.code === 'EAGAIN') {
      this.#upstream.destroy()
      this.#cancelRetry = this.#deps.clock.after(QUEUE_RETRY_MS, () => this.#contained(() => this.#connect()))
      return
    }
    if (this.#isReused && !this.#hasHeard) {
      this.#isReused = false
      this.#upstream.destroy()
      this.#connect()
      return
    }
    if (error === undefined && this.#reader.close()) return
    const what = this.#isConnected
      ? this.#hasHeard
        ? 'closed the connection in the middle of its answer'
        : 'closed the connection without an answer'
      : `cannot be reached${error instanceof ForeignListener ? `: ${error.message}` : ''}`
    visit.cut.aborted
      ? this.#fail(whyCut(visit.cut))
      : this.#fail(problem('bad-gateway', `service ${service.name} ${what}`, { cause: error }))
  }

  informed({ status, headers }: ReplyHead): void {
    const { answer, request } = this.#asker
    if (request.httpVersionMinor === 0) return
    if (status === 100) this.#asker.letSend()
    else {
      const { direct, sandbox } = this.#asked.service
      const head: ReplyHead = { status, headers, message: '', minor: 1, body: 'none' }
      answer.writeInformation(status, replyHeaders(head, { direct, sandbox, switches: false, trailers: false }))
    }
  }

  begun(head: ReplyHead): void {
    const { answer, request } = this.#asker
    const { direct, sandbox } = this.#asked.service
    const trailers = head.body === 'chunked' && request.httpVersionMinor > 0
    this.#asker.begin(head, replyHeaders(head, { direct, sandbox, switches: false, trailers }))
    this.#head = head
    if (head.body !== 'none') answer.on('drain', this.#goOn)
  }

  data(chunk: Buffer, isLast: boolean): void {
    const { answer } = this.#asker
    if (!isLast || this.#endsBehindBody()) {
      if (!answer.write(chunk)) this.#upstream.socket.pause()
      return
    }
    this.#isFinished = true
    this.#asker.finish(chunk)
  }

  whole(trailers: readonly string[], isReusable: boolean): void {
    const { answer, request } = this.#asker
    const passing = request.httpVersionMinor === 0 ? [] : passingTrailers(trailers)
    if (passing.length > 0) answer.addTrailers(pairsOf(passing))
    if (this.#endsBehindBody()) endBehind(request, answer)
    else if (!this.#isFinished) answer.end()
    this.#finish()
    if (this.#upload !== undefined && !this.#upload.isWhole) this.#discardRest()
    if (!this.#mayKeep || !isReusable || this.#isDeaf || this.visit.cut.aborted) {
      this.#upstream.destroy()
      return
    }
    const { socket } = this.#upstream
    if (socket.isPaused()) socket.resume()
    this.#deps.kept.give(this.visit.life, this.#upstream)
  }

  switched(head: ReplyHead, rest: Buffer): void {
    const { upgrade } = this.#asker
    if (upgrade === undefined) throw new BadReply('it changes to another protocol, which nobody asked for')
    const { direct, sandbox } = this.#asked.service
    const fields = [
      ...replyHeaders(head, { direct, sandbox, switches: true, trailers: false }),
      ...this.#asker.ownHeaders(),
    ]
    let text = `HTTP/1.1 101 ${head.message}\r\n`
    for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
    const { socket } = upgrade
    const upstream = this.#upstream.takeOver()
    upstream.onDeaf = () => this.#tunnel?.cut()
    this.#tunnel = new Tunnel(socket, upstream, () => this.#finish())
    socket.write(`${text}\r\n`, 'latin1')
    if (rest.length > 0) socket.write(rest)
    const early = upgrade.take()
    if (early.length > 0) upstream.write(early)
  }

  /** The client is gone. */
  abandon(): void {
    if (this.#isOver || this.#tunnel !== undefined) return
    this.#finish()
    this.#upload?.stop()
    this.#upstream.destroy()
  }

  /** Its process is about to be ended, or nobody may have it any more. */
  cut(why: Problem): void {
    this.#contained(() => {
      if (this.#tunnel !== undefined) this.#tunnel.cut()
      else this.#fail(why)
    })
  }

  /** F5. */
  broke(error: unknown): void {
    this.#upload?.stop()
    this.#upstream.destroy()
    this.#tunnel?.cut()
    this.#asker.broke(error)
    this.#finish()
  }

  /** Ends it where it has taken too long, or its service is for others now. */
  check(now: number): void {
    this.#contained(() => this.#check(now))
  }

  #contained(work: () => void): void {
    contained(work, (error) => this.broke(error))
  }

  #check(now: number): void {
    const { service, isForEverybody } = this.#asked
    if (this.#isOver) return
    if (isForEverybody && !service.direct) {
      this.cut(problem('forbidden', `service ${service.name} is private now`))
      return
    }
    if (this.#tunnel !== undefined) {
      this.#tunnel.check(now, service.idleMs)
      return
    }
    const isSent = this.#upload === undefined || this.#upload.isWhole || this.#isDeaf || this.#asker.waitsToSend()
    const waitsForAnswer = this.#head === undefined && isSent
    const limit = waitsForAnswer ? service.firstByteMs : service.idleMs
    if (now - this.#moved < limit) return
    const what = waitsForAnswer ? 'did not begin to answer' : 'took and gave nothing'
    this.#fail(problem('gateway-timeout', `service ${service.name} ${what} for ${formatDuration(limit)}`))
  }

  #connect(): void {
    this.#isConnected = false
    this.#reader = new ReplyReader(this.#method, this)
    this.#upstream = new Upstream(this.#asked.visit.upstream, this, this.#deps.listeners)
  }

  #sent(): void {
    if (this.#asker.waitsToSend()) this.#asker.sends()
    this.#note()
  }

  #note(): void {
    this.#moved = this.#deps.clock.monotonic()
  }

  #badReply(error: unknown): Problem {
    const said = error instanceof BadReply ? error.message : 'it cannot be passed on'
    return problem('bad-gateway', `what service ${this.#asked.service.name} answers is not HTTP: ${said}`, {
      cause: error,
    })
  }

  #fail(why: Problem): void {
    if (this.#isOver) return
    this.#finish()
    this.#upload?.stop()
    this.#upstream.destroy()
    if (this.#head === undefined) {
      this.#asker.refuse(why)
      if (this.#upload !== undefined && !this.#upload.isWhole) this.#discardRest()
    } else cutShort(this.#asker.answer, this.#deps.clock)
  }

  #finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelRetry?.()
    this.visit.leave()
    this.#deps.over(this)
  }

  /** The connection ends with the answer, but what of the body still comes would reset it and take the answer along. */
  #endsBehindBody(): boolean {
    const { request, answer } = this.#asker
    const isWhole = this.#upload === undefined || this.#upload.isWhole || request.complete
    return !isWhole && !answer.shouldKeepAlive && !this.#asker.waitsToSend()
  }

  /** It was answered before all of its body had come. */
  #discardRest(): void {
    const { request } = this.#asker
    this.#upload?.stop()
    request.resume()
    this.#deps.clock.after(DISCARD_MS, () => {
      if (!request.complete) request.destroy()
    })
  }

  readonly #goOn = (): void => {
    if (this.#isOver) return
    this.#note()
    this.#upstream.socket.resume()
  }
}

const isEventStream = ({ headers }: ReplyHead): boolean =>
  headers.some(
    (name, i) =>
      i % 2 === 0 && name.toLowerCase() === 'content-type' && headers[i + 1]?.startsWith('text/event-stream'),
  )

function endBehind(request: IncomingMessage, answer: ServerResponse): void {
  const end = () => {
    request.off('end', end).off('close', end)
    answer.end()
  }
  request.on('end', end).on('close', end)
}

function pairsOf(fields: readonly string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < fields.length; i += 2) pairs.push([fields[i] ?? '', fields[i + 1] ?? ''])
  return pairs
}

/**
 * What has come leaves, and then nothing: the framing says that more was to come. That of HTTP/1.0 says nothing, so that only
 * a reset tells.
 */
function cutShort(answer: ServerResponse, clock: Clock): void {
  const { socket } = answer
  if (socket === null) {
    // Answers to requests before it are still to leave.
    if (!answer.destroyed) answer.once('socket', () => cutShort(answer, clock))
    return
  }
  if (answer.req.httpVersionMinor === 0) {
    socket.resetAndDestroy()
    return
  }
  // What was written in this turn is put together until its end.
  process.nextTick(() => socket.destroySoon())
  clock.after(DISCARD_MS, () => socket.destroy())
}
