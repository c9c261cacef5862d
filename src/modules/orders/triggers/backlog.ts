/**
 * Events that set an order off: the log is the backlog, and each order has its own place in it.
 *
 * B1  An event that matches is handed to one run, in the order of the log; the place moves in the write that begins it.
 * B2  A look reads a bounded part of the log in one turn of the event loop; what does not match is not read again.
 * B3  Retention takes nothing that an order has still to look at.
 */
import type { OrderDefinition } from '../../../automation/order.ts'
import { MAX_BATCH } from '../../../contract/automation/orders.ts'
import { nextTurn } from '../../../kernel/clock.ts'
import type { EventLog, StoredEvent } from '../../../kernel/event-log.ts'

type EventTrigger = Extract<OrderDefinition['trigger'], { readonly kind: 'event' }>

/** Handed to one run; at least one event, whatever its size. */
const BATCH_CHARACTERS = 1024 * 1024
/** Events passed by, after which the place is written: what a restart looks at again. */
const MAX_UNSAVED = 1_000

interface Place {
  /** Up to here nothing is left that matches. */
  seq: number
  /** What is on disk. */
  saved: number
}

const pinOf = (scoped: string): string => `order ${scoped}`

export class Backlog {
  readonly #log: EventLog
  readonly #passesBy: (scoped: string, event: StoredEvent) => boolean
  readonly #places = new Map<string, Place>()

  constructor(log: EventLog, passesBy: (scoped: string, event: StoredEvent) => boolean) {
    this.#log = log
    this.#passesBy = passesBy
  }

  /** The oldest events that no run has had: as many as one is handed. None after an end by the signal. */
  async oldest(
    scoped: string,
    trigger: EventTrigger,
    seen: number,
    signal: AbortSignal,
  ): Promise<readonly StoredEvent[]> {
    const place = this.#placeOf(scoped, seen)
    const wanted = trigger.batch ? MAX_BATCH : 1
    const payload = Object.entries(trigger.match).map(([key, value]) => ({ key, value }))
    const found: StoredEvent[] = []
    let characters = 0
    let after = place.seq
    while (!signal.aborted) {
      const filter = { types: [trigger.on], ...(payload.length === 0 ? {} : { payload }) }
      const range = { after, upTo: this.#log.head }
      const scan = this.#log.scan(filter, range, 'asc', wanted, BATCH_CHARACTERS)
      for (const event of scan.events) {
        if (this.#passesBy(scoped, event)) continue
        if (found.length === wanted || (found.length > 0 && characters + event.envelope.length > BATCH_CHARACTERS))
          return found
        found.push(event)
        characters += event.envelope.length
      }
      after = scan.reached
      if (found.length === 0) this.#pass(scoped, place, after)
      if (scan.complete || found.length >= wanted) return found
      await nextTurn()
    }
    return []
  }

  /** Where it would be looked at next, if that is far behind what is on disk. */
  unsaved(scoped: string): number | undefined {
    const place = this.#places.get(scoped)
    return place !== undefined && place.seq - place.saved >= MAX_UNSAVED ? place.seq : undefined
  }

  /** On disk, all up to there is decided. */
  decided(scoped: string, seq: number): void {
    this.#places.set(scoped, { seq, saved: seq })
    this.#pin(scoped, seq)
  }

  /** It waits for no events, or for none of these. */
  leave(scoped: string): void {
    if (this.#places.delete(scoped)) this.#pin(scoped, undefined)
  }

  /** Only these wait for events; what the others had still to look at is nobody's. */
  keep(scoped: ReadonlySet<string>): void {
    for (const one of [...this.#places.keys()]) if (!scoped.has(one)) this.leave(one)
  }

  leaveAll(): void {
    for (const scoped of [...this.#places.keys()]) this.leave(scoped)
  }

  #placeOf(scoped: string, seen: number): Place {
    const known = this.#places.get(scoped)
    if (known !== undefined && known.saved === seen) return known
    const place = { seq: seen, saved: seen }
    this.#places.set(scoped, place)
    this.#pin(scoped, seen)
    return place
  }

  #pass(scoped: string, place: Place, seq: number): void {
    place.seq = Math.max(place.seq, seq)
    this.#pin(scoped, place.seq)
  }

  /** True: its events are older, or more, than the log would keep; it keeps them for this order. */
  holdsLog(scoped: string): boolean {
    return this.#log.holders.includes(pinOf(scoped))
  }

  #pin(scoped: string, seq: number | undefined): void {
    this.#log.pin(pinOf(scoped), seq)
  }
}
