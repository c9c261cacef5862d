/** Time as an argument: the only place that asks the machine what time it is (style R10). */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds on a clock that only goes forward. */
  monotonic(): number
  /** Calls `work` once after `ms`; the returned function cancels. Does not keep the process alive. */
  after(ms: number, work: () => void): () => void
}

/** One that is longer would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, work) {
    let timer: NodeJS.Timeout
    const wait = (left: number) => {
      const part = Math.min(left, LONGEST_TIMER_MS)
      timer = setTimeout(() => (left > part ? wait(left - part) : work()), part)
      timer.unref()
    }
    wait(ms)
    return () => clearTimeout(timer)
  },
}

const DAY_MS = 86_400_000
/** An hour more than a day: who starts its machine at the same time every morning sees no jump. */
const MAX_STEP_MS = DAY_MS + 3_600_000

/**
 * Says whether the clock can tell how old something is. One that went forward by more than a day at once cannot, for a day:
 * what would be deleted for its age is gone for good, and the clock may be set right again.
 */
export class AgeTrust {
  readonly #clock: Clock
  readonly #maxStepMs: number
  #wall: number
  #elapsed: number
  #until = 0

  /** `lastSeen`: the newest time on record, 0 where there is none. `maxStepMs`: a longer step is not believed. */
  constructor(clock: Clock, lastSeen: number, maxStepMs = MAX_STEP_MS) {
    this.#clock = clock
    this.#maxStepMs = maxStepMs
    this.#wall = lastSeen === 0 ? clock.now() : lastSeen
    this.#elapsed = clock.monotonic()
  }

  /** Looks at the clock: call it now and then. */
  holds(): boolean {
    const [wall, elapsed] = [this.#clock.now(), this.#clock.monotonic()]
    const step = wall - this.#wall - (elapsed - this.#elapsed)
    this.#wall = wall
    this.#elapsed = elapsed
    if (step > this.#maxStepMs) this.#until = elapsed + DAY_MS
    return elapsed >= this.#until
  }
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

const TIME =
  /^(\d{4}-\d{2}-\d{2})[Tt ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/
const FIRST_MS = Date.parse('0000-01-01T00:00:00Z')
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Milliseconds of an RFC 3339 time; undefined for what is none, a leap second, and what four digits of a UTC year cannot say. */
export function parseTime(text: string): number | undefined {
  const day = TIME.exec(text)?.[1]
  if (day === undefined || parseDay(day) === undefined) return undefined
  const ms = Date.parse(text.toUpperCase())
  return ms >= FIRST_MS && ms <= LAST_MS ? ms : undefined
}

const DAY = /^\d{4}-\d{2}-\d{2}$/

/** Milliseconds of the start of a day that exists, UTC. */
export function parseDay(text: string): number | undefined {
  if (!DAY.test(text)) return undefined
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && isoTime(ms).startsWith(text) ? ms : undefined
}

/** True for a name that this machine knows as a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

/** Time zone of this machine. */
export const localZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

/** Resolves when everybody who was waiting had a turn: between two parts of a long work. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Calls `step` until it says that it is done: undefined where the first call was enough, else one call in each turn of the
 * event loop until then, or until nobody waits for the end any more.
 */
export function inTurns(step: () => boolean, signal: AbortSignal): Promise<void> | undefined {
  return step() ? undefined : goOn(step, signal)
}

async function goOn(step: () => boolean, signal: AbortSignal): Promise<void> {
  do await nextTurn()
  while (!signal.aborted && !step())
}

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
