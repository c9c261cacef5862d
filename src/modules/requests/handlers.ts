/** Handlers of accepted requests: one list over the ledgers of the supervisor and of every city it can read. */

import { DEFAULT_LIMIT } from '../../contract/base/paging.ts'
import type { RequestInfo, requestOperations } from '../../contract/requests.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { cityOf } from '../../kernel/caller.ts'
import { formatPageToken, invalidCursor, parsePageToken } from '../../kernel/cursor.ts'
import { problem } from '../../kernel/problem.ts'
import type { RequestFilter, RequestKey, RequestLedger } from '../../kernel/requests.ts'

export interface Ledger {
  /** For messages: `__supervisor__` or a city's name. */
  readonly name: string
  /** Undefined while it cannot be read. */
  readonly requests: RequestLedger | undefined
}

export function createRequestHandlers({ ledgers }: { readonly ledgers: () => readonly Ledger[] }) {
  return defineHandlers<typeof requestOperations>({
    'list-requests': ({ query, caller }) => {
      const { operation, status } = query
      const city = cityOf(caller) ?? query.city
      // Whose city it is not, for him it has no requests.
      if (query.city !== undefined && query.city !== city) return ok({ items: [], total: 0 })
      const filter: RequestFilter = {
        ...(operation === undefined ? {} : { operation }),
        ...(status === undefined ? {} : { status }),
        ...(city === undefined ? {} : { city }),
      }
      const after = query.cursor === undefined ? undefined : keyOf(query.cursor)
      const limit = query.limit || DEFAULT_LIMIT
      const failures: string[] = []
      const readable: RequestLedger[] = []
      for (const { name, requests } of ledgers()) {
        if (requests === undefined) failures.push(`${name}: its store cannot be read at the moment`)
        else readable.push(requests)
      }
      const found = newestOf(readable, filter, after, limit + 1)
      const total = readable.reduce((sum, requests) => sum + requests.count(filter), 0)
      const items = withinBytes(found.slice(0, limit))
      const last = items.at(-1)
      return ok({
        items,
        total,
        ...(found.length > items.length && last !== undefined
          ? { next_cursor: formatPageToken('request', [Date.parse(last.created_at), last.request_id]) }
          : {}),
        ...(failures.length === 0 ? {} : { partial: true, partial_errors: failures }),
      })
    },

    'get-request': ({ params, caller }) => {
      const own = cityOf(caller)
      for (const { requests } of ledgers()) {
        const found = requests?.get(params.request_id)
        if (found !== undefined && (own === undefined || found.city === own)) return ok(found)
      }
      throw problem('request-not-found', `no such request: ${params.request_id}`)
    },
  })
}

/** A page ends before it has more bytes of JSON, as one of events does. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024

/** As many as fit, and one at least: its cursor goes on behind it. */
export function withinBytes(found: readonly RequestInfo[]): RequestInfo[] {
  let room = MAX_PAGE_BYTES
  const end = found.findIndex((item, index) => {
    room -= Buffer.byteLength(JSON.stringify(item))
    return room < 0 && index > 0
  })
  return end < 0 ? [...found] : found.slice(0, end)
}

/** The newest of all ledgers. Those that have nothing so new are not looked into: most cities have been quiet for long. */
export function newestOf(
  ledgers: readonly RequestLedger[],
  filter: RequestFilter,
  after: RequestKey | undefined,
  limit: number,
): RequestInfo[] {
  let found: RequestInfo[] = []
  for (const requests of [...ledgers].sort((a, b) => b.newestAt - a.newestAt)) {
    const last = found[limit - 1]
    if (last !== undefined && Date.parse(last.created_at) > requests.newestAt) break
    found = [...found, ...requests.page(filter, after, limit)].sort(newestFirst).slice(0, limit)
  }
  return found
}

function newestFirst(a: RequestInfo, b: RequestInfo): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1
  return a.request_id < b.request_id ? 1 : -1
}

function keyOf(token: string): RequestKey {
  const [createdAt, id] = parsePageToken('request', token)
  if (typeof createdAt !== 'number' || typeof id !== 'string') throw invalidCursor('does not name a request')
  return { createdAt, id }
}
