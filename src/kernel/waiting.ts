/** Blocking reads: wait until something relevant happened after an index (sheet 01 §1.7, decision 6). */
import { DEFAULT_WAIT_MS, MAX_WAIT_MS } from '../contract/paging.ts'
import type { Clock } from './clock.ts'
import type { EventLog, StoredEvent } from './event-log.ts'
import { durationMs, invalidField } from './problem.ts'

export interface BlockingInput {
  readonly index?: number
  readonly wait?: string
}

/** True where a wait is asked for, be it wrongly: who asks for none need not be listened to meanwhile. */
export const isBlocking = ({ index, wait }: BlockingInput): boolean => index !== undefined || wait !== undefined

/** Resolves at once without `index` or where the head is past it; else with the next relevant event or the time-out. */
export async function waitForChange(
  log: EventLog,
  { index, wait }: BlockingInput,
  clock: Clock,
  signal: AbortSignal,
  isRelevant: (event: StoredEvent) => boolean,
): Promise<void> {
  const waitMs = wait === undefined ? DEFAULT_WAIT_MS : durationMs('query.wait', wait)
  if (waitMs > MAX_WAIT_MS) throw invalidField('query.wait', 'must be at most 2m', wait)
  if (waitMs <= 0) throw invalidField('query.wait', 'must be more than 0', wait)
  if (index === undefined || log.head > index || signal.aborted) return
  await new Promise<void>((resolve) => {
    const cancel = clock.after(waitMs, done)
    const stop = log.onCommit((events) => {
      if (events.some((event) => event.seq > index && isRelevant(event))) done()
    })
    signal.addEventListener('abort', done, { once: true })
    function done() {
      cancel()
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
  })
}
