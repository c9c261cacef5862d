/**
 * Connections to processes of services.
 *
 * U1  A connection has one user at a time; what it says while it has none is of nobody, and ends it.
 * U2  A write that fails does not end the connection: what the process answered before it closed is still read (decision 178).
 * U3  Kept connections belong to the life of one process, and are closed soon: processes close theirs after some seconds too.
 */
import { Socket } from 'node:net'
import type { Clock } from '../../kernel/clock.ts'
import { contained } from '../../kernel/contained.ts'
import type { Listeners } from '../../kernel/peers/listeners.ts'
import type { Visit } from './services.ts'

const MAX_KEPT = 128
/** Node's servers close theirs after five. */
const KEEP_MS = 4_000

export interface UpstreamUser {
  connected(): void
  arrived(bytes: Buffer): void
  /** It takes more. */
  drained(): void
  /** It takes nothing any more, but may still answer. */
  deafened(): void
  /** It says no more: it has closed its side, or is gone. */
  ended(error: NodeJS.ErrnoException | undefined): void
  /** One of the others threw. */
  broke(error: unknown): void
}

type Written = (error?: Error | null) => void

/** A socket whose failed writes are no end of it (U2). */
class PatientSocket extends Socket {
  onDeaf: () => void = () => {}
  #isDeaf = false

  override _write(chunk: unknown, encoding: BufferEncoding, done: Written): void {
    if (this.#isDeaf) done()
    else super._write(chunk, encoding, this.#watched(done))
  }

  override _writev(chunks: { chunk: unknown; encoding: BufferEncoding }[], done: Written): void {
    if (this.#isDeaf) done()
    else super._writev?.(chunks, this.#watched(done))
  }

  #watched(done: Written): Written {
    return (error) => {
      if (error === null || error === undefined || !isClosedByPeer(error)) return done(error)
      this.#isDeaf = true
      done()
      this.onDeaf()
    }
  }
}

const isClosedByPeer = (error: NodeJS.ErrnoException): boolean => error.code === 'EPIPE' || error.code === 'ECONNRESET'

/** Somebody else listens where the service should. */
export class ForeignListener extends Error {
  override readonly name = 'ForeignListener'
}

export class Upstream {
  readonly socket: PatientSocket
  user: UpstreamUser | undefined
  /** Since when nobody uses it. */
  freeSince = 0
  /** Where it is kept. */
  kept: Upstream[] | undefined
  #isOver = false

  constructor(address: Visit['upstream'], user: UpstreamUser, listeners: Listeners) {
    this.user = user
    this.socket = new PatientSocket({ allowHalfOpen: true })
    this.socket.onDeaf = () => this.#tell((told) => told.deafened())
    this.socket.on('connect', () => {
      // Nothing has been sent yet, and whatever another user of the machine says is not read.
      const why = 'port' in address ? listeners.refusal(this.socket) : undefined
      if (why === undefined) this.#tell((told) => told.connected())
      else this.socket.destroy(new ForeignListener(why))
    })
    this.socket.on('data', (bytes: Buffer) => {
      if (this.user === undefined) this.destroy()
      else this.#tell((told) => told.arrived(bytes))
    })
    this.socket.on('drain', () => this.#tell((told) => told.drained()))
    this.socket.on('end', () => this.#end(undefined))
    this.socket.on('error', (error) => this.#end(error))
    this.socket.on('close', () => this.#end(undefined))
    if ('socketPath' in address) this.socket.connect({ path: address.socketPath })
    else this.socket.setNoDelay().connect({ host: address.host, port: address.port })
  }

  destroy(): void {
    this.#isOver = true
    const { kept } = this
    if (kept !== undefined) kept.splice(kept.indexOf(this), 1)
    this.kept = undefined
    this.socket.destroy()
  }

  /** Gives up the socket to who speaks another protocol over it. */
  takeOver(): PatientSocket {
    this.user = undefined
    this.#isOver = true
    for (const event of ['connect', 'data', 'drain', 'end', 'error', 'close']) this.socket.removeAllListeners(event)
    return this.socket
  }

  #end(error: NodeJS.ErrnoException | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.user === undefined) this.destroy()
    else this.#tell((told) => told.ended(error))
  }

  #tell(what: (user: UpstreamUser) => void): void {
    const { user } = this
    if (user === undefined) return
    contained(
      () => what(user),
      (error) => user.broke(error),
    )
  }
}

/** What is kept of the lives of processes. */
export class KeptUpstreams {
  readonly #clock: Clock
  readonly #lives = new WeakMap<object, Upstream[]>()
  /** Those that have any, the one that was used last at the end. */
  readonly #stocked = new Set<Upstream[]>()
  #sweeping = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  take(life: object, user: UpstreamUser): Upstream | undefined {
    const upstream = this.#lives.get(life)?.pop()
    if (upstream === undefined) return undefined
    upstream.kept = undefined
    upstream.user = user
    return upstream
  }

  give(life: object, upstream: Upstream): void {
    const kept = this.#lives.get(life) ?? this.#stock(life)
    upstream.user = undefined
    if (kept.length >= MAX_KEPT) {
      upstream.destroy()
      return
    }
    kept.push(upstream)
    this.#stocked.add(kept)
    upstream.kept = kept
    upstream.freeSince = this.#clock.monotonic()
    this.#sweepLater()
  }

  /** Its process is about to be ended. */
  drop(life: object): void {
    for (const upstream of [...(this.#lives.get(life) ?? [])]) upstream.destroy()
  }

  close(): void {
    for (const kept of this.#stocked) for (const upstream of [...kept]) upstream.destroy()
  }

  #stock(life: object): Upstream[] {
    const kept: Upstream[] = []
    this.#lives.set(life, kept)
    return kept
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#clock.after(KEEP_MS / 2, () => {
      this.#sweeping = false
      const before = this.#clock.monotonic() - KEEP_MS / 2
      for (const kept of this.#stocked) {
        for (const upstream of [...kept]) if (upstream.freeSince <= before) upstream.destroy()
        if (kept.length === 0) this.#stocked.delete(kept)
      }
      if (this.#stocked.size > 0) this.#sweepLater()
    })
  }
}
