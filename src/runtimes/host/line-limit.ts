/**
 * A terminal in canonical mode cuts lines at 4,095 bytes (decision 53). For the time of one long line it is taken out of
 * that mode: whoever reads lines then gets this one in pieces, as from a pipe. A program that edits lines itself, as a
 * shell with a prompt does, has left that mode by itself and takes any.
 */
import type { Clock } from '../../kernel/clock.ts'
import { isRaw, stty } from './stty.ts'

/** Well below the limit, which counts the end of the line. */
const MAX_LINE_BYTES = 4_000
/** What was typed and not read yet would be cut all the same: the mode comes back when nothing has moved for so long. */
const QUIET_MS = 500

export const hasLongLine = (text: string): boolean =>
  text.split('\n').some((line) => Buffer.byteLength(line) > MAX_LINE_BYTES)

export class LineLimit {
  readonly #fd: number
  readonly #clock: Clock
  /** The mode that we left it in. */
  #lifted: string | undefined
  #cancel: (() => void) | undefined

  /** `fd`: the master of the terminal. */
  constructor(fd: number, clock: Clock) {
    this.#fd = fd
    this.#clock = clock
  }

  /** False where that cannot be done. */
  lift(): boolean {
    this.#stopWaiting()
    if (this.#lifted !== undefined) return true
    const raw = isRaw(this.#fd)
    if (raw !== false) return raw === true
    if (stty(this.#fd, '-icanon') === undefined) return false
    this.#lifted = stty(this.#fd, '-g')
    return true
  }

  /** The line was typed. */
  typed(): void {
    if (this.#lifted !== undefined) this.#wait()
  }

  onOutput(): void {
    if (this.#cancel !== undefined) this.#wait()
  }

  close(): void {
    this.#stopWaiting()
    this.#lifted = undefined
  }

  #wait(): void {
    this.#stopWaiting()
    this.#cancel = this.#clock.after(QUIET_MS, () => {
      this.#cancel = undefined
      // A program that has chosen another mode meanwhile keeps it.
      if (stty(this.#fd, '-g') === this.#lifted) stty(this.#fd, 'icanon')
      this.#lifted = undefined
    })
  }

  #stopWaiting(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }
}
