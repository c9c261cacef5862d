/** The end of a supervisor, and starts that are refused (sheet 01 §5.5). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { RawConnection } from '../support/http.ts'
import { emit, homeWith, newCity, run, runAgain } from '../support/running.ts'
import { openStream } from '../support/sse.ts'

const MAIN = resolve(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** Runs `svcctl serve` that is expected to end by itself. */
function serve(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  const child = spawn(process.execPath, [MAIN, 'serve', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, SVC_HOME: '', SVC_PORT: '', SVC_BIND: '', ...env },
  })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const timer = setTimeout(() => child.kill('SIGKILL'), 30_000)
  return new Promise((done) =>
    child.on('close', (code) => {
      clearTimeout(timer)
      done({ code, out, err })
    }),
  )
}

for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
  test(`${signal} ends streams in order, answers blocking reads, and exits 0 within 5 s without stopping a city`, async () => {
    await using running = await run()
    await newCity(running.api, running.work, 'alpha')
    const seq = await emit(running.api, 'alpha', 'last.event')
    await using own = await openStream(running.api, '/v0/city/alpha/events/stream?after_seq=0')
    await using all = await openStream(running.api, '/v0/events/stream')
    await own.next(({ envelope }) => envelope.type === 'last.event')
    const blocked = running.api.get(`/v0/city/alpha/events?index=${seq}&wait=2m`)
    using idle = await new RawConnection(running.api.url).send('')
    // The blocking read is being waited for once a request that came after it is answered.
    await running.api.get('/health')
    const began = performance.now()
    const code = await running.server.kill(signal)
    assert.equal(code, 0, running.server.stderr())
    assert.ok(performance.now() - began < 5_000)
    assert.equal((await blocked).status, 200)
    await Promise.all([own.ended, all.ended, idle.closed])
    assert.ok(own.complete && all.complete, 'streams ended in order')
    const requested = all.events.find(({ envelope }) => envelope.type === 'supervisor.shutdown_requested')
    assert.deepEqual(requested?.envelope.payload, { source: 'signal', signal, mode: 'preserve_sessions' })
    assert.ok(!own.events.some(({ envelope }) => envelope.type === 'city.stopped'), 'a city is not stopped by it')
  })
}

test('a supervisor that is stopped as soon as it says that it listens leaves no endpoint.json behind', async () => {
  await using running = await run()
  const file = join(running.server.home, 'endpoint.json')
  for (let round = 0; round < 3; round++) {
    await using again = await (round === 0 ? undefined : runAgain(running.server.home))
    assert.equal(await (again ?? running).server.kill('SIGTERM'), 0)
    assert.equal(existsSync(file), false)
  }
})

test('a second SIGINT ends it at once', async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  // A body that does not come holds the orderly end up.
  using slow = await new RawConnection(running.api.url).send(
    'POST /v0/city/alpha/events HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Length: 10\r\n\r\n{',
  )
  await running.api.get('/health')
  const ended = new Promise<number | null>((done) => running.server.child.once('exit', (code) => done(code)))
  running.server.child.kill('SIGINT')
  // The first has been taken when the idle connection is closed.
  using probe = new RawConnection(running.api.url)
  await Promise.race([probe.send('').catch(() => {}), probe.closed])
  const timer = setInterval(() => running.server.child.kill('SIGINT'), 50)
  assert.equal(await ended, 130)
  clearInterval(timer)
  await slow.closed
})

test('a port or a home that is taken is exit 5, one that cannot be made exit 2, and all say why', async () => {
  await using running = await run()
  const { port } = new URL(running.server.url)
  const other = mkdtempSync(join(tmpdir(), 'svc-test-'))
  try {
    const taken = await serve(['--port', port, '--home', join(other, 'home')])
    assert.equal(taken.code, 5)
    assert.match(taken.err, /EADDRINUSE[\s\S]*\nhint: .*--port/)
    assert.equal(taken.out, '')
    const home = await serve(['--port', '0', '--home', running.server.home])
    assert.equal(home.code, 5)
    assert.match(home.err, /another process has it open\nhint: .*--home/)
    const nowhere = await serve(['--port', '0', '--home', '/proc/nobody/makes-this'])
    assert.equal(nowhere.code, 2)
    assert.match(nowhere.err, /^error: .*\/proc\/nobody.* cannot be used: .*--home$/m)
    assert.equal((await running.api.get('/health')).status, 200)
  } finally {
    rmSync(other, { recursive: true, force: true })
  }
})

test('flags and variables that make no sense are exit 2, with the name and the value', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-test-'))
  try {
    const wrong: readonly (readonly [readonly string[], Record<string, string>, RegExp])[] = [
      [['--port', '99999'], {}, /port must be a number from 0 to 65535, got "99999"/],
      [[], { SVC_PORT: '-1' }, /port must be .* got "-1"/],
      [['--log-level', 'loud'], {}, /log level must be one of .* got "loud"/],
      [['--colour'], {}, /--colour/],
    ]
    const results = await Promise.all(wrong.map(([args, env]) => serve(['--home', home, ...args], env)))
    for (const [index, { code, err, out }] of results.entries()) {
      assert.equal(code, 2, err)
      assert.match(err, wrong[index]?.[2] ?? /^$/)
      assert.match(err, /\nhint: svcctl serve --help\n$/)
      assert.equal(out, '')
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test('a mistake in supervisor.toml is exit 2, with file, line, column and a likely name', async () => {
  using place = homeWith('[supervisor]\nport = 8372\n\nallowed_host = ["x"]\nbind = 7\n')
  const { code, err } = await serve(['--port', '0', '--home', place.home])
  assert.equal(code, 2)
  assert.match(err, /supervisor\.toml:4:1: unknown key `supervisor\.allowed_host` \(.*allowed_hosts.*\)/)
  assert.match(err, /supervisor\.toml:5:\d+: `supervisor\.bind` must be a text/)
  writeFileSync(join(place.home, 'supervisor.toml'), '[supervisor\n')
  const broken = await serve(['--port', '0', '--home', place.home])
  assert.equal(broken.code, 2)
  assert.match(broken.err, /supervisor\.toml:\d+:\d+: /)
})
