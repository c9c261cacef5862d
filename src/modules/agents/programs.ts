/** Whether programs are installed, known without looking while somebody waits: a look is cached and repeated behind its back. */
import type { Clock } from '../../kernel/clock.ts'

const FRESH_MS = 30_000
const MAX_PROGRAMS = 1_000

interface Sight {
  readonly found: boolean
  readonly at: number
}

export class Programs {
  readonly #clock: Clock
  readonly #find: (command: string) => Promise<string | undefined>
  readonly #seen = new Map<string, Sight>()
  readonly #looking = new Set<string>()

  constructor(clock: Clock, find: (command: string) => Promise<string | undefined>) {
    this.#clock = clock
    this.#find = find
  }

  /** Undefined: nobody has looked yet. */
  has(command: string): boolean | undefined {
    const sight = this.#seen.get(command)
    if (sight === undefined || this.#clock.monotonic() - sight.at > FRESH_MS) this.#look(command)
    return sight?.found
  }

  #look(command: string): void {
    if (this.#looking.has(command) || this.#looking.size >= MAX_PROGRAMS) return
    this.#looking.add(command)
    void this.#find(command)
      .then((path) => this.#note(command, path !== undefined))
      .catch(() => {})
      .finally(() => this.#looking.delete(command))
  }

  #note(command: string, found: boolean): void {
    if (this.#seen.size >= MAX_PROGRAMS) this.#seen.clear()
    this.#seen.set(command, { found, at: this.#clock.monotonic() })
  }
}
