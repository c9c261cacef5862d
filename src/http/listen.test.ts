import assert from 'node:assert/strict'
import dns from 'node:dns/promises'
import { createServer } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { listenOn } from './listen.ts'

test('every address of localhost answers alike, also a client that closes its side first', {
  skip: process.platform === 'linux' ? false : 'elsewhere loopback has one address',
}, async (t) => {
  const names = ['127.0.0.1', '127.0.0.2']
  t.mock.method(dns, 'lookup', async () => names.map((address) => ({ address, family: 4 })))
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  const server = createServer((_, response) => setImmediate(() => response.end('here')))
  const listening = await listenOn(server, 'localhost', 0)
  const { port }: AddressInfo = listening.address
  try {
    const answers = await Promise.all(
      names.map((host) => {
        const socket = connect({ host, port, allowHalfOpen: true })
        socket.end('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return text(socket)
      }),
    )
    for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 200 [\s\S]*here/)
  } finally {
    await listening.close()
  }
})
