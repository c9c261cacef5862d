/** Something that many may wait for, again and again. */
export class Occasion {
  #next = Promise.withResolvers<void>()

  /** Resolves when `happened` is called the next time; rejects with the signal's reason. */
  async next(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([this.#next.promise, aborted.promise])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  happened(): void {
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }
}
