/** How long a service may take, who waits for it, and what stops them. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import type { Visit } from '../../../src/http/proxy/services.ts'
import { problem } from '../../../src/kernel/problem.ts'
import { eventually } from '../../support/eventually.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { heard, httpUpstream, OPEN, proxied, rawUpstream } from '../../support/proxied.ts'

const P = '/v0/city/alpha/svc/web/x'
const GET = `GET ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`
const headEnd = (text: string) => text.includes('\r\n\r\n')
const LIMITS = { firstByteMs: 60_000, idleMs: 600_000 }

/** A service that answers when it is told to. */
function patient() {
  const asked: Socket[] = []
  const upstream = rawUpstream((socket) => {
    socket.on('error', () => {})
    void heard(socket, headEnd).then(() => asked.push(socket))
  })
  const first = () => eventually('the service is asked', () => asked[0])
  return { upstream, first }
}

test('a service that does not begin to answer is given up after its time, and what it says later is nobody’s', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  const answer = proxy.ask(GET)
  const socket = await first()
  await clock.advance(59_000)
  assert.equal(proxy.visits.size, 1)
  await clock.advance(2_000)
  const text = await answer
  assert.match(text, /^HTTP\/1\.1 504 [\s\S]*timeout: service web did not begin to answer for 1m/)
  assert.match(text, /X-SVC-Request-Id: [0-9a-f]{16}/)
  await proxy.quiet()
  await eventually('it is told', () => (socket.destroyed || socket.readableEnded ? true : undefined))
})

test('a body may take as long as it moves, and then the service has its time', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  using client = await proxy
    .connect()
    .send(`POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\nContent-Length: 20\r\n\r\n`)
  const socket = await first()
  let got = ''
  socket.on('data', (chunk: Buffer) => {
    got += chunk.toString()
  })
  // Far longer than the time for an answer, in pieces that come before it is idle.
  for (let n = 1; n <= 20; n++) {
    await client.send('x')
    await eventually('the piece is there', () => (got.length === n ? true : undefined))
    await clock.advance(n === 20 ? 50_000 : 500_000)
    assert.equal(proxy.visits.size, 1, `cut after ${n} pieces`)
  }
  await clock.advance(11_000)
  assert.match(await client.until((text) => text.includes('}')), /^HTTP\/1\.1 504 [\s\S]*did not begin to answer/)
})

test('a body that stops in the middle is given up when it was idle for long', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  using client = await proxy
    .connect()
    .send(`POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\nContent-Length: 20\r\n\r\nhalf`)
  await first()
  await clock.advance(599_000)
  assert.equal(proxy.visits.size, 1)
  await clock.advance(2_000)
  assert.match(await client.until((text) => text.includes('}')), /^HTTP\/1\.1 504 [\s\S]*took and gave nothing for 10m/)
  await proxy.quiet()
})

test('a reply may go on for ever while it says something, and is cut when it was idle for long', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  using client = await proxy.connect().send(GET)
  const socket = await first()
  socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n')
  await client.until(headEnd)
  for (let n = 1; n <= 5; n++) {
    await clock.advance(599_000)
    socket.write(`data: ${n}\n\n`)
    await client.until((text) => text.includes(`data: ${n}`))
  }
  await clock.advance(601_000)
  await client.closed
  assert.ok(!client.text.includes('\r\n0\r\n'))
  await proxy.quiet()
})

test('a connection of another protocol is cut when it was idle for long', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  using client = await proxy.connect().send(GET.replace('close', 'Upgrade\r\nUpgrade: raw'))
  const socket = await first()
  socket.write('HTTP/1.1 101 Fine\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\n')
  await client.until(headEnd)
  for (let n = 1; n <= 3; n++) {
    await clock.advance(599_000)
    socket.write(`still ${n}`)
    await client.until((text) => text.endsWith(`still ${n}`))
  }
  assert.equal(proxy.visits.size, 1)
  await clock.advance(602_000)
  await client.closed
  await proxy.quiet()
})

