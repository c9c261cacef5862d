/** What the set-up of a worktree says: all of it in a file, within a bound, and its end at hand. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const MAX_BYTES = 8 * 1024 * 1024
const TAIL_BYTES = 8_192

export class SetupLog implements Disposable {
  readonly #file: number
  #room = MAX_BYTES
  #tail = Buffer.alloc(0)

  constructor(path: string) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    this.#file = openSync(path, 'w', 0o600)
  }

  write(text: string | Buffer): void {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    this.#tail = Buffer.concat([this.#tail, bytes]).subarray(-TAIL_BYTES)
    if (this.#room <= 0) return
    try {
      writeSync(this.#file, bytes.subarray(0, this.#room))
      this.#room -= bytes.length
      if (this.#room <= 0) writeSync(this.#file, `\n(more than ${MAX_BYTES} bytes: the rest is not kept)\n`)
    } catch {
      // A full disk ends the log; the set-up goes on, and its end is still told.
      this.#room = 0
    }
  }

  /** The last lines of the command that was run last. */
  lastLines(count: number): string {
    const lines = this.#tail.toString('utf8').trimEnd().split('\n')
    const from = lines.findLastIndex((line) => line.startsWith('$ '))
    // The last one says how it ended.
    return lines
      .slice(from + 1, -1)
      .slice(-count)
      .join('\n')
  }

  [Symbol.dispose](): void {
    closeSync(this.#file)
  }
}
