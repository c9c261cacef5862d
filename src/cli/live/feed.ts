/**
 * A fleet as it changes: one stream of the events of all cities; what an event says has changed is read again.
 *
 * F1  Nothing is asked for again because time has passed, but the last lines of the sessions that are looked at, and
 *     whether files that were refused are as before: no event says that.
 * F2  Of a city one read is under way at a time, and after it comes a pause: a busy city is read no more often.
 * F3  A stream that ends, for whatever reason, is opened anew and everything is read again, from the server that runs then.
 */

import { backoffMs } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { type AnyEvent, eventHead, parseEvent, streamOf } from '../../client/events.ts'
import { follow } from '../../client/follow.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { toFailure } from '../base/failure.ts'
import { type City, changedBy, changesCities, type Fleet, keyOf, PARTS, type Part, Rate } from './fleet.ts'
import { Paced } from './paced.ts'
import { type Found, NOTHING, readCity } from './read-city.ts'

/** Between two reads of the same. */
const PACE_MS = 1_000
const PEEK_EVERY_MS = 2_000
/** Lines that are asked for: the last ones are often empty, or a frame. */
const PEEK_LINES = 4
/** The last one may be empty. */
const LAST_TURNS = 3
/** A session whose last lines have not changed is looked at only every so many times. */
const QUIET_ROUNDS = 4
const MOST_EVENTS = 200
const EVERYWHERE = { city: undefined }

/** A session by city and id. */
export interface Spot {
  readonly city: string
  readonly id: string
}

interface Peeked {
  readonly output: string
  readonly lastActive: string | undefined
  /** For so many looks it has been the same. */
  readonly looks: number
}

export class Feed {
  readonly #context: Context
  readonly #signal: AbortSignal
  readonly #onChange: () => void
  readonly #rate = new Rate()
  readonly #cities = new Map<string, City>()
  readonly #wanted = new Map<string, Set<Part>>()
  readonly #readers = new Map<string, Paced>()
  readonly #peeked = new Map<string, Peeked>()
  readonly #list: Paced
  #events: AnyEvent[] = []
  readonly #client: Client
  #lost: string | undefined

  /** `onChange` is called whenever the fleet is another than before. */
  constructor(context: Context, client: Client, signal: AbortSignal, onChange: () => void) {
    this.#context = context
    this.#client = client
    this.#signal = signal
    this.#onChange = onChange
    this.#list = this.#paced(() => this.#listAgain())
  }

