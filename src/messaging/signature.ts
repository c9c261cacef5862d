/**
 * Signatures of messages over HTTP, in both directions (decision 147): Standard Webhooks. What is signed is the id, the
 * time and the bytes of the body; a header may have several signatures, so that a secret can be changed without a gap.
 *
 * S1  Nothing tells by its duration how much of a signature was right.
 * S2  A message counts for five minutes: an old one that somebody recorded proves nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { randomHex } from '../kernel/ids.ts'

const SIGNATURE_HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const
export type SignatureHeader = (typeof SIGNATURE_HEADERS)[number]
/** How far the clocks of both sides may be apart. */
const MAX_SKEW_SECONDS = 300

const PREFIX = 'whsec_'
const SECRET_BYTES = { fewest: 24, most: 64 }
const MAX_ID = 256
/** Signatures of one message that are looked at: more than anybody has secrets. */
const MAX_SIGNATURES = 16
const TIMESTAMP = /^[1-9]\d{0,11}$/

/** A new one: 32 random bytes. */
export const createSecret = (): string => `${PREFIX}${Buffer.from(randomHex(32), 'hex').toString('base64')}`

/** The key of a secret; undefined for what is none: `whsec_` and the base64 of 24 to 64 bytes. */
export function secretKey(secret: string): Buffer | undefined {
  if (!secret.startsWith(PREFIX)) return undefined
  const text = secret.slice(PREFIX.length)
  const key = Buffer.from(text, 'base64')
  // What is not base64 is skipped by the decoder: another text would mean the same key.
  if (key.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) return undefined
  return key.length >= SECRET_BYTES.fewest && key.length <= SECRET_BYTES.most ? key : undefined
}

/** The three headers of a message, signed with each of the secrets. `now`: milliseconds. */
export function sign(
  secrets: readonly string[],
  id: string,
  now: number,
  body: Buffer | string,
): Readonly<Record<SignatureHeader, string>> {
  const timestamp = `${Math.floor(now / 1000)}`
  const signatures = secrets.map((secret) => `v1,${digest(secret, id, timestamp, body).toString('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

type Verdict =
  | { readonly valid: true; readonly id: string }
  /** Why not, in words that help who signs. */
  | { readonly valid: false; readonly why: string }

/** Whether one of the secrets signed this. `now`: milliseconds. */
export function verify(
  secrets: readonly string[],
  header: (name: SignatureHeader) => string | undefined,
  body: Buffer | string,
  now: number,
): Verdict {
  const [id = '', timestamp = '', given = ''] = SIGNATURE_HEADERS.map((name) => header(name)?.trim())
  if (id === '' || id.length > MAX_ID) return refused(`webhook-id is needed, of at most ${MAX_ID} characters`)
  if (!TIMESTAMP.test(timestamp)) return refused('webhook-timestamp is needed, in whole seconds since 1970')
  if (Math.abs(now / 1000 - Number(timestamp)) > MAX_SKEW_SECONDS)
    return refused('webhook-timestamp is more than five minutes away from the time here')
  const expected = secrets.map((secret) => digest(secret, id, timestamp, body))
  return givenSignatures(given).some((one) => isAmong(one, expected))
    ? { valid: true, id }
    : refused('webhook-signature has no signature (v1) of the id, the time and the bytes of this body by the secret')
}

const refused = (why: string): Verdict => ({ valid: false, why })

/** All are looked at, whichever is right (S1). */
function isAmong(one: Buffer, expected: readonly Buffer[]): boolean {
  let found = false
  for (const digest of expected) if (one.length === digest.length && timingSafeEqual(one, digest)) found = true
  return found
}

/** Of version 1; those of other versions are passed over. */
const givenSignatures = (text: string): readonly Buffer[] =>
  text
    .split(' ', MAX_SIGNATURES)
    .filter((one) => one.startsWith('v1,'))
    .map((one) => Buffer.from(one.slice('v1,'.length), 'base64'))

function digest(secret: string, id: string, timestamp: string, body: Buffer | string): Buffer {
  const key = secretKey(secret)
  if (key === undefined) throw new Error('not a secret of Standard Webhooks')
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest()
}
