/** Blocking reads: wait until something relevant happened after an index (sheet 01 §1.7, decision 6). */
import { DEFAULT_WAIT_MS, MAX_WAIT_MS } from '../contract/base/paging.ts'
import type { Clock } from './clock.ts'
import type { EventLog, StoredEvent } from './event-log.ts'
import { durationMs, invalidField } from './problem.ts'

export interface BlockingInput {
  readonly index?: number
  readonly wait?: string
}

/** True where a wait is asked for, be it wrongly: who asks for none need not be listened to meanwhile. */
export const isBlocking = ({ index, wait }: BlockingInput): boolean => index !== undefined || wait !== undefined

/** Time between two looks of one read at what a busy log changed: with many that wait, all of them look some 300 times a second. */
const LOOK_APART_MS = 50
const LOOK_APART_FOR_EACH_MS = 3
/** Reads of this process that wait and look. */
let looking = 0

/**
 * Resolves at once without `index` or where the head is past it; else with the next relevant event or the time-out. With
 * `versionOf`, which says what the answer would be, only an event that makes it another one counts.
 */
export async function waitForChange(
  log: EventLog,
  { index, wait }: BlockingInput,
  clock: Clock,
  signal: AbortSignal,
  isRelevant: (event: StoredEvent) => boolean,
  versionOf?: () => string,
): Promise<void> {
  const waitMs = wait === undefined ? DEFAULT_WAIT_MS : durationMs('query.wait', wait)
  if (waitMs > MAX_WAIT_MS) throw invalidField('query.wait', 'must be at most 2m', wait)
  if (waitMs <= 0) throw invalidField('query.wait', 'must be more than 0', wait)
  if (index === undefined || log.head > index || signal.aborted) return
  const isOther = versionOf === undefined ? undefined : otherThanNow(versionOf)
  await new Promise<void>((resolve) => {
    const cancel = clock.after(waitMs, done)
    const look = isOther === undefined ? undefined : spaced(clock, () => isOther() && done())
    const stop = log.onCommit((events) => {
      if (!events.some((event) => event.seq > index && isRelevant(event))) return
      if (look === undefined) done()
      else look.soon()
    })
    signal.addEventListener('abort', done, { once: true })
    function done() {
      cancel()
      look?.cancel()
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}

function otherThanNow(versionOf: () => string): () => boolean {
  const before = versionOf()
  return () => {
    try {
      return versionOf() !== before
    } catch {
      // Who reads the answer is told why.
      return true
    }
  }
}

/** Looks that come soon after they are asked for, however often that is, with some time between. */
function spaced(clock: Clock, look: () => unknown): { soon(): void; cancel(): void } {
  let cancel: (() => void) | undefined
  let last = Number.NEGATIVE_INFINITY
  looking++
  return {
    soon: () => {
      const apart = Math.max(LOOK_APART_MS, looking * LOOK_APART_FOR_EACH_MS)
      cancel ??= clock.after(Math.max(0, last + apart - clock.monotonic()), () => {
        cancel = undefined
        last = clock.monotonic()
        look()
      })
    },
    cancel: () => {
      looking--
      cancel?.()
    },
  }
}
