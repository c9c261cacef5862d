/** The server's own log: constant phrases with fields, never prose (style R15). */
import { mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import pino from 'pino'
import { type Clock, systemClock } from './clock.ts'

type Fields = Readonly<Record<string, unknown>>
export interface Logger {
  error(fields: Fields, message: string): void
  warn(fields: Fields, message: string): void
  info(fields: Fields, message: string): void
  debug(fields: Fields, message: string): void
  /** Lines that nobody writes need not be put together. */
  isLevelEnabled(level: LogLevel): boolean
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Lines that wait for the disk; what comes on top is dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024

/** Lines are written when there are so many, or so long after the first of them: a write costs ten times what a line does. */
const BATCH_CHARACTERS = 8 * 1024
const BATCH_MS = 100
/** The number that lines of that level carry. */
const WARN = 40

/**
 * Appends JSON lines to `file`; warnings and errors at once. Throws where it cannot be opened; a disk that takes no more
 * lines costs lines, never the server.
 */
export function openLog(
  file: string,
  level: LogLevel,
  clock: Pick<Clock, 'after'> = systemClock,
): { logger: Logger; close(): void } {
  mkdirSync(dirname(file), { recursive: true })
  // Opened here: the stream would find out later, and bring down the process, that it may not write there.
  const fd = openSync(file, 'a')
  const destination = pino.destination({ fd, sync: false, minLength: 0, maxLength: MAX_BUFFERED_BYTES })
  destination.on('error', () => {})
  let held = ''
  let closed = false
  let due: (() => void) | undefined
  const flush = () => {
    due?.()
    due = undefined
    const text = held
    held = ''
    if (text !== '') destination.write(text)
  }
  const lines = {
    // Asked for by this symbol, the level of each line is there when it comes.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string) {
      if (closed) return
      held += line
      if (this.lastLevel >= WARN || held.length >= BATCH_CHARACTERS) flush()
      else due ??= clock.after(BATCH_MS, flush)
    },
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines)
  return {
    logger,
    close() {
      try {
        flush()
        closed = true
        destination.flushSync()
      } catch {
        // Not ready or not writable: nothing more to save.
      }
      destination.end()
    },
  }
}
