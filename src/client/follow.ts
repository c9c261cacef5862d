/**
 * Server-sent event streams: read, watched, resumed.
 *
 * I1  The resume point moves past a frame only when its consumer has asked for the next one.
 * I2  A frame cut off by the end of a connection is never delivered.
 * I3  No connection is waited for longer than the watchdog without a byte.
 */
import { createParser } from 'eventsource-parser'
import type { OperationId } from '../contract/index.ts'
import { backoffMs } from './backoff.ts'
import { type Answer, type Client, type OperationRef, pathOf, routeOf } from './client.ts'
import { delay } from './clock.ts'
import { ApiProblem, DecodeError, Unreachable } from './problems.ts'

/** Three missed heartbeats. */
const IDLE_MS = 45_000

export interface Frame {
  /** The `event:` line; `message` where there is none. */
  readonly event: string
  /** The resume point after this frame; absent where the frame has none. */
  readonly id: string | undefined
  readonly data: string
}

export interface RetryNotice {
  /** For people: what happened. */
  readonly reason: string
  readonly delayMs: number
}

export interface FollowOptions {
  readonly params?: object
  readonly query?: object
  /** Resume point that came from a frame: sent as Last-Event-ID, which beats the query. */
  readonly lastEventId?: string | undefined
  readonly signal: AbortSignal
  /** False: end with the first connection. A failed set-up throws either way. */
  readonly reconnect?: boolean
  readonly onRetry?: (notice: RetryNotice) => void
  /** Asked on a 404 of a stream that had been open; true: keep trying (a city that restarts). */
  readonly mayReturn?: (problem: ApiProblem) => Promise<boolean>
}

/**
 * Frames of a stream operation, heartbeats left out, over as many connections as it takes. Ends only where `reconnect` is
 * false; throws what makes going on pointless: a refused set-up, an expired cursor, an undecodable stream, the signal.
 */
export async function* follow(
  client: Client,
  operation: OperationRef<OperationId>,
  options: FollowOptions,
): AsyncGenerator<Frame> {
  const { signal, reconnect = true } = options
  let cursor = options.lastEventId
  let failures = 0
  let opened = false
  for (;;) {
    let lost: Loss
    try {
      const connection = connect(client, operation, options, cursor)
      for await (const frame of connection) {
        opened = true
        if (frame === 'open') continue
        if (frame.event !== 'heartbeat') yield frame
        cursor = frame.id ?? cursor
        failures = 0
      }
      lost = { reason: 'the stream ended', retryAfterSec: undefined }
    } catch (error) {
      lost = await judge(error, opened, options)
    }
    signal.throwIfAborted()
    // Also after an orderly end: a server that starts again has another token, and maybe another port.
    client.lost()
    if (!reconnect) return
    const delayMs = backoffMs(failures, client.random(), lost.retryAfterSec)
    failures += 1
    options.onRetry?.({ reason: lost.reason, delayMs })
    await delay(client.clock, delayMs, signal)
  }
}

interface Loss {
  readonly reason: string
  readonly retryAfterSec: number | undefined
}

const RETRIED = [408, 425, 429, 500, 502, 503, 504]
/** At set-up only what says "come again" is waited for; everything else is the caller's to see at once (spec §6). */
const RETRIED_AT_SETUP = [429, 502, 503, 504]

/** Why a connection is gone, where it makes sense to try again; throws where it does not. */
async function judge(error: unknown, opened: boolean, options: FollowOptions): Promise<Loss> {
  if (options.reconnect === false && !(opened && error instanceof Unreachable)) throw error
  if (error instanceof Unreachable) {
    if (!opened) throw error
    return { reason: error.reason, retryAfterSec: undefined }
  }
  if (!(error instanceof ApiProblem)) throw error
  const statuses = opened ? RETRIED : RETRIED_AT_SETUP
  const noProviders = !opened && error.code === 'no-event-providers'
  const again = statuses.includes(error.status) ? !noProviders : await isWindow(error, opened, options)
  if (!again) throw error
  return { reason: `HTTP ${error.status}: ${error.detail}`, retryAfterSec: error.retryAfterSec }
}

