/** What packs bring to one city, staged as its configuration says: one run at a time, in the order of the changes. */
import type { Logger } from '../../../kernel/log.ts'
import { materialise, type StageInput } from './materialise.ts'

export interface StagingDeps {
  readonly city: string
  readonly log: Logger
  /** Gives way to others for a moment; rejects where the supervisor ends. */
  readonly pause: () => Promise<void>
}

export class Staging {
  readonly #deps: StagingDeps
  #turn: Promise<void> = Promise.resolve()
  #foreign: readonly string[] = []

  constructor(deps: StagingDeps) {
    this.#deps = deps
  }

  /** Paths that the last run found taken by somebody else. */
  get foreign(): readonly string[] {
    return this.#foreign
  }

  run(input: StageInput): Promise<void> {
    const work = () => this.#stage(input)
    this.#turn = this.#turn.then(work, work)
    return this.#turn
  }

  /** A change of a running city: one that cannot be staged goes on with what was staged before. */
  follow(input: StageInput): void {
    this.run(input).catch((error: unknown) =>
      this.#deps.log.error({ city: this.#deps.city, err: error }, 'packs not staged'),
    )
  }

  /** What was asked for so far is done, or has failed. */
  async settled(): Promise<void> {
    await this.#turn.catch(() => {})
  }

  async #stage(input: StageInput): Promise<void> {
    const { city, log, pause } = this.#deps
    const { written, removed, foreign } = await materialise(input, pause)
    this.#foreign = foreign
    if (written + removed + foreign.length > 0) log.info({ city, written, removed, foreign }, 'packs staged')
  }
}
