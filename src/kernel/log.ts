/** The server's own log: constant phrases with fields, never prose (style R15). */
import pino from 'pino'

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

/** Appends JSON lines to `file`. A disk that takes no more lines costs lines, never the server. */
export function openLog(file: string, level: LogLevel): { logger: Logger; close(): void } {
  const destination = pino.destination({
    dest: file,
    sync: false,
    mkdir: true,
    append: true,
    minLength: 0,
    maxLength: MAX_BUFFERED_BYTES,
  })
  destination.on('error', () => {})
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination)
  return {
    logger,
    close() {
      try {
        destination.flushSync()
      } catch {
        // Not ready or not writable: nothing more to save.
      }
      destination.end()
    },
  }
}
