/** How many streams may be open: in all, and of one other machine, so that no single one takes them all. */
import { problem } from '../kernel/problem.ts'

const MAX_STREAMS = 10_000
const MAX_OF_ADDRESS = 1_000

/** Everybody on this machine has the same address: they share the whole. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

export class StreamSlots {
  readonly #max: number
  readonly #maxOfAddress: number
  readonly #ofAddress = new Map<string, number>()
  #taken = 0

  constructor(max = MAX_STREAMS, maxOfAddress = MAX_OF_ADDRESS) {
    this.#max = max
    this.#maxOfAddress = maxOfAddress
  }

  get taken(): number {
    return this.#taken
  }

  /** Call the answer once when the stream is over. Refuses with `too-many-streams`. */
  take(address: string): () => void {
    if (this.#taken >= this.#max) throw tooMany(`${this.#max} streams are open`)
    const counted = !LOOPBACK.test(address)
    const before = this.#ofAddress.get(address) ?? 0
    if (counted && before >= this.#maxOfAddress) throw tooMany(`${this.#maxOfAddress} streams of ${address} are open`)
    this.#taken++
    if (counted) this.#ofAddress.set(address, before + 1)
    return () => {
      this.#taken--
      if (counted) this.#giveBack(address)
    }
  }

  #giveBack(address: string): void {
    const left = (this.#ofAddress.get(address) ?? 0) - 1
    if (left > 0) this.#ofAddress.set(address, left)
    else this.#ofAddress.delete(address)
  }
}

const tooMany = (sentence: string) => problem('too-many-streams', sentence, { retryAfterSec: 5 })
