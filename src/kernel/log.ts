/** The server's own log: constant phrases with fields, never prose (style R15). */
import { renameSync, rmSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import pino from 'pino'
import type { LOG_LEVELS } from '../contract/base/serve-flags.ts'
import { keepPrivate } from './file-modes.ts'
import { look } from './look.ts'

type Fields = Readonly<Record<string, unknown>>
export interface Logger {
  error(fields: Fields, message: string): void
  warn(fields: Fields, message: string): void
  info(fields: Fields, message: string): void
  debug(fields: Fields, message: string): void
  /** Lines that nobody writes need not be put together. */
  isLevelEnabled(level: LogLevel): boolean
}

export type LogLevel = (typeof LOG_LEVELS)[number]

/** Lines that wait for the disk; what comes on top is dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024

export interface LogLimits {
  readonly maxFileBytes: number
  /** The current file and the earlier ones: `file`, `file.1`, `file.2`, … */
  readonly files: number
}
const LIMITS: LogLimits = { maxFileBytes: 16 * 1024 * 1024, files: 4 }

/**
 * Appends JSON lines to `file`, which only its owner can read. A disk that takes no more lines costs lines, never the
 * server; a flood of lines costs older ones, never more disk than the limits say.
 */
export function openLog(
  file: string,
  level: LogLevel,
  { maxFileBytes, files }: LogLimits = LIMITS,
): { logger: Logger; close(): void } {
  for (let age = 0; age < files; age++) keepPrivate(aged(file, age))
  const found = look(file)
  // Opening it would wait for a reader, for ever where none comes.
  if ('stats' in found && found.stats.isFIFO()) throw new Error(`${file} is a pipe: the log needs a file, remove it`)
  let size = 'stats' in found ? found.stats.size : 0
  if (size > maxFileBytes) rotate()
  const destination = pino.destination({
    dest: file,
    sync: false,
    mkdir: true,
    append: true,
    mode: 0o600,
    minLength: 0,
    maxLength: MAX_BUFFERED_BYTES,
  })
  const flush = destination.flushSync.bind(destination)
  // Called at the end of the process too. It tries for ever on a disk that is full, and nobody could stop the process.
  destination.flushSync = () => {
    if (!failing && hasRoomBeside(file)) return flush()
    closed = true
    destination.destroy()
  }
  let failing = false
  let closed = false
  destination.on('error', () => {
    failing = true
  })
  destination.on('write', (bytes: number) => {
    failing = false
    size += bytes
    if (size <= maxFileBytes) return
    rotate()
    destination.reopen()
  })
  // Who ends late may still have something to say: that is no reason to fail.
  const lines = {
    write(line: string) {
      if (!closed) destination.write(line)
    },
  }
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, lines)

  /** What is written until the new file is open still goes into the one that was renamed: no line is lost. */
  function rotate() {
    size = 0
    try {
      rmSync(aged(file, files - 1), { force: true })
      for (let age = files - 1; age > 0; age--) renameIfThere(aged(file, age - 1), aged(file, age))
    } catch {
      // The directory takes no changes: the file goes on, and the next full measure tries again.
    }
  }

  return {
    logger,
    close() {
      closed = true
      try {
        destination.flushSync()
      } catch {
        // Not ready or not writable: nothing more to save.
      }
      try {
        destination.end()
      } catch {
        // Given up, because its disk is full.
      }
    },
  }
}

/** True where the disk takes all that may still wait. */
function hasRoomBeside(file: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file))
    return bavail * bsize > MAX_BUFFERED_BYTES
  } catch {
    return false
  }
}

const aged = (file: string, age: number): string => (age === 0 ? file : `${file}.${age}`)

function renameIfThere(from: string, to: string): void {
  if (look(from).is !== 'missing') renameSync(from, to)
}
