/** Listeners of one process. An event told while another is being told waits its turn. */
import type { ProcessEvent } from './runtime.ts'

export class ProcessEvents {
  readonly #listeners = new Set<(event: ProcessEvent) => void>()
  readonly #queue: ProcessEvent[] = []
  #telling = false

  on(listener: (event: ProcessEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  tell(event: ProcessEvent): void {
    this.#queue.push(event)
    if (this.#telling) return
    this.#telling = true
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        for (const listener of this.#listeners) listener(next)
      }
    } finally {
      this.#telling = false
    }
  }

  clear(): void {
    this.#listeners.clear()
  }
}
