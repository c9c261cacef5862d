/** Sends generated requests and says what is wrong with the answers; used by a bounded test and by `npm run fuzz`. */
import type { Agent } from 'node:http'
import { type Case, casesOf, type World } from './contract-cases.ts'
import { type Answer, asFields, asList, type DocumentedOperation, faults } from './contract-document.ts'
import { CITY, ensureCity, isSteering, STEERED } from './fuzzed-city.ts'
import { BODIES, type FuzzedWorld } from './fuzzed-world.ts'
import { fc } from './random.ts'
import { rawFaults, rawRequests } from './raw-cases.ts'
import { exchange, exchangeBytes } from './wire.ts'

export interface Campaign {
  readonly url: string
  readonly work: string
  readonly world: FuzzedWorld
  readonly agent: Agent
  readonly seed: number
  /** Counts answers by operation and status. */
  readonly seen: Map<string, number>
}

/** Also bounds the search for the smallest request, which can take thousands. */
const OPERATION_LIMIT_MS = 20_000

/**
 * Families whose schemas say nearly all there is to say, so that a refusal of a request that fits them is a fault where
 * the table below does not name it, and some generated requests must succeed.
 */
const STRICT_FAMILIES = new Set(['Cities', 'Health and readiness', 'Requests', 'Event bus', 'Documents'])

/** Where a request that fits its schemas may still be refused with 422: rules that no schema can say. */
const BEYOND_SCHEMA: Readonly<Record<string, readonly string[]>> = {
  'create-city': ['body.dir', 'body.name', 'body.provider', 'body.start_command'],
  'adopt-city': ['body.path', 'body.dir', 'body.name'],
  'emit-event': ['body.type', 'body.payload', 'body'],
  'stop-city': ['body.timeout'],
  'list-events': ['query.since', 'query.until'],
  'list-city-events': ['query.wait', 'query.since', 'query.until'],
  'get-city-status': ['query.wait'],
}
/** Answers from 500 on that are right: the host lacks something, or the caller's own deadline passed. */
const RIGHT_FAILURES: Readonly<Record<string, readonly string[]>> = {
  'create-city': ['provider-not-ready', 'missing-dependency'],
  'stop-city': ['gateway-timeout'],
  'create-session': ['missing-dependency'],
  'patch-session': ['unsupported'],
  'submit-session': ['unsupported'],
  'stop-session': ['unsupported', 'gateway-timeout'],
  'kill-session': ['gateway-timeout'],
  'respond-session': ['unsupported', 'gateway-timeout'],
  'get-session-screen': ['unsupported'],
  'stream-session-terminal': ['unsupported'],
  'type-into-session': ['unsupported', 'gateway-timeout'],
  'resize-session-terminal': ['unsupported', 'gateway-timeout'],
  'send-session-keys': ['unsupported', 'gateway-timeout'],
}
/** Operations that answer some right requests with a status from 500 on. */
export const rightFailures = (operationId: string): boolean => RIGHT_FAILURES[operationId] !== undefined
/** Lists of names in one text. */
const NAMES_IN_TEXT = new Set([
  'get-readiness',
  'get-provider-readiness',
  'get-city-readiness',
  'get-city-provider-readiness',
])

/** Runs generated requests of one operation; throws with the smallest one that is answered wrongly. */
export async function fuzzOperation(
  operation: DocumentedOperation,
  { url, work, world, agent, seed, seen }: Campaign,
  runs: number,
): Promise<void> {
  if (!world.isTidy) await world.tend()
  world.isTidy = operation.method === 'GET'
  const property = fc.asyncProperty(casesOf(operation, worldOf(operation, { work, world })), async (one) => {
    const answer = await exchange(url, one, agent)
    const key = `${operation.id} ${answer.status}`
    seen.set(key, (seen.get(key) ?? 0) + 1)
    const found = [...faults(operation, answer), ...disagreements(operation, one, answer)]
    if (found.length > 0)
      throw new Error(
        `${one.method} ${one.target.slice(0, 300)}\n${sentText(one)}\n→ ${answer.status} ${answer.body.toString('utf8').slice(0, 600)}\n${found.join('\n')}`,
      )
    if (isSteering(operation.id)) await ensureCity(url, STEERED)
    // What it may have used up is no longer offered.
    else if (one.method !== 'GET' && answer.status < 300) await world.look()
  })
  await fc.assert(property, { numRuns: runs, seed, interruptAfterTimeLimit: OPERATION_LIMIT_MS })
}

/** What the server holds, as one operation needs it. */
function worldOf({ id, path }: DocumentedOperation, { work, world }: Pick<Campaign, 'work' | 'world'>): World {
  const cityName = isSteering(id) ? STEERED : CITY
  return {
    paths: () => world.pathsOf(path).map((values) => ({ cityName, ...values })),
    named: (field) => world.named(field),
    bodies: BODIES[id] ?? [],
    work,
  }
}

/** Whether generated requests fit the operation well enough that some of them must succeed. */
export const isStrict = ({ family }: DocumentedOperation): boolean => STRICT_FAMILIES.has(family)

const sentText = ({ headers, body, breaks }: Case): string =>
  [
    ...headers.map(([name, value]) => `${name}: ${value}`),
    body?.toString('utf8').slice(0, 600) ?? '(no body)',
    `breaks: ${breaks.join('; ') || 'nothing'}`,
  ].join('\n')

/** Where the answer contradicts what the contract says about the request. */
function disagreements(
  { id, path, family }: DocumentedOperation,
  { breaks, open }: Case,
  { status, body }: Answer,
): string[] {
  if (status >= 500) {
    const { code } = asFields(JSON.parse(body.toString('utf8')))
    return RIGHT_FAILURES[id]?.includes(String(code)) ? [] : [`${status} is a failure of the server`]
  }
  if (breaks.length > 0) return status >= 400 ? [] : [`accepted although ${breaks.join('; ')}`]
  if (open || (status !== 400 && status !== 422)) return []
  const { code, errors = [] } = asFields(JSON.parse(body.toString('utf8')))
  if (code === 'invalid-cursor' || code === 'idempotency-mismatch') return []
  if (code === 'invalid-request' && NAMES_IN_TEXT.has(id)) return []
  const places = asList(errors).map((error) => String(asFields(error).location))
  if (!STRICT_FAMILIES.has(family)) {
    return code === 'validation-failed' && places.length === 0 ? ['refused without naming what is wrong'] : []
  }
  const allowed = BEYOND_SCHEMA[id] ?? []
  return places.length > 0 && places.every((place) => allowed.includes(place))
    ? []
    : [`refused although it fits the schemas of ${path}`]
}

/** Generated bytes on sockets of their own; throws with the smallest ones that are answered wrongly. */
export async function fuzzBytes({ url, seed }: Pick<Campaign, 'url' | 'seed'>, runs: number): Promise<void> {
  const property = fc.asyncProperty(rawRequests, async (bytes) => {
    const found = rawFaults(await exchangeBytes(url, bytes))
    if (found.length > 0) throw new Error(`${JSON.stringify(bytes.toString('latin1'))}\n${found.join('\n')}`)
  })
  await fc.assert(property, { numRuns: runs, seed })
}
