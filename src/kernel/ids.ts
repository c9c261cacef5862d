/** Ids: everything is prefixed and unguessable, except where the order of making it matters. */
import { randomBytes } from 'node:crypto'

export interface Ids {
  /** Tag of this host in request ids: 6 hex digits (decision 74). */
  readonly hostTag: string
  requestId(): string
}

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex')

export function createIds(hostId: string): Ids {
  const hostTag = hostId.slice(-6)
  return { hostTag, requestId: () => `req-${hostTag}${randomHex(9)}` }
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A ULID: sortable by time of making, 80 random bits. */
export function ulid(now: number): string {
  let time = ''
  for (let rest = now, i = 0; i < 10; i++) {
    time = CROCKFORD.charAt(rest % 32) + time
    rest = Math.floor(rest / 32)
  }
  return time + [...randomBytes(16)].map((byte) => CROCKFORD.charAt(byte % 32)).join('')
}

const HTTP_PREFIX = randomHex(4)
let httpCount = 0
/** Id of one HTTP request: 16 hex digits, unique over restarts; cheaper than fresh random bytes for each. */
export function httpRequestId(): string {
  httpCount = (httpCount + 1) % 0xffffffff
  return HTTP_PREFIX + httpCount.toString(16).padStart(8, '0')
}
