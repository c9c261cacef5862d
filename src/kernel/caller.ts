/** Who asks, and what that lets him do (decisions 210 to 213). */
import { type Access, type AgentApi, accessOf, adapterAccessOf, speakersOf } from '../contract/access.ts'
import { isMutation, type Operation } from '../contract/base/operation.ts'
import { type Problem, problem } from './problem.ts'

/** Whoever runs the supervisor, or has its token. */
export interface Owner {
  readonly kind: 'owner'
}
/** Somebody without a token, where one is needed. */
interface Stranger {
  readonly kind: 'stranger'
}
export interface TokenHolder {
  readonly kind: 'token'
  readonly name: string
  readonly role: 'admin' | 'viewer'
  /** The only city that it is for. */
  readonly city: string | undefined
}
export interface Agent {
  readonly kind: 'agent'
  readonly city: string
  readonly session: string
  /** What it is called where it acts. */
  readonly name: string
  readonly api: AgentApi
  /** Whether a name, alias or id means this very session. */
  readonly isSelf: (handle: string) => boolean
  /** Whether it may call itself that, also where others of its pool do. */
  readonly goesBy: (name: string) => boolean
}
/** What carries messages of a chat, with the secret of its own. */
export interface AdapterCaller {
  readonly kind: 'adapter'
  readonly city: string
  /** `provider/account`. */
  readonly name: string
  readonly isSelf: (provider: string, accountId: string) => boolean
  /** Whether the transcript is of a conversation that it carries. */
  readonly carries: (transcriptId: string) => boolean
  /** Whether the file is in such a transcript. */
  readonly carriesFile: (attachmentId: string) => boolean
  /** Where it has signed its request: throws unless this is the body that it signed. */
  readonly prove?: (body: Buffer | undefined) => void
}
/** A program of a city that serves HTTP, a bridge perhaps: with the token that it was started with. */
export interface ServiceCaller {
  readonly kind: 'service'
  readonly city: string
  /** `service:NAME`. */
  readonly name: string
}
export type Caller = Owner | Stranger | TokenHolder | Agent | AdapterCaller | ServiceCaller

export const OWNER: Owner = { kind: 'owner' }
export const STRANGER: Stranger = { kind: 'stranger' }

/** The only city that a caller may see; undefined: all of them. */
export const cityOf = (caller: Caller): string | undefined =>
  caller.kind === 'owner' || caller.kind === 'stranger' ? undefined : caller.city

/** Whose share of what is bounded a caller takes from; undefined for the owner, who has no bound of its own. */
export function shareOf(caller: Caller): string | undefined {
  if (caller.kind === 'owner') return undefined
  if (caller.kind === 'stranger') return 'visitors'
  if (caller.kind === 'token') return `token:${caller.name}`
  return caller.kind === 'agent' ? `session ${caller.session} of ${caller.city}` : `${caller.name} of ${caller.city}`
}

/** Who does what a request asks for, in events and on beads: a label, so that one can tell; `api` where nobody says. */
export function actorOf(caller: Caller): string {
  if (caller.kind === 'agent' || caller.kind === 'adapter' || caller.kind === 'service') return caller.name
  return caller.kind === 'token' ? `token:${caller.name}` : 'api'
}

/** Whose idempotency keys these are: the same key of two callers is two keys. Those of the owner have no name. */
export function claimantOf(caller: Caller): readonly string[] {
  if (caller.kind === 'owner' || caller.kind === 'stranger') return []
  return caller.kind === 'agent' ? [`session:${caller.session}`] : [`${caller.kind}:${caller.name}`]
}

/** A body as its caller may send it: an agent speaks for nobody else, and what is not signed has the name of its token. */
export function spokenBy(caller: Caller, operation: Operation, body: unknown): unknown {
  if (caller.kind === 'owner' || caller.kind === 'stranger' || typeof body !== 'object' || body === null) return body
  const { fields, signed } = speakersOf(operation)
  if (caller.kind === 'agent') refuseOthers(caller, fields, body)
  return signed === undefined || signed in body ? body : { ...body, [signed]: caller.name }
}

function refuseOthers({ name, goesBy }: Agent, fields: readonly string[], body: object): void {
  for (const field of fields) {
    const said: unknown = Reflect.get(body, field)
    if (typeof said === 'string' && !goesBy(said))
      throw problem('forbidden', `body.${field}: this token is that of ${name}, who cannot speak as ${said}`)
  }
}