test('one whose service has closed its side is cut soon where its client says nothing either', async () => {
  const clock = new ManualClock()
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream, { clock, service: LIMITS })
  using client = await proxy.connect().send(GET.replace('close', 'Upgrade\r\nUpgrade: raw'))
  const socket = await first()
  socket.end('HTTP/1.1 101 Fine\r\nUpgrade: raw\r\nConnection: Upgrade\r\n\r\nbye')
  await client.closed
  assert.match(client.text, /bye$/)
  await clock.advance(29_000)
  assert.equal(proxy.visits.size, 1)
  await clock.advance(3_000)
  await proxy.quiet()
})

test('when nothing is on its way no timer is left', async () => {
  const clock = new ManualClock()
  await using proxy = await proxied(
    httpUpstream((_, response) => response.end('ok')),
    { clock },
  )
  for (let n = 0; n < 3; n++) await proxy.ask(GET)
  await proxy.quiet()
  await clock.advance(30_000)
  assert.equal(clock.pending, 0)
})

/** A service whose callers are held until it is told. */
function holding() {
  let give: (visit: Visit) => void = () => {}
  let refuse: (error: Error) => void = () => {}
  const signals: AbortSignal[] = []
  const left: Visit[] = []
  const enter = (signal: AbortSignal): Promise<Visit> => {
    signals.push(signal)
    return new Promise((resolve, reject) => {
      give = resolve
      refuse = reject
      signal.addEventListener('abort', () => reject(new Error('nobody waits any more')))
    })
  }
  const visit = (socketPath: string): Visit => {
    const one: Visit = {
      upstream: { socketPath },
      life: {},
      cut: new AbortController().signal,
      leave: () => left.push(one),
    }
    return one
  }
  return { enter, visit, signals, left, give: (one: Visit) => give(one), refuse: (error: Error) => refuse(error) }
}

test('who is held is answered once the service is there, with a body that nobody read before', async () => {
  const held = holding()
  const upstream = httpUpstream((request, response) => request.pipe(response))
  await using proxy = await proxied(upstream, { service: { enter: held.enter } })
  using client = await proxy
    .connect()
    .send(`POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\nContent-Length: 8000000\r\n\r\n`)
  await eventually('it is held', () => held.signals[0])
  client.socket.write(Buffer.alloc(8_000_000, 'y'))
  // Nobody takes it: what the kernel does not hold waits at the client.
  await eventually('the client waits', () => (client.socket.writableLength > 0 ? true : undefined))
  held.give(held.visit(String(upstream.address())))
  const text = await client.until((all) => all.endsWith('\r\n0\r\n\r\n'))
  assert.ok(text.length > 8_000_000)
  assert.equal(held.left.length, 1)
})

test('who is held and asks before it sends its body gets leave from the service alone', async () => {
  const held = holding()
  const upstream = httpUpstream((request, response) => request.pipe(response))
  await using proxy = await proxied(upstream, { service: { enter: held.enter } })
  using client = await proxy
    .connect()
    .send(
      `POST ${P} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-SVC-Request: 1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n`,
    )
  await eventually('it is held', () => held.signals[0])
  assert.equal(client.text, '')
  held.give(held.visit(String(upstream.address())))
  await client.until((text) => text.startsWith('HTTP/1.1 100 '))
  await client.send('ok')
  await client.until((text) => text.endsWith('\r\n0\r\n\r\n'))
})

test('who is held and goes is held no longer; a visit that comes too late is left', async () => {
  const held = holding()
  const upstream = httpUpstream((_, response) => response.end())
  await using proxy = await proxied(upstream, { service: { enter: held.enter } })
  const client = await proxy.connect().send(GET)
  const signal = await eventually('it is held', () => held.signals[0])
  client[Symbol.dispose]()
  await eventually('the service is told', () => (signal.aborted ? true : undefined))
})

test('a service that cannot hold anybody says when to come again', async () => {
  const down = () => {
    throw problem('unavailable', 'service web is degraded: exited with 1', { retryAfterSec: 4 })
  }
  for (const enter of [down, async () => down()]) {
    await using proxy = await proxied(
      httpUpstream(() => {}),
      { service: { enter } },
    )
    const text = await proxy.ask(GET)
    assert.match(text, /^HTTP\/1\.1 503 [\s\S]*unavailable: service web is degraded/)
    assert.match(text, /\r\nRetry-After: 4\r\n/)
  }
})

