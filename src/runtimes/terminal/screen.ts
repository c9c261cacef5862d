/**
 * What a terminal shows, from the output log of a run. Kept in memory: reading it starts nothing and asks nobody.
 *
 * V1  The screen is that of the log at `offset`, which only grows. It never waits for a reader and no writer for it.
 * V2  At most 1 MiB is behind: at first, and whenever a flood is faster, it goes on with the last MiB. Lines that only
 *     the skipped part had are missing, never wrong.
 * V3  It answers nothing: the queries of a program (cursor, colours) are the business of its real terminal.
 */
import { type Clock, delay } from '../../kernel/clock.ts'
import type { OutputReader } from '../process/output-log.ts'
import { BoundedTerminal } from './bounded.ts'
import type { Picture } from './escape-text.ts'
import { type Row, rowsOf } from './rows.ts'
import { LONGEST_SEQUENCE, unfinishedBytes } from './unfinished.ts'

const MAX_BEHIND_BYTES = 1024 * 1024
const CHUNK_BYTES = 128 * 1024
/** After each chunk of a flood: others want the processor, too. */
const BREATH_MS = 10
const MAX_SCROLLBACK_LINES = 10_000
/** A line costs 2.4 kB; what is older is in the transcript. */
const SCROLLBACK_LINES = 2_000

export interface ScreenSize {
  readonly columns: number
  readonly rows: number
}

export interface ScreenDeps {
  readonly clock: Clock
  readonly output: OutputReader
  /** At first; from then on the size of the terminal is what `resize` said last. */
  readonly size: ScreenSize
  /** At most `MAX_SCROLLBACK_LINES`. */
  readonly scrollbackLines?: number
  /** After each change. */
  readonly onChange?: () => void
}

export interface ScreenText {
  readonly lines: readonly string[]
  /** The output up to here is in it. */
  readonly offset: number
  /** When that was. */
  readonly observedAt: number
}

export interface ScreenPicture extends Picture {
  readonly offset: number
  readonly observedAt: number
}

export class Screen {
  readonly #deps: Omit<ScreenDeps, 'size' | 'scrollbackLines'>
  readonly #terminal: BoundedTerminal
  #offset = 0
  /** The last bytes of what is on the screen. */
  #end: Buffer = Buffer.alloc(0)
  #wanted = 0
  #observedAt: number
  #reading: Promise<void> | undefined
  #closed = false

  constructor(deps: ScreenDeps) {
    const { size, scrollbackLines = SCROLLBACK_LINES, ...others } = deps
    const scrollback = Math.min(scrollbackLines, MAX_SCROLLBACK_LINES)
    this.#deps = others
    this.#terminal = new BoundedTerminal({ cols: size.columns, rows: size.rows, scrollback })
    this.#observedAt = deps.clock.now()
  }

  get offset(): number {
    return this.#offset
  }

  /** All that is shown, and up to which byte: the rest belongs to a sequence that goes on. */
  get picture(): ScreenPicture {
    const offset = this.#offset - unfinishedBytes(this.#end)
    return { ...this.#terminal.picture, offset, observedAt: this.#observedAt }
  }

  get size(): ScreenSize {
    return this.#terminal.size
  }

  /** As the terminal of the program has been. */
  resize(columns: number, rows: number): void {
    if (this.#closed) return
    this.#terminal.resize(columns, rows)
    this.#deps.onChange?.()
  }

  /** Where the next character goes: column and line of the whole buffer. */
  get cursor(): string {
    const { cursorX, cursorY, baseY } = this.#terminal.buffer
    return `${cursorX},${baseY + cursorY}`
  }

  /** The log has grown to `endOffset`. */
  grow(endOffset: number): void {
    this.#wanted = Math.max(this.#wanted, endOffset)
    this.#reading ??= this.#catchUp().then((all) => {
      this.#reading = undefined
      // It has grown since the last look at it.
      if (all && this.#offset < this.#wanted) this.grow(this.#wanted)
    })
  }

  /** Resolves when what the log has now is on the screen. */
  async caughtUp(signal: AbortSignal): Promise<void> {
    const { output, clock } = this.#deps
    const end = await output.endOffset()
    while (this.#offset < end && !this.#closed) {
      this.grow(end)
      await Promise.race([this.#reading, delay(clock, BREATH_MS * 10, signal)])
      signal.throwIfAborted()
    }
  }

  /** The last `count` lines, without empty ones at the end; 0: all that are kept. */
  text(count = 0): ScreenText {
    const buffer = this.#terminal.buffer
    const lines: string[] = []
    for (let y = buffer.length - 1; y >= 0 && (count <= 0 || lines.length < count); y--) {
      const line = buffer.getLine(y)?.translateToString(true).trimEnd() ?? ''
      if (line !== '' || lines.length > 0) lines.push(line)
    }
    return { lines: lines.reverse(), offset: this.#offset, observedAt: this.#observedAt }
  }

  /** What is shown now, with its looks. */
  rows(): Row[] {
    return rowsOf(this.#terminal.buffer, this.size.rows, this.#terminal.cursorVisible)
  }

  close(): void {
    this.#closed = true
    this.#terminal.dispose()
  }

  /** False: there is nothing more to read now. */
  async #catchUp(): Promise<boolean> {
    const { output, clock } = this.#deps
    while (this.#offset < this.#wanted && !this.#closed) {
      if (this.#wanted - this.#offset > MAX_BEHIND_BYTES) this.#skipTo(this.#wanted - MAX_BEHIND_BYTES)
      const { offset, bytes } = await output.read(this.#offset, CHUNK_BYTES)
      if (this.#closed || bytes.length === 0) return false
      if (offset > this.#offset) this.#skipTo(offset)
      await this.#terminal.write(bytes)
      this.#offset = offset + bytes.length
      const last = bytes.length < LONGEST_SEQUENCE ? Buffer.concat([this.#end, bytes]) : bytes
      this.#end = Buffer.from(last.subarray(-LONGEST_SEQUENCE))
      this.#observedAt = clock.now()
      this.#deps.onChange?.()
      if (bytes.length === CHUNK_BYTES) await delay(clock, BREATH_MS)
    }
    return !this.#closed
  }

  /** V2: a sequence may be cut in the middle; a terminal that starts anew finds its feet within a redraw. */
  #skipTo(offset: number): void {
    this.#terminal.reset()
    this.#end = Buffer.alloc(0)
    this.#offset = offset
  }
}
