/** Connections that change to another protocol: WebSockets, and any other. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { agreeToWebSocket, heard, httpUpstream, proxied, rawUpstream } from '../../support/proxied.ts'

const P = '/v0/city/alpha/svc/web/ws'
const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const ASK = `GET ${P}?a=%2F HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n\r\n`
const headEnd = (text: string) => text.includes('\r\n\r\n')
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\nConnection: Upgrade\r\nX-A: 1\r\n\r\n'

/** A service that agrees at once, says `first`, and is then handed the connection. */
const switching = (first: string, then: (socket: Socket) => void, seen: string[] = []) =>
  rawUpstream((socket) => {
    socket.on('error', () => {})
    void heard(socket, headEnd).then((text) => {
      seen.push(text)
      socket.write(`${SWITCH}${first}`)
      then(socket)
    })
  })
const echo = (socket: Socket) => socket.on('data', (chunk) => socket.write(chunk)).on('end', () => socket.end())

async function opened(upstream: ReturnType<typeof rawUpstream>, ask = ASK) {
  const proxy = await proxied(upstream)
  const connection = await proxy.connect().send(ask)
  await connection.until(headEnd)
  return { proxy, connection }
}

test('a real WebSocket client speaks with a real service', async () => {
  const upstream = httpUpstream((_, response) => response.end())
  upstream.on('upgrade', (request, socket) => {
    agreeToWebSocket(request, socket)
    // One masked text frame is answered with the same text, unmasked.
    socket.on('data', (frame: Buffer) => {
      const length = (frame[1] ?? 0) & 127
      const mask = frame.subarray(2, 6)
      const text = frame.subarray(6, 6 + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0))
      if (((frame[0] ?? 0) & 15) === 1) socket.write(Buffer.concat([Buffer.from([0x81, length]), text]))
      else socket.end(Buffer.from([0x88, 0]))
    })
  })
  await using proxy = await proxied(upstream)
  const socket = new WebSocket(`${proxy.url.replace('http', 'ws')}${P}`)
  const said = await new Promise<unknown>((resolve, reject) => {
    socket.onopen = () => socket.send('hello')
    socket.onmessage = ({ data }) => resolve(data)
    socket.onerror = () => reject(new Error('no connection'))
  })
  assert.equal(said, 'hello')
  const closed = new Promise((resolve) => {
    socket.onclose = resolve
  })
  socket.close()
  await closed
  await proxy.quiet()
})

