/**
 * What git says about worktrees, observed off the request path.
 *
 * G1  A read gets what was observed last, and asks for another look where that is old. It waits for one only if it says so,
 *     and shortly for the first one: a worktree that was just made would else be shown without what is in it.
 * G2  At most `CONCURRENT` looks at a time, at most one per worktree.
 */
import { existsSync } from 'node:fs'
import type { Clock } from '../../kernel/clock.ts'
import { type Environment, findBinary, minimalEnvironment, runBriefly } from '../../kernel/processes.ts'
import type { Inspection } from './inspect.ts'
import type { WorktreeRecord } from './store.ts'

const FRESH_MS = 5_000
const CONCURRENT = 2
const SIZE_MS = 10_000

export interface Fact extends Inspection {
  readonly sizeBytes: number | undefined
  readonly observedAt: number
}

interface FactsDeps {
  readonly inspect: (record: WorktreeRecord) => Promise<Inspection>
  readonly clock: Clock
  readonly env: Environment
  readonly record: (name: string) => WorktreeRecord | undefined
}

export class Facts {
  readonly #deps: FactsDeps
  readonly #seen = new Map<string, Fact>()
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>()
  /** Looks that have begun. */
  readonly #looking = new Map<string, Promise<void>>()
  #closed = false

  constructor(deps: FactsDeps) {
    this.#deps = deps
  }

  /** What was seen last; asks for another look where that is old. */
  of(name: string): Fact | undefined {
    const seen = this.#seen.get(name)
    if (seen === undefined || this.#deps.clock.now() - seen.observedAt > FRESH_MS) void this.look(name)
    return seen
  }

  /** Looks when its turn comes; resolves when it has. */
  look(name: string): Promise<void> {
    if (this.#closed) return Promise.resolve()
    const known = this.#waiting.get(name)
    if (known !== undefined) return known.promise
    const first = this.#seen.has(name) ? undefined : this.#looking.get(name)
    if (first !== undefined) return first
    const waiting = Promise.withResolvers<void>()
    this.#waiting.set(name, waiting)
    this.#next()
    return waiting.promise
  }

  /** Resolves when each of them was looked at once, or could not be. */
  async first(names: readonly string[]): Promise<void> {
    await Promise.all(names.filter((name) => !this.#seen.has(name)).map((name) => this.look(name)))
  }

  forget(name: string): void {
    this.#seen.delete(name)
  }

  close(): void {
    this.#closed = true
    for (const { resolve } of this.#waiting.values()) resolve()
    this.#waiting.clear()
  }

  #next(): void {
    if (this.#looking.size >= CONCURRENT) return
    const first = [...this.#waiting].find(([name]) => !this.#looking.has(name))
    if (first === undefined) return
    const [name, { promise, resolve }] = first
    this.#waiting.delete(name)
    this.#looking.set(name, promise)
    void this.#observe(name)
      // It could not be looked at: what was seen last stays, with its time.
      .catch(() => {})
      .finally(() => {
        this.#looking.delete(name)
        resolve()
        this.#next()
      })
  }

  async #observe(name: string): Promise<void> {
    const record = this.#deps.record(name)
    if (record === undefined || record.state === 'adding' || !existsSync(record.path)) return
    const [found, sizeBytes] = await Promise.all([this.#deps.inspect(record), this.#size(record.path)])
    this.#seen.set(name, { ...found, sizeBytes, observedAt: this.#deps.clock.now() })
  }

  async #size(path: string): Promise<number | undefined> {
    const { clock, env } = this.#deps
    const du = await findBinary('du', env)
    if (du === undefined) return undefined
    const options = { env: minimalEnvironment(env), timeoutMs: SIZE_MS, clock }
    const { outcome, stdout } = await runBriefly(du, ['-sk', '--', path], options)
    const kib = Number.parseInt(stdout, 10)
    return outcome === 'exited' && Number.isFinite(kib) ? kib * 1024 : undefined
  }
}
