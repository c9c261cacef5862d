/**
 * Asks the kernel for single sockets, by NETLINK_SOCK_DIAG: some microseconds each, however many sockets there are.
 * Linux with a Node that can call into libc; everybody else reads /proc/net/tcp (`proc-net.ts`).
 */
import { addressBytes, type Holder, type Side, type SocketTable, stateOf } from './sockets.ts'

const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000
const NETLINK_SOCK_DIAG = 4
const SOCK_DIAG_BY_FAMILY = 20
const NLMSG_ERROR = 2
const NLM_F_REQUEST = 1
const IPPROTO_TCP = 6
const MSG_DONTWAIT = 0x40
const ALL_STATES = 0xffff_ffff
const NO_COOKIE = 0xffff_ffff
const ENOENT = 2
/** Answers to earlier questions that may stand before ours. */
const MAX_STALE = 8

/** `nlmsghdr`, then `inet_diag_req_v2` with its `inet_diag_sockid`. */
const REQUEST = {
  bytes: 72,
  family: 16,
  protocol: 17,
  states: 20,
  port: 24,
  peerPort: 26,
  address: 28,
  peer: 44,
  cookie: 64,
}
/** `nlmsghdr`, then `inet_diag_msg`. */
const ANSWER = { seq: 8, error: 16, state: 17, uid: 80, inode: 84, bytes: 88 }

/** Sends one message and gives the answer that is there by then; empty where there is none. */
export type Exchange = (message: Buffer) => Buffer | undefined

/** Undefined where this system does not answer such questions. */
export function openNetlinkTable(exchange: Exchange | undefined = openExchange()): SocketTable | undefined {
  if (exchange === undefined) return undefined
  let seq = 0
  const ask = (side: Side): Holder | 'absent' | undefined => {
    seq = (seq + 1) % 0xffff_ffff
    const message = question(side, seq)
    return message === undefined ? undefined : toHolder(exchange(message), seq)
  }
  // Nobody has this connection: who can say so can be asked.
  const nobodys = { address: '127.0.0.1', port: 0 }
  if (ask({ local: nobodys, remote: nobodys }) !== 'absent') return undefined
  return {
    holders: (sides) =>
      sides.map((side) => {
        const found = ask(side)
        return found === 'absent' ? undefined : found
      }),
  }
}

function question({ local, remote }: Side, seq: number): Buffer | undefined {
  const [address, peer] = [addressBytes(local.address), addressBytes(remote.address)]
  if (address === undefined || peer === undefined || address.length !== peer.length) return undefined
  const message = Buffer.alloc(REQUEST.bytes)
  message.writeUInt32LE(REQUEST.bytes, 0)
  message.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  message.writeUInt16LE(NLM_F_REQUEST, 6)
  message.writeUInt32LE(seq, ANSWER.seq)
  message.writeUInt8(address.length === 4 ? AF_INET : AF_INET6, REQUEST.family)
  message.writeUInt8(IPPROTO_TCP, REQUEST.protocol)
  message.writeUInt32LE(ALL_STATES, REQUEST.states)
  message.writeUInt16BE(local.port, REQUEST.port)
  message.writeUInt16BE(remote.port, REQUEST.peerPort)
  address.copy(message, REQUEST.address)
  peer.copy(message, REQUEST.peer)
  message.writeUInt32LE(NO_COOKIE, REQUEST.cookie)
  message.writeUInt32LE(NO_COOKIE, REQUEST.cookie + 4)
  return message
}

function toHolder(answer: Buffer | undefined, seq: number): Holder | 'absent' | undefined {
  if (answer === undefined || answer.length < ANSWER.error + 4 || answer.readUInt32LE(ANSWER.seq) !== seq)
    return undefined
  const type = answer.readUInt16LE(4)
  if (type === NLMSG_ERROR) return answer.readInt32LE(ANSWER.error) === -ENOENT ? 'absent' : undefined
  if (type !== SOCK_DIAG_BY_FAMILY || answer.length < ANSWER.bytes) return undefined
  return {
    uid: answer.readUInt32LE(ANSWER.uid),
    inode: answer.readUInt32LE(ANSWER.inode),
    ...stateOf(answer.readUInt8(ANSWER.state)),
  }
}

/** The socket stays open for the life of the process: a server that is out of descriptors still knows who asks. */
function openExchange(): Exchange | undefined {
  // Fields are in the order of the processor; all that Linux runs Node on have this one, but for s390x.
  if (process.platform !== 'linux' || process.arch === 's390x') return undefined
  try {
    const ffi = quietly(() => process.getBuiltinModule('node:ffi'))
    if (ffi === undefined) return undefined
    const { functions: libc } = ffi.dlopen(null, {
      socket: { arguments: ['int32', 'int32', 'int32'], return: 'int32' },
      send: { arguments: ['int32', 'buffer', 'uint64', 'int32'], return: 'int64' },
      recv: { arguments: ['int32', 'buffer', 'uint64', 'int32'], return: 'int64' },
    })
    const socket = libc.socket(AF_NETLINK, SOCK_DGRAM_CLOEXEC, NETLINK_SOCK_DIAG)
    if (socket < 0) return undefined
    const room = Buffer.alloc(4096)
    const receive = () => Number(libc.recv(socket, room, BigInt(room.length), MSG_DONTWAIT))
    return (message) => {
      if (Number(libc.send(socket, message, BigInt(message.length), 0)) !== message.length) return undefined
      for (let count = 0; count < MAX_STALE; count++) {
        const length = receive()
        if (length <= 0) return undefined
        if (room.readUInt32LE(ANSWER.seq) === message.readUInt32LE(ANSWER.seq)) return room.subarray(0, length)
      }
      return undefined
    }
  } catch {
    return undefined
  }
}

/** Loading the module says that it is experimental, to everybody who starts a server. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process
  process.emitWarning = () => undefined
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}
