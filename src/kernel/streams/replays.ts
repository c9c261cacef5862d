/**
 * The turns of everybody who reads a backlog: all streams of the process share one event loop, and so they share this.
 *
 * T1  However many replays there are, they take about TURN_MS of a turn of the loop together; each page is one reader's turn.
 *     While connections come replays stand back, within reason: the loop accepts one in each turn, so that fifty who come
 *     together would wait for fifty turns.
 * T2  Who has not been given anything yet is first, because its first page is small.
 * T3  A page that is read and encoded is there for everybody who comes to the same place while replays go on: a herd of
 *     readers that starts again costs as much reading as one.
 */

/** One reader of a backlog. */
export interface Replay {
  /** Gives its client a page; true where it can be given another. */
  replayPage(): boolean
}

/** What readers at the same place share. */
export interface SharedPage<Page> {
  readonly page: Page
  readonly batch: Buffer | undefined
}

const TURN_MS = 5
/** That replays wait at most while connections come. */
const MAX_PAUSE_MS = 10
const MAX_KEPT_BYTES = 4 * 1024 * 1024

const newcomers = new Set<Replay>()
const others = new Set<Replay>()
const forgetting = new Set<() => void>()
let scheduled = false
let connections = 0

/** `replay` is given pages until it says that it can take no more. */
export function startReplay(replay: Replay, isNew: boolean): void {
  if (isNew) newcomers.add(replay)
  else others.add(replay)
  schedule()
}

export function stopReplay(replay: Replay): void {
  newcomers.delete(replay)
  others.delete(replay)
}

/** True while somebody else waits for its turn, and may come to the same place. */
export const othersReplay = (): boolean => newcomers.size + others.size > 0

/** Somebody has connected: as a rule not alone. */
export function noteConnection(): void {
  connections++
}

function schedule(): void {
  if (scheduled) return
  scheduled = true
  const until = performance.now() + MAX_PAUSE_MS
  let seen = connections
  const pause = () =>
    setImmediate(() => {
      if (connections !== seen && performance.now() < until) {
        seen = connections
        pause()
        return
      }
      scheduled = false
      takeTurn()
    })
  setImmediate(pause)
}

function takeTurn(): void {
  const until = performance.now() + TURN_MS
  do {
    const [next] = newcomers.size > 0 ? newcomers : others
    if (next === undefined) break
    stopReplay(next)
    if (next.replayPage()) others.add(next)
  } while (performance.now() < until)
  if (newcomers.size + others.size > 0) schedule()
  else for (const forget of forgetting) forget()
}

/** The pages of one channel that were read last; empty while nobody replays. */
export class SharedPages<Page> {
  readonly #kept = new Map<string, SharedPage<Page>>()
  #bytes = 0
  readonly #forget = () => {
    this.#kept.clear()
    this.#bytes = 0
    forgetting.delete(this.#forget)
  }

  get(place: string): SharedPage<Page> | undefined {
    return this.#kept.get(place)
  }

  keep(place: string, shared: SharedPage<Page>): void {
    this.#kept.set(place, shared)
    this.#bytes += sizeOf(place, shared)
    forgetting.add(this.#forget)
    for (const [oldest, { page, batch }] of this.#kept) {
      if (this.#bytes <= MAX_KEPT_BYTES) break
      this.#kept.delete(oldest)
      this.#bytes -= sizeOf(oldest, { page, batch })
    }
  }
}

const sizeOf = (place: string, { batch }: SharedPage<unknown>): number => place.length + (batch?.length ?? 0)
