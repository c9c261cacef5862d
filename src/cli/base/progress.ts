/** A line on stderr that is drawn over and over while something goes on; nothing where nobody watches. */

import { cutTo } from '../print/text-width.ts'
import type { Context } from './context.ts'

const EVERY_MS = 100
const BAR = 24

export class Progress {
  readonly #context: Context
  readonly #total: number | undefined
  readonly #shown: boolean
  #bytes = 0
  #lines = 0
  #drawnAt = Number.NEGATIVE_INFINITY

  /** `total` is in bytes; without it there is no bar. */
  constructor(context: Context, total: number | undefined) {
    this.#context = context
    this.#total = total
    this.#shown = context.io.stderr.isTerminal && !context.options.quiet && !context.isDumb
  }

  async add(bytes: number, lines: number): Promise<void> {
    this.#bytes += bytes
    this.#lines += lines
    const now = this.#context.io.clock.now()
    if (!this.#shown || now - this.#drawnAt < EVERY_MS) return
    this.#drawnAt = now
    // A line that breaks could not be drawn over.
    const { stderr } = this.#context.io
    await stderr.write(`\r${cutTo(this.#text(), stderr.columns - 1)}\u001b[K`)
  }

  /** Takes the line away. */
  async clear(): Promise<void> {
    if (this.#shown && this.#drawnAt > 0) await this.#context.io.stderr.write('\r\u001b[K')
  }

  #text(): string {
    const counts = `${size(this.#bytes)}  ${this.#lines} lines`
    if (this.#total === undefined || this.#total === 0) return counts
    const share = Math.min(1, this.#bytes / this.#total)
    const bar = '█'.repeat(Math.round(share * BAR)).padEnd(BAR, '░')
    return `${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${counts}`
  }
}

export const size = (bytes: number): string =>
  bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / (1024 * 1024)).toFixed(1)} MiB`
