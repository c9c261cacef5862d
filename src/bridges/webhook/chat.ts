/** The way out of a webhook bridge: there is none. Whoever tries is told so at once, and finally. */
import type { Chat } from '../library/carrying.ts'
import type { LogFields } from '../library/log.ts'
import type { Outcome } from '../library/shapes.ts'

export class NoWayOut implements Chat {
  readonly #tell: () => LogFields

  constructor(tell: () => LogFields) {
    this.#tell = tell
  }

  async ready(): Promise<void> {}

  async say(): Promise<Outcome> {
    return { delivered: false, kind: 'unsupported', error: 'webhooks come in only: nothing can be said there' }
  }

  health(): LogFields {
    return this.#tell()
  }
}
