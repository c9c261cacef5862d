/** The proxy before servers that people use, where they are installed; it says which are not. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openListeners } from '../../../src/kernel/peers/listeners.ts'
import { eventually } from '../../support/eventually.ts'
import { socketsHeldBy } from '../../support/other-user.ts'
import { before, type ProxiedWorld } from '../../support/proxied.ts'
import { temporaryDirectory } from '../../support/temporary.ts'

const P = '/v0/city/alpha/svc/web'
const BIG = randomBytes(3_000_000)

interface ServerKind {
  readonly name: string
  readonly program: string
  /** So many at once it takes. */
  readonly atOnce: number
  /** Writes what it needs and says how it is started; it serves `dir/www`. */
  start(dir: string, port: number): readonly string[]
}

const KINDS: readonly ServerKind[] = [
  {
    name: 'nginx',
    program: 'nginx',
    atOnce: 200,
    start(dir, port) {
      writeFileSync(
        join(dir, 'nginx.conf'),
        `${process.getuid?.() === 0 ? 'user root; ' : ''}daemon off; pid ${dir}/pid; error_log ${dir}/error.log; events {} http { access_log off; client_body_temp_path ${dir}/b; proxy_temp_path ${dir}/p; fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s; server { listen 127.0.0.1:${port}; root ${dir}/www; location /upload { client_max_body_size 1k; return 200 "no"; } location /moved { return 302 /elsewhere; } } }`,
      )
      return ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', join(dir, 'error.log')]
    },
  },
  {
    name: 'caddy',
    program: 'caddy',
    atOnce: 200,
    start: (dir, port) => ['file-server', '--root', join(dir, 'www'), '--listen', `127.0.0.1:${port}`],
  },
  {
    name: 'http.server of Python',
    program: 'python3',
    // Its queue has room for five.
    atOnce: 4,
    start: (dir, port) => ['-m', 'http.server', '--bind', '127.0.0.1', '--directory', join(dir, 'www'), String(port)],
  },
]

const isThere = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

const accepts = (port: number): Promise<true | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(undefined))
  })

async function withServer(kind: ServerKind, context: TestContext, check: (world: ProxiedWorld) => Promise<void>) {
  if (!isThere(kind.program)) {
    context.skip(`${kind.program} is not installed`)
    return
  }
  using place = temporaryDirectory()
  mkdirSync(join(place.path, 'www', 'sub dir'), { recursive: true })
  writeFileSync(join(place.path, 'www', 'a.txt'), 'hello')
  writeFileSync(join(place.path, 'www', 'big.bin'), BIG)
  writeFileSync(join(place.path, 'www', 'sub dir', 'ü.html'), '<p>page')
  const port = await freePort()
  const child: ChildProcess = spawn(kind.program, kind.start(place.path, port), {
    stdio: 'ignore',
    env: { ...process.env, HOME: place.path },
  })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  try {
    await eventually(`${kind.name} listens`, () => accepts(port))
    await using world = await before({ host: '127.0.0.1', port })
    await check(world)
    await world.quiet()
  } finally {
    child.kill('SIGTERM')
    await gone
  }
}

for (const kind of KINDS) {
  test(`files of ${kind.name} come as they are: whole, in part, by odd names, and not at all`, async (context) => {
    await withServer(kind, context, async ({ url }) => {
      const get = (path: string, headers = {}, method = 'GET') =>
        fetch(`${url}${P}${path}`, { method, headers, redirect: 'manual' })
      const plain = await get('/a.txt')
      assert.deepEqual([plain.status, await plain.text()], [200, 'hello'])
      const big = await get('/big.bin')
      assert.ok(BIG.equals(Buffer.from(await big.arrayBuffer())))
      const page = await get('/sub%20dir/%C3%BC.html')
      assert.deepEqual([page.status, await page.text()], [200, '<p>page'])
      assert.equal(page.headers.get('content-security-policy'), 'sandbox allow-scripts allow-forms')
      const missing = await get('/missing')
      assert.equal(missing.status, 404)
      assert.match(missing.headers.get('x-svc-request-id') ?? '', /^[0-9a-f]{16}$/)
      const head = await get('/big.bin', {}, 'HEAD')
      assert.equal(head.headers.get('content-length'), String(BIG.length))
      const since = await get('/a.txt', { 'If-Modified-Since': plain.headers.get('last-modified') ?? '' })
      assert.equal(since.status, 304)
      if (kind.program !== 'python3') {
        const part = await get('/a.txt', { Range: 'bytes=1-3' })
        assert.deepEqual([part.status, await part.text()], [206, 'ell'])
      }
      // Many at once, over connections that are kept where the server keeps them.
      const all = await Promise.all(Array.from({ length: kind.atOnce }, async () => (await get('/a.txt')).text()))
      assert.ok(all.every((text) => text === 'hello'))
    })
  })

  test(`what ${kind.name} answers to a body that nobody there wants is its own answer`, async (context) => {
    await withServer(kind, context, async ({ url }) => {
      const sent = await fetch(`${url}${P}/a.txt`, { method: 'POST', headers: { 'X-SVC-Request': '1' }, body: BIG })
      assert.ok([200, 403, 404, 405, 413, 501].includes(sent.status), String(sent.status))
      assert.ok(!(await sent.text()).includes('urn:svc'))
    })
  })
}

test('what nginx redirects to, and what it finds too large, is told as it says it', async (context) => {
  const [nginx] = KINDS
  assert.ok(nginx)
  await withServer(nginx, context, async ({ url }) => {
    const moved = await fetch(`${url}${P}/moved`, { redirect: 'manual' })
    assert.equal(moved.status, 302)
    assert.match(moved.headers.get('location') ?? '', /\/elsewhere$/)
  })
})

test('what another user answers at the port of a service is not passed on, and gets no request', async (t) => {
  const asked: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {}).on('data', (bytes) => asked.push(bytes.toString('latin1')))
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  const table = socketsHeldBy(1002)
  if (table === undefined) return t.skip('the system does not show who listens')
  await using world = await before({ host: '127.0.0.1', port: address.port }, { listeners: openListeners(table, 1001) })
  const answer = await fetch(`${world.url}${P}/`, { headers: { cookie: 'secret=1' } })
  assert.equal(answer.status, 502)
  assert.match(await answer.text(), /service web cannot be reached: port \d+ belongs to another user \(uid \d+\)/)
  assert.deepEqual(asked, [])
  await world.quiet()
})
