/** Waiting that ends: a signal that is aborted after a time, or with another one; disposing of it gives its timer back. */
import type { Clock } from './clock.ts'

export interface Deadline extends Disposable {
  readonly signal: AbortSignal
}

export function deadline(clock: Clock, ms: number, why: string, signal?: AbortSignal): Deadline {
  const aborter = new AbortController()
  const cancel = clock.after(ms, () => aborter.abort(new Error(why)))
  return {
    signal: signal === undefined ? aborter.signal : AbortSignal.any([signal, aborter.signal]),
    [Symbol.dispose]: cancel,
  }
}

/** Rejects with the signal's reason; never resolves. For races. */
export function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
