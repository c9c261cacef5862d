/** Callers of a supervisor that is killed under them, and everything they were promised. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Answered, type Fields, type Frame, FrameError, listAll, readStream, tryCall } from './crash-client.ts'
import { fresh } from './fresh.ts'
import type { Random } from './random.ts'

/** What a caller got a 2xx for, and what it sent without learning the outcome. */
export class Promises {
  /** Requests by id: each must end exactly once. */
  readonly accepted = new Map<string, { readonly operation: string; readonly city: string; readonly cursor: string }>()
  /** Log → seq → marker. */
  readonly emitted = new Map<string, Map<number, string>>()
  /** Calls with a key that were answered. */
  readonly keyed: { readonly key: string; readonly path: string; readonly body: object; readonly answer: Answered }[] =
    []
  /** Calls with a key whose answer never came. */
  unanswered: { readonly key: string; readonly path: string; readonly body: object }[] = []
  /** Creates whose answer never came. */
  brokenCreates: { readonly name: string; readonly key: string | undefined }[] = []
  /** Cities that were made, by name; their directory is named after them. */
  readonly known = new Set<string>()

  /** Calls of the load that were answered so far. */
  #answers = 0
  #alarm: { readonly at: number; readonly ring: () => void } | undefined

  /** Resolves after this many more answers: a moment in the load that does not depend on how fast the machine is. */
  answers(count: number): Promise<void> {
    return new Promise((ring) => {
      this.#alarm = { at: this.#answers + count, ring }
    })
  }

  answered(): void {
    this.#answers++
    if (this.#alarm !== undefined && this.#answers >= this.#alarm.at) this.#alarm.ring()
  }

  accept(operation: string, city: string, body: Fields): void {
    this.accepted.set(String(body['request_id']), { operation, city, cursor: String(body['event_cursor']) })
  }

  emit(city: string, seq: number, marker: string): void {
    const log = this.emitted.get(city) ?? new Map<number, string>()
    assert.equal(log.get(seq) ?? marker, marker, `two events were acknowledged as ${seq} of ${city}`)
    log.set(seq, marker)
    this.emitted.set(city, log)
  }
}

export interface LoadDeps {
  readonly random: Random
  readonly promises: Promises
  readonly work: string
  /** Of the server that runs at the moment. */
  readonly url: () => string
  readonly signal: AbortSignal
}

const MAX_CITIES = 7

/** Creates, adopts, starts, stops, restarts and unregisters, one call after the other. */
export async function operateCities(deps: LoadDeps): Promise<void> {
  const { random, promises, signal } = deps
  while (!signal.aborted) {
    await pause(random.between(0, 20))
    if (promises.known.size < MAX_CITIES && random.chance(0.3)) await create(deps)
    else {
      const city = random.pick([...promises.known])
      if (city === undefined) continue
      const verb = random.pick(['unregister', 'adopt', 'adopt', 'adopt', 'start', 'start', 'start', 'stop', 'restart'])
      if (verb === 'adopt') await adopt(deps, city)
      else await steer(deps, city, verb ?? 'start')
    }
  }
}

async function create(deps: LoadDeps): Promise<void> {
  const { random, promises, work } = deps
  const name = fresh('city-')
  const key = random.chance(0.5) ? fresh('create-key-') : undefined
  const body = { dir: join(work, name) }
  const answer = await tryCall(deps.url(), 'POST', '/v0/city', { body, ...(key === undefined ? {} : { key }) })
  if (answer === undefined) {
    promises.brokenCreates.push({ name, key })
    return
  }
  assert.equal(answer.status, 202, `create ${name}: ${JSON.stringify(answer.body)}`)
  promises.answered()
  promises.accept('city.create', name, answer.body)
  promises.known.add(name)
  if (key !== undefined) promises.keyed.push({ key, path: '/v0/city', body, answer })
}

async function adopt({ url, work, promises }: LoadDeps, city: string): Promise<void> {
  const answer = await tryCall(url(), 'POST', '/v0/cities', { body: { path: join(work, city) } })
  if (answer === undefined) return
  promises.answered()
  const busy = answer.status === 409 && answer.body['code'] === 'operation-in-progress'
  const leaving = answer.status === 409 && String(answer.body['detail']).includes('unregistered')
  assert.ok(
    answer.status === 202 || answer.status === 200 || busy || leaving,
    `adopt ${city}: ${JSON.stringify(answer)}`,
  )
  if (answer.status === 202) promises.accept('city.create', city, answer.body)
}

async function steer({ url, promises }: LoadDeps, city: string, verb: string): Promise<void> {
  const answer = await tryCall(url(), 'POST', `/v0/city/${city}/${verb}`)
  if (answer === undefined) return
  promises.answered()
  const allowed = verb === 'stop' ? [200, 404, 409] : [202, 404, 409]
  assert.ok(allowed.includes(answer.status), `${verb} ${city}: ${JSON.stringify(answer)}`)
  if (answer.status === 202) promises.accept(`city.${verb}`, city, answer.body)
}

/** Emits into whatever runs. */
export async function emitEvents({ random, promises, url, signal }: LoadDeps): Promise<void> {
  while (!signal.aborted) {
    const city = random.pick([...promises.known])
    if (city === undefined) {
      await pause(5)
      continue
    }
    const marker = fresh('marker-')
    const body = { type: `load.${random.pick(['a', 'b', 'c'])}`, actor: 'test', payload: { marker } }
    const key = random.chance(0.2) ? fresh('emit-key-') : undefined
    const path = `/v0/city/${city}/events`
    const answer = await tryCall(url(), 'POST', path, { body, ...(key === undefined ? {} : { key }) })
    if (answer === undefined) {
      if (key !== undefined) promises.unanswered.push({ key, path, body })
      // The server is gone; whoever starts the next one will be seen.
      await pause(10)
      continue
    }
    promises.answered()
    assert.ok([201, 404, 503].includes(answer.status), `emit to ${city}: ${JSON.stringify(answer)}`)
    if (answer.status !== 201) continue
    promises.emit(city, Number(answer.body['seq']), marker)
    if (key !== undefined) promises.keyed.push({ key, path, body, answer })
  }
}

/** Log that an event is in: the supervisor's own, or its city's (decision 12). */
export function logOf(event: Fields): string {
  const type = String(event['type'])
  const registry = /^(?:request\.|supervisor\.|city\.created$|city\.unregister_requested$)/.test(type)
  return registry ? '__supervisor__' : String(event['city'])
}

/** What one stream client saw, over all its connections. */
export class Witness {
  readonly name: string
  readonly #path: string
  readonly #deps: Pick<LoadDeps, 'url' | 'signal'>
  /** Log → seq → the event's JSON. */
  readonly seen = new Map<string, Map<number, string>>()
  lastId: string
  connections = 0
  statuses = new Map<number, number>()

