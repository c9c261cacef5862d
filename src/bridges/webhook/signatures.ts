/**
 * Who sent a webhook, by the signature over the bytes of its body (decision 162). Nothing of a request counts before.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { secretKey, verify } from '../../messaging/signature.ts'

export const STYLES = ['github', 'slack', 'standard'] as const
export type Style = (typeof STYLES)[number]

/** How far the clocks of both sides may be apart. */
const MAX_SKEW_SEC = 300

export type Verdict =
  /** `id`: what the sender calls this delivery, where the signature covers it or nothing hangs on it. */
  { readonly valid: true; readonly id: string | undefined } | { readonly valid: false; readonly why: string }

export type Verifier = (headers: IncomingHttpHeaders, body: Buffer, nowMs: number) => Verdict

/** What is wrong with a secret of this style; undefined: nothing. */
export function secretFault(style: Style, secret: string): string | undefined {
  if (style !== 'standard') return undefined
  return secretKey(secret) === undefined
    ? 'a secret of Standard Webhooks is whsec_ and the base64 of 24 to 64 bytes'
    : undefined
}

export function verifierOf(style: Style, secret: string): Verifier {
  if (style === 'github') return (headers, body) => verifyGithub(secret, headers, body)
  if (style === 'slack') return (headers, body, now) => verifySlack(secret, headers, body, now)
  return (headers, body, now) => verify([secret], (name) => one(headers[name]), body, now)
}

const one = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined

/** Of GitHub's headers only the signature proves anything, and it covers the body alone. */
function verifyGithub(secret: string, headers: IncomingHttpHeaders, body: Buffer): Verdict {
  const given = one(headers['x-hub-signature-256'])
  if (given === undefined) return refused('X-Hub-Signature-256 is missing')
  const [, digest = ''] = /^sha256=([0-9a-f]{64})$/.exec(given) ?? []
  if (digest === '') return refused('X-Hub-Signature-256 is not sha256= and 64 hex digits')
  if (!same(digest, createHmac('sha256', secret).update(body).digest('hex'))) return refused('the signature is wrong')
  return { valid: true, id: one(headers['x-github-delivery']) }
}

function verifySlack(secret: string, headers: IncomingHttpHeaders, body: Buffer, nowMs: number): Verdict {
  const given = one(headers['x-slack-signature'])
  const timestamp = one(headers['x-slack-request-timestamp'])
  if (given === undefined || timestamp === undefined)
    return refused('X-Slack-Signature or X-Slack-Request-Timestamp is missing')
  if (!/^[1-9]\d{0,11}$/.test(timestamp)) return refused('X-Slack-Request-Timestamp is not seconds')
  const [, digest = ''] = /^v0=([0-9a-f]{64})$/.exec(given) ?? []
  if (digest === '') return refused('X-Slack-Signature is not v0= and 64 hex digits')
  const expected = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')
  if (!same(digest, expected)) return refused('the signature is wrong')
  if (Math.abs(nowMs / 1000 - Number(timestamp)) > MAX_SKEW_SEC) return refused('the timestamp is too far from now')
  return { valid: true, id: undefined }
}

const refused = (why: string): Verdict => ({ valid: false, why })

/** Takes as long wherever they differ. */
const same = (given: string, expected: string): boolean =>
  given.length === expected.length && timingSafeEqual(Buffer.from(given), Buffer.from(expected))
