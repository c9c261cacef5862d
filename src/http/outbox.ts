/**
 * Answers to requests that were read in one turn of the event loop leave together, at its end. A write to the socket of a
 * client that sleeps wakes it, which costs more than the answer; together they wake it once, and it is at work when the
 * others come.
 *
 * O1  They leave before any write to a store that the turn has asked for begins: that one waits for the disk.
 * O2  What is ready at another time leaves at once, and nothing is kept for longer than MAX_HELD_MS of work.
 */
import { type Clock, nextTurn } from '../kernel/clock.ts'
import { contained } from '../kernel/contained.ts'

/** A turn full of slow reads must not keep the answer of the first until the last is done. */
const MAX_HELD_MS = 2

/** An answer whose head is made. */
export interface Begun {
  end(body: string | Buffer): unknown
  destroy(): unknown
}

interface Ready {
  readonly answer: Begun
  readonly body: string | Buffer
}

export class Outbox {
  readonly #clock: Clock
  #ready: Ready[] = []
  #open = false
  #heldSince = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A request was read. Called before its handler, so that this turn's end is asked for before that of a commit (O1). */
  expect(): void {
    if (this.#open) return
    this.#open = true
    void nextTurn().then(() => {
      this.#open = false
      this.#send()
    })
  }

  put(answer: Begun, body: string | Buffer): void {
    if (!this.#open) {
      answer.end(body)
      return
    }
    const now = this.#clock.monotonic()
    if (this.#ready.length === 0) this.#heldSince = now
    this.#ready.push({ answer, body })
    if (now - this.#heldSince > MAX_HELD_MS) this.#send()
  }

  #send(): void {
    const ready = this.#ready
    this.#ready = []
    // One that cannot be sent ends alone: the others of this turn still leave.
    for (const { answer, body } of ready)
      contained(
        () => answer.end(body),
        () => answer.destroy(),
      )
  }
}
