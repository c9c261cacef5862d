/**
 * The log of a harness with stars in the place of the session's tokens: the harness writes it itself, with all that its tools
 * have printed. Offsets stay. Of the token for the API only the hash is known, so words of its shape are hashed.
 */
import { marginOf, maskAll } from '../../../kernel/masking.ts'
import { accessHash } from '../record/access.ts'
import type { SessionRecord } from '../record/record.ts'
import type { ByteLog } from './entries.ts'

const ACCESS = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g
/** A word of this length, with the letters before and behind it. */
const MARGIN = 65

export function maskedLog(log: ByteLog, { token, access_hash }: Pick<SessionRecord, 'token' | 'access_hash'>): ByteLog {
  const exact = token === undefined ? [] : [Buffer.from(token)]
  const margin = Math.max(MARGIN, marginOf(exact))
  return {
    startOffset: () => log.startOffset(),
    endOffset: () => log.endOffset(),
    async read(offset, maxBytes) {
      const from = Math.max(0, offset - margin)
      const read = await log.read(from, maxBytes + (offset - from) + margin)
      const bytes = maskAll(Buffer.from(read.bytes), [...exact, ...accessIn(read.bytes, access_hash)])
      const at = Math.max(offset, read.offset)
      return { offset: at, bytes: bytes.subarray(at - read.offset, at - read.offset + maxBytes) }
    },
  }
}

function accessIn(bytes: Buffer, hash: string | undefined): readonly Buffer[] {
  if (hash === undefined) return []
  const words = new Set([...bytes.toString('latin1').matchAll(ACCESS)].map(([word]) => word))
  return [...words].filter((word) => accessHash(word) === hash).map((word) => Buffer.from(word))
}
