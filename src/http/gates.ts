/**
 * The ordered checks that every request passes before a handler sees it (sheet 01 §1.2, decision 74). Each passes, or
 * throws the Problem that answers. The order is this list and nothing else:
 *
 *   request id → user → host → CORS → origin → authorization → rights → CSRF header → read-only → city → operation → input
 *
 * Reading the input is the pipeline's (operations.ts): it waits for bytes, everything here decides at once.
 */
import type { Socket } from 'node:net'
import { isMutation, needsRunningCity, type Operation } from '../contract/base/operation.ts'
import { cut } from '../contract/base/text.ts'
import { type AdapterCaller, type Caller, OWNER, refusalElsewhere, refusalOf, STRANGER } from '../kernel/caller.ts'
import type { PeerUsers } from '../kernel/peers/peer-users.ts'
import { cityNotRunning, problem } from '../kernel/problem.ts'
import type { Routes } from './router.ts'

export interface Security {
  /** Host names (lower case, no port) that are served beside the loopback ones. */
  readonly allowedHosts: readonly string[]
  /** Exact origins whose pages may use the API, beside our own; `http://localhost:*` is that with any port. */
  readonly allowedOrigins: readonly string[]
  /** Bearer token that is needed; undefined: open to `users`. */
  readonly token: string | undefined
  /** Who has another token: one that was made, or that of an agent that runs. Null: nobody can tell yet. */
  readonly holderOf?: (token: string) => Caller | undefined | null
  /** The adapter that a request comes from, with a secret or a signature of its own. Null: nobody can tell yet. */
  readonly adapterOf?: (request: Pick<GateInput, 'path' | 'header'>) => AdapterCaller | undefined | null
  /** Users of this machine, where they can be told and nothing else says who asks. */
  readonly users?: Pick<PeerUsers, 'refusal'> | undefined
  readonly readOnly: boolean
}

/** What the surface needs to know of cities. */
export interface CityGate {
  /** Undefined where the city does not run. */
  resolve(name: string): ResolvedCity | undefined
  /** The way to a city that does not run, for an operation that can mend it; undefined where there is none now. */
  mend?(name: string): LendCity | undefined
}

/** Opens a city that does not run; it is used until it is given back. */
export type LendCity = () => Promise<{ readonly city: ResolvedCity; giveBack(): void }>

/** What the handler of this operation gets of the city, as it is now; throws the city's 404 where it runs no longer. */
export type ResolvedCity = (operation: Operation) => unknown

export interface GateInput {
  readonly method: string
  /** Path without the query, still encoded. */
  readonly path: string
  /** Host that the request is for, as the client wrote it. */
  readonly host: string
  readonly operation: Operation | undefined
  /** The path that serves instead of this one. */
  readonly redirect: string | undefined
  readonly socket: Socket
  /** Who asks. */
  caller: Caller
  /** What the city of the path was resolved to. */
  city: ResolvedCity | undefined
  /** Where that does not run, and the operation can mend it. */
  mend?: LendCity | undefined
  header(name: string): string | undefined
  setHeader(name: string, value: string): void
}

export interface GateDeps {
  readonly security: Security
  readonly cities: CityGate
  readonly routes: Routes
  readonly isShuttingDown: () => boolean
}

type Gate = (input: GateInput, deps: GateDeps) => void

/** Of a preflight. */
export const PREFLIGHT_GATES: readonly Gate[] = [checkUser, checkHost, applyCors]

/** Looked at again where a stream opens: while it was made ready, the rights that it was asked with may have ended. */
export const RIGHTS_GATES: readonly Gate[] = [authorize, checkRights]

export const GATES: readonly Gate[] = [
  ...PREFLIGHT_GATES,
  refuseForeignPages,
  refuseWhileStopping,
  ...RIGHTS_GATES,
  requireMutationHeader,
  refuseReadOnly,
  resolveCity,
  matchOperation,
]

/** Numbers as clients write them: `127.1` and `0177.0.0.1` mean other addresses to other programs. */
const LOOPBACK = /^(?:localhost|127(?:\.(?:0|[1-9]\d{0,2})){3}|\[::1\]|\[0:0:0:0:0:0:0:1\])$/
const ANY_LOCAL_PORT = 'http://localhost:*'
const LOCAL_ORIGIN = /^http:\/\/localhost(?::\d{1,5})?$/
const CITY_PATH = '/v0/city/'

