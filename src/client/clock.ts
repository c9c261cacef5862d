/** Time as an argument (style R10); the kernel's clock and a test's both fit. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `work` once after `ms`; the returned function cancels. */
  after(ms: number, work: () => void): () => void
}

/** Resolves after `ms` or rejects with the signal's reason, whichever is first. */
export function delay(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const cancel = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    })
    function onAbort() {
      cancel()
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

/** Something did not happen in time. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'
}

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
}

/** A signal that aborts with the parent, or with `TimedOut` after `ms`; dispose of it when the wait is over. */
export function deadline(clock: Clock, ms: number, parent: AbortSignal): Deadline {
  const controller = new AbortController()
  const onAbort = () => controller.abort(parent.reason)
  if (parent.aborted) onAbort()
  parent.addEventListener('abort', onAbort, { once: true })
  const cancel = clock.after(ms, () => controller.abort(new TimedOut(`no answer within ${ms / 1000} s`)))
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      cancel()
      parent.removeEventListener('abort', onAbort)
    },
  }
}
