// What people see where the port of the server is somebody else's.
import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { test } from 'node:test'
import { cliHere } from '../../test/support/cli.ts'

async function on<T>(server: Server, use: (url: string) => Promise<T>): Promise<T> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

const page = (status: number, text: string, type = 'text/html') =>
  createHttpServer((_, response) => response.writeHead(status, { 'content-type': type, connection: 'close' }).end(text))
const banner = () =>
  createServer((socket) =>
    socket
      .on('error', () => {})
      .resume()
      .end('SSH-2.0-OpenSSH_9.6\r\n'),
  )

const CASES: readonly [string, () => Server, RegExp, number][] = [
  [
    'the error page of a web server',
    () => page(404, '<!DOCTYPE html><style>p{}</style><h1>Not\n Found</h1>'),
    /^error: HTTP 404, and not from a svcctl server: Not Found\nhint: another program may have the port/,
    3,
  ],
  [
    'a welcome page',
    () => page(200, '<h1>It works</h1>'),
    /expected JSON, got text\/html: is http:\/\/.* a svcctl server\?/,
    1,
  ],
  [
    'JSON of another program',
    () => page(200, '{"hello":1}', 'application/json'),
    /got the JSON of another program: is http:\/\/.* a svcctl server\?/,
    1,
  ],
  [
    'no web server at all',
    banner,
    /^error: cannot reach http:\/\/127.*: what listens there does not speak HTTP\nhint: another program/,
    7,
  ],
]

for (const [what, make, says, code] of CASES)
  test(`${what} where the server should be is told as that`, () =>
    on(make(), async (url) => {
      const result = await cliHere(['city', 'list', '--api', url])
      assert.match(result.err, says)
      assert.equal(result.code, code)
      assert.equal(result.out, '')
    }))
