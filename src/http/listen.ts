/** Where the server listens: one address, or for `localhost` every one that the name stands for. */
import { lookup } from 'node:dns/promises'
import type { Server } from 'node:http'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'

export interface Listening {
  readonly address: AddressInfo
  /** Takes no more connections; resolves when the last one is gone. */
  close(): Promise<void>
}

export async function listenOn(server: Server, host: string, port: number): Promise<Listening> {
  const [first = host, ...others] = host === 'localhost' ? await addressesOf(host) : [host]
  const address = await bind(server, first, port)
  // As Node makes those of an HTTP server.
  const options = { allowHalfOpen: true, noDelay: true }
  const doors = others.map(() => createServer(options, (socket) => server.emit('connection', socket)))
  // Clients try one address of a name after the other: the first one is enough where another cannot be had.
  const bound = await Promise.allSettled(doors.map((door, index) => bind(door, others[index] ?? first, address.port)))
  const open = doors.filter((_, index) => bound[index]?.status === 'fulfilled')
  return {
    address,
    close: async () => {
      await Promise.all([server, ...open].map(closed))
    },
  }
}

async function addressesOf(name: string): Promise<readonly string[]> {
  const found = await lookup(name, { all: true })
  return [...new Set(found.map(({ address }) => address))]
}

function bind(server: NetServer, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.removeListener('error', reject)
      const address = server.address()
      if (typeof address === 'object' && address !== null) resolve(address)
      else reject(new Error(`bound to ${host} without an address`))
    })
  })
}

const closed = (server: NetServer): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
