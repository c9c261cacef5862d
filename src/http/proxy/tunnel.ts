/**
 * Two connections that speak another protocol with each other: what comes from one goes to the other, no faster than that
 * takes it. Where one closes its side, so does the other; where one is gone, or nothing moves for long, both are.
 */
import type { Socket } from 'node:net'

/** Who has closed its side may be gone altogether, which nobody sees who has nothing to say to it. */
const HALF_OPEN_IDLE_MS = 30_000

export class Tunnel {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #over: () => void
  #open = 2
  #moved = 0
  #bytes = 0

  /** `over` is told once both are closed. */
  constructor(client: Socket, upstream: Socket, over: () => void) {
    this.#client = client
    this.#upstream = upstream
    this.#over = over
    this.#join(client, upstream)
    this.#join(upstream, client)
  }

  /** Cuts it where nothing has moved for that long. */
  check(now: number, idleMs: number): void {
    const bytes = this.#client.bytesRead + this.#upstream.bytesRead
    if (bytes !== this.#bytes || this.#moved === 0) {
      this.#bytes = bytes
      this.#moved = now
      return
    }
    const isHalfOpen = this.#client.readableEnded || this.#upstream.readableEnded
    if (now - this.#moved >= (isHalfOpen ? Math.min(idleMs, HALF_OPEN_IDLE_MS) : idleMs)) this.cut()
  }

  cut(): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }

  #join(from: Socket, to: Socket): void {
    from.pipe(to)
    from.on('error', () => this.cut())
    from.on('close', () => {
      // Before its end: what the other would send has nobody to take it.
      if (!from.readableEnded || !from.writableFinished) to.destroy()
      this.#open--
      if (this.#open === 0) this.#over()
    })
  }
}
