/** Services in a real browser: their pages, what those may do, and what pages of others may not. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Browser, missingBrowser } from '../../support/browser.ts'
import { eventually } from '../../support/eventually.ts'
import { agreeToWebSocket, before, httpUpstream, proxied } from '../../support/proxied.ts'
import { temporaryDirectory } from '../../support/temporary.ts'

const P = '/v0/city/alpha/svc/web'
const FILES: Readonly<Record<string, readonly [string, string]>> = {
  '/': [
    'text/html',
    '<!doctype html><title>start</title><link rel="stylesheet" href="a.css"><p id="p">x</p><script src="a.js"></script>',
  ],
  '/alone': ['text/html', '<!doctype html><title>start</title><script>document.title = "here"</script>'],
  '/module': ['text/html', '<!doctype html><title>start</title><script type="module" src="b.js"></script>'],
  '/a.css': ['text/css', '#p { margin-left: 7px }'],
  '/a.js': ['text/javascript', 'addEventListener("load", () => { document.title = getComputedStyle(p).marginLeft })'],
  '/b.js': [
    'text/javascript',
    `const socket = new WebSocket(new URL('ws', location.href.replace('http', 'ws')))
     socket.onopen = () => socket.send('over a socket')
     socket.onmessage = ({ data }) => {
       const events = new EventSource('events')
       events.onmessage = (event) => { document.title = data + ', ' + event.data; events.close() }
     }`,
  ],
}

function pages() {
  const upstream = httpUpstream((request, response) => {
    if (request.url === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: in a stream\n\n')
      return
    }
    const [type, text] = FILES[request.url ?? ''] ?? ['text/plain', 'nothing']
    response.writeHead(200, { 'Content-Type': type }).end(text)
  })
  upstream.on('upgrade', (request, socket) => {
    agreeToWebSocket(request, socket)
    socket.on('data', (frame: Buffer) => {
      const length = (frame[1] ?? 0) & 127
      const text = frame.subarray(6, 6 + length).map((byte, i) => byte ^ (frame[2 + (i % 4)] ?? 0))
      if (((frame[0] ?? 0) & 15) === 1) socket.write(Buffer.concat([Buffer.from([0x81, length]), text]))
      else socket.end()
    })
  })
  return upstream
}

/** What becomes of an attempt, in the page. */
const attempt = (expression: string) =>
  `Promise.race([(${expression}).then((x) => String(x), (error) => error.name), new Promise((done) => setTimeout(done, 20000, 'late'))])`
const POST = `fetch('${P}/x', { method: 'POST', headers: { 'X-SVC-Request': '1' } }).then((r) => r.status)`
const SOCKET = (url: string) =>
  `new Promise((done) => { const s = new WebSocket('${url}'); s.onopen = () => done('open'); s.onerror = () => done('refused') })`

test('a page of a private service has its scripts in it, and may do nothing to the API', {
  skip: missingBrowser,
}, async () => {
  await using world = await proxied(pages())
  await using browser = await Browser.start()
  await browser.open(`${world.url}${P}/alone`)
  await browser.titled('here')
  assert.equal(await browser.evaluate('self.origin'), 'null')
  assert.equal(await browser.evaluate(attempt(POST)), 'TypeError')
  assert.equal(await browser.evaluate(attempt(`fetch('/v0/cities').then((r) => r.status)`)), 'TypeError')
  assert.equal(await browser.evaluate(attempt(SOCKET(`${world.url.replace('http', 'ws')}${P}/ws`))), 'refused')
})

test('one that says it is to be trusted has modules, sockets and streams', { skip: missingBrowser }, async () => {
  await using world = await proxied(pages(), { service: { sandbox: false } })
  await using browser = await Browser.start()
  await browser.open(`${world.url}${P}/module`)
  await browser.titled('over a socket, in a stream')
  assert.equal(await browser.evaluate(attempt(POST)), '200')
})

test('a page of another origin gets nothing of a private service, and all of a direct one that lets it', {
  skip: missingBrowser,
}, async () => {
  await using elsewhere = await proxied(pages(), { service: { sandbox: false } })
  for (const direct of [false, true]) {
    await using world = await proxied(pages(), { service: { direct } })
    await using browser = await Browser.start()
    await browser.open(`${elsewhere.url}${P}/`)
    await browser.titled('7px')
    const image = `new Promise((done) => { const s = document.createElement('script'); s.src = '${world.url}${P}/a.js'; s.onload = () => done('ran'); s.onerror = () => done('refused'); document.head.append(s) })`
    assert.equal(await browser.evaluate(attempt(image)), direct ? 'ran' : 'refused')
    assert.equal(
      await browser.evaluate(attempt(SOCKET(`${world.url.replace('http', 'ws')}${P}/ws`))),
      direct ? 'open' : 'refused',
    )
    assert.equal(await browser.evaluate(attempt(`fetch('${world.url}${P}/a.js').then((r) => r.text())`)), 'TypeError')
  }
})

const VITE = process.env['SVC_VITE'] ?? ''
const missingVite =
  missingBrowser ||
  (existsSync(join(VITE, 'node_modules', 'vite')) ? false : 'SVC_VITE names no directory with Vite in it')

test('a dev server of Vite reloads a module in an open page', { skip: missingVite }, async () => {
  using place = temporaryDirectory()
  const site = join(place.path, 'site')
  mkdirSync(site)
  const word = (said: string) => writeFileSync(join(site, 'word.js'), `export const word = '${said}'\n`)
  word('first')
  writeFileSync(
    join(site, 'index.html'),
    '<!doctype html><title>start</title><script type="module" src="/main.js"></script>',
  )
  writeFileSync(
    join(site, 'main.js'),
    `import { word } from './word.js'
document.title = word
window.loads = (window.loads ?? 0) + 1
import.meta.hot.accept('./word.js', (changed) => { document.title = changed.word })
import.meta.hot.on('vite:ws:connect', () => { window.isLive = true })\n`,
  )
  const program = join(VITE, 'svc-test-service.mjs')
  writeFileSync(
    program,
    `import http from 'node:http'
import { createServer } from 'vite'
const [root, prefix, socket] = process.argv.slice(2)
const server = http.createServer()
server.on('upgrade', (request) => { request.url = prefix + request.url })
const vite = await createServer({ root, base: prefix + '/', cacheDir: root + '/cache', server: { middlewareMode: true, hmr: { server } } })
server.on('request', (request, response) => { request.url = prefix + request.url; vite.middlewares(request, response) })
server.listen(socket)\n`,
  )
  const socketPath = join(place.path, 'vite.sock')
  const child = spawn(process.execPath, [program, site, P, socketPath], { stdio: 'ignore' })
  const gone = new Promise((resolve) => child.once('exit', resolve))
  try {
    await eventually('the dev server is there', () => (existsSync(socketPath) ? true : undefined))
    await using world = await before({ socketPath }, { service: { sandbox: false } })
    await using browser = await Browser.start()
    await browser.open(`${world.url}${P}/`)
    await browser.titled('first')
    await eventually('it is connected', () => (world.visits.size > 0 ? true : undefined))
    word('second')
    await browser.titled('second')
    assert.equal(await browser.evaluate('window.loads'), 1)
  } finally {
    child.kill('SIGKILL')
    await gone
  }
})
