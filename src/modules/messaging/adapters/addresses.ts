/** Which addresses messages may be posted to (decision 150). */
import { BlockList, isIP } from 'node:net'

/** Where machines tell programs on them about themselves, with credentials; nobody takes messages there. */
const METADATA = {
  ipv4: ['100.100.100.200', '168.63.129.16', '192.0.0.192', '169.254.169.254'],
  ipv6: ['fd00:ec2::254', 'fd20:ce::254', 'fe80::a9fe:a9fe'],
}

const REFUSED = new BlockList()
REFUSED.addSubnet('169.254.0.0', 16, 'ipv4')
REFUSED.addSubnet('fe80::', 10, 'ipv6')
// What reaches nobody, or everybody.
REFUSED.addSubnet('224.0.0.0', 4, 'ipv4')
REFUSED.addSubnet('ff00::', 8, 'ipv6')
REFUSED.addAddress('255.255.255.255', 'ipv4')
for (const address of METADATA.ipv4) REFUSED.addAddress(address, 'ipv4')
for (const address of METADATA.ipv6) REFUSED.addAddress(address, 'ipv6')

/** Why an address is not connected to; undefined: it may be. */
export function refusalOfAddress(address: string): string | undefined {
  const plain = address.replace(/%.*$/, '')
  const family = isIP(plain)
  if (family === 0) return `${address} is no address`
  const refused =
    family === 4
      ? REFUSED.check(plain, 'ipv4')
      : REFUSED.check(plain, 'ipv6') || embedded(plain).some((inner) => REFUSED.check(inner, 'ipv4'))
  return refused
    ? `${address} is link-local, of a metadata service, or no single host: nothing is posted there`
    : undefined
}

/** Prefixes of IPv6 whose addresses mean one of IPv4, and the group that it begins with: mapped, compatible, NAT64, 6to4. */
const EMBEDDING: readonly { readonly prefix: readonly number[]; readonly at: number }[] = [
  { prefix: [0, 0, 0, 0, 0, 0xffff], at: 6 },
  { prefix: [0, 0, 0, 0, 0xffff, 0], at: 6 },
  { prefix: [0, 0, 0, 0, 0, 0], at: 6 },
  { prefix: [0x64, 0xff9b, 0, 0, 0, 0], at: 6 },
  { prefix: [0x2002], at: 1 },
]

function embedded(address: string): readonly string[] {
  const groups = groupsOf(address)
  return EMBEDDING.filter(({ prefix }) => prefix.every((group, index) => groups[index] === group)).map(({ at }) => {
    const [high = 0, low = 0] = groups.slice(at, at + 2)
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  })
}

/** The eight numbers of an address of IPv6. */
function groupsOf(address: string): readonly number[] {
  // The parser of URLs writes all forms of one address alike.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = text.split('::')
  const parts = (side: string) => (side === '' ? [] : side.split(':').map((group) => Number.parseInt(group, 16)))
  const [before, after] = [parts(head), parts(tail ?? '')]
  return tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill(0), ...after]
}

/** The same of the host of a URL, where it is an address: no lookup would be asked about it. */
export function refusalOfHost({ hostname }: URL): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? undefined : refusalOfAddress(host)
}
