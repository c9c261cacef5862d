/**
 * The address fence: packs come from public hosts, or from hosts that this supervisor's own settings name.
 *
 * F1  A source with a literal address that is not public is refused before anything is looked up.
 * F2  A name is resolved once; every address it has must be public, and git is told to use just those.
 * F3  `allowed_pack_hosts` lifts the fence for the hosts it names, and for no other.
 */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv4 } from 'node:net'
import type { RemoteSource } from './source.ts'

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

const KINDS: readonly (readonly [kind: string, v4: readonly string[], v6: readonly string[]])[] = [
  [
    'metadata',
    ['169.254.169.254/32', '169.254.170.2/32', '100.100.100.200/32', '192.0.0.192/32'],
    ['fd00:ec2::254/128'],
  ],
  ['unspecified', ['0.0.0.0/8'], ['::/128']],
  ['loopback', ['127.0.0.0/8'], ['::1/128']],
  ['link-local', ['169.254.0.0/16'], ['fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10'], ['fec0::/10']],
  ['unique-local', [], ['fc00::/7']],
  ['multicast', ['224.0.0.0/4'], ['ff00::/8']],
  [
    'reserved',
    [
      '192.0.0.0/24',
      '192.0.2.0/24',
      '192.88.99.0/24',
      '198.18.0.0/15',
      '198.51.100.0/24',
      '203.0.113.0/24',
      '240.0.0.0/4',
    ],
    ['100::/64', '2001::/23', '2001:db8::/32', '64:ff9b:1::/48'],
  ],
]
const LISTS = KINDS.map(([kind, v4, v6]) => [kind, blockList(v4, 'ipv4'), blockList(v6, 'ipv6')] as const)

function blockList(subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network = '', bits] = subnet.split('/')
    list.addSubnet(network, Number(bits), family)
  }
  return list
}

/** What makes an address unfit; undefined for a public one. */
export function addressKind(address: string): string | undefined {
  const bare = address.replace(/%.*$/, '')
  if (isIPv4(bare)) return LISTS.find(([, v4]) => v4.check(bare, 'ipv4'))?.[0]
  if (isIP(bare) !== 6) return 'malformed'
  const embedded = embeddedV4(bare)
  const inside = embedded === undefined ? undefined : addressKind(embedded)
  return inside ?? LISTS.find(([, , v6]) => v6.check(bare, 'ipv6'))?.[0]
}

/** The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64 or 6to4. */
function embeddedV4(address: string): string | undefined {
  const words = wordsOf(address)
  const tail = v4Of(words[6] ?? 0, words[7] ?? 0)
  const zeros = (from: number, to: number): boolean => words.slice(from, to).every((word) => word === 0)
  if (zeros(0, 5) && (words[5] === 0xffff || words[5] === 0))
    return zeros(5, 7) && (words[7] ?? 0) <= 1 ? undefined : tail
  if (zeros(0, 4) && words[4] === 0xffff && words[5] === 0) return tail
  if (words[0] === 0x64 && words[1] === 0xff9b && zeros(2, 6)) return tail
  if (words[0] === 0x2002) return v4Of(words[1] ?? 0, words[2] ?? 0)
  return undefined
}

const v4Of = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** The eight 16-bit words of an IPv6 address. */
function wordsOf(address: string): readonly number[] {
  const plain = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a: string, b: string, c: string, d: string) =>
    [(Number(a) << 8) | Number(b), (Number(c) << 8) | Number(d)].map((word) => word.toString(16)).join(':'),
  )
  const [left = '', right] = plain.split('::')
  const parse = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((word) => Number.parseInt(word, 16))
  const [head, tail] = [parse(left), parse(right ?? '')]
  return [...head, ...Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => 0), ...tail]
}
