/** The world as a command sees it; `src/main.ts` makes it from the process, tests from strings. */
import type { Clock } from '../../client/clock.ts'

export interface Sink {
  readonly isTerminal: boolean
  /** Width of the terminal. */
  readonly columns: number
  /** Resolves once the text is handed over; rejects with `BrokenPipe` when nobody reads any more. */
  write(text: string | Uint8Array): Promise<void>
}

export interface Source {
  readonly isTerminal: boolean
  /** Everything up to the end. */
  readAll(): Promise<string>
  /** One line, without its end. */
  readLine(): Promise<string>
  /** As it comes, until the end; throws the signal's reason. */
  chunks(signal: AbortSignal): AsyncIterable<Uint8Array<ArrayBuffer>>
}

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Home directory of the user. */
  readonly home: string
  readonly stdin: Source
  readonly stdout: Sink
  readonly stderr: Sink
  readonly clock: Clock
  readonly random: () => number
  /** A new unguessable key. */
  readonly newKey: () => string
  /** Aborted with `Interrupted` by a signal to the process. */
  readonly signal: AbortSignal
}

/** The reader of our output went away (`svcctl events | head`): a quiet end, not a failure. */
export class BrokenPipe extends Error {
  override readonly name = 'BrokenPipe'
}

/** The user, or the system, asked to stop. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  /** 128 + the signal's number. */
  readonly exitCode: number

  constructor(exitCode: number) {
    super('interrupted')
    this.exitCode = exitCode
  }
}
