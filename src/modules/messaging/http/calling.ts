/** The adapter that calls an operation of its own. */
import type { Call } from '../../../kernel/call.ts'
import type { Adapter } from '../adapters/adapter.ts'
import type { Proof } from '../adapters/credentials.ts'
import type { MessagingCity } from './city.ts'

interface ByAdapter extends Pick<Call, 'header' | 'bytes'> {
  readonly city: MessagingCity
  readonly params: { readonly provider: string; readonly accountId: string }
}

export interface Calling {
  readonly adapter: Adapter
  /** How it has shown that it is the adapter. */
  readonly proof: Proof
}

/** 401 where it is not shown to be the adapter; else its lease begins anew. */
export function calling({ city, params, header, bytes }: ByAdapter): Calling {
  const adapter = city.adapters.need(params.provider, params.accountId)
  const proof = city.authenticator.prove(adapter, { header, bytes })
  city.adapters.touch(adapter)
  return { adapter, proof }
}
