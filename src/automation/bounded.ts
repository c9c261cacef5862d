/**
 * Bounds of time that a busy machine does not change: what waits for a processor has not used it. Each text and each pattern
 * has a bound of its own; those of one document, request or write have one together, so that many do not add up.
 */

const MAX_TRIES = 5

interface Budget {
  readonly allMs: number
  leftMs: number
}

/** Of the work that is under way; all of it is synchronous. */
let current: Budget | undefined

/** The texts and patterns of one document, request or write have used their time together. */
export class OverBudget extends Error {
  constructor(allMs: number) {
    super(`the texts and patterns of this have used their ${allMs} ms of processor time together`)
  }
}

/** Does the work within so much processor time for all its texts and patterns; inside of another budget, within that too. */
export function inBudget<T>(ms: number, work: () => T): T {
  const around = current
  const leftMs = Math.min(ms, around?.leftMs ?? ms)
  const own = { allMs: leftMs < ms && around !== undefined ? around.allMs : ms, leftMs }
  current = own
  try {
    return work()
  } finally {
    current = around
    if (around !== undefined) around.leftMs -= leftMs - own.leftMs
  }
}

/**
 * Runs something that ends itself after `limitMs` of the clock: at most `mostMs`, and what is left of the budget. The end counts
 * only where so much of the processor was used, and not the first time, when code is still being loaded.
 */
export function withinCpu<T>(mostMs: number, run: (limitMs: number) => T, isLimit: (error: unknown) => boolean): T {
  const budget = current
  for (let tries = 1; ; tries++) {
    const limitMs = Math.min(mostMs, Math.ceil(budget?.leftMs ?? mostMs))
    if (budget !== undefined && limitMs <= 0) throw new OverBudget(budget.allMs)
    const before = process.threadCpuUsage()
    let usedMs = 0
    try {
      return run(limitMs)
    } catch (error) {
      usedMs = cpuSince(before)
      if (!isLimit(error) || tries === MAX_TRIES || (usedMs >= limitMs && tries > 1)) throw error
    } finally {
      if (budget !== undefined) budget.leftMs -= usedMs === 0 ? cpuSince(before) : usedMs
    }
  }
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
