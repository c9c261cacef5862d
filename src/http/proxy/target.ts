/**
 * Which service a raw target is for, and what that one is asked. The segments of city and service are decoded once, to find
 * them; what follows is passed on byte for byte (decision 170).
 */

export interface ProxiedTarget {
  /** Undefined where it cannot be decoded. */
  readonly city: string | undefined
  /** Empty where none is named, undefined where it cannot be decoded. */
  readonly service: string | undefined
  /** As the client wrote it: what stands before what the service is asked. */
  readonly prefix: string
  /** What the service is asked: path and query. */
  readonly rest: string
}

const BEFORE_CITY = '/v0/city/'
const SEGMENT = '/svc'

export function readProxiedTarget({ url, path }: { url: string; path: string }): ProxiedTarget | undefined {
  if (!path.startsWith(BEFORE_CITY)) return undefined
  const cityEnd = path.indexOf('/', BEFORE_CITY.length)
  const segmentEnd = cityEnd + SEGMENT.length
  if (cityEnd <= BEFORE_CITY.length || !path.startsWith(SEGMENT, cityEnd)) return undefined
  if (path.length > segmentEnd && path[segmentEnd] !== '/') return undefined
  const next = path.indexOf('/', segmentEnd + 1)
  const prefix = next < 0 ? path : path.slice(0, next)
  const rest = url.slice(prefix.length)
  return {
    city: decoded(path.slice(BEFORE_CITY.length, cityEnd)),
    service: decoded(prefix.slice(segmentEnd + 1)),
    prefix,
    rest: rest.startsWith('/') ? rest : `/${rest}`,
  }
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
