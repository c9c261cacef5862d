/**
 * Where requests for a service come in, and wait (decision 166).
 *
 * D1  Open: whoever comes gets a place at the process at once. Held: he waits, at most 30 s and at most 1,000 of them, in
 *     the order of coming. Shut: he is told why.
 * D2  A place is given for one life of the process, and counted until it is given back. Nobody gets a place at a life that
 *     is to end.
 */
import { setMaxListeners } from 'node:events'
import type { Clock } from '../../kernel/clock.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import type { Upstream, Visit } from './ports.ts'

const MOST_WAITING = 1_000
const LONGEST_WAIT_MS = 30_000
const BUSY_RETRY_SEC = 5
const RESTARTING_RETRY_SEC = 1

interface Waiter {
  readonly enter: (life: Life) => void
  readonly refuse: (error: unknown) => void
}

/** One life of the process, as visitors know it. */
class Life {
  readonly upstream: Upstream
  readonly #cut = new AbortController()
  #visits = 0
  #empty: (() => void) | undefined

  constructor(upstream: Upstream) {
    this.upstream = upstream
    // Each visit may listen.
    setMaxListeners(0, this.#cut.signal)
  }

  visit(): Visit {
    this.#visits++
    let here = true
    return {
      upstream: this.upstream,
      life: this,
      cut: this.#cut.signal,
      leave: () => {
        if (!here) return
        here = false
        this.#visits--
        if (this.#visits === 0) this.#empty?.()
      },
    }
  }

  /** Resolves when all have left, or it is to be cut. */
  emptied(signal: AbortSignal): Promise<void> {
    if (this.#visits === 0 || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      this.#empty = resolve
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  end(why: Problem): void {
    this.#cut.abort(why)
  }
}

export class Door {
  readonly #clock: Clock
  readonly #name: string
  readonly #waiting = new Set<Waiter>()
  #life: Life | undefined
  /** The life that is to end: nobody is let in to it. */
  #old: Life | undefined
  #refusal: (() => Problem) | undefined

  constructor(name: string, clock: Clock) {
    this.#name = name
    this.#clock = clock
  }

  enter(signal: AbortSignal): Visit | Promise<Visit> {
    if (this.#life !== undefined) return this.#life.visit()
    if (this.#refusal !== undefined) throw this.#refusal()
    if (this.#waiting.size >= MOST_WAITING) throw this.#unavailable(`${MOST_WAITING} requests wait for it already`)
    return this.#wait(signal)
  }

  /** Whoever comes from now on waits. */
  hold(): void {
    this.#old = this.#life ?? this.#old
    this.#life = undefined
    this.#refusal = undefined
  }

  /** Nobody is let in, and who waits is told why. */
  shut(refusal: () => Problem): void {
    this.hold()
    this.#refusal = refusal
    for (const waiter of [...this.#waiting]) waiter.refuse(refusal())
  }

  /** The process takes requests. */
  open(upstream: Upstream): void {
    this.end()
    const life = new Life(upstream)
    this.#life = life
    this.#refusal = undefined
    for (const waiter of [...this.#waiting]) waiter.enter(life)
  }

  /** Lets those finish who are at the process, as long as the signal allows. Nobody may be let in any more. */
  async drained(signal: AbortSignal): Promise<void> {
    await this.#old?.emptied(signal)
  }

  /** Cuts what still runs at a process that is to end, or has ended: that is told what who comes now is told. */
  end(): void {
    const why = this.#refusal?.() ?? this.#unavailable('it is being restarted', RESTARTING_RETRY_SEC)
    this.#old?.end(why)
    this.#old = undefined
    this.#life?.end(why)
    this.#life = undefined
  }

  #wait(signal: AbortSignal): Promise<Visit> {
    return new Promise((resolve, reject) => {
      const settle = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
        this.#waiting.delete(waiter)
      }
      const refuse = (error: unknown) => {
        settle()
        reject(error)
      }
      const waiter: Waiter = {
        enter: (life) => {
          settle()
          resolve(life.visit())
        },
        refuse,
      }
      const onAbort = () => refuse(signal.reason)
      const cancel = this.#clock.after(LONGEST_WAIT_MS, () =>
        refuse(this.#unavailable(`it was not ready within ${LONGEST_WAIT_MS / 1000} s`)),
      )
      this.#waiting.add(waiter)
      if (signal.aborted) onAbort()
      else signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  #unavailable(why: string, retryAfterSec = BUSY_RETRY_SEC): Problem {
    return problem('unavailable', `service ${this.#name}: ${why}`, { retryAfterSec })
  }
}
