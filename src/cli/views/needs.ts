/** What waits for a person, over cities. */
import type { Client } from '../../client/client.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { CityInfo } from '../../contract/cities.ts'
import type { PendingItem } from '../../contract/sessions.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { toFailure } from '../base/failure.ts'
import type { View } from '../base/in-city.ts'

export type Need = PendingItem & { readonly city: string }

export const NEED: View<Need> = {
  columns: [
    { header: 'CITY', value: ({ city }) => city },
    { header: 'SESSION', value: ({ alias, session_id }) => alias ?? session_id },
    { header: 'TEMPLATE', value: ({ template }) => template },
    { header: 'SINCE', value: ({ since }) => since, kind: 'time' },
    { header: 'KIND', value: ({ kind }) => kind },
    { header: 'PROMPT', value: ({ prompt }) => prompt },
    { header: 'OPTIONS', value: ({ options }) => options?.join(' | ') },
    { header: 'REQUEST_ID', value: ({ request_id }) => request_id, wide: true },
  ],
  name: ({ session_id }) => session_id,
}

/** Oldest first. */
export const inOrder = (needs: readonly Need[]): readonly Need[] =>
  needs.toSorted((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))

export const needOf =
  (city: string) =>
  (item: PendingItem): Need => ({ ...item, city })

export async function needsOf(client: Client, cityName: string, signal: AbortSignal): Promise<readonly Need[]> {
  const { body } = await client.call('list-pending', { params: { cityName }, query: {}, signal })
  return body.items.map(needOf(cityName))
}

/** A server is not asked about more cities at a time. */
const AT_A_TIME = 16

export const isGone = (error: unknown): boolean => error instanceof ApiProblem && error.code === 'city-not-found'

/** Asks about every city; one that cannot be asked is warned of, and is missing in the answer. */
export async function askEach<T>(
  context: Context,
  cities: readonly CityInfo[],
  ask: (city: CityInfo) => Promise<T>,
): Promise<readonly T[]> {
  const answers: T[] = []
  for (let at = 0; at < cities.length; at += AT_A_TIME) {
    const some = cities.slice(at, at + AT_A_TIME)
    const settled = await Promise.allSettled(some.map(ask))
    for (const [index, result] of settled.entries()) {
      if (result.status === 'fulfilled') answers.push(result.value)
      // It may have stopped since it was listed.
      else if (!isGone(result.reason))
        await context.note(`warning: ${some[index]?.name ?? ''}: ${toFailure(result.reason).message}`)
    }
  }
  return answers
}

/** Needs of the city in scope, else of all that run. */
export async function needsInScope(context: Context, signal: AbortSignal): Promise<readonly Need[]> {
  const client = await context.client()
  const one = await context.city(signal)
  if (one !== undefined) return inOrder(await needsOf(client, one, signal))
  const cities = (await listCities(client, signal)).filter(({ running }) => running)
  return inOrder((await askEach(context, cities, ({ name }) => needsOf(client, name, signal))).flat())
}
