/**
 * Needs as they come and go: one blocking read per city that runs.
 *
 * N1  A city is followed while it is listed as running: one that stops drops out with its needs, one that starts is taken
 *     in when the cities are next listed.
 * N2  A busy city is read no more often than `PACE_MS`; a server that cannot be reached is tried with growing delays.
 * N3  Every change is shown, also those that come while something is being shown.
 */
import { backoffMs } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { delay, TimedOut } from '../../client/clock.ts'
import { ApiProblem, DecodeError, Unreachable } from '../../client/problems.ts'
import { type Context, REQUEST_TIMEOUT_MS } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { toFailure } from '../base/failure.ts'
import { inOrder, isGone, type Need, needOf } from './needs.ts'

const CITIES_EVERY_MS = 5_000
const WAIT_MS = 60_000
const PACE_MS = 200
/** Times such as `3m ago` go stale. */
const REDRAW_EVERY_MS = 30_000

/** Calls `show` with all needs, first with those that there are and then whenever they change; ends by throwing. */
export async function watchNeeds(
  context: Context,
  cityName: string | undefined,
  show: (needs: readonly Need[]) => Promise<void>,
): Promise<never> {
  const client = await context.client()
  const ending = new AbortController()
  const signal = AbortSignal.any([context.io.reading(), ending.signal])
  const watch = new NeedsWatch(context, client, cityName, signal)
  const work = [watch.followCities(), watch.showChanges(show)]
  try {
    return await Promise.race([...work, watch.failure])
  } finally {
    ending.abort()
    await Promise.allSettled(work)
    await watch.settled()
  }
}

class NeedsWatch {
  readonly #context: Context
  readonly #client: Client
  readonly #only: string | undefined
  readonly #signal: AbortSignal
  readonly #needs = new Map<string, readonly Need[]>()
  readonly #followers = new Map<string, Promise<void>>()
  readonly #failed = Promise.withResolvers<never>()
  #changed = Promise.withResolvers<void>()
  #listed = false

  constructor(context: Context, client: Client, only: string | undefined, signal: AbortSignal) {
    this.#context = context
    this.#client = client
    this.#only = only
    this.#signal = signal
    this.#failed.promise.catch(() => undefined)
  }

  /** Rejects when a city cannot be followed for good. */
  get failure(): Promise<never> {
    return this.#failed.promise
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#followers.values())
  }

  async followCities(): Promise<never> {
    for (;;) {
      const cities = await this.#patiently((signal) => listCities(this.#client, signal))
      const wanted = cities.filter(({ name, running }) => running && (this.#only ?? name) === name)
      for (const { name } of wanted) if (!this.#followers.has(name)) this.#follow(name)
      // That nothing runs is an answer too; the first of a city comes with its first read.
      if (!this.#listed && wanted.length === 0) this.#changed.resolve()
      this.#listed = true
      await delay(this.#client.clock, CITIES_EVERY_MS, this.#signal)
    }
  }

  async showChanges(show: (needs: readonly Need[]) => Promise<void>): Promise<never> {
    for (;;) {
      await this.#untilChanged()
      this.#signal.throwIfAborted()
      this.#changed = Promise.withResolvers()
      await show(inOrder([...this.#needs.values()].flat()))
    }
  }

  /** Or until it is time to draw again. */
  async #untilChanged(): Promise<void> {
    const over = new AbortController()
    const stale = delay(this.#client.clock, REDRAW_EVERY_MS, AbortSignal.any([this.#signal, over.signal]))
    try {
      await Promise.race([this.#changed.promise, stale])
    } finally {
      over.abort()
      await stale.catch(() => undefined)
    }
  }

  #follow(city: string): void {
    const following = this.#followCity(city)
      .catch((error: unknown) => this.#failed.reject(error))
      .finally(() => {
        this.#followers.delete(city)
        if (this.#needs.delete(city)) this.#changed.resolve()
      })
    this.#followers.set(city, following)
  }

  /** Until the city stops. */
  async #followCity(city: string): Promise<void> {
    let index: number | undefined
    for (;;) {
      const query = index === undefined ? {} : { index, wait: `${WAIT_MS}ms` }
      const reply = await this.#patiently((signal) =>
        this.#client.call('list-pending', { params: { cityName: city }, query, signal }),
      ).catch((error: unknown) => {
        if (isGone(error)) return undefined
        throw error
      })
      if (reply === undefined) return
      index = indexOf(reply.headers.get('x-svc-index'))
      this.#set(city, reply.body.items.map(needOf(city)))
      await delay(this.#client.clock, PACE_MS, this.#signal)
    }
  }

  #set(city: string, needs: readonly Need[]): void {
    const known = this.#needs.get(city)
    this.#needs.set(city, needs)
    if (JSON.stringify(known) !== JSON.stringify(needs)) this.#changed.resolve()
  }

  /** Tries again for as long as it is the server that cannot answer. */
  async #patiently<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock } = this.#client
    for (let attempt = 0; ; attempt += 1) {
      using limit = this.#context.within(WAIT_MS + REQUEST_TIMEOUT_MS)
      try {
        return await ask(AbortSignal.any([this.#signal, limit.signal]))
      } catch (error) {
        this.#signal.throwIfAborted()
        if (!mayPass(error)) throw error
        const delayMs = backoffMs(attempt, this.#client.random())
        await this.#context.note(`${toFailure(error).message}; again in ${Math.round(delayMs / 100) / 10} s`)
        await delay(clock, delayMs, this.#signal)
      }
    }
  }
}

const mayPass = (error: unknown): boolean =>
  error instanceof Unreachable ||
  error instanceof TimedOut ||
  (error instanceof ApiProblem && (error.status >= 500 || error.status === 429))

function indexOf(header: string | null): number {
  if (header === null || !/^\d{1,15}$/.test(header)) throw new DecodeError(`not an index: ${header ?? 'none'}`)
  return Number(header)
}
