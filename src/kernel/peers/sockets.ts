/** Sockets of this machine, as its kernel knows them: who holds one that we talk to (decision 210). */

export interface End {
  readonly address: string
  readonly port: number
}

/** One side of a connection: the socket that is bound to `local` and talks to `remote`. */
export interface Side {
  readonly local: End
  readonly remote: End
}

export interface Holder {
  readonly uid: number
  /** 0 where no process holds the socket: its `uid` says nothing then. */
  readonly inode: number
  /** Bytes that were written to it and that the other end has not taken; absent where the table does not say. */
  readonly unsent?: number
  /** One end may have said that it sends no more; the connection is there until both have. */
  readonly open: boolean
  /** Neither end has said that it sends no more. */
  readonly established: boolean
}

/** In the order that was asked; undefined for what is not there. */
export interface SocketTable {
  holders(sides: readonly Side[]): readonly (Holder | undefined)[]
}

/** ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT of the kernel's states; in all others nobody holds the socket any more. */
const OPEN_STATES: ReadonlySet<number> = new Set([1, 4, 5, 8])
const ESTABLISHED = 1
/** What a state of the kernel says of a socket. */
export const stateOf = (state: number): Pick<Holder, 'open' | 'established'> => ({
  open: OPEN_STATES.has(state),
  established: state === ESTABLISHED,
})

const MAPPED = '::ffff:'

/** 4 or 16 bytes in network order; undefined for what is no address. One of IPv4 in IPv6 is one of IPv4. */
export function addressBytes(text: string): Buffer | undefined {
  const lower = text.toLowerCase().replace(/%.*$/, '')
  const plain = lower.startsWith(MAPPED) && lower.includes('.') ? lower.slice(MAPPED.length) : lower
  return plain.includes(':') ? ipv6Bytes(plain) : ipv4Bytes(plain)
}

function ipv4Bytes(text: string): Buffer | undefined {
  const parts = text.split('.')
  const valid = parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) < 256)
  return valid ? Buffer.from(parts.map(Number)) : undefined
}

function ipv6Bytes(text: string): Buffer | undefined {
  const [head = '', tail, more] = text.split('::')
  const words = (part: string | undefined) => (part === undefined || part === '' ? [] : part.split(':'))
  const [before, after] = [words(head), words(tail)]
  const gap = 8 - before.length - after.length
  if (more !== undefined || (tail === undefined ? gap !== 0 : gap < 1)) return undefined
  const all = [...before, ...Array.from({ length: gap }, () => '0'), ...after]
  if (!all.every((word) => /^[0-9a-f]{1,4}$/.test(word))) return undefined
  const bytes = Buffer.alloc(16)
  for (const [index, word] of all.entries()) bytes.writeUInt16BE(Number.parseInt(word, 16), index * 2)
  return bytes
}
