/** The least that a service can be, on the socket that it is told: as one of a city, and by itself as the floor. */
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'

const BYTES = 200
const CHUNK = Buffer.alloc(256 * 1024, 120)
const path = process.env['SVC_SERVICE_SOCKET'] ?? process.argv[2] ?? ''
const body = JSON.stringify({ a: 'x'.repeat(BYTES - 8) })
const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }

const server = createServer((request, response) => {
  const wanted = /\/download\?(\d+)$/.exec(request.url ?? '')?.[1]
  if (wanted !== undefined) {
    response.writeHead(200, { 'Content-Length': wanted })
    send(Number(wanted))
    return
  }
  const answer = () => response.writeHead(200, headers).end(body)
  if (request.method === 'GET') answer()
  else request.on('data', () => {}).on('end', answer)

  function send(left: number): void {
    let rest = left
    while (rest > 0) {
      const piece = CHUNK.subarray(0, Math.min(rest, CHUNK.length))
      rest -= piece.length
      if (!response.write(piece)) break
    }
    if (rest > 0) response.once('drain', () => send(rest))
    else response.end()
  }
})
server.on('upgrade', (_, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk))
})
rmSync(path, { force: true })
server.listen(path)