const CORS_HEADERS = {
  'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'Access-Control-Allow-Headers':
    'Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-SVC-Request',
  'Access-Control-Expose-Headers':
    'Allow, ETag, Location, Retry-After, SVC-Agent-Status, SVC-Session-State, SVC-Session-Status, X-SVC-Index, X-SVC-Request-Id',
}

const served = new WeakMap<Security, string>()

/** Another user of this machine reaches a loopback address as easily as its owner. */
function checkUser({ socket, setHeader }: GateInput, { security: { users } }: GateDeps): void {
  const refused = users?.refusal(socket)
  if (refused === undefined) return
  // Nothing else will be answered on it.
  setHeader('Connection', 'close')
  throw refused
}

/** A page that rebinds its name to this address must not be served (DNS rebinding). */
function checkHost({ host: given }: GateInput, { security }: GateDeps): void {
  // Clients keep sending the same Host: the last one that was served needs no second look.
  if (served.get(security) === given) return
  const host = hostName(given)
  if (host !== '' && (LOOPBACK.test(host) || security.allowedHosts.includes(host))) {
    served.set(security, given)
    return
  }
  throw problem('host-not-allowed', `host "${host}" is not served here; add it to allowed_hosts in supervisor.toml`)
}

/** Without the port, and an address of IPv6 in its one short form: not every client shortens it. */
function hostName(host: string): string {
  const bare = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
  return bare.startsWith('[') ? (URL.parse(`http://${bare}`)?.hostname ?? bare) : bare
}

function applyCors({ host, header, setHeader }: GateInput, { security }: GateDeps): void {
  const origin = header('origin')
  if (origin === undefined || !isAllowed(origin, host, security)) return
  setHeader('Access-Control-Allow-Origin', origin)
  for (const [name, value] of Object.entries(CORS_HEADERS)) setHeader(name, value)
}

function refuseForeignPages(input: GateInput, { security }: GateDeps): void {
  refuseForeignPage(input, security, { reads: !isMutation(input.method), what: 'API' })
}

/**
 * Pages of other origins change nothing, whatever headers they send, and read nothing either: not by scripts, nor by what
 * needs no CORS, as images do. A link that leads here is followed, but not into a frame.
 */
export function refuseForeignPage(
  { host, header }: Pick<GateInput, 'host' | 'header'>,
  security: Security,
  { reads, what }: { reads: boolean; what: 'API' | 'service' },
): void {
  const origin = header('origin')
  const site = header('sec-fetch-site')
  if (origin === undefined && site === undefined) return
  if (origin !== undefined && isAllowed(origin, host, security)) return
  const isForeign = site === 'cross-site' || site === 'same-site' || (origin !== undefined && !reads)
  const followsLink =
    reads && header('sec-fetch-mode') === 'navigate' && (header('sec-fetch-dest') ?? 'document') === 'document'
  if (!isForeign || followsLink) return
  const page = origin === undefined ? 'another site' : cut(origin, 200)
  throw problem(
    'forbidden',
    `pages of ${page} may not use this ${what}; [supervisor] allowed_origins in supervisor.toml lets origins in`,
  )
}

/** The host has been checked: a page that comes from there is ours. */
function isAllowed(origin: string, host: string, { allowedOrigins }: Security): boolean {
  if (origin === `http://${host}` || origin === `https://${host}` || allowedOrigins.includes(origin)) return true
  return LOCAL_ORIGIN.test(origin) && allowedOrigins.includes(ANY_LOCAL_PORT)
}

export function refuseWhileStopping(_: GateInput, { isShuttingDown }: GateDeps): void {
  if (isShuttingDown()) throw problem('unavailable', 'the supervisor is shutting down', { retryAfterSec: 1 })
}

function authorize(input: GateInput, { security }: GateDeps): void {
  const { operation, header } = input
  const { token, holderOf = () => undefined, adapterOf = () => undefined } = security
  if (token === undefined) {
    input.caller = OWNER
    return
  }
  const callerWith = (given: string) => {
    if (sameText(given, token)) return OWNER
    return TOKEN.test(given) ? holderOf(given) : adapterOf(input)
  }
  const caller = callerWith(bearerOf(header('authorization')))
  input.caller = caller ?? STRANGER
  if ((caller !== undefined && caller !== null) || operation?.open === true) return
  // After a restart agents speak before their city knows them again: nobody can tell yet who they are.
  if (caller === null)
    throw problem('unavailable', 'a city that may know this token is still starting', { retryAfterSec: 1 })
  // Whoever signs has a secret, and is not to be sent for the token of this server.
  if (header('webhook-signature') !== undefined)
    throw problem(
      'unauthorized',
      'this signature proves nothing here: it is of no adapter that has a secret, or the path names none, where an adapter shows its secret as bearer',
    )
  throw problem('unauthorized', 'this server needs "Authorization: Bearer <token>"; the token is in endpoint.json')
}

