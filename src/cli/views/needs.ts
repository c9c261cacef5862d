/** What waits for a person, over cities. */

import type { Client } from '../../client/client.ts'
import type { PendingItem } from '../../contract/sessions/sessions.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { EXIT } from '../base/failure.ts'
import { askEach } from '../framework/each-city.ts'
import { view } from '../print/view.ts'

export type Need = PendingItem & { readonly city: string }

export const NEED = view<Need>()('city SESSION template since kind prompt OPTIONS', {
  wide: 'request_id',
  as: { SESSION: ({ alias, session_id }) => alias ?? session_id, OPTIONS: ({ options }) => options?.join(' | ') },
  name: 'session_id',
})

/** Oldest first. */
export const inOrder = (needs: readonly Need[]): readonly Need[] =>
  needs.toSorted((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))

const needOf =
  (city: string) =>
  (item: PendingItem): Need => ({ ...item, city })

export async function needsOf(client: Client, cityName: string, signal: AbortSignal): Promise<readonly Need[]> {
  const { body } = await client.call('list-pending', { params: { cityName }, query: {}, signal })
  return body.items.map(needOf(cityName))
}

/** Needs of the city in scope, else of all that run; not 0 where one of them could not be asked. */
export async function needsInScope(
  context: Context,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Need[]; readonly exitCode: number }> {
  const client = await context.client()
  const one = await context.city(signal)
  if (one !== undefined) return { items: inOrder(await needsOf(client, one, signal)), exitCode: EXIT.ok }
  const cities = (await listCities(client, signal)).filter(({ running }) => running)
  const { answers, exitCode } = await askEach(context, cities, ({ name }) => needsOf(client, name, signal))
  return { items: inOrder(answers.flat()), exitCode }
}
