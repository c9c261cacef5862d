/** Where a bridge is reached: by webhooks, or by whoever wants to know how it is. */
import type { Server } from 'node:http'
import type { LogFields } from './log.ts'

const { createServer } = process.getBuiltinModule('node:http')

export type Place = { readonly socketPath: string } | { readonly host: string; readonly port: number }

/** Resolves with what the place is called, once it listens there. */
export function listenAt(server: Server, place: Place): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const listening = () => {
      const address = server.address()
      if ('socketPath' in place) return resolve(place.socketPath)
      const port = typeof address === 'object' && address !== null ? address.port : place.port
      resolve(`${place.host}:${port}`)
    }
    if ('socketPath' in place) server.listen(place.socketPath, listening)
    else server.listen(place.port, place.host, listening)
  })
}

export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

/**
 * Answers `GET /health` with what the bridge says of itself. Always 200: a chat that is away does not come back by starting
 * the bridge anew.
 */
export async function serveHealth(place: Place, health: () => LogFields): Promise<{ close(): Promise<void> }> {
  const server = createServer({ requestTimeout: 10_000 }, (request, response) => {
    const isKnown = request.method === 'GET' && request.url === '/health'
    const text = JSON.stringify(isKnown ? { status: 'ok', ...health() } : { error: 'there is only GET /health' })
    response.writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' }).end(text)
  })
  await listenAt(server, place)
  return { close: () => closed(server) }
}
