/** The parts of a city, as the server has them now. */
import type { Client } from '../../client/client.ts'
import { isCityGone } from '../base/discovery.ts'
import { toFailure } from '../base/failure.ts'
import { listAll } from '../framework/paged.ts'
import { needsOf, questionsOf } from '../views/needs.ts'
import type { City, Part } from './fleet.ts'

export type Found = Omit<Partial<City>, 'info'>

/** Of a city that does not run. */
export const NOTHING = {
  status: undefined,
  sessions: [],
  agents: [],
  needs: [],
  questions: [],
  trouble: undefined,
} as const

/** A city that cannot be asked says why; one that has stopped has nothing. Throws only the signal's reason. */
export async function readCity(
  client: Client,
  cityName: string,
  parts: readonly Part[],
  signal: AbortSignal,
): Promise<Found> {
  try {
    const found = await Promise.all(parts.map((part) => readPart(client, cityName, part, signal)))
    return Object.assign({ trouble: undefined }, ...found)
  } catch (error) {
    signal.throwIfAborted()
    return isCityGone(error) ? NOTHING : { trouble: toFailure(error).message }
  }
}

async function readPart(client: Client, cityName: string, part: Part, signal: AbortSignal): Promise<Found> {
  const params = { cityName }
  switch (part) {
    case 'status':
      return { status: (await client.call('get-city-status', { params, signal })).body }
    case 'needs': {
      const [needs, questions] = await Promise.all([
        needsOf(client, cityName, { severity: 'act', signal }),
        questionsOf(client, cityName, signal),
      ])
      return { needs, questions }
    }
    case 'agents': {
      const { items } = await listAll((cursor) =>
        client.call('list-agents', { params, query: { limit: 1000, cursor }, signal }),
      )
      return { agents: items }
    }
    case 'sessions': {
      const { items } = await listAll((cursor) =>
        client.call('list-sessions', { params, query: { limit: 1000, cursor }, signal }),
      )
      return { sessions: items }
    }
  }
}
