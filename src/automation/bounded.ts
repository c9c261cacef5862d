/** Bounds of time that a busy machine does not change: what waits for a processor has not used it. */

const MAX_TRIES = 5

/**
 * Runs something that ends itself after `limitMs` of the clock. That counts only where it has used so much of the processor,
 * and not the first time, when code is still being loaded.
 */
export function withinCpu<T>(limitMs: number, run: () => T, isLimit: (error: unknown) => boolean): T {
  for (let tries = 1; ; tries++) {
    const before = process.threadCpuUsage()
    try {
      return run()
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before)
      const isUsed = (user + system) / 1_000 >= limitMs
      if (!isLimit(error) || tries === MAX_TRIES || (isUsed && tries > 1)) throw error
    }
  }
}