test('what the service is asked, and what it agrees to, is as it was written; the id of the request is ours', async () => {
  const seen: string[] = []
  const { proxy, connection } = await opened(switching('', echo, seen))
  await using _ = proxy
  using client = connection
  assert.deepEqual(seen[0]?.split('\r\n'), [
    'GET /ws?a=%2F HTTP/1.1',
    'Host: 127.0.0.1',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${KEY}`,
    'X-Forwarded-For: 127.0.0.1',
    'X-Forwarded-Host: 127.0.0.1',
    'X-Forwarded-Proto: http',
    'X-Forwarded-Prefix: /v0/city/alpha/svc/web',
    'Connection: Upgrade',
    '',
    '',
  ])
  assert.match(
    client.text,
    /^HTTP\/1\.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\nX-A: 1\r\nX-SVC-Request-Id: [0-9a-f]{16}\r\nVary: Origin\r\n\r\n$/,
  )
})

test('bytes that come together with the heads are not lost, in either direction', async () => {
  const { proxy, connection } = await opened(switching('early', echo), `${ASK}soon`)
  await using _ = proxy
  using client = connection
  await client.until((text) => text.endsWith('\r\n\r\nearlysoon'))
})

test('what the client says before the service agrees waits for it, whole', async () => {
  let asked: Socket | undefined
  const upstream = rawUpstream((socket) => {
    void heard(socket, headEnd).then(() => {
      asked = socket
    })
  })
  await using proxy = await proxied(upstream)
  using client = await proxy.connect().send(ASK)
  await client.send(Buffer.alloc(300_000, 'x'))
  const service = await eventually('the service is asked', () => (proxy.visits.size > 0 ? asked : undefined))
  service.write(SWITCH)
  echo(service)
  await client.until((text) => text.split('\r\n\r\n')[1]?.length === 300_000)
})

test('where one side says no more the other may go on, and where one is gone both are', async () => {
  let service: Socket | undefined
  const { proxy, connection } = await opened(
    switching('', (socket) => {
      service = socket
      socket.on('data', () => {})
      socket.once('end', () => socket.end('and this is the answer'))
    }),
  )
  await using _ = proxy
  using client = connection
  await client.send('question')
  client.socket.end()
  await client.until((text) => text.endsWith('and this is the answer'))
  await proxy.quiet()
  assert.ok(service?.readableEnded)

  const other = await opened(switching('', (socket) => socket.on('data', () => socket.destroy())))
  await using __ = other.proxy
  await other.connection.send('x')
  await other.connection.closed
  other.connection[Symbol.dispose]()
  await other.proxy.quiet()
})

test('a client that goes ends the connection at the service', async () => {
  let gone = false
  const { proxy, connection } = await opened(
    switching('', (socket) => {
      socket.resume()
      socket.on('close', () => {
        gone = true
      })
      socket.on('end', () => socket.end())
    }),
  )
  await using _ = proxy
  connection.socket.resetAndDestroy()
  await eventually('the service is told', () => (gone ? true : undefined))
  await proxy.quiet()
})

test('a service that does not agree says why, as to any other request', async () => {
  for (const [listener, expected] of [
    [
      (socket: Socket) => socket.end('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\nX-A: 1\r\n\r\nno!!'),
      /^HTTP\/1\.1 426 Upgrade Required\r\nContent-Length: 4\r\nX-A: 1\r\n[\s\S]*\r\n\r\nno!!$/,
    ],
    [
      (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'),
      /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n2\r\nok\r\n0\r\n\r\n$/,
    ],
    [
      (socket: Socket) => socket.destroy(),
      /^HTTP\/1\.1 502 [\s\S]*bad_gateway: service web closed the connection without an answer/,
    ],
  ] as const) {
    await using proxy = await proxied(rawUpstream((socket) => void heard(socket, headEnd).then(() => listener(socket))))
    const text = await proxy.ask(ASK)
    assert.match(text, expected)
    assert.match(text, /\r\nConnection: close\r\n/)
    assert.match(text, /\r\nX-SVC-Request-Id: [0-9a-f]{16}\r\n/)
    await proxy.quiet()
  }
})

test('a long answer instead of an agreement comes whole', async () => {
  const body = 'x'.repeat(3_000_000)
  await using proxy = await proxied(httpUpstream((_, response) => response.end(body)))
  const text = await proxy.ask(ASK)
  assert.ok(text.endsWith(body))
})

test('requests before it on the same connection are answered first', async () => {
  const upstream = rawUpstream((socket) => {
    void heard(socket, headEnd).then((text) => {
      if (text.includes('Upgrade: websocket')) {
        socket.write(SWITCH)
        echo(socket)
      } else setImmediate(() => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst'))
    })
  })
  await using proxy = await proxied(upstream)
  using client = await proxy.connect().send(`GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n${ASK}ping`)
  const text = await client.until((all) => all.endsWith('ping'))
  assert.match(text, /^HTTP\/1\.1 200 OK[\s\S]*firstHTTP\/1\.1 101 [\s\S]*\r\n\r\nping$/)
})

for (const [what, head] of [
  ['HTTP/2', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n'],
  ['a body', 'X-SVC-Request: 1\r\nConnection: Upgrade\r\nUpgrade: raw\r\nContent-Length: 2\r\n\r\nhi'],
] as const)
  test(`a request with ${what} is no upgrade: it is passed on without`, async () => {
    const seen: string[] = []
    await using proxy = await proxied(
      rawUpstream((socket) => {
        void heard(socket, headEnd).then((text) => {
          seen.push(text)
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        })
      }),
    )
    using client = await proxy.connect().send(`POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\n${head}`)
    assert.match(await client.until((text) => text.endsWith('ok')), /^HTTP\/1\.1 200 /)
    assert.ok(!/upgrade|http2/i.test(seen[0] ?? ''), seen[0] ?? 'nothing')
  })

test('an upgrade of the API itself is what it was: none', async () => {
  await using proxy = await proxied(httpUpstream(() => {}))
  using client = await proxy.connect().send(ASK.replace(P, '/nowhere'))
  assert.match(await client.until((text) => text.includes('}')), /^HTTP\/1\.1 404 [\s\S]*Connection: keep-alive/)
})

test('a process that is ended takes its connections along, and so do a supervisor that stops and rights that end', async () => {
  for (const how of ['process', 'stop', 'rights'] as const) {
    const { proxy, connection } = await opened(switching('', (socket) => socket.resume()))
    await using _ = proxy
    const begun = performance.now()
    if (how === 'process') proxy.end.abort()
    else if (how === 'rights') proxy.http.endStreamsOf(() => true)
    else await proxy.http.close()
    await connection.closed
    await proxy.quiet()
    assert.ok(performance.now() - begun < 2_500, `${how} took ${performance.now() - begun} ms`)
  }
})

test('a hundred that are idle disturb nobody, and are all told when their process ends', async () => {
  const upstream = switching('', echo)
  await using proxy = await proxied(upstream)
  const clients = await Promise.all(Array.from({ length: 100 }, () => proxy.connect().send(ASK)))
  await Promise.all(clients.map((client) => client.until(headEnd, 30_000)))
  assert.equal(proxy.visits.size, 100)
  const [one] = clients
  await one?.send('still here')
  await one?.until((text) => text.endsWith('still here'))
  proxy.end.abort()
  await Promise.all(clients.map((client) => client.closed))
  await proxy.quiet()
})