/** Before anything is said about the city or the path: who may not ask does not learn what there is. */
function checkRights({ caller, operation, path }: GateInput): void {
  if (caller === OWNER) return
  const city = cityIn(path)
  const refused =
    operation === undefined
      ? refusalElsewhere(caller, { city })
      : refusalOf(caller, { operation, city, part: (name) => segmentOf(path, operation.path, `{${name}}`) })
  if (refused !== undefined) throw refused
}

function segmentOf(path: string, pattern: string, name: string): string | undefined {
  const at = pattern.split('/').indexOf(name)
  return at < 0 ? undefined : decodeName(path.split('/')[at] ?? '')
}

/** The city that a path is under, whether there is one or not. */
function cityIn(path: string): string | undefined {
  if (!path.startsWith(CITY_PATH)) return undefined
  const end = path.indexOf('/', CITY_PATH.length)
  return decodeName(path.slice(CITY_PATH.length, end < 0 ? path.length : end))
}

/** As all tokens are that are made here. */
const TOKEN = /^[0-9a-f]{64}$/

/** What an Authorization header shows; the name of the scheme is in any case (RFC 9110 §11.1). */
const bearerOf = (authorization = ''): string => /^bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''

/** Whether it is one of ours, that of who asks or of somebody else; where nobody can tell yet, it may be. */
export function holdsOurToken({ token, holderOf = () => undefined }: Security, authorization: string): boolean {
  const given = bearerOf(authorization)
  return TOKEN.test(given) && ((token !== undefined && sameText(given, token)) || holderOf(given) !== undefined)
}

/** Compares without telling by its duration how much was right. */
function sameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < b.length; i++) difference |= (a.charCodeAt(i) || 0) ^ b.charCodeAt(i)
  return difference === 0
}

function requireMutationHeader(input: GateInput): void {
  if (isMutation(input.method)) requireOurHeader(input)
}

/** No page of another origin can send it without being asked for leave. */
export function requireOurHeader({ header }: Pick<GateInput, 'header'>): void {
  if ((header('x-svc-request') ?? '').trim() !== '') return
  throw problem('csrf-required', 'X-SVC-Request header required on mutation endpoints')
}

function refuseReadOnly({ method }: GateInput, { security }: GateDeps): void {
  if (isMutation(method)) refuseWhereReadOnly(security)
}

export function refuseWhereReadOnly({ readOnly }: Security): void {
  if (readOnly) throw problem('read-only', 'mutations disabled: allow_mutations is false in supervisor.toml')
}

/** Any path under a city that is not running is the city's 404, known or not (spec §3 rules 1 and 2, decision 18). */
function resolveCity(input: GateInput, { cities, routes }: GateDeps): void {
  const { path, operation } = input
  if (!path.startsWith(CITY_PATH)) return
  const end = path.indexOf('/', CITY_PATH.length)
  const encoded = path.slice(CITY_PATH.length, end < 0 ? path.length : end)
  if (encoded === '') return
  const name = decodeName(encoded)
  const registeredIsEnough = operation !== undefined && !needsRunningCity(operation)
  if (registeredIsEnough) return
  input.city = cities.resolve(name)
  // A wrong method on start, stop, restart or unregister is about the method, whatever the city does.
  if (operation?.city === 'mendable' && input.city === undefined) input.mend = cities.mend?.(name)
  if (input.city !== undefined || input.mend !== undefined) return
  if (routes.worksWhenStopped(path) && operation === undefined) return
  throw cityNotRunning(name)
}

export function decodeName(encoded: string): string {
  if (!encoded.includes('%')) return encoded
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw problem('invalid-request', `the path cannot be decoded: "${cut(encoded, 80)}"`)
  }
}

function matchOperation({ method, path, operation, redirect }: GateInput, { routes }: GateDeps): void {
  if (operation !== undefined || redirect !== undefined) return
  const allow = routes.methodsOf(path)
  if (allow.length === 0) throw problem('route-not-found', `no such path: ${cut(path, 200)}`)
  throw problem('method-not-allowed', `${method} is not allowed here; allowed: ${allow.join(', ')}`, {
    allow: allow.join(', '),
  })
}
