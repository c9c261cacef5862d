/** How many streams may be open: in all, of one caller, and of one other machine, so that no single one takes them all. */
import { problem } from '../kernel/problem.ts'
import { Shares } from './shares.ts'

const MAX_STREAMS = 10_000
const MAX_OF_ADDRESS = 1_000
/** Of what there is in all, a caller who is not the owner has this part. */
const PART_OF_CALLER = 10

/** Everybody on this machine has the same address: they share the whole. */
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/

export class StreamSlots {
  readonly #max: number
  readonly #maxOfAddress: number
  readonly #ofAddress = new Map<string, number>()
  readonly #shares: Shares

  constructor(max = MAX_STREAMS, maxOfAddress = MAX_OF_ADDRESS) {
    this.#max = max
    this.#maxOfAddress = maxOfAddress
    this.#shares = new Shares(max)
  }

  get taken(): number {
    return this.#shares.taken
  }

  /** `who`: undefined for the owner. Call the answer once when the stream is over. Refuses with `too-many-streams`. */
  take(address: string, who: string | undefined): () => void {
    const refused = this.#shares.refusal(who, this.#shares.part(PART_OF_CALLER))
    if (refused === 'everybody') throw tooMany(`${this.#max} streams are open`)
    if (refused === 'caller' && who !== undefined)
      throw tooMany(`${this.#shares.of(who)} streams of ${who} are open; the others are for other callers`)
    const counted = !LOOPBACK.test(address)
    const before = this.#ofAddress.get(address) ?? 0
    if (counted && before >= this.#maxOfAddress) throw tooMany(`${this.#maxOfAddress} streams of ${address} are open`)
    this.#shares.take(who)
    if (counted) this.#ofAddress.set(address, before + 1)
    return () => {
      this.#shares.leave(who)
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
