/** What a bridge tells of itself: one JSON object a line, for whoever keeps its stderr. */
import type { Clock } from '../../client/clock.ts'

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>

export class Log {
  readonly #clock: Clock
  readonly #write: (line: string) => void

  constructor(clock: Clock, write: (line: string) => void) {
    this.#clock = clock
    this.#write = write
  }

  info(message: string, fields: LogFields = {}): void {
    this.#say('info', message, fields)
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#say('warn', message, fields)
  }

  error(message: string, fields: LogFields = {}): void {
    this.#say('error', message, fields)
  }

  #say(level: string, message: string, fields: LogFields): void {
    const time = new Date(this.#clock.now()).toISOString()
    this.#write(`${JSON.stringify({ time, level, msg: message, ...fields })}\n`)
  }
}

/** What was thrown, in words. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
