/**
 * What of the headers passes (decisions 172, 173): lines as they were written, in their order, but for those that are about one
 * connection, and what clients say that only we can know.
 */
import { problem } from '../../kernel/problem.ts'
import type { ReplyHead } from './reply-reader.ts'

/** How the body of a request ends. */
export type Framing = { readonly kind: 'none' } | { readonly kind: 'length' } | { readonly kind: 'chunked' }

export interface RawRequest {
  readonly method: string
  readonly rawHeaders: readonly string[]
  readonly httpVersionMinor: number
}

/** Of one connection (RFC 9110 §7.6.1), beside what `Connection` lists. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])
/** Said by us. */
const OURS = new Set(['forwarded', 'x-real-ip'])
/** Whatever `Connection` lists: without them nobody could tell where a request ends, or whom it is for. */
const NEVER_LISTED = new Set(['content-length', 'host'])
/** Private services say nothing about what pages of other origins may do, or our own. */
const ABOUT_ORIGINS = new Set(['service-worker-allowed', 'clear-site-data', 'alt-svc', 'strict-transport-security'])
const NO_FRAMING: Framing = { kind: 'none' }

/** Refuses what the next server might read in another way than we do. */
export function framingOf({ rawHeaders, httpVersionMinor }: Omit<RawRequest, 'method'>): Framing {
  let framing = NO_FRAMING
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    // Of these lengths are `host`, `content-length` and `transfer-encoding`: the others need no second look.
    if (name.length !== 4 && name.length !== 14 && name.length !== 17) continue
    const lower = name.toLowerCase()
    const value = rawHeaders[i + 1] ?? ''
    if (lower === 'host') hosts++
    else if (lower === 'content-length') framing = framed(framing, lengthFraming(value))
    else if (lower === 'transfer-encoding') framing = framed(framing, chunkedFraming(value, httpVersionMinor))
  }
  if (hosts > 1 || (hosts === 0 && httpVersionMinor > 0))
    throw problem('invalid-request', 'a request has one Host header')
  return framing
}

function framed(before: Framing, found: Framing): Framing {
  if (before !== NO_FRAMING) throw problem('invalid-request', 'the length of the body is said twice')
  return found
}

function lengthFraming(value: string): Framing {
  if (!/^\d{1,15}$/.test(value)) throw problem('invalid-request', 'the Content-Length is no length')
  return { kind: Number(value) === 0 ? 'none' : 'length' }
}

function chunkedFraming(value: string, minor: number): Framing {
  if (minor === 0) throw problem('invalid-request', 'HTTP/1.0 has no Transfer-Encoding')
  if (value.toLowerCase() !== 'chunked') throw problem('unsupported', 'of transfer codings only chunked is passed on')
  return { kind: 'chunked' }
}

export interface RequestChange {
  /** What the service is asked. */
  readonly target: string
  /** It replaces the Host header, where the target of the request named it. */
  readonly authority: string | undefined
  readonly framing: Framing
  /** Where the connection is to speak another protocol. */
  readonly upgrades: boolean
  readonly keepAlive: boolean
  /** Lines that are added, each with its end. */
  readonly added: string
  /** Whether it holds a token of ours, which no service gets to see. */
  isOurs(authorization: string): boolean
}

/** The head for the service. */
export function requestHead({ method, rawHeaders, httpVersionMinor }: RawRequest, change: RequestChange): string {
  const listed = listedIn(rawHeaders)
  let head = `${method} ${change.target} HTTP/1.1\r\n`
  let hasHost = false
  let trailers = false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    const lower = name.toLowerCase()
    if (lower === 'host') {
      hasHost = true
      head += `${name}: ${change.authority ?? value}\r\n`
    } else if (lower === 'upgrade' && change.upgrades) head += `${name}: ${value}\r\n`
    else if (lower === 'te') trailers ||= /\btrailers\b/i.test(value)
    else if (passes(lower, listed) && !(lower === 'authorization' && change.isOurs(value)))
      head += `${name}: ${value}\r\n`
  }
  if (!hasHost && httpVersionMinor === 0) head += `Host: ${change.authority ?? 'localhost'}\r\n`
  if (change.framing.kind === 'chunked') head += 'Transfer-Encoding: chunked\r\n'
  if (trailers) head += 'TE: trailers\r\n'
  const connection = change.upgrades ? 'Upgrade' : change.keepAlive ? 'keep-alive' : 'close'
  return `${head}${change.added}Connection: ${trailers ? `${connection}, TE` : connection}\r\n\r\n`
}