const MAY: Readonly<Record<AgentApi | TokenHolder['role'], ReadonlySet<Access>>> = {
  read: new Set(['any', 'read', 'self']),
  work: new Set(['any', 'read', 'self', 'work']),
  city: new Set(['any', 'read', 'self', 'work', 'city', 'answer']),
  viewer: new Set(['any', 'read']),
  admin: new Set(['any', 'read', 'self', 'work', 'city', 'answer']),
}

/**
 * Whether a caller has the right `city`, where no single operation asks for it: to use private services, and to choose
 * commands that the supervisor runs as its own user.
 */
export function mayChangeCity(caller: Caller): boolean {
  if (caller.kind === 'agent') return MAY[caller.api].has('city')
  return caller.kind === 'owner' || (caller.kind === 'token' && MAY[caller.role].has('city'))
}

/** What a request is about. */
export interface Target {
  readonly operation: Operation
  /** The city in its path. */
  readonly city: string | undefined
  /** What stands in its path for a `{name}` of the operation. */
  readonly part: (name: string) => string | undefined
}

/** Why a caller may not; undefined where he may. */
export function refusalOf(caller: Caller, target: Target): Problem | undefined {
  if (caller.kind === 'owner' || caller.kind === 'stranger') return undefined
  return refusalElsewhere(caller, target) ?? refusalHere(caller, target)
}

function refusalHere(caller: TokenHolder | Agent | AdapterCaller | ServiceCaller, target: Target): Problem | undefined {
  if (caller.kind === 'adapter') return refusalOfAdapter(caller, target)
  if (caller.kind === 'service') return refusalOfService(caller, target)
  return caller.kind === 'agent' ? refusalOfAgent(caller, target) : refusalOfToken(caller, target)
}

/** Who is bound to a city has no business anywhere else. */
export function refusalElsewhere(caller: Caller, { operation, city }: Partial<Target>): Problem | undefined {
  const own = cityOf(caller)
  if (own === undefined || city === own) return undefined
  if (city !== undefined) return problem('forbidden', `this token is for the city ${own} and no other`)
  if (operation === undefined) return undefined
  const access = accessOf(operation)
  if (access !== 'supervisor') return undefined
  const there = operation.path.startsWith('/v0/events') ? `; its events are at /v0/city/${own}/events` : ''
  return problem('forbidden', `this token is for the city ${own}, and ${operation.id} is about all cities${there}`)
}

function refusalOfToken({ role, city }: TokenHolder, { operation }: Target): Problem | undefined {
  const access = accessOf(operation)
  // All cities are what a token without one is for.
  if (city === undefined && (role === 'admin' || (access === 'supervisor' && !isMutation(operation.method))))
    return undefined
  if (MAY[role].has(access)) return undefined
  const why = role === 'viewer' ? 'a token of a viewer may only read' : `this token is for the city ${city} only`
  return problem('forbidden', `${why}: ${operation.id} needs the right "${access}"`)
}

function refusalOfAdapter(adapter: AdapterCaller, target: Target): Problem | undefined {
  if (mayAsAdapter(adapter, target)) return undefined
  return problem('forbidden', `this is the secret of the adapter ${adapter.name}, for itself and its transcripts`)
}

function mayAsAdapter(adapter: AdapterCaller, { operation, part }: Target): boolean {
  const access = adapterAccessOf(operation)
  if (access === 'itself') return adapter.isSelf(part('provider') ?? '', part('accountId') ?? '')
  if (access === 'transcript') return adapter.carries(part('transcriptId') ?? '')
  if (access === 'attachment') return adapter.carriesFile(part('attachmentId') ?? '')
  return access === 'any'
}

/** It works in its city, and carries messages of chats as an adapter does. */
function refusalOfService({ name }: ServiceCaller, { operation }: Target): Problem | undefined {
  const access = accessOf(operation)
  if ((MAY.work.has(access) && access !== 'self') || adapterAccessOf(operation) !== undefined) return undefined
  return problem('forbidden', `${name} may not ${operation.id}: it needs the right "${access}"`)
}

function refusalOfAgent(agent: Agent, { operation, part }: Target): Problem | undefined {
  const access = accessOf(operation)
  const id = part('id') ?? ''
  const { session, api, isSelf } = agent
  if (!MAY[api].has(access))
    return problem(
      'forbidden',
      `session ${session} may not ${operation.id}: it needs the right "${access}", and api = "${api}" of its agent does not give it`,
    )
  if (access === 'self' && !isSelf(id))
    return problem('forbidden', `${operation.id} is for the session itself, and ${id} is not ${session}`)
  if (access === 'answer' && isSelf(id))
    return problem('forbidden', `session ${session} cannot answer its own questions, nor use its own terminal`)
  return undefined
}