test('who is held while its rights end is refused', async () => {
  const token = 'ab'.repeat(32)
  let holds = true
  const held = holding()
  const security = {
    ...OPEN,
    token: 'cd'.repeat(32),
    holderOf: (given: string) =>
      holds && given === token ? ({ kind: 'token', name: 'a', role: 'admin', city: undefined } as const) : undefined,
  }
  const upstream = httpUpstream((_, response) => response.end())
  await using proxy = await proxied(upstream, { security, service: { enter: held.enter } })
  const answer = proxy.ask(GET.replace('\r\n\r\n', `\r\nAuthorization: Bearer ${token}\r\n\r\n`))
  await eventually('it is held', () => held.signals[0])
  holds = false
  held.give(held.visit(String(upstream.address())))
  assert.match(await answer, /^HTTP\/1\.1 401 /)
  assert.equal(held.left.length, 1)
})

test('who came to a service for everybody that is private now is looked at, held or open', async () => {
  const held = holding()
  let direct = true
  const upstream = httpUpstream((_, response) => response.end())
  await using proxy = await proxied(upstream, {
    service: {
      enter: held.enter,
      get direct() {
        return direct
      },
    },
  })
  const answer = proxy.ask(GET.replace('127.0.0.1', 'evil.example'))
  await eventually('it is held', () => held.signals[0])
  direct = false
  held.give(held.visit(String(upstream.address())))
  assert.match(await answer, /^HTTP\/1\.1 421 /)
  assert.equal(held.left.length, 1)

  direct = true
  const silent = patient()
  await using streaming = await proxied(silent.upstream, {
    service: {
      get direct() {
        return direct
      },
    },
  })
  const open = streaming.ask(GET.replace('127.0.0.1', 'evil.example'))
  await silent.first()
  direct = false
  assert.match(await open, /^HTTP\/1\.1 403 [\s\S]*service web is private now/)
})

test('a supervisor that stops refuses who is held, ends streams at once, and lets what is short be finished', async () => {
  const held = holding()
  await using holder = await proxied(
    httpUpstream(() => {}),
    { service: { enter: held.enter } },
  )
  const waiting = holder.ask(GET)
  await eventually('it is held', () => held.signals[0])
  await holder.http.close()
  assert.match(await waiting, /^HTTP\/1\.1 503 [\s\S]*the supervisor is shutting down/)

  const { upstream, first } = patient()
  await using streaming = await proxied(upstream)
  using client = await streaming.connect().send(GET)
  const socket = await first()
  socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n')
  await client.until((text) => text.includes('data: 1'))
  const begun = performance.now()
  await streaming.http.close()
  await client.closed
  assert.ok(performance.now() - begun < 2_500)
  await streaming.quiet()

  const slow = patient()
  await using other = await proxied(slow.upstream)
  const answer = other.ask(GET)
  const asked = await slow.first()
  const closed = other.http.close()
  asked.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
  assert.match(await answer, /done$/)
  await closed
})

test('a process that is ended cuts what still runs there', async () => {
  const { upstream, first } = patient()
  await using proxy = await proxied(upstream)
  const silent = proxy.ask(GET)
  await first()
  proxy.end.abort()
  assert.match(await silent, /^HTTP\/1\.1 503 [\s\S]*unavailable: the service is being restarted[\s\S]*$/)
  await proxy.quiet()
})

test('more callers at once than the queue of a socket holds are all answered', async () => {
  let open: (() => void) | undefined
  const upstream = httpUpstream((_, response) => response.end('ok'))
  const held: (() => void)[] = []
  await using proxy = await proxied(upstream, {
    service: {
      enter: () =>
        new Promise((resolve) => {
          const life = {}
          const { signal } = new AbortController()
          held.push(() =>
            resolve({ upstream: { socketPath: String(upstream.address()) }, life, cut: signal, leave: () => {} }),
          )
          open = () => {
            for (const go of held) go()
          }
        }),
    },
  })
  const clients = await Promise.all(Array.from({ length: 1_000 }, () => proxy.connect().send(GET)))
  await eventually('all are held', () => (held.length === 1_000 ? true : undefined))
  open?.()
  await Promise.all(clients.map((client) => client.until((text) => text.endsWith('ok'), 60_000)))
  for (const client of clients) {
    assert.match(client.text, /^HTTP\/1\.1 200 /)
    client[Symbol.dispose]()
  }
})
