/** Two ways into the same work: the handlers of one city in this process, and a real supervisor over HTTP. */

import assert from 'node:assert/strict'
import type { Operation } from '../../src/contract/base/operation.ts'
import { beadOperations } from '../../src/contract/beads.ts'
import { validate } from '../../src/http/input/validation.ts'
import { bindHandlers } from '../../src/http/operations.ts'
import type { Reply } from '../../src/kernel/call.ts'
import { OWNER } from '../../src/kernel/caller.ts'
import { toProblem } from '../../src/kernel/problem.ts'
import { createBeadHandlers } from '../../src/modules/beads/handlers.ts'
import { createInterchangeHandlers } from '../../src/modules/beads/interchange-handlers.ts'
import { createBeadReadHandlers } from '../../src/modules/beads/read-handlers.ts'
import { leaseTimer } from '../../src/modules/beads/work/lease.ts'
import type { BeadCity } from './bead-city.ts'
import type { ModelEvent } from './bead-model.ts'
import { asMap, type Fields } from './document.ts'
import { settled } from './manual-clock.ts'
import { openWorkStore } from './work-store.ts'

export type BeadOperationId = (typeof beadOperations)[number]['id']

export interface Asked {
  /** Path parameters beside the city's name. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Fields
  readonly body?: object | undefined
  readonly ifMatch?: string | undefined
}
export interface Told {
  readonly status: number
  readonly body: Fields
  readonly etag: string | undefined
}

export interface BeadDoor {
  /** The city's time. */
  now(): number
  /** Lets time go by. */
  pass(ms: number): Promise<void>
  ask(id: BeadOperationId, asked: Asked): Promise<Told>
  /** What was said about beads since the last look. */
  news(): Promise<readonly ModelEvent[]>
}

const OPERATIONS: ReadonlyMap<string, Operation> = new Map(beadOperations.map((one) => [one.id, one]))

function operationOf(id: BeadOperationId): Operation {
  const operation = OPERATIONS.get(id)
  assert.ok(operation)
  return operation
}

/** Handlers on a database of their own, whose time stands still until it is told to go on. */
export function openDoor(): BeadDoor & Disposable {
  const city = openWorkStore((expiresAt) => timer.noticed(expiresAt))
  const { clock, store, claims } = city
  const fail = (entry: unknown) => assert.fail(JSON.stringify(entry))
  const log = { error: fail, warn: fail, info() {}, debug() {}, isLevelEnabled: () => false }
  const timer = leaseTimer({ db: store.db, claims, clock, log })
  void timer.start()
  const bound = bindHandlers(beadOperations, {
    ...createBeadHandlers(city),
    ...createBeadReadHandlers(city),
    ...createInterchangeHandlers(city),
  })
  const { signal } = new AbortController()
  let seen = 0

  const run = async (operation: Operation, { params, query = {}, body, ifMatch }: Asked): Promise<Reply> => {
    const handler = bound.get(operation.id)
    assert.ok(handler?.kind === 'reply')
    if (operation.query !== undefined) validate(operation.query, query, 'query')
    if (operation.body !== undefined && !(operation.bodyOptional && body === undefined))
      validate(operation.body, body, 'body')
    const header = (name: string) => (name.toLowerCase() === 'if-match' ? ifMatch : undefined)
    const path = { cityName: city.name, ...params }
    return handler.run({
      operation,
      city,
      params: path,
      query,
      body,
      header,
      claim: undefined,
      requestId: '',
      signal,
      caller: OWNER,
      actor: 'api',
    })
  }

  return {
    now: () => clock.now(),
    async pass(ms) {
      await clock.advance(ms)
      // A lapse is a write of its own.
      for (let turn = 0; turn < 100 && (claims.nextExpiry() ?? Number.POSITIVE_INFINITY) <= clock.now(); turn++)
        await settled()
    },
    async ask(id, asked) {
      const operation = operationOf(id)
      try {
        const { status, body, headers } = await run(operation, asked)
        const schema = operation.replies[status]
        assert.ok(schema, `${id} does not declare ${status}`)
        const sent: unknown = JSON.parse(JSON.stringify(body))
        validate(schema, sent, 'reply')
        return { status, body: asMap(sent), etag: headers?.['ETag'] }
      } catch (error) {
        const refused = toProblem(error)
        if (refused.code === 'internal' || refused.detail.includes('reply')) throw error
        return { status: refused.status, body: { code: refused.code, detail: refused.detail }, etag: undefined }
      }
    },
    async news() {
      const { events } = store.log.scan({}, { after: seen, upTo: store.log.head }, 'asc', 10_000)
      seen = store.log.head
      return events.map(({ envelope }) => toEvent(asMap(JSON.parse(envelope))))
    },
    [Symbol.dispose]() {
      void timer.stop()
      city[Symbol.dispose]()
    },
  }
}

/** A city that runs, over HTTP; `clock` is its supervisor's. */
export async function doorTo(city: BeadCity, clock: Pick<BeadDoor, 'now' | 'pass'>): Promise<BeadDoor> {
  let seen = await city.head()
  return {
    ...clock,
    async ask(id, { params = {}, query = {}, body, ifMatch }) {
      const { method, path } = operationOf(id)
      const filled = path
        .replace('/v0/city/{cityName}/beads', '')
        .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
      const answer = await city.send(method, `${filled}${searchOf(query)}`, body, { 'if-match': ifMatch })
      return { status: answer.status, body: asMap(answer.body), etag: answer.headers.etag }
    },
    async news() {
      const events = await city.events(seen)
      seen = events.at(-1)?.seq ?? seen
      return events.map(toEvent)
    },
  }
}

function searchOf(query: Fields): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)]),
  )
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs).toString()}`
}

const toEvent = (event: { readonly [name: string]: unknown } | object): ModelEvent => {
  const { type, actor, subject, payload } = asMap(event)
  return { type: String(type), actor: String(actor), subject: String(subject), payload: asMap(payload) }
}
