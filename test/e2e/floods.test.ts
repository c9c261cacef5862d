/** Very many connections that mean no good, or ask and never read: others are served, and memory stays bounded. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { before, test } from 'node:test'
import { eventually } from '../support/http.ts'
import { newCity, run } from '../support/running.ts'

const HALF_HEADS = 2_000
const SILENT_STREAMS = 500
const EVENTS = 200
const EVENT_BYTES = 16_000
const MIB = 1024 * 1024

const options = process.platform === 'linux' ? {} : { skip: 'memory and limits of a process are read from /proc' }

before(() => {
  // Each connection is a file of this process too.
  spawnSync('prlimit', ['--pid', String(process.pid), '--nofile=8192'])
})

function residentBytes(pid: number): number {
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

/** Connections that have sent this, and read nothing of what comes back; all are cut at the end. */
async function crowd(url: string, size: number, sent: string): Promise<Disposable> {
  const { hostname, port } = new URL(url)
  const open = () =>
    new Promise<Socket>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) })
      socket.pause()
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.removeListener('error', reject)
        socket.on('error', () => {})
        socket.write(sent, () => resolve(socket))
      })
    })
  const sockets = await Promise.all(Array.from({ length: size }, open))
  return {
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

test('thousands of heads that do not end keep nobody from being served', options, async () => {
  await using running = await run()
  const before = residentBytes(running.server.pid)
  using _ = await crowd(running.server.url, HALF_HEADS, 'GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: ')
  assert.equal((await running.api.get('/health')).status, 200)
  const grown = residentBytes(running.server.pid) - before
  assert.ok(grown < 128 * MIB, `${Math.round(grown / MIB)} MiB more`)
})

test('hundreds of streams that never read cost little memory, whatever happens meanwhile', options, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  using _ = await crowd(
    running.server.url,
    SILENT_STREAMS,
    'GET /v0/city/alpha/events/stream HTTP/1.1\r\nHost: localhost\r\n\r\n',
  )
  const streams = async () => /^svc_sse_streams (\d+)$/m.exec((await running.api.get('/metrics')).text)?.[1]
  await eventually('all streams are open', async () =>
    (await streams()) === String(SILENT_STREAMS) ? true : undefined,
  )
  const before = residentBytes(running.server.pid)
  const payload = { fill: 'x'.repeat(EVENT_BYTES) }
  for (let n = 0; n < EVENTS; n++)
    await running.api.post('/v0/city/alpha/events', { type: 'flood.test', actor: 'test', payload })
  const grown = residentBytes(running.server.pid) - before
  // Every frame for every client would be 1.5 GiB.
  assert.ok(grown < 400 * MIB, `${Math.round(grown / MIB)} MiB more`)
  assert.equal((await running.api.get('/health')).status, 200)
})

test('a server that may open no more files goes on when some are free again', options, async () => {
  await using running = await run()
  const { pid, url } = running.server
  const limited = spawnSync('prlimit', ['--pid', String(pid), '--nofile=64:64'], { encoding: 'utf8' })
  assert.equal(limited.status, 0, limited.stderr)
  {
    using _ = await crowd(url, 200, 'GET /health HTTP/1.1\r\nHost: loc')
  }
  await eventually('it answers', async () => {
    const answer = await running.api.get('/health', { alone: true }).catch(() => undefined)
    return answer?.status === 200 ? true : undefined
  })
  assert.equal(running.server.child.exitCode, null)
})