  /** With a city the stream of that city, without one the stream of all. */
  constructor(path: string, cursor: string, deps: Pick<LoadDeps, 'url' | 'signal'>) {
    this.name = path
    this.#path = path
    this.lastId = cursor
    this.#deps = deps
  }

  async follow(city?: string): Promise<void> {
    const { signal, url } = this.#deps
    while (!signal.aborted) {
      const inThisConnection = new Map<string, number>()
      this.connections++
      const status = await readStream(url(), this.#path, this.lastId, signal, (frame) =>
        this.#take(frame, inThisConnection, city),
      )
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1)
      const expected = [0, 200, 503, ...(city === undefined ? [] : [404])]
      assert.ok(expected.includes(status), `${this.#path} after ${this.lastId}: ${status}`)
      if (status !== 200) await pause(50)
    }
  }

  #take({ id, event, data }: Frame, newest: Map<string, number>, city: string | undefined): void {
    if (event === 'heartbeat') return
    const log = city ?? logOf(data)
    const seq = Number(data['seq'])
    const before = newest.get(log) ?? 0
    if (seq <= before) throw new FrameError(`${this.#path}: ${log} ${seq} came after ${before} in one connection`)
    if (before > 0 && seq !== before + 1) throw new FrameError(`${this.#path}: ${log} jumped from ${before} to ${seq}`)
    if (!`,${id},`.includes(city === undefined ? `,${log}:${seq},` : `,${seq},`)) {
      throw new FrameError(`${this.#path}: the id ${id} does not name ${log}:${seq}`)
    }
    newest.set(log, seq)
    const { city: _tag, log: _log, ...envelope } = data
    const text = JSON.stringify(envelope)
    const earlier = this.seen.get(log) ?? new Map<number, string>()
    if ((earlier.get(seq) ?? text) !== text) throw new FrameError(`${this.#path}: ${log} ${seq} changed`)
    earlier.set(seq, text)
    this.seen.set(log, earlier)
    this.lastId = id
  }
}

/** What must hold of creates that a kill cut off; then they are sent again. */
export async function settleBrokenCreates(url: string, work: string, promises: Promises): Promise<number> {
  const broken = promises.brokenCreates
  promises.brokenCreates = []
  const listed = new Set((await listAll(url, '/v0/cities')).map(({ name }) => String(name)))
  for (const { name, key } of broken) {
    const dir = join(work, name)
    if (!listed.has(name)) assert.ok(!existsSync(dir), `${name} is not registered, but its create left ${dir} behind`)
    const answer = await tryCall(url, 'POST', '/v0/city', { body: { dir }, ...(key === undefined ? {} : { key }) })
    const done = answer?.status === 202 || (key === undefined && listed.has(name) && answer?.status === 409)
    assert.ok(done, `create of ${name} again: ${JSON.stringify(answer)}`)
    if (answer?.status === 202) promises.accept('city.create', name, answer.body)
    promises.known.add(name)
  }
  return broken.length
}
