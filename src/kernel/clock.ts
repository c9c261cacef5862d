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

let lastMs = 0
let lastText = new Date(0).toISOString()
/** RFC 3339, UTC, milliseconds. The last one is kept: everything of one tick has the same time. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastText
}

/** Resolves when everybody who was waiting had a turn: between two parts of a long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

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
