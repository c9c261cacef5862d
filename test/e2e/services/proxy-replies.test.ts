/** What comes back from a service, and bodies in both directions, over real sockets. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { heard, httpUpstream, proxied, rawUpstream, type Setting } from '../../support/proxied.ts'

const P = '/v0/city/alpha/svc/web/x'
const GET = `GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`
const POST = (headers: string, more = '') =>
  `POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\n${more}${headers}\r\n`
const headEnd = (text: string) => text.includes('\r\n\r\n')
const DIRECT: Setting = { service: { direct: true } }

/** A service that answers each request with these bytes, piece by piece, and then perhaps closes. */
const answering = (pieces: readonly (string | Buffer)[], then?: (socket: Socket) => void) =>
  rawUpstream((socket) => {
    socket.on('error', () => {})
    void heard(socket, headEnd).then(async () => {
      for (const piece of pieces) {
        await new Promise((resolve) => socket.write(piece, 'latin1', resolve))
        await new Promise((resolve) => setImmediate(resolve))
      }
      then?.(socket)
    })
  })
const close = (socket: Socket) => socket.end()

/** Without what is of this connection. */
const stripped = (text: string) =>
  text
    .split('\r\n')
    .filter((line) => !/^(X-SVC-Request-Id|Connection|Keep-Alive):/.test(line))
    .join('\r\n')

