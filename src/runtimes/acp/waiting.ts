import type { Clock } from '../../kernel/clock.ts'

export type FirstOf = 'done' | 'failed' | 'late' | 'aborted'

/** What happens first: the work is done or fails, the time is up, or the signal aborts. Never rejects. */
export function first(
  clock: Clock,
  ms: number,
  signal: AbortSignal | undefined,
  work: Promise<unknown>,
): Promise<FirstOf> {
  return new Promise((resolve) => {
    const settle = (result: FirstOf) => {
      cancel()
      signal?.removeEventListener('abort', onAbort)
      resolve(result)
    }
    const onAbort = () => settle('aborted')
    const cancel = clock.after(ms, () => settle('late'))
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
    work.then(
      () => settle('done'),
      () => settle('failed'),
    )
  })
}
