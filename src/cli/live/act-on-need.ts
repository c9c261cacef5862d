/** What a person decides about a need, carried out. */
import type { Client } from '../../client/client.ts'
import type { Need } from '../../contract/needs.ts'

type NeedOperation = Need['operations'][number]

interface Where {
  readonly client: Client
  readonly city: string
  readonly signal: AbortSignal
}

type Act = (where: Where, params: NeedOperation['params']) => Promise<unknown>

/** Those that change something; the others show something, and are typed by whoever wants to see it. */
const ACTS: Readonly<Record<string, Act>> = {
  'close-bead': ({ client, city, signal }, { id = '', outcome }) =>
    client.call('close-bead', {
      params: { cityName: city, id },
      body: outcome === 'fail' ? { outcome, failure_class: 'hard', failure_reason: 'rejected' } : { outcome: 'pass' },
      signal,
    }),
  'retry-molecule': ({ client, city, signal }, { id = '' }) =>
    client.call('retry-molecule', { params: { cityName: city, id }, signal }),
  'wake-session': ({ client, city, signal }, { id = '' }) =>
    client.call('wake-session', { params: { cityName: city, id }, signal }),
  'restart-service': ({ client, city, signal }, { name = '' }) =>
    client.call('restart-service', { params: { cityName: city, name }, signal }),
}

/** True where it was done; false where it is a command for whoever looks. */
export async function actOn(where: Where, { operation, params }: NeedOperation): Promise<boolean> {
  const act = ACTS[operation]
  if (act === undefined) return false
  await act(where, params)
  return true
}
