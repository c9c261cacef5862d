/**
 * Which user is at the other end of a connection from this machine (decision 210).
 *
 * P1  Nobody passes whose socket was not seen open, with a holder, while the connection was open on our side too.
 * P2  Root passes only if two looks agree: a socket that is closed between the parts of one look shows uid 0.
 * P3  What cannot be found at the second look is refused.
 */
import type { Socket } from 'node:net'
import { type Problem, problem } from '../problem.ts'
import { openNetlinkTable } from './netlink.ts'
import { openProcTable } from './proc-net.ts'
import type { Holder, Side, SocketTable } from './sockets.ts'

export interface PeerUsersDeps {
  readonly table: SocketTable
  /** Who runs this process. */
  readonly uid: number
  /** Others that may come in. */
  readonly allowed: readonly number[]
}

const ROOT = 0
const UNSEEN = 'the user behind this connection cannot be told: it was closed at once, or comes from another container'

/** Undefined where the system does not show whose a socket is. */
export const openSocketTable = (): SocketTable | undefined => openNetlinkTable() ?? openProcTable()

export class PeerUsers {
  readonly #deps: PeerUsersDeps
  readonly #pending = new Map<string, Socket>()
  readonly #refusals = new WeakMap<Socket, Problem>()
  /** Told of each connection whose peer may not come in. */
  onRefused: (socket: Socket) => void = () => {}

  constructor(deps: PeerUsersDeps) {
    this.#deps = deps
  }

  /** To be called as soon as a connection is there; all of one turn are looked up together. */
  admit(socket: Socket): void {
    const key = `${socket.remoteAddress} ${socket.remotePort}`
    const earlier = this.#pending.get(key)
    // Two connections from one port: the peer of the first has left, and the second is not his.
    if (earlier !== undefined) this.#refuseAt(earlier, problem('forbidden', UNSEEN))
    if (this.#pending.size === 0) setImmediate(() => this.#judge())
    this.#pending.set(key, socket)
  }

  /** Why the peer may not ask for anything; undefined where he may. */
  refusal(socket: Socket): Problem | undefined {
    if (this.#pending.size > 0) this.#judge()
    return this.#refusals.get(socket)
  }

  #judge(): void {
    const sockets = [...this.#pending.values()]
    this.#pending.clear()
    const first = this.#look(sockets)
    const second = this.#look(sockets.filter((socket) => isUnsure(first.get(socket))))
    for (const socket of sockets) {
      const seen = first.get(socket)
      const uid = isUnsure(seen) ? agreed(seen, second.get(socket)) : seen
      if (!this.#mayPass(uid)) this.#refuseAt(socket, this.#refuse(uid))
    }
  }

  #refuseAt(socket: Socket, refused: Problem): void {
    this.#refusals.set(socket, refused)
    this.onRefused(socket)
  }

  #mayPass(uid: number | undefined): boolean {
    const { uid: own, allowed } = this.#deps
    return uid !== undefined && (uid === own || uid === ROOT || allowed.includes(uid))
  }

  #refuse(uid: number | undefined): Problem {
    if (uid === undefined) return problem('forbidden', UNSEEN)
    const { uid: own } = this.#deps
    return problem(
      'forbidden',
      `this API is for uid ${own}, who runs it, and not for uid ${uid}; [supervisor] allowed_uids in supervisor.toml lets others in`,
    )
  }

  /** Who holds the other end, where it is open and so is ours. */
  #look(sockets: readonly Socket[]): ReadonlyMap<Socket, number | undefined> {
    const sides = sockets.map(sidesOf)
    const found = this.#deps.table.holders(sides.flat())
    return new Map(
      sockets.map((socket, index) => {
        const [theirs, ours] = [found[2 * index], found[2 * index + 1]]
        return [socket, isOpen(theirs) && isOpen(ours) ? theirs.uid : undefined] as const
      }),
    )
  }
}

/** The peer's side, and our own. */
function sidesOf({ remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 }: Socket): readonly Side[] {
  const [there, here] = [
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  ]
  return [
    { local: there, remote: here },
    { local: here, remote: there },
  ]
}

const isOpen = (holder: Holder | undefined): holder is Holder => holder?.open === true && holder.inode !== 0
const isUnsure = (uid: number | undefined): boolean => uid === undefined || uid === ROOT
const agreed = (first: number | undefined, second: number | undefined): number | undefined =>
  (first === ROOT) === (second === ROOT) ? second : undefined
