/** How often an adapter may bring something (decision 154): 50 times a second, 200 times at once. */
import type { Clock } from '../../../kernel/clock.ts'
import { problem } from '../../../kernel/problem.ts'
import { type AdapterKey, nameOfKey } from './adapter.ts'

const PER_SECOND = 50
const AT_ONCE = 200

interface Bucket {
  left: number
  at: number
}

export class InboundRate {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** 429 where it is too often. Of many at a time each counts; as many as may ever come at once always do some time. */
  admit(adapter: AdapterKey, messages = 1): void {
    const name = nameOfKey(adapter)
    const now = this.#clock.monotonic()
    const bucket = this.#buckets.get(name) ?? { left: AT_ONCE, at: now }
    bucket.left = Math.min(AT_ONCE, bucket.left + ((now - bucket.at) / 1000) * PER_SECOND)
    bucket.at = now
    this.#buckets.set(name, bucket)
    const wanted = Math.min(messages, AT_ONCE)
    if (bucket.left < wanted)
      throw problem('too-many-requests', `${name} brings more than ${PER_SECOND} messages a second`, {
        retryAfterSec: Math.ceil((wanted - bucket.left) / PER_SECOND),
      })
    bucket.left -= wanted
  }

  forget(adapter: AdapterKey): void {
    this.#buckets.delete(nameOfKey(adapter))
  }
}
