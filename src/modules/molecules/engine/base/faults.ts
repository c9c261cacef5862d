/**
 * What the engine could not do, and to which step it happened. A write that throws leaves nothing behind: it is made again, and
 * this time the step that it threw at fails, for good, while everything before it stays as it came out.
 */
import { Problem } from '../../../../kernel/problem.ts'

/** Thrown while one row was worked on; `cause` is what was thrown. */
export class StepFault extends Error {
  readonly step: number

  constructor(step: number, cause: unknown) {
    super(messageOf(cause), { cause })
    this.step = step
  }
}

/** Rows that fail instead of going on, with why. */
export type Doomed = ReadonlyMap<number, string>

const MAX_KEPT = 1_000
const NONE: Doomed = new Map()

export class Faults {
  readonly #doomed = new Map<string, Doomed>()

  /** Does the work; the next time under this key, rows that it threw at are doomed. */
  during(key: string, work: (doomed: Doomed) => void): void {
    const doomed = this.#doomed.get(key) ?? NONE
    try {
      work(doomed)
      this.#doomed.delete(key)
    } catch (error) {
      if (error instanceof StepFault) this.#doom(key, new Map([...doomed, [error.step, error.message]]))
      throw error
    }
  }

  /** Whether the last try under this key threw at a row. */
  has(key: string): boolean {
    return this.#doomed.has(key)
  }

  #doom(key: string, doomed: Doomed): void {
    const [oldest] = this.#doomed.size >= MAX_KEPT ? this.#doomed.keys() : []
    if (oldest !== undefined) this.#doomed.delete(oldest)
    this.#doomed.set(key, doomed)
  }
}

/** What refuses to be begun is a matter of its step; a full disk or a full queue is not, and is tried again. */
export const isRefusal = (error: unknown): error is Problem => error instanceof Problem && error.status < 500

/** What was really thrown, for callers who asked for the change themselves. */
export const causeOf = (error: unknown): unknown => (error instanceof StepFault ? error.cause : error)

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