  get fleet(): Fleet {
    return {
      url: this.#client.baseUrl,
      cities: [...this.#cities.values()].sort((a, b) => (a.info.name < b.info.name ? -1 : 1)),
      events: this.#events.slice(0, MOST_EVENTS),
      eventsPerSecond: this.#rate.at(this.#context.io.clock.now()),
      outputs: new Map([...this.#peeked].map(([key, { output }]) => [key, output])),
      lost: this.#lost,
    }
  }

  /** Reads all there is, once. */
  async load(): Promise<void> {
    using limit = this.#context.within()
    const signal = AbortSignal.any([limit.signal, this.#signal])
    await this.#readCities(signal)
    const names = [...this.#cities.keys()]
    await Promise.all(names.map(async (name) => this.#put(name, await this.#read(name, PARTS, signal))))
    this.#onChange()
  }

  /** Until the signal; ends by throwing its reason. */
  async follow(): Promise<never> {
    for (let failures = 0; ; failures += 1) {
      const onOpen = () => {
        failures = 0
      }
      const reason = await this.#connection(onOpen).catch((error: unknown) => toFailure(error).message)
      this.#signal.throwIfAborted()
      this.#client.lost()
      const delayMs = backoffMs(failures, this.#client.random())
      this.#lost = `${reason}; again in ${Math.round(delayMs / 100) / 10} s`
      this.#onChange()
      await delay(this.#client.clock, delayMs, this.#signal)
    }
  }

  /** Keeps the last lines of what is looked at fresh; `spots` says what that is. */
  async peek(spots: () => readonly Spot[]): Promise<never> {
    for (let round = 0; ; round += 1) {
      for (const spot of spots()) if (this.#lost === undefined && this.#isDue(spot, round)) await this.#peekAt(spot)
      if (round % QUIET_ROUNDS === 0) this.#lookWhetherMended()
      await delay(this.#client.clock, PEEK_EVERY_MS, this.#signal)
    }
  }

  /** The last lines of these, once. */
  async peekOnce(spots: readonly Spot[]): Promise<void> {
    for (const spot of spots) await this.#peekAt(spot)
  }

  /** One connection, from the first read to its end; answers with why it ended. */
  async #connection(onOpen: () => void): Promise<string> {
    const after = await this.#head()
    await this.load()
    this.#lost = undefined
    this.#onChange()
    // Without a city there is nothing to follow yet; now and then somebody has to look.
    if (after === undefined) return 'no city is registered'
    onOpen()
    const { operation, params, query } = streamOf(EVERYWHERE, { after })
    const frames = follow(this.#client, operation, { params, query, signal: this.#signal, reconnect: false })
    for await (const { data } of frames) this.#take(parseEvent(data))
    return 'the stream ended'
  }

  /** Undefined: there is no log yet. */
  async #head(): Promise<string | undefined> {
    using limit = this.#context.within()
    try {
      return await eventHead(this.#client, EVERYWHERE, AbortSignal.any([limit.signal, this.#signal]))
    } catch (error) {
      if (error instanceof ApiProblem && error.code === 'no-event-providers') return undefined
      throw error
    }
  }

  #take(event: AnyEvent): void {
    this.#rate.add(this.#context.io.clock.now())
    this.#events.unshift(event)
    // Not one by one: of a flood each would move all the others.
    if (this.#events.length > 2 * MOST_EVENTS) this.#events.length = MOST_EVENTS
    if (changesCities(event)) this.#list.wish()
    const parts = changedBy(event)
    if (event.city !== undefined && this.#cities.has(event.city) && parts.length > 0) this.#want(event.city, parts)
    this.#onChange()
  }

  #want(name: string, parts: readonly Part[]): void {
    const wanted = this.#wanted.get(name) ?? new Set()
    for (const part of parts) wanted.add(part)
    this.#wanted.set(name, wanted)
    const reader = this.#readers.get(name) ?? this.#paced(() => this.#readAgain(name))
    this.#readers.set(name, reader)
    reader.wish()
  }

  #paced(work: () => Promise<void>): Paced {
    return new Paced(this.#context.io.clock, this.#signal, PACE_MS, work)
  }

  async #readAgain(name: string): Promise<void> {
    const parts = [...(this.#wanted.get(name) ?? [])]
    this.#wanted.delete(name)
    using limit = this.#context.within()
    this.#put(name, await this.#read(name, parts, AbortSignal.any([limit.signal, this.#signal])))
    this.#onChange()
  }

  async #read(name: string, parts: readonly Part[], signal: AbortSignal): Promise<Found> {
    const isRunning = this.#cities.get(name)?.info.running === true
    return isRunning ? await readCity(this.#client, name, parts, signal) : NOTHING
  }

  async #listAgain(): Promise<void> {
    using limit = this.#context.within()
    try {
      await this.#readCities(AbortSignal.any([limit.signal, this.#signal]))
      this.#onChange()
    } catch {
      // What it is that cannot be reached shows in the stream as well, and then everything is read again.
      this.#signal.throwIfAborted()
    }
  }

  async #readCities(signal: AbortSignal): Promise<void> {
    const cities = await listCities(this.#client, signal)
    for (const name of this.#cities.keys()) if (!cities.some((city) => city.name === name)) this.#cities.delete(name)
    for (const info of cities) {
      const known = this.#cities.get(info.name)
      this.#cities.set(info.name, { ...(known ?? NOTHING), info })
      if (known !== undefined && known.info.running !== info.running) this.#want(info.name, PARTS)
    }
  }

  #put(name: string, found: Found): void {
    const city = this.#cities.get(name)
    if (city === undefined) return
    this.#cities.set(name, { ...city, ...found })
    if (found.sessions !== undefined) this.#forgetPeeks(name, found.sessions)
  }

  #forgetPeeks(city: string, sessions: readonly SessionResponse[]): void {
    const open = new Set(sessions.map(({ id }) => keyOf({ city, id })))
    for (const key of this.#peeked.keys()) if (key.startsWith(`${city} `) && !open.has(key)) this.#peeked.delete(key)
  }

  #lookWhetherMended(): void {
    for (const [name, { status }] of this.#cities)
      if (status?.config.last_error !== undefined) this.#want(name, ['status'])
  }

  #isDue(spot: Spot, round: number): boolean {
    const seen = this.#peeked.get(keyOf(spot))
    return seen === undefined || seen.looks < QUIET_ROUNDS || round % QUIET_ROUNDS === 0
  }

  async #peekAt(spot: Spot): Promise<void> {
    const { city: cityName, id } = spot
    const before = this.#peeked.get(keyOf(spot))
    try {
      using limit = this.#context.within()
      const signal = AbortSignal.any([limit.signal, this.#signal])
      const query = { peek: true, peek_lines: PEEK_LINES }
      const { body } = await this.#client.call('get-session', { params: { cityName, id }, query, signal, retries: 0 })
      const { last_active: lastActive, last_output: screen } = body
      const isQuiet = before !== undefined && before.lastActive === lastActive
      const output = screen ?? (isQuiet ? before.output : await this.#lastTurn(spot, signal))
      const isSame = before?.output === output
      this.#peeked.set(keyOf(spot), { output, lastActive, looks: isSame ? before.looks + 1 : 0 })
      const sessions = this.#cities.get(cityName)?.sessions
      if (sessions !== undefined) this.#put(cityName, { sessions: sessions.map((one) => (one.id === id ? body : one)) })
      if (!isSame) this.#onChange()
    } catch {
      // It has ended, or its server has: the stream says so.
      this.#signal.throwIfAborted()
      this.#peeked.delete(keyOf(spot))
    }
  }

  /** Of a session without a screen. */
  async #lastTurn({ city: cityName, id }: Spot, signal: AbortSignal): Promise<string> {
    const params = { cityName, id }
    const { body } = await this.#client.call('get-session-transcript', { params, query: { limit: LAST_TURNS }, signal })
    return body.turns?.findLast(({ text }) => /\S/.test(text))?.text ?? ''
  }
}
