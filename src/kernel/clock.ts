/** Time as an argument: the only place that asks the machine what time it is (style R10). */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds on a clock that only goes forward. */
  monotonic(): number
  /** Calls `work` once after `ms`; the returned function cancels. Does not keep the process alive. */
  after(ms: number, work: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, work) {
    const timer = setTimeout(work, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** RFC 3339, UTC, milliseconds. */
export const isoTime = (ms: number): string => new Date(ms).toISOString()

/** Resolves after `ms` or rejects with the signal's reason, whichever is first. */
export function delay(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    function onAbort() {
      cancel()
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
