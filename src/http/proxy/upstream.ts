/**
 * Connections to processes of services.
 *
 * U1  A connection has one user at a time; what it says while it has none is of nobody, and ends it.
 * U2  A write that fails does not end the connection: what the process answered before it closed is still read (decision 178).
 * U3  Kept connections belong to the life of one process, and are closed soon: processes close theirs after some seconds too.
 */
import { Socket } from 'node:net'
import type { Clock } from '../../kernel/clock.ts'
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

export class Upstream {
  readonly socket: PatientSocket
  user: UpstreamUser | undefined
  /** Since when nobody uses it. */
  freeSince = 0
  /** Where it is kept. */
  kept: Set<Upstream> | undefined
  #isOver = false

  constructor(address: Visit['upstream'], user: UpstreamUser) {
    this.user = user
    this.socket = new PatientSocket({ allowHalfOpen: true })
    this.socket.onDeaf = () => this.user?.deafened()
    this.socket.on('connect', () => this.user?.connected())
    this.socket.on('data', (bytes: Buffer) => {
      if (this.user === undefined) this.destroy()
      else this.user.arrived(bytes)
    })
    this.socket.on('drain', () => this.user?.drained())
    this.socket.on('end', () => this.#end(undefined))
    this.socket.on('error', (error) => this.#end(error))
    this.socket.on('close', () => this.#end(undefined))
    if ('socketPath' in address) this.socket.connect({ path: address.socketPath })
    else this.socket.setNoDelay().connect({ host: address.host, port: address.port })
  }

  destroy(): void {
    this.#isOver = true
    this.kept?.delete(this)
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
    else this.user.ended(error)
  }
}

/** What is kept of the lives of processes. */
export class KeptUpstreams {
  readonly #clock: Clock
  readonly #lives = new WeakMap<object, Set<Upstream>>()
  /** Those that have any. */
  readonly #stocked = new Set<Set<Upstream>>()
  #sweeping = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  take(life: object, user: UpstreamUser): Upstream | undefined {
    const kept = this.#lives.get(life)
    if (kept === undefined) return undefined
    for (const upstream of kept) {
      kept.delete(upstream)
      upstream.kept = undefined
      upstream.user = user
      return upstream
    }
    return undefined
  }

  give(life: object, upstream: Upstream): void {
    const kept = this.#lives.get(life) ?? new Set()
    upstream.user = undefined
    if (kept.size >= MAX_KEPT) {
      upstream.destroy()
      return
    }
    this.#lives.set(life, kept.add(upstream))
    this.#stocked.add(kept)
    upstream.kept = kept
    upstream.freeSince = this.#clock.monotonic()
    this.#sweepLater()
  }

  /** Its process is about to be ended. */
  drop(life: object): void {
    for (const upstream of this.#lives.get(life) ?? []) upstream.destroy()
  }

  close(): void {
    for (const kept of this.#stocked) for (const upstream of kept) upstream.destroy()
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#clock.after(KEEP_MS / 2, () => {
      this.#sweeping = false
      const before = this.#clock.monotonic() - KEEP_MS / 2
      for (const kept of this.#stocked) {
        for (const upstream of kept) if (upstream.freeSince <= before) upstream.destroy()
        if (kept.size === 0) this.#stocked.delete(kept)
      }
      if (this.#stocked.size > 0) this.#sweepLater()
    })
  }
}