for (const [what, sent, got] of [
  [
    'with a length',
    [
      'HTTP/1.1 200 Fine Thanks\r\nContent-Length: 5\r\nx-A: 1\r\nX-a: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nhello',
    ],
    'HTTP/1.1 200 Fine Thanks\r\nContent-Length: 5\r\nx-A: 1\r\nX-a: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nhello',
  ],
  [
    'one byte at a time',
    [...'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3;ext="a"\r\nabc\r\n0\r\nX-T: 1\r\n\r\n'],
    'HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\nX-T: 1\r\n\r\n',
  ],
  [
    'with trailers, but for those that have no place there',
    [
      'HTTP/1.1 200 OK\r\nTrailer: X-Sum, x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\nContent-Length: 9\r\nSet-Cookie: a\r\n\r\n',
    ],
    'HTTP/1.1 200 OK\r\nTrailer: X-Sum, x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n',
  ],
  [
    'that ends where the connection does',
    ['HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhello'],
    'HTTP/1.1 200 OK\r\nServer: old\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  ],
  ['without a phrase', ['HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n'], 'HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n'],
  [
    'with an odd status',
    ['HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\nx'],
    'HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\nx',
  ],
  [
    'of nothing',
    ['HTTP/1.1 204 No Content\r\nX: 1\r\nContent-Length: 0\r\n\r\n'],
    'HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n',
  ],
  [
    'that is not modified',
    ['HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n'],
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: "a"\r\n\r\n',
  ],
  [
    'after hints',
    [
      'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nlink: </b.js>\r\n\r\n',
      'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    ],
    'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nlink: </b.js>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  ],
  [
    'with headers of its connection',
    [
      'HTTP/1.1 200 OK\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n',
    ],
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  ],
  [
    'in lines without a carriage return',
    ['HTTP/1.0 200 OK\nContent-Type: text/plain\n\nhi\r\n\r\nthere'],
    'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhi\r\n\r\nthere\r\n0\r\n\r\n',
  ],
  [
    'with a length and chunks: chunks',
    ['HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  ],
  [
    'with bytes that no encoding knows',
    ['HTTP/1.1 200 \u00e9\u00ff\r\nX-L: \u00e4\u00ff\r\nContent-Length: 2\r\n\r\n\u0000\u00ff'],
    'HTTP/1.1 200 \u00e9\u00ff\r\nX-L: \u00e4\u00ff\r\nContent-Length: 2\r\n\r\n\u0000\u00ff',
  ],
] as const)
  test(`a reply ${what} passes`, async () => {
    await using proxy = await proxied(answering(sent, close), DIRECT)
    assert.equal(stripped(await proxy.ask(GET)), got)
    await proxy.quiet()
  })

test('HEAD passes the length of what is not sent, and the connection goes on', async () => {
  await using proxy = await proxied(answering(['HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n']), DIRECT)
  const head = `HEAD ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  using connection = await proxy.connect().send(head)
  const text = await connection.until(headEnd)
  assert.match(text, /Content-Length: 1234\r\n/)
  assert.match(text, /Connection: keep-alive/)
})

for (const [what, sent] of [
  ['says nothing', []],
  ['speaks something else', ['SSH-2.0-OpenSSH\r\n\r\n']],
  ['breaks off in its head', ['HTTP/1.1 200 OK\r\nContent-']],
  ['sends two lengths', ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab']],
  ['sends a coding that we do not know', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n']],
  ['sends a header that is none', ['HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n']],
  ['sends a header with a zero', ['HTTP/1.1 200 OK\r\nX: a\u0000b\r\n\r\n']],
  [
    'changes to a protocol that nobody asked for',
    ['HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'],
  ],
  ['sends a head without an end', [Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nX: '), Buffer.alloc(300_000, 120)])]],
] as const)
  test(`a service that ${what} is a bad gateway`, async () => {
    await using proxy = await proxied(answering(sent, close))
    const text = await proxy.ask(GET)
    assert.match(text, /^HTTP\/1\.1 502 /, text)
    assert.match(text, /"detail":"bad_gateway: (what )?service web /)
    assert.match(text, /X-SVC-Request-Id: [0-9a-f]{16}/)
    await proxy.quiet()
  })

test('a service that cannot be reached is a bad gateway', async () => {
  const { before } = await import('../../support/proxied.ts')
  for (const upstream of [{ socketPath: '/nowhere/web.sock' }, { host: '127.0.0.1', port: 1 }]) {
    await using proxy = await before(upstream)
    assert.match(await proxy.ask(GET), /^HTTP\/1\.1 502 [\s\S]*bad_gateway: service web cannot be reached/)
    await proxy.quiet()
  }
})

for (const [what, sent] of [
  ['with a length', ['HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n', 'hello']],
  ['in chunks', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n']],
  ['in the middle of a chunk', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello']],
  ['with a chunk that is none', ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nz\r\n']],
] as const)
  test(`a reply ${what} that is cut is cut for the client too, after what came of it`, async () => {
    await using proxy = await proxied(answering(sent, close))
    const text = await proxy.ask(GET)
    assert.match(text, /hello/)
    const isChunked = /Transfer-Encoding: chunked/.test(text)
    assert.ok(isChunked ? !text.includes('\r\n0\r\n') : /Content-Length: 10/.test(text), text)
    await proxy.quiet()
  })

test('a client of HTTP/1.0 cannot take a reply that was cut for a whole one', async () => {
  await using proxy = await proxied(
    answering(['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'], close),
  )
  using connection = proxy.connect()
  const failed = new Promise<NodeJS.ErrnoException>((resolve) => connection.socket.once('error', resolve))
  await connection.send(`GET ${P} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`)
  assert.equal((await failed).code, 'ECONNRESET')
})

test('the first event of a stream comes at once, and so does a head without a body', async () => {
  let say: (text: string) => void = () => {}
  await using proxy = await proxied(
    httpUpstream((_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
      say = (text) => response.write(text)
    }),
  )
  using connection = await proxy.connect().send(GET)
  await connection.until(headEnd)
  say('data: one\n\n')
  await connection.until((text) => text.includes('data: one'))
  say('data: two\n\n')
  await connection.until((text) => text.includes('data: two'))
})

test('a client that goes ends what the service does for it, and a stream', async () => {
  const closed: string[] = []
  let asked = 0
  await using proxy = await proxied(
    httpUpstream((request, response) => {
      asked++
      response.on('close', () => closed.push(request.url ?? ''))
      if (request.url === '/stream') response.write('a')
    }),
  )
  const first = await proxy.connect().send(`GET ${P.replace('/x', '/silent')} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  const second = await proxy.connect().send(`GET ${P.replace('/x', '/stream')} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  await second.until((text) => text.endsWith('a\r\n'))
  await eventually('both are asked', () => (asked === 2 ? true : undefined))
  first[Symbol.dispose]()
  second[Symbol.dispose]()
  await eventually('both are told', () => (closed.length === 2 ? true : undefined))
  await proxy.quiet()
})

test('a client that goes in the middle of its body ends the request at the service', async () => {
  let state = ''
  await using proxy = await proxied(
    httpUpstream((request) => {
      request.on('data', () => {
        state = 'sending'
      })
      request.on('error', () => {
        state = 'gone'
      })
    }),
  )
  const connection = await proxy.connect().send(`${POST('Content-Length: 100\r\n')}half`)
  await eventually('the service reads', () => (state === 'sending' ? true : undefined))
  connection[Symbol.dispose]()
  await eventually('the service is told', () => (state === 'gone' ? true : undefined))
  await proxy.quiet()
})

test('a body in chunks arrives in chunks, with its trailers', async () => {
  const seen: string[] = []
  await using proxy = await proxied(
    rawUpstream((socket) => {
      void heard(socket, (text) => text.includes('\r\n0\r\n') && text.endsWith('\r\n\r\n')).then((text) => {
        seen.push(text)
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
    }),
  )
  const body = '3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nX-Sum: 1\r\nAuthorization: x\r\nx-sum: 2\r\n\r\n'
  const text = await proxy.ask(
    `${POST('Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n', 'Connection: close\r\n')}${body}`,
  )
  assert.match(text, /^HTTP\/1\.1 200 /)
  const [head = '', rest = ''] = (seen[0] ?? '').split(/\r\n\r\n(.*)/s)
  assert.match(head, /\r\nTrailer: X-Sum\r\n/)
  assert.match(head, /\r\nTransfer-Encoding: chunked\r\n/)
  assert.equal(rest, '3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n')
})

test('a GET with a body has it at the service too', async () => {
  await using proxy = await proxied(
    httpUpstream((request, response) => {
      request.pipe(response)
    }),
  )
  const text = await proxy.ask(
    `GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`,
  )
  assert.match(text, /\r\n5\r\nhello\r\n0\r\n/)
})

test('a body that waits for leave is sent when the service gives it, and not before', async () => {
  let release: () => void = () => {}
  const upstream = httpUpstream(() => {})
  upstream.on('checkContinue', (request, response) => {
    release = () => {
      response.writeContinue()
      request.pipe(response)
    }
  })
  await using proxy = await proxied(upstream)
  using connection = await proxy.connect().send(POST('Content-Length: 5\r\nExpect: 100-continue\r\n'))
  await eventually('the service is asked', () => (proxy.visits.size === 1 ? true : undefined))
  assert.equal(connection.text, '')
  await eventually('the service has the head', () => {
    release()
    return connection.text === '' ? undefined : true
  })
  assert.equal(await connection.until(headEnd), 'HTTP/1.1 100 Continue\r\n\r\n')
  await connection.send('hello')
  const text = await connection.until((all) => all.endsWith('0\r\n\r\n'))
  assert.match(text, /hello/)
  assert.match(text, /Connection: keep-alive/)
})

test('a service may refuse a body that waits for leave: it never comes, and the connection ends', async () => {
  const upstream = httpUpstream(() => {})
  upstream.on('checkContinue', (_, response) => response.writeHead(413, { 'Content-Length': 0 }).end())
  await using proxy = await proxied(upstream)
  const text = await proxy.ask(POST('Content-Length: 5\r\nExpect: 100-continue\r\n'))
  assert.match(text, /^HTTP\/1\.1 413 /)
  assert.match(text, /Connection: close/)
  await proxy.quiet()
})

test('what a service answers before it has read the body is the answer, also where it closes at once', async () => {
  for (let round = 0; round < 20; round++) {
    await using proxy = await proxied(
      rawUpstream((socket) => {
        socket.on('error', () => {})
        void heard(socket, headEnd).then(() => {
          socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!')
          socket.destroySoon()
        })
      }),
    )
    using connection = await proxy.connect().send(POST('Content-Length: 4000000\r\n'))
    connection.socket.write(Buffer.alloc(4_000_000))
    const text = await connection.until((all) => all.includes('no!') || all.includes('}'))
    assert.match(text, /^HTTP\/1\.1 413 Too Large/, text)
    await proxy.quiet()
  }
})

test('who ends the connection with its request reads what was answered before its body had come', async () => {
  for (let round = 0; round < 10; round++) {
    await using proxy = await proxied(
      httpUpstream((_, response) => {
        response.writeHead(413, { 'Content-Length': 3 }).end('no!')
      }),
    )
    using connection = await proxy.connect().send(POST('Content-Length: 4000000\r\n', 'Connection: close\r\n'))
    await connection.until((all) => all.includes('no!'))
    connection.socket.write(Buffer.alloc(4_000_000))
    let reset: Error | undefined
    connection.socket.on('error', (error) => {
      reset = error
    })
    await connection.closed
    assert.equal(reset, undefined)
  }
})

test('a request that was answered early leaves its connection for the next one', async () => {
  await using proxy = await proxied(
    httpUpstream((request, response) => {
      response.end(request.url)
    }),
  )
  using connection = await proxy.connect().send(POST('Content-Length: 500000\r\n'))
  await connection.until((text) => text.endsWith('\r\n\r\n/x'))
  await connection.send(Buffer.alloc(500_000))
  await connection.send(`GET ${P}/next HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)
  await connection.until((text) => text.endsWith('\r\n\r\n/x/next'))
})

test('a kept connection that the service has closed is no failure: the request is sent once more', async () => {
  let connections = 0
  await using proxy = await proxied(
    rawUpstream((socket) => {
      connections++
      socket.on('error', () => {})
      void (async () => {
        await heard(socket, headEnd)
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        // It reads the next request, and closes without a word.
        await heard(socket, headEnd)
        socket.destroy()
      })().catch(() => {})
    }),
  )
  for (let n = 1; n <= 6; n++) assert.match(await proxy.ask(GET), /^HTTP\/1\.1 200 /)
  assert.equal(connections, 6)
  await proxy.quiet()
})

test('a request that may change something is never sent twice, and has a connection of its own', async () => {
  const seen: string[] = []
  await using proxy = await proxied(
    rawUpstream((socket) => {
      void heard(socket, headEnd).then((text) => {
        seen.push(text.split(' ')[0] ?? '')
        if (text.startsWith('GET')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        else socket.destroy()
      })
    }),
  )
  assert.match(await proxy.ask(GET), /^HTTP\/1\.1 200 /)
  assert.match(await proxy.ask(POST('Content-Length: 0\r\n', 'Connection: close\r\n')), /^HTTP\/1\.1 502 /)
  assert.deepEqual(seen, ['GET', 'POST'])
})

test('what a service says over a kept connection without being asked is nobody’s answer', async () => {
  let say: (() => void) | undefined
  await using proxy = await proxied(
    rawUpstream((socket) => {
      void heard(socket, headEnd).then(() => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
        say = () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
      })
    }),
  )
  assert.match(await proxy.ask(GET), /ok$/)
  say?.()
  assert.match(await proxy.ask(GET), /ok$/)
})

test('bytes behind a whole reply are not the next one', async () => {
  await using proxy = await proxied(
    answering(['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil']),
  )
  for (let n = 0; n < 2; n++) assert.match(await proxy.ask(GET), /\r\n\r\nok$/)
})

test('uploads and downloads pass whole and in little memory, however slow the other side', async () => {
  const SIZE = 256 * 1024 * 1024
  const chunk = Buffer.alloc(1024 * 1024, 7)
  let taken = 0
  await using proxy = await proxied(
    httpUpstream((request, response) => {
      if (request.method === 'POST') {
        request.on('data', (piece: Buffer) => {
          taken += piece.length
        })
        request.on('end', () => response.end(String(taken)))
        return
      }
      response.writeHead(200, { 'Content-Length': SIZE })
      let left = SIZE
      const more = () => {
        while (left > 0) {
          left -= chunk.length
          if (!response.write(chunk)) break
        }
        if (left > 0) response.once('drain', more)
        else response.end()
      }
      more()
    }),
  )
  const before = process.memoryUsage().rss
  let most = 0
  const look = () => {
    most = Math.max(most, process.memoryUsage().rss - before)
  }
  using up = await proxy.connect().send(POST(`Content-Length: ${SIZE}\r\n`))
  for (let sent = 0; sent < SIZE; sent += chunk.length) {
    look()
    if (!up.socket.write(chunk)) await new Promise((resolve) => up.socket.once('drain', resolve))
  }
  await up.until((text) => text.includes(String(SIZE)), 60_000)
  const { get } = process.getBuiltinModule('node:http')
  const got = await new Promise<number>((resolve, reject) => {
    get(`${proxy.url}${P}`, (response) => {
      let bytes = 0
      response.on('data', (piece: Buffer) => {
        bytes += piece.length
        look()
      })
      response.on('end', () => resolve(bytes)).on('error', reject)
    })
  })
  assert.equal(got, SIZE)
  // Client, proxy and service are all in this process.
  assert.ok(most < 160 * 1024 * 1024, `${Math.round(most / 1024 / 1024)} MiB more`)
})
