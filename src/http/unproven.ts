/**
 * Connections that have shown no right yet. They cost a descriptor each, and there is no end to who may open some: without a
 * bound whoever may not come in takes the places of those who may.
 *
 * U1  Of those that nobody has judged yet so many are kept, and of those that are known to be a stranger's a few: enough to tell
 *     them why. One more ends the oldest.
 * U2  A stranger's connection ends soon, whatever it says.
 * U3  Who is being served is not in here.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { descriptorLimit } from '../kernel/descriptors.ts'

const MAX_STRANGERS = 64
/** For one request, and its refusal. */
const STRANGER_MS = 1_000

export class Unproven {
  readonly #clock: Clock
  readonly #max: number
  readonly #open = new Set<Socket>()
  readonly #strangers = new Set<Socket>()

  constructor(clock: Clock, max = Math.min(1_000, Math.max(16, Math.floor(descriptorLimit() / 8)))) {
    this.#clock = clock
    this.#max = max
  }

  /** A connection was opened, or has been served and showed nothing. */
  add(socket: Socket): void {
    if (socket.destroyed || this.#strangers.has(socket)) return
    this.#open.add(socket)
    endOldest(this.#open, this.#max)
  }

  /** It is a stranger's: nothing that it asks for will be done. */
  judged(socket: Socket): void {
    this.#open.delete(socket)
    this.#strangers.add(socket)
    this.#clock.after(STRANGER_MS, () => socket.destroy())
    endOldest(this.#strangers, MAX_STRANGERS)
  }

  /** It showed a right, is being served, or is closed. */
  forget(socket: Socket): void {
    this.#open.delete(socket)
    if (socket.destroyed) this.#strangers.delete(socket)
  }
}

function endOldest(sockets: Set<Socket>, max: number): void {
  if (sockets.size <= max) return
  const [oldest] = sockets
  if (oldest === undefined) return
  sockets.delete(oldest)
  oldest.destroy()
}
