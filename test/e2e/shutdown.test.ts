/** The end of a supervisor, and starts that are refused (sheet 01 §5.5). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { listEvents } from '../../src/contract/events.ts'
import { eventually, RawConnection } from '../support/http.ts'
import { emit, homeWith, newCity, run, runAgain } from '../support/running.ts'
import { openStream } from '../support/sse.ts'

const MAIN = resolve(import.meta.dirname, '..', '..', 'src', 'main.ts')
const RUN = resolve(import.meta.dirname, '..', '..', 'tools', 'run.mjs')

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

test('Ctrl-C reaches a server of npm start twice and is one orderly end, which says what runs on', async () => {
  const root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const home = join(root, 'home')
  try {
    for (let round = 0; round < 3; round++) {
      // As a terminal does it: the whole group gets the signal, and who started the server passes it on once more.
      const child = spawn(process.execPath, [RUN, 'src/main.ts', 'serve', '--port', '0', '--home', home], {
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
        env: { ...process.env, HOME: root, SVC_HOME: '', SVC_AUTH: '' },
      })
      let out = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
      const ended = new Promise<number | null>((done) => child.once('close', done))
      await eventually('it listens', () => (out.includes('log in ') ? true : undefined))
      process.kill(-(child.pid ?? 0), 'SIGINT')
      assert.equal(await ended, 0, out)
      assert.match(out, /\nopen to every(?:body|.program).*--auth/)
      assert.match(out, /\nstopped\n$/)
      assert.equal(existsSync(join(home, 'endpoint.json')), false)
    }
    await using again = await runAgain(home)
    const { items } = await again.api.ask(listEvents, '/v0/events?type=supervisor.started&limit=10&order=asc')
    assert.deepEqual(
      items.map(({ payload }) => payload['previous_exit']),
      ['unknown', 'clean', 'clean', 'clean'],
    )
    await again.server.kill('SIGTERM')
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

test('a start that fails after it listens ends, gives back its home and port, and says why', async () => {
  const root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const home = join(root, 'home')
  try {
    mkdirSync(join(home, 'endpoint.json'), { recursive: true })
    const failed = await serve(['--port', '0', '--home', home])
    assert.equal(failed.code, 1)
    assert.match(failed.err, /^error: .*endpoint\.json/)
    rmdirSync(join(home, 'endpoint.json'))
    await using running = await runAgain(home)
    const { items } = await running.api.ask(listEvents, '/v0/events?type=supervisor.started&limit=10&order=asc')
    assert.equal(items.at(-1)?.payload['previous_exit'], 'clean')
    await running.server.kill('SIGTERM')
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
})

test('a server whose output nobody reads any more goes on', async () => {
  await using running = await run()
  running.server.child.stdout?.destroy()
  running.server.child.stderr?.destroy()
  await newCity(running.api, running.work, 'alpha')
  // Its farewell has nobody to read it.
  assert.equal(await running.server.kill('SIGTERM'), 0)
})

test('a second SIGINT that comes later ends it at once', async () => {
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
