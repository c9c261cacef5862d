/** Steps of a command that are calls of their own, in the city in scope. */

import type { CallOptions, Client } from '../../client/client.ts'
import type { Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'

export interface InCity {
  readonly context: Context
  readonly client: Client
  readonly cityName: string
  readonly input: Input
  /** For every call: its time limit. */
  readonly options: CallOptions & { readonly signal: AbortSignal }
}

/** Calls within the time limit of an ordinary request. */
export async function inCity<T>(context: Context, input: Input, work: (city: InCity) => Promise<T>): Promise<T> {
  using limit = context.within()
  const { signal } = limit
  const cityName = await context.needCity(undefined, signal)
  return await work({ context, client: await context.client(), cityName, input, options: { signal } })
}