async function isWindow(problem: ApiProblem, opened: boolean, options: FollowOptions): Promise<boolean> {
  return opened && problem.status === 404 && options.mayReturn !== undefined && (await options.mayReturn(problem))
}

/** One connection: 'open' once its headers are there, then its frames. */
async function* connect(
  client: Client,
  operation: OperationRef<OperationId>,
  options: FollowOptions,
  cursor: string | undefined,
): AsyncGenerator<Frame | 'open'> {
  using watchdog = watch(client, options.signal)
  try {
    const response = await client.send({
      method: 'GET',
      path: pathOf(routeOf(operation).path, options.params ?? {}, startOf(options.query, cursor)),
      headers: { accept: 'text/event-stream', ...(cursor === undefined ? {} : { 'last-event-id': cursor }) },
      signal: watchdog.signal,
    })
    if (!response.ok) throw new ApiProblem(response.status, response.headers, await response.text())
    yield 'open'
    yield* readFrames(requireStream(response), watchdog)
  } catch (thrown) {
    options.signal.throwIfAborted()
    const error: unknown = watchdog.signal.aborted ? watchdog.signal.reason : thrown
    if (error instanceof ApiProblem || error instanceof DecodeError || error instanceof Unreachable) throw error
    throw new Unreachable(client.baseUrl, error)
  } finally {
    watchdog.abort()
  }
}

/** The cursor is sent once: many cities make it long, and twice it may be more than a server or proxy takes of headers. */
function startOf(query: object = {}, cursor: string | undefined): object {
  if (cursor === undefined) return query
  return Object.fromEntries(Object.entries(query).filter(([name]) => !name.startsWith('after_')))
}

function requireStream(response: Answer): ReadableStream<Uint8Array> {
  const mediaType = response.headers.get('content-type') ?? 'no media type'
  if (mediaType.startsWith('text/event-stream') && response.body !== null) return response.body
  throw new DecodeError(`expected an event stream, got ${mediaType}`)
}

interface Watchdog extends Disposable {
  readonly signal: AbortSignal
  /** From now on something must come. */
  arm(): void
  disarm(): void
  abort(): void
}

/** Aborts the connection with the caller's signal, or when nothing came for too long (I3); armed from the start. */
function watch(client: Client, parent: AbortSignal): Watchdog {
  const controller = new AbortController()
  const onAbort = () => controller.abort(parent.reason)
  const onIdle = () =>
    controller.abort(new Unreachable(client.baseUrl, new Error(`nothing received for ${IDLE_MS / 1000} s`)))
  if (parent.aborted) onAbort()
  parent.addEventListener('abort', onAbort, { once: true })
  let cancel = client.clock.after(IDLE_MS, onIdle)
  return {
    signal: controller.signal,
    arm() {
      cancel()
      cancel = client.clock.after(IDLE_MS, onIdle)
    },
    disarm: () => cancel(),
    abort: () => controller.abort(),
    [Symbol.dispose]() {
      cancel()
      parent.removeEventListener('abort', onAbort)
    },
  }
}

/** Complete frames of a byte stream (I2). A chunk may hold none, one, or a thousand of them. */
async function* readFrames(body: ReadableStream<Uint8Array>, watchdog: Watchdog): AsyncGenerator<Frame> {
  let complete: Frame[] = []
  const parser = createParser({
    onEvent: ({ event, id, data }) =>
      complete.push({ event: event ?? 'message', id: id === '' ? undefined : id, data }),
  })
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const reader = body.getReader()
  for (;;) {
    watchdog.arm()
    const { done, value } = await reader.read()
    // A consumer that takes its time is not the server's silence.
    watchdog.disarm()
    if (done) return
    parser.feed(decode(decoder, value))
    const frames = complete
    complete = []
    yield* frames
  }
}

function decode(decoder: TextDecoder, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: true })
  } catch {
    throw new DecodeError('the stream is not UTF-8')
  }
}
