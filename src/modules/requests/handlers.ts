/** Handlers of accepted requests: one list over the ledgers of the supervisor and of every city it can read. */

import type { RequestInfo, requestOperations } from '../../contract/requests.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { cityOf } from '../../kernel/caller.ts'
import { Page } from '../../kernel/page.ts'
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
      const page = new Page('request', ['number', 'string'], query)
      const failures: string[] = []
      const readable: RequestLedger[] = []
      for (const { name, requests } of ledgers()) {
        if (requests === undefined) failures.push(`${name}: its store cannot be read at the moment`)
        else readable.push(requests)
      }
      const shown = page.of(newestOf(readable, filter, page.after, page.ask), ({ created_at, request_id }) => [
        Date.parse(created_at),
        request_id,
      ])
      return ok({
        ...shown,
        total: readable.reduce((sum, requests) => sum + requests.count(filter), 0),
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