/** What only we can know: who asks, and for what. */
export function forwardedLines(address: string, host: string, prefix: string): string {
  const from = address.startsWith('::ffff:') ? address.slice(7) : address
  return `X-Forwarded-For: ${from}\r\nX-Forwarded-Host: ${host}\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Prefix: ${prefix}\r\n`
}

const passes = (lower: string, listed: ReadonlySet<string> | undefined): boolean =>
  !HOP_BY_HOP.has(lower) &&
  !OURS.has(lower) &&
  !lower.startsWith('x-forwarded-') &&
  (listed === undefined || !listed.has(lower) || NEVER_LISTED.has(lower))

/** Names that stand in `Connection`, in lower case; undefined where it lists no other header, as almost always. */
function listedIn(fields: readonly string[]): ReadonlySet<string> | undefined {
  let listed: Set<string> | undefined
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (name.length !== 10 || name.toLowerCase() !== 'connection') continue
    for (const option of (fields[i + 1] ?? '').split(',')) {
      const lower = option.trim().toLowerCase()
      if (lower === '' || lower === 'close' || lower === 'keep-alive' || lower === 'upgrade') continue
      listed ??= new Set()
      listed.add(lower)
    }
  }
  return listed
}

export interface ReplyChange {
  readonly direct: boolean
  readonly sandbox: boolean
  /** The connection speaks another protocol from here on. */
  readonly switches: boolean
  /** Whether a trailer may follow. */
  readonly trailers: boolean
}

/** The headers for the client, names and values in turn. */
export function replyHeaders({ headers, status, body }: ReplyHead, change: ReplyChange): string[] {
  const listed = listedIn(headers)
  const kept: string[] = []
  let hasLength = body === 'chunked' || status === 204 || change.switches
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    const lower = name.toLowerCase()
    if (lower === 'content-length') {
      if (hasLength) continue
      hasLength = true
    } else if (lower === 'upgrade' && change.switches) kept.push('Connection', 'Upgrade')
    else if (isDropped(lower, listed, change)) continue
    kept.push(name, value)
  }
  // A page of a service would be one of ours to a browser, with all that our API lets do (sheet 09 §10). What is no page stays as
  // it is; no list of types would do, for browsers take `text/plain, text/html`, and what they cannot read, for one too.
  if (change.sandbox && status >= 200) kept.push('Content-Security-Policy', 'sandbox allow-scripts allow-forms')
  return kept
}

function isDropped(lower: string, listed: ReadonlySet<string> | undefined, { direct, trailers }: ReplyChange): boolean {
  if (HOP_BY_HOP.has(lower) || ABOUT_ORIGINS.has(lower) || lower === 'x-svc-request-id') return true
  if (lower === 'trailer' && !trailers) return true
  if (!direct && lower.startsWith('access-control-')) return true
  return listed?.has(lower) === true && !NEVER_LISTED.has(lower)
}

/** What may stand in a trailer: nothing that says where a message ends, whom it is for, or who sent it (RFC 9110 §6.5.1). */
export function passingTrailers(fields: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const lower = (fields[i] ?? '').toLowerCase()
    if (!passes(lower, undefined) || NOT_IN_TRAILERS.has(lower) || lower.startsWith('access-control-')) continue
    kept.push(fields[i] ?? '', fields[i + 1] ?? '')
  }
  return kept
}

const NOT_IN_TRAILERS = new Set([
  'authorization',
  'content-length',
  'cookie',
  'host',
  'set-cookie',
  'trailer',
  'x-svc-request',
  'x-svc-request-id',
])
