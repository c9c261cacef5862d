/**
 * Who looks at a terminal and types into it, for one run of a session.
 *
 * VW1  What a viewer sends is typed in the order of its numbers, each once: a number that was typed is answered and not
 *      typed again, one that could not be typed may come again. The host of the program keeps the count as well, so that
 *      this holds over restarts of the supervisor.
 * VW2  The terminal has the size of the viewer that typed last; until one has, or when that one has left, of the one that
 *      said its size last.
 * VW3  What is kept is bounded: of viewers the ones that were there last, of numbers that come too early a few.
 */
import { type Clock, delay } from '../../../kernel/clock.ts'
import { problem } from '../../../kernel/problem.ts'
import { TypingRefused } from '../../../runtimes/process/runtime.ts'

export interface Size {
  readonly columns: number
  readonly rows: number
}

export interface ViewersDeps {
  readonly clock: Clock
  /** Of the terminal, now. */
  readonly size: () => Size
  /** Both have their own time; a client that goes does not cut them: nobody would know what was typed. */
  readonly resize: (size: Size) => Promise<void>
  readonly type: (input: Input) => Promise<void>
}

interface Input {
  readonly viewer: string
  readonly seq: number
  readonly bytes: Uint8Array
}

/** Of one viewer. */
interface Line {
  /** The last number; undefined where nothing of it was typed in the life of this supervisor: the host knows. */
  typed: number | undefined
  typing: boolean
  /** How many wait. */
  early: number
  changed: PromiseWithResolvers<void>
}

const MAX_VIEWERS = 256
const MAX_EARLY = 64
const GAP_MS = 2_000

export class Viewers {
  readonly #deps: ViewersDeps
  readonly #lines = new Map<string, Line>()
  /** In the order in which they were said. */
  readonly #sizes = new Map<string, Size>()
  /** Streams of each viewer. */
  readonly #open = new Map<string, number>()
  #typist: string | undefined
  #resizing: Promise<void> = Promise.resolve()

  constructor(deps: ViewersDeps) {
    this.#deps = deps
  }

  /** Types it when its turn comes; false: it was typed before. */
  async input(input: Input, signal: AbortSignal): Promise<boolean> {
    const line = this.#lineOf(input.viewer)
    while (await this.#turn(line, input, signal)) {
      const early = await this.#type(line, input)
      if (early === undefined) return true
      if (line.typed === undefined) await this.#within(line, early, signal)
    }
    return false
  }

  /** Why it cannot be its turn yet, where whoever types it knows that. */
  async #type(line: Line, input: Input): Promise<string | undefined> {
    try {
      await this.#takesOver(input.viewer)
      await this.#deps.type(input)
      line.typed = input.seq
      return undefined
    } catch (error) {
      if (error instanceof TypingRefused && error.code === 'early' && line.typed === undefined) return error.message
      throw error
    } finally {
      line.typing = false
      line.changed.resolve()
      line.changed = Promise.withResolvers()
    }
  }

  /** VW2. */
  async sized(viewer: string | undefined, size: Size): Promise<void> {
    if (viewer === undefined) return this.#resize(size)
    this.#sizes.delete(viewer)
    this.#sizes.set(viewer, size)
    forgetOldest(this.#sizes)
    if (this.#typist === undefined || this.#typist === viewer) await this.#resize(size)
  }

  /** A stream of this viewer is open; call the result when it is not. */
  opened(viewer: string): () => void {
    this.#open.set(viewer, (this.#open.get(viewer) ?? 0) + 1)
    let left = false
    return () => {
      if (left) return
      left = true
      const others = (this.#open.get(viewer) ?? 1) - 1
      if (others > 0) this.#open.set(viewer, others)
      else this.#left(viewer)
    }
  }

  #left(viewer: string): void {
    this.#open.delete(viewer)
    this.#sizes.delete(viewer)
    if (this.#typist !== viewer) return
    this.#typist = undefined
    const last = [...this.#sizes].findLast(([other]) => this.#open.has(other))?.[1]
    // Whoever is left sees it at its own size, if the program still takes one.
    if (last !== undefined) void this.#resize(last).catch(() => undefined)
  }

  async #takesOver(viewer: string): Promise<void> {
    const size = this.#sizes.get(viewer)
    if (size === undefined || this.#typist === viewer) return
    this.#typist = viewer
    await this.#resize(size)
  }

  #resize(size: Size): Promise<void> {
    this.#resizing = this.#resizing
      .catch(() => undefined)
      .then(async () => {
        const { columns, rows } = this.#deps.size()
        if (columns !== size.columns || rows !== size.rows) await this.#deps.resize(size)
      })
    return this.#resizing
  }

  #lineOf(viewer: string): Line {
    const known = this.#lines.get(viewer)
    const line = known ?? { typed: undefined, typing: false, early: 0, changed: Promise.withResolvers() }
    this.#lines.delete(viewer)
    this.#lines.set(viewer, line)
    forgetOldest(this.#lines)
    return line
  }

  /** True: it is its turn, from now on. False: it was typed before. */
  async #turn(line: Line, { viewer, seq }: Input, signal: AbortSignal): Promise<boolean> {
    if (line.early >= MAX_EARLY)
      throw problem('session-conflict', `too much of viewer ${viewer} waits for what is missing`)
    line.early++
    try {
      while (line.typing || (line.typed !== undefined && seq > line.typed + 1)) {
        if (line.typing) await line.changed.promise
        else await this.#within(line, `input ${(line.typed ?? 0) + 1} of viewer ${viewer} has not come`, signal)
        signal.throwIfAborted()
      }
    } finally {
      line.early--
    }
    if (line.typed !== undefined && seq <= line.typed) return false
    line.typing = true
    return true
  }

  /** Until something was typed of it; refuses what waits in vain. */
  async #within(line: Line, missing: string, signal: AbortSignal): Promise<void> {
    const waiting = new AbortController()
    const late = delay(this.#deps.clock, GAP_MS, AbortSignal.any([signal, waiting.signal])).then(() => 'late' as const)
    late.catch(() => undefined)
    const first = await Promise.race([line.changed.promise, late]).finally(() => waiting.abort())
    if (first === 'late' && !line.typing) throw problem('session-conflict', missing)
  }
}

function forgetOldest(kept: Map<string, unknown>): void {
  const [oldest] = kept.size > MAX_VIEWERS ? kept.keys() : []
  if (oldest !== undefined) kept.delete(oldest)
}
