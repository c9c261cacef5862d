/**
 * Whether a process of ours, or of root, is behind a port of this machine that we have connected to: any user of the
 * machine can listen at a port that a service has left, or has not taken yet.
 *
 * L1  A connection that its process has accepted belongs to the user of that process.
 * L2  One that waits to be accepted belongs to the user who listens, if the connection waits before and after that look:
 *     a listener that goes takes its waiting connections along.
 * L3  Programs of root often listen as root and accept as a user of fewer rights: there the listener counts.
 * L4  What cannot be seen is refused.
 */
import type { Socket } from 'node:net'
import type { Holder, Side, SocketTable } from './sockets.ts'

export interface Listeners {
  /** Why nothing may be sent over this connection to a port of ours; undefined where it may. */
  refusal(socket: Socket): string | undefined
}

const ROOT = 0
/** The kernel's way to ask who listens, whatever the connection. */
const ANYBODY = { address: '0.0.0.0', port: 0 }
/** A process may accept the connection between two looks. */
const LOOKS = 3

/** Lets every connection pass where the system does not show who listens. */
export function openListeners(table: SocketTable | undefined, uid = process.getuid?.()): Listeners {
  if (table === undefined || uid === undefined) return { refusal: () => undefined }
  return {
    refusal(socket) {
      const holder = holderOf(socket, table, uid)
      if (holder === uid || holder === ROOT) return undefined
      const at = `port ${socket.remotePort}`
      if (holder === undefined) return `${at}: the system does not show which user listens there`
      return `${at} belongs to another user (uid ${holder}), not to the service`
    },
  }
}

/** The user behind the connection; undefined where nobody is seen. */
function holderOf(socket: Socket, table: SocketTable, uid: number): number | undefined {
  const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = socket
  const there = { address: remoteAddress, port: remotePort }
  const theirs: Side = { local: there, remote: { address: localAddress, port: localPort } }
  for (let look = 0; look < LOOKS; look++) {
    const [before, listener] = table.holders([theirs, { local: there, remote: ANYBODY }])
    const listening = listener === undefined || listener.inode === 0 ? undefined : listener.uid
    if (isAccepted(before)) return uid === ROOT && listening === ROOT ? ROOT : before.uid
    const [after] = table.holders([theirs])
    if (waits(before) && waits(after)) return listening
  }
  return undefined
}

const isAccepted = (holder: Holder | undefined): holder is Holder => holder?.open === true && holder.inode !== 0
/** A connection whose process has closed it is not established any more. */
const waits = (holder: Holder | undefined): boolean => holder?.established === true && holder.inode === 0
