/** Ids: everything is prefixed and unguessable, except where the order of making it matters. */
import { randomBytes } from 'node:crypto'

export interface Ids {
  /** Tag of this host in request ids: 6 hex digits (decision 74). */
  readonly hostTag: string
  requestId(): string
}

/** What ids need at once; larger ones are secrets, of which nothing stays in a pool. */
const MAX_POOLED = 16
let pool = Buffer.alloc(0)

/** Random bytes, none of them twice; many at a time are drawn, for a few cost as much as thousands. */
function draw(bytes: number): Buffer {
  if (pool.length < bytes) pool = randomBytes(4096)
  const drawn = pool.subarray(0, bytes)
  pool = pool.subarray(bytes)
  return drawn
}

export const randomHex = (bytes: number): string =>
  (bytes > MAX_POOLED ? randomBytes(bytes) : draw(bytes)).toString('hex')

export function createIds(hostId: string): Ids {
  const hostTag = hostId.slice(-6)
  return { hostTag, requestId: () => `req-${hostTag}${randomHex(9)}` }
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

let lastUlidMs = -1
let lastDigits: readonly number[] = []

/** A ULID: sortable by time of making, 80 random bits; of those made in one millisecond each is the next after the one before. */
export function ulid(now: number): string {
  let time = ''
  for (let rest = now, i = 0; i < 10; i++) {
    time = CROCKFORD.charAt(rest % 32) + time
    rest = Math.floor(rest / 32)
  }
  lastDigits = now === lastUlidMs ? successor(lastDigits) : [...randomBytes(16)].map((byte) => byte % 32)
  lastUlidMs = now
  return time + lastDigits.map((digit) => CROCKFORD.charAt(digit)).join('')
}

function successor(digits: readonly number[]): readonly number[] {
  const at = digits.findLastIndex((digit) => digit < 31)
  return digits.map((digit, index) => (index < at ? digit : index === at ? digit + 1 : 0))
}

const HTTP_PREFIX = randomHex(4)
let httpCount = 0
/** Id of one HTTP request: 16 hex digits, unique over restarts; cheaper than fresh random bytes for each. */
export function httpRequestId(): string {
  httpCount = (httpCount + 1) % 0xffffffff
  return HTTP_PREFIX + httpCount.toString(16).padStart(8, '0')
}

/** Random text of lower-case letters and digits. */
export function randomBase36(length: number): string {
  let text = ''
  while (text.length < length) {
    const [byte = 0] = draw(1)
    // 252 is a multiple of 36: higher bytes would favour some letters.
    if (byte < 252) text += (byte % 36).toString(36)
  }
  return text
}

/** A whole number from 0 up to `limit`, which is not among them; not for secrets. */
export const randomBelow = (limit: number): number => Math.floor(Math.random() * limit)
