/**
 * The address fence: packs come from public hosts, or from hosts that this supervisor's own settings name.
 *
 * F1  A source with a literal address that is not public is refused before anything is looked up.
 * F2  A name is resolved once; every address it has must be public, and git is told to use just those.
 * F3  `allowed_pack_hosts` lifts the fence for the hosts it names, and for no other.
 */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'
import type { RemoteSource } from '../../../files/pack-source.ts'

export type Lookup = (host: string) => Promise<readonly string[]>

export interface Fence {
  /** Why the source may not be used, as far as its text tells; undefined where it may. */
  refusal(source: RemoteSource): string | undefined
  /** Addresses to use; throws BlockedHost, or UnknownHost where the name does not exist. */
  vet(source: RemoteSource, signal: AbortSignal): Promise<readonly string[]>
}

export class BlockedHost extends Error {}
export class UnknownHost extends Error {}

const systemLookup: Lookup = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

const HINT = 'name the host in `allowed_pack_hosts` of supervisor.toml to allow it'

/** `allowed`: `host` or `host:port`, as in supervisor.toml. */
export function createFence(allowed: readonly string[], resolve: Lookup = systemLookup): Fence {
  const names = new Set(
    allowed.map((host) =>
      host
        .toLowerCase()
        .replace(/^\[(.*)\]$/, '$1')
        .replace(/\.$/, ''),
    ),
  )
  const isAllowed = ({ host, port }: RemoteSource): boolean =>
    names.has(host) || names.has(`${host}:${port}`) || names.has(`[${host}]:${port}`)
  const refusal = (source: RemoteSource): string | undefined => {
    if (isAllowed(source)) return undefined
    const kind = isIP(source.host) === 0 ? nameKind(source.host) : addressKind(source.host)
    return kind === undefined ? undefined : `the pack source is at a ${kind} address, which is not allowed: ${HINT}`
  }
  return {
    refusal,
    async vet(source, signal) {
      const refused = refusal(source)
      if (refused !== undefined) throw new BlockedHost(refused)
      const addresses = isIP(source.host) === 0 ? await resolved(resolve, source.host, signal) : [source.host]
      if (addresses.length === 0) throw new UnknownHost('the host of the pack source has no address')
      if (isAllowed(source)) return addresses
      for (const address of addresses) {
        const kind = addressKind(address)
        if (kind !== undefined)
          throw new BlockedHost(
            `the host of the pack source resolves to a ${kind} address, which is not allowed: ${HINT}`,
          )
      }
      return addresses
    },
  }
}

async function resolved(resolve: Lookup, host: string, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted()
  try {
    return await resolve(host)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new UnknownHost(`the host of the pack source cannot be resolved: ${code}`)
  }
}

/** Names that mean this machine or its cloud's metadata service, whatever a resolver says. */
function nameKind(host: string): string | undefined {
  if (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === 'localhost.localdomain' ||
    host === 'ip6-localhost'
  )
    return 'loopback'
  if (
    host === 'metadata' ||
    host === 'metadata.google.internal' ||
    host === 'instance-data' ||
    host.endsWith('.metadata.google.internal')
  )
    return 'metadata'
  return undefined
}

/** Where clouds tell a machine its secrets. */
const METADATA = ['169.254.169.254', '169.254.170.2', '100.100.100.200', '192.0.0.192', 'fd00:ec2::254']
/** What is said of a range; every other that is not for everybody is reserved. */
const KINDS: Readonly<Record<string, string>> = {
  unspecified: 'unspecified',
  loopback: 'loopback',
  linkLocal: 'link-local',
  private: 'private',
  carrierGradeNat: 'private',
  deprecatedSiteLocal: 'private',
  uniqueLocal: 'unique-local',
  multicast: 'multicast',
}

/** What makes an address unfit; undefined for a public one. */
export function addressKind(address: string): string | undefined {
  // The parser also takes octal and hexadecimal parts, which programs read in different ways.
  if (isIP(address.replace(/%.*$/, '')) === 0) return 'malformed'
  return kindOf(ipaddr.parse(address.replace(/%.*$/, '')))
}

function kindOf(address: IPv4 | IPv6): string | undefined {
  if (METADATA.includes(address.toString())) return 'metadata'
  const embedded = 'parts' in address ? embeddedV4(address) : undefined
  if (embedded !== undefined) return kindOf(embedded)
  const range = address.range()
  return range === 'unicast' ? undefined : (KINDS[range] ?? 'reserved')
}

/** Network bits, and the byte at which the IPv4 address stands: mapped, compatible, translated, NAT64, 6to4. */
const EMBEDDING = [
  ['::ffff:0:0/96', 12],
  ['::/96', 12],
  ['::ffff:0:0:0/96', 12],
  ['64:ff9b::/96', 12],
  ['2002::/16', 2],
] as const

/** The IPv4 address that an IPv6 one stands for. */
function embeddedV4(address: IPv6): IPv4 | undefined {
  // `::` and `::1` are no addresses of IPv4.
  if (address.range() === 'unspecified' || address.range() === 'loopback') return undefined
  const at = EMBEDDING.find(([network]) => address.match(ipaddr.IPv6.parseCIDR(network)))?.[1]
  return at === undefined ? undefined : new ipaddr.IPv4(address.toByteArray().slice(at, at + 4))
}
