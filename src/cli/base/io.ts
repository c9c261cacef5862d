/** The world as a command sees it; `src/start.ts` makes it from the process, tests from strings. */
import type { Clock } from '../../client/clock.ts'

export interface Sink {
  readonly isTerminal: boolean
  /** Width of the terminal. */
  readonly columns: number
  /** `painted`: with colours that others chose. Resolves once the text is handed over; rejects with `BrokenPipe` when nobody reads any more. */
  write(text: string | Uint8Array, how?: 'painted'): Promise<void>
}

export interface Source {
  readonly isTerminal: boolean
  /** Everything up to the end. */
  readAll(): Promise<string>
  /** One line, without its end. */
  readLine(): Promise<string>
  /** As it comes, until the end; throws the signal's reason. */
  chunks(signal: AbortSignal): AsyncIterable<Uint8Array<ArrayBuffer>>
  /** Of a terminal: hands a line over at this key too, and the key with it. Returns what undoes that. */
  endLinesAt(key: string): () => void
}

/** What happens on a terminal that was taken. */
export interface TerminalEvents {
  onBytes(bytes: Uint8Array): void
  onResize(): void
  /** It was somebody else's for a while: whatever stood there is gone. */
  onReturn(): void
}

export interface TakenTerminal {
  /** As it is: what others wrote has to be filtered before. Nothing, while somebody else has the terminal. */
  write(text: string | Uint8Array): Promise<void>
  /** Ctrl-Z: gives the terminal back to the shell until the job goes on. */
  suspend(): void
  /** Gives it to another program while the work lasts. */
  lend<T>(work: () => Promise<T>): Promise<T>
  /** As it was before. */
  release(): void
}

/** A terminal to draw on, with a keyboard that is read key by key. */
export interface Terminal {
  readonly columns: number
  readonly rows: number
  /**
   * `screen`: what stands there is kept and comes back. `line`: keys are read below it. `through`: another program draws
   * on it, and what that does to it is undone at the end.
   */
  take(use: 'screen' | 'line' | 'through', events: TerminalEvents): TakenTerminal
}

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Home directory of the user. */
  readonly home: string
  readonly stdin: Source
  readonly stdout: Sink
  readonly stderr: Sink
  /** Absent where nobody can be drawn for: a pipe, or a terminal that cannot move its cursor. */
  readonly terminal?: Terminal | undefined
  readonly clock: Clock
  readonly random: () => number
  /** A new unguessable key. */
  readonly newKey: () => string
  /** Aborted with `Interrupted` by a signal to the process. */
  readonly signal: AbortSignal
  /**
   * For commands that go on until somebody has enough: as `signal`, and aborted with `BrokenPipe` when whoever reads
   * stdout is gone, also while there is nothing to write.
   */
  reading(): AbortSignal
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
