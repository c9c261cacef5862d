/** Who speaks as an adapter: whoever has its secret, or has signed with it (decision 148). */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../../kernel/clock.ts'
import { type Problem, problem } from '../../../kernel/problem.ts'
import { verify } from '../../../messaging/signature.ts'
import { type AdapterKey, nameOfKey } from './adapter.ts'
import type { Adapters } from './registry.ts'

/** What a request shows of itself. */
export interface Credentials {
  readonly header: (name: string) => string | undefined
  /** Of the body, as it came. */
  readonly bytes?: Buffer | undefined
}

/** How it was shown. */
export type Proof =
  /** It has no secret: whoever may use the API speaks for it. */
  | { readonly by: 'nobody' }
  | { readonly by: 'secret' }
  /** `id`: of the message that is signed; the same again is the same message. */
  | { readonly by: 'signature'; readonly id: string }

const SECRET = /^bearer +(whsec_\S+)$/i

export const bearerSecret = (header: Credentials['header']): string | undefined =>
  SECRET.exec(header('authorization') ?? '')?.[1]
export const isSigned = (header: Credentials['header']): boolean => header('webhook-signature') !== undefined

export class Authenticator {
  readonly #adapters: Adapters
  readonly #clock: Clock

  constructor(adapters: Adapters, clock: Clock) {
    this.#adapters = adapters
    this.#clock = clock
  }

  /** 401 where a secured adapter is not shown to be the caller; 403 where another one is. */
  prove(adapter: AdapterKey, { header, bytes }: Credentials, told?: string): Proof {
    const secrets = this.#adapters.secrets(adapter).map(({ secret }) => secret)
    if (secrets.length === 0) return { by: 'nobody' }
    const given = told ?? bearerSecret(header)
    if (given !== undefined) {
      if (isAmong(given, secrets)) return { by: 'secret' }
      throw this.#wrong(adapter, given)
    }
    if (!isSigned(header))
      throw unproven(adapter, 'its secret as bearer, or a signature of Standard Webhooks, is needed')
    const verdict = verify(secrets, header, bytes ?? Buffer.alloc(0), this.#clock.now())
    if (!verdict.valid) throw unproven(adapter, verdict.why)
    return { by: 'signature', id: verdict.id }
  }

  #wrong(adapter: AdapterKey, given: string): Problem {
    const other = this.#adapters.bySecret(given)
    if (other === undefined) return unproven(adapter, 'this is not its secret')
    return problem('forbidden', `this is the secret of ${nameOfKey(other)}, not of ${nameOfKey(adapter)}`)
  }
}

const unproven = (adapter: AdapterKey, why: string): Problem =>
  problem('unauthorized', `the adapter ${nameOfKey(adapter)} has a secret: ${why}`)

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

function isAmong(given: string, secrets: readonly string[]): boolean {
  const wanted = digest(given)
  let found = false
  for (const secret of secrets) if (timingSafeEqual(wanted, digest(secret))) found = true
  return found
}
