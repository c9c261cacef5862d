/**
 * What requests may use of a city that does not run, so that its files and packs can be mended.
 *
 * M1  The city is opened for the first request that needs it, and closed after the last one and what that has accepted.
 * M2  A start, a stop and a departure begin when nobody uses it any more.
 */

/** A city that does not run, opened to be mended. */
export interface Mendable {
  /** Resolves when nothing that it has accepted is under way. */
  idle(): Promise<void>
  /** Cuts what it has accepted; `comesBack`: the next start goes on with it. */
  cut(comesBack: boolean): Promise<void>
  /** Gives up what it holds. Answers whether a start may succeed now that could not before. */
  close(): Promise<boolean>
}

/** Something that is used until it is given back. */
export interface Lent<T> {
  readonly run: T
  giveBack(): void
}

export interface MendingDeps<Run> {
  readonly open: () => Promise<Run>
  /** Somebody has mended it. */
  readonly mended: () => void
  readonly failed: (error: unknown) => void
}

export class Mending<Run extends Mendable> {
  readonly #deps: MendingDeps<Run>
  #run: Promise<Run> | undefined
  #users = 0
  #closing: Promise<void> | undefined
  #waiting: (() => void)[] = []

  constructor(deps: MendingDeps<Run>) {
    this.#deps = deps
  }

  async lend(): Promise<Lent<Run>> {
    this.#users++
    try {
      await this.#closing
      this.#run ??= this.#open()
      const run = await this.#run
      return { run, giveBack: () => void this.#giveBack(run) }
    } catch (error) {
      this.#leave()
      throw error
    }
  }

  /** Resolves when nobody uses it. */
  quiet(): Promise<void> {
    if (this.#users === 0 && this.#closing === undefined) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Cuts what it has accepted, and waits for the end of what uses it. */
  async end(comesBack: boolean): Promise<void> {
    const run = await this.#run?.catch(() => undefined)
    await run?.cut(comesBack)
    await this.quiet()
  }

  #open(): Promise<Run> {
    const opening = this.#deps.open()
    opening.catch(() => {
      if (this.#run === opening) this.#run = undefined
    })
    return opening
  }

  async #giveBack(run: Run): Promise<void> {
    await run.idle().catch(this.#deps.failed)
    if (this.#users === 1) {
      this.#run = undefined
      this.#closing = this.#close(run)
    }
    this.#leave()
  }

  async #close(run: Run): Promise<void> {
    try {
      if (await run.close()) this.#deps.mended()
    } catch (error) {
      this.#deps.failed(error)
    } finally {
      this.#closing = undefined
      this.#tell()
    }
  }

  #leave(): void {
    this.#users--
    this.#tell()
  }

  #tell(): void {
    if (this.#users > 0 || this.#closing !== undefined) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
