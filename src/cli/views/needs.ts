/** What needs a person, over cities. */

import type { Client } from '../../client/client.ts'
import type { Need, NeedKind, NeedSeverity } from '../../contract/needs.ts'
import type { PendingItem } from '../../contract/sessions/sessions.ts'
import type { Context } from '../base/context.ts'
import { listAll } from '../framework/paged.ts'
import { view } from '../print/view.ts'

/** An open question of a session, with the city that it is of. */
export type Asked = PendingItem & { readonly city: string }

export const NEED = view<Need>()('city NAME kind since title holds_up', {
  wide: 'severity id detail COMMANDS',
  as: {
    NAME: ({ subject }) => subject.name,
    COMMANDS: ({ operations }) => operations.map(({ command }) => command).join('; '),
  },
  name: 'id',
})

/** Questions of the sessions of a city, as they can be answered. */
export async function questionsOf(client: Client, cityName: string, signal: AbortSignal): Promise<readonly Asked[]> {
  const { body } = await client.call('list-pending', { params: { cityName }, query: {}, signal })
  return body.items.map((item) => ({ ...item, city: cityName }))
}

/** Those of one severity, or of both, in the order of the server. */
export async function needsOf(
  client: Client,
  cityName: string,
  { severity, signal }: { readonly severity?: NeedSeverity | undefined; readonly signal: AbortSignal },
): Promise<readonly Need[]> {
  const { items } = await listAll((cursor) =>
    client.call('list-city-needs', { params: { cityName }, query: { severity, limit: 1000, cursor }, signal }),
  )
  return items
}

/** Which needs are meant; absent: all that are not snoozed. */
export interface NeedQuery {
  readonly severity?: NeedSeverity | undefined
  readonly kind?: NeedKind[] | undefined
  readonly snoozed?: boolean | undefined
}

/** Needs of the city in scope, else of all cities, also of those that could not start. */
export async function needsInScope(
  context: Context,
  { signal, ...filter }: NeedQuery & { readonly signal: AbortSignal },
): Promise<readonly Need[]> {
  const client = await context.client()
  const city = await context.city(signal)
  const { items } = await listAll((cursor) =>
    client.call('list-needs', { query: { ...filter, city, limit: 1000, cursor }, signal }),
  )
  return items
}
