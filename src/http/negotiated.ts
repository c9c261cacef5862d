/** What a client has already, and what it can unpack: 304 and gzip (RFC 9110 §13.1.2, §12.5.3). */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { RawBody } from '../kernel/call.ts'

/** Anything smaller fits into one packet anyway. */
const LEAST_PACKED_BYTES = 1_400
const TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|toml|xml)\b)/
/** Good enough, and several times as fast as the usual level. */
const LEVEL = 4

/** Whether `If-None-Match` names this version; how it is packed makes no difference (weak comparison). */
export function isUnchanged(etag: string, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  const named = ifNoneMatch.split(',').map((one) => one.trim())
  return named.includes('*') || named.map(withoutWeakness).includes(withoutWeakness(etag))
}

const withoutWeakness = (etag: string): string => (etag.startsWith('W/') ? etag.slice(2) : etag)

export const mayPack = ({ type, bytes }: RawBody): boolean => TEXT.test(type) && bytes.length >= LEAST_PACKED_BYTES

/** Whether gzip is among what the client takes. */
export function takesGzip(acceptEncoding: string | undefined): boolean {
  if (acceptEncoding === undefined) return false
  const weights = new Map(
    acceptEncoding.split(',').map((part) => {
      const [coding = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase())
      const weight = parameters.find((one) => one.startsWith('q='))?.slice(2)
      return [coding, weight === undefined ? 1 : Number(weight)] as const
    }),
  )
  return (weights.get('gzip') ?? weights.get('x-gzip') ?? weights.get('*') ?? 0) > 0
}

const pack = promisify(gzip)
/** Documents are the same object each time, and packed once. */
const packedBodies = new WeakMap<RawBody, Promise<Buffer>>()

/** The bytes as gzip, made off the event loop. */
export function packed(body: RawBody): Promise<Buffer> {
  const known = packedBodies.get(body)
  if (known !== undefined) return known
  const made = pack(body.bytes, { level: LEVEL })
  packedBodies.set(body, made)
  return made
}
