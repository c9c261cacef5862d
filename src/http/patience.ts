/**
 * How long the server waits for a client that takes its time. `drain` alone says too little: Linux reports a socket writable only
 * once a third of its send buffer is free, which may be megabytes, so that a client that reads all the time looks dead.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { openProcTable } from '../kernel/peers/proc-net.ts'

/** A client that takes nothing from one look to the next is given up. */
const LOOK_MS = 15_000

let table: ReturnType<typeof openProcTable> | 'unopened' = 'unopened'

const unsentOf = (socket: Socket): number | undefined => {
  if (table === 'unopened') table = openProcTable()
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  if (localAddress === undefined || localPort === undefined || remoteAddress === undefined || remotePort === undefined)
    return undefined
  const side = {
    local: { address: localAddress, port: localPort },
    remote: { address: remoteAddress, port: remotePort },
  }
  const inKernel = table?.holders([side])[0]?.unsent
  return inKernel === undefined ? undefined : inKernel + socket.writableLength
}

/**
 * Calls `givenUp` once the client has taken nothing for 15 to 30 s; where the system does not tell, after 30 s. Gives back what
 * ends the wait: to be called when the socket has drained.
 */
export function waitForClient(
  socket: Socket,
  clock: Clock,
  {
    givenUp,
    unsent = unsentOf,
  }: { readonly givenUp: () => void; readonly unsent?: (socket: Socket) => number | undefined },
): () => void {
  let looks = 0
  let before: number | undefined
  let cancel = clock.after(LOOK_MS, look)
  return () => cancel()

  function look(): void {
    const now = unsent(socket)
    looks += 1
    const tookSome = before !== undefined && now !== undefined && now < before
    if (looks > 1 && !tookSome) {
      givenUp()
      return
    }
    before = now
    cancel = clock.after(LOOK_MS, look)
  }
}
