/** Everything that a call can throw, besides the reason of its own signal. */
import type { ErrorDetail } from '../contract/base/problems.ts'
import { cut } from '../contract/base/text.ts'

/** The server answered with Problem Details (or with an error that is not one, from something in between). */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  /** kebab-case, for example `city-not-found`; `http-502` where the answer was no Problem Details. */
  readonly code: string
  readonly detail: string
  readonly title: string | undefined
  readonly errors: readonly ErrorDetail[]
  readonly requestId: string | undefined
  readonly retryAfterSec: number | undefined
  /** The whole problem object as sent. */
  readonly body: Readonly<Record<string, unknown>>

  constructor(status: number, headers: Pick<Headers, 'get'>, text: string) {
    const body = parseObject(text)
    const title = textOf(body['title'])
    const detail = textOf(body['detail']) ?? title ?? foreignDetail(status, text)
    super(detail)
    this.status = status
    this.detail = detail
    this.title = title
    this.code = textOf(body['code']) ?? `http-${status}`
    this.errors = Array.isArray(body['errors']) ? body['errors'].filter(isErrorDetail) : []
    this.requestId = headers.get('x-svc-request-id') ?? undefined
    this.retryAfterSec = retryAfterSec(headers)
    this.body = body
  }
}

/** The page of another program, or of a proxy: as much as fits a sentence. */
function foreignDetail(status: number, text: string): string {
  const words = cut(text, 2_000).replaceAll(/<(style|script)\b.*?<\/\1>|<[^>]*>/gis, ' ')
  const said = cut(words.replaceAll(/\s+/g, ' ').trim(), 100)
  return `HTTP ${status}, and not from a svcctl server${said === '' ? '' : `: ${said}`}`
}

/** A parameter of the path that no path can have: nothing was sent. */
export class BadParameter extends Error {
  override readonly name = 'BadParameter'
  readonly parameter: string
  /** What is wrong with it. */
  readonly why: string

  constructor(parameter: string, why: string) {
    super(`the path parameter ${parameter} ${why}`)
    this.parameter = parameter
    this.why = why
  }
}

/** No answer came: refused, reset, no such host, or silence. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable'
  readonly url: string
  /** In words, for example `connection refused`. */
  readonly reason: string
  /** Nothing listens there. */
  readonly refused: boolean
  /** Nothing has this name. */
  readonly unknownHost: boolean
  /** No connection came about: the request cannot have had an effect. */
  readonly unsent: boolean

  constructor(url: string, cause: unknown) {
    const { code, reason } = explain(cause)
    super(`cannot reach ${url}: ${reason}`, { cause })
    this.url = url
    this.reason = reason
    this.unknownHost = code === 'ENOTFOUND'
    this.refused = code === 'ECONNREFUSED' || this.unknownHost || code === GONE
    this.unsent = this.refused || (code !== undefined && UNCONNECTED.includes(code))
  }
}

/** What is sent and how often it may be: enough to ask what became of it. */
export interface SentRequest {
  readonly method: string
  readonly path: string
  /** Its Idempotency-Key, where it has one. */
  readonly key: string | undefined
}

/** A change was sent and no answer came: it may have been done. */
export class LostReply extends Error {
  override readonly name = 'LostReply'
  readonly request: SentRequest

  constructor(request: SentRequest, cause: unknown) {
    const why = cause instanceof Unreachable ? cause.reason : cause instanceof Error ? cause.message : 'no answer'
    super(`${request.method} ${request.path} was sent and no answer came (${why}): whether it was done is not known`, {
      cause,
    })
    this.request = request
  }
}

/** A server that is known to have ended; what listens there now is another program. */
export const serverGone = (url: string): Unreachable =>
  new Unreachable(url, Object.assign(new Error(REASONS[GONE]), { code: GONE }))

/** The answer is not what the contract says: broken JSON, a frame without its fields, another media type. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

const GONE = 'ESRCH'
const UNCONNECTED: readonly string[] = ['EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  [GONE]: 'that server has ended',
  ENOTFOUND: 'no such host',
  EPROTO: 'what listens there does not speak TLS',
  EAI_AGAIN: 'name look-up failed',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'network unreachable',
  ETIMEDOUT: 'connection timed out',
  UND_ERR_SOCKET: 'connection reset',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
  UND_ERR_HEADERS_TIMEOUT: 'no answer',
  UND_ERR_BODY_TIMEOUT: 'no answer',
}

// `fetch` says only "fetch failed"; Node puts the real reason into `cause`, browsers tell nothing more.
function explain(thrown: unknown): { code: string | undefined; reason: string } {
  const inner = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const code = inner instanceof Error && 'code' in inner && typeof inner.code === 'string' ? inner.code : undefined
  const message = inner instanceof Error ? inner.message : String(inner)
  if (code?.startsWith('HPE_')) return { code, reason: 'what listens there does not speak HTTP' }
  return { code, reason: REASONS[code ?? ''] ?? (message || 'request failed') }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

/** True for a JSON object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isErrorDetail(value: unknown): value is ErrorDetail {
  return isRecord(value) && typeof value['location'] === 'string' && typeof value['message'] === 'string'
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function retryAfterSec(headers: Pick<Headers, 'get'>): number | undefined {
  const text = headers.get('retry-after')
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
