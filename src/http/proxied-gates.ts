/**
 * What stands before a private service (decisions 171, 172, 178), in this order; nothing of it before a `direct` one:
 *
 *   user → host → CORS → pages of others → shutting down? → authorization → rights → city → service → read-only → CSRF header
 *        → may it be upgraded → state
 */
import { mayChangeCity } from '../kernel/caller.ts'
import { problem } from '../kernel/problem.ts'
import type { Exchange } from './exchange.ts'
import {
  decodeName,
  type GateDeps,
  PREFLIGHT_GATES,
  RIGHTS_GATES,
  refuseForeignPage,
  refuseWhereReadOnly,
  refuseWhileStopping,
  requireOurHeader,
} from './gates.ts'
import type { ProxiedService, ServiceGate } from './proxy/services.ts'
import type { ProxiedTarget } from './proxy/target.ts'

/** Of all verbs that Node reads these change nothing; what others do, only the service knows. */
const READING = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The service that may be asked; throws the Problem of the first check that fails. */
export function passToPrivate(
  exchange: Exchange,
  target: ProxiedTarget,
  services: ServiceGate,
  deps: GateDeps,
  upgrades: boolean,
): ProxiedService {
  for (const gate of PREFLIGHT_GATES) gate(exchange, deps)
  // An upgrade opens a WebSocket, which no CORS keeps from pages. A page of the service itself that is sandboxed is one of no
  // origin, and browsers do not say where its elements stand: it cannot be told from those of others.
  refuseForeignPage(exchange, deps.security, { reads: READING.has(exchange.method) && !upgrades, what: 'service' })
  refuseWhileStopping(exchange, deps)
  for (const gate of RIGHTS_GATES) gate(exchange, deps)
  if (!mayChangeCity(exchange.caller)) throw problem('forbidden', 'services of a city need the right "city"')
  const service = resolveService(target, services)
  if (READING.has(exchange.method)) return service
  refuseWhereReadOnly(deps.security)
  requireOurHeader(exchange)
  return service
}

function resolveService({ city, service, prefix }: ProxiedTarget, services: ServiceGate): ProxiedService {
  if (city === undefined || service === undefined) decodeName(prefix)
  const found = services.inCity(city ?? '')
  if (found === undefined) throw problem('city-not-found', 'city not found or not running')
  const one = found.find(service ?? '')
  if (one === undefined) throw problem('service-not-found', `service not found: ${service}`)
  return one
}
