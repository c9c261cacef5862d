// The command line while its server ends and starts again: followers find the new port, and an answer that was lost is not
// taken for a failure.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, connect as dial, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { type CliOptions, type CliResult, cli } from '../../support/cli.ts'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { newCity, type Running, run, runAgain } from '../../support/running.ts'

interface Follower extends AsyncDisposable {
  readonly name: string
  readonly out: () => string
  readonly err: () => string
}

/** A command that goes on, until it is disposed of. */
function follower(home: string, words: readonly string[]): Follower {
  const stop = new AbortController()
  let [out, err] = ['', '']
  const ended = cli(words, {
    env: { SVC_HOME: home },
    signal: stop.signal,
    onOut: (text) => {
      out += text
    },
    onErr: (text) => {
      err += text
    },
  })
  return {
    name: words.join(' '),
    out: () => out,
    err: () => err,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await ended
    },
  }
}

async function shows({ name, out, err }: Follower, said: RegExp): Promise<void> {
  try {
    await eventually(`${name} shows ${said}`, async () => said.test(out() + err()) || undefined)
  } catch (error) {
    throw new Error(`${String(error)}; it says:\n${out()}\n${err()}`, { cause: error })
  }
}

/** Once the city is up. */
const emit = ({ api }: Running, type: string): Promise<unknown> =>
  eventually('the city takes an event', async () => {
    const { status } = await api.post('/v0/city/alpha/events', { type, actor: 'ann', payload: {} })
    return status === 201 || undefined
  })

test('events, logs and needs go on after a restart on another port, with the new token, and ask nobody else in between', {
  timeout: 120_000,
}, async () => {
  const toml = '[supervisor]\nauth = true\n'
  await using first = await run({ toml })
  const { home } = first.server
  await newCity(first.api, first.work, 'alpha')
  const created = await cli(
    ['session', 'create', 'shell', '--provider', '--alias', 'sh', '--runtime', 'subprocess', '--wait', '-c', 'alpha'],
    { env: { SVC_HOME: home } },
  )
  assert.equal(created.code, 0, created.err)
  await using events = follower(home, ['events', '--follow', '-c', 'alpha', '--type', 'demo.*'])
  await using watch = follower(home, ['events', '--watch', '-c', 'alpha', '--type', 'demo.after', '--timeout', '2m'])
  await using logs = follower(home, ['session', 'logs', '-f', 'sh', '-c', 'alpha'])
  await using needs = follower(home, ['needs', '--watch', '-c', 'alpha', '--debug'])
  await eventually('the stream is attached', async () => {
    await emit(first, 'demo.before')
    return events.out().includes('demo.before') || undefined
  })
  await cli(['session', 'message', 'sh', 'echo said-$((40+1))', '-c', 'alpha'], { env: { SVC_HOME: home } })
  await shows(logs, /said-41/)
  await shows(needs, /needs.* 200 /)
  assert.equal(await first.server.kill('SIGTERM'), 0)
  assert.throws(() => readFileSync(join(home, 'endpoint.json')), { code: 'ENOENT' })
  // What listens there now is somebody else's, and gets no request.
  const port = Number(new URL(first.server.url).port)
  let asked = 0
  const stranger = createServer((socket) => {
    asked += 1
    socket.destroy()
  })
  await new Promise<void>((done) => stranger.listen(port, '127.0.0.1', done))
  try {
    await shows(events, /retrying in .* s\n.*retrying in/)
    await using second = await runAgain(home)
    assert.notEqual(second.server.url, first.server.url)
    await emit(second, 'demo.after')
    await shows(events, /demo\.after/)
    await shows(watch, /demo\.after/)
    await cli(['session', 'message', 'sh', 'echo said-$((40+2))', '-c', 'alpha'], { env: { SVC_HOME: home } })
    await shows(logs, /said-42/)
    await shows(needs, /connecting again[\s\S]*needs.* 200 /)
    assert.equal(needs.err().includes('default'), false, 'it asks nobody at the default port')
    assert.equal(asked, 0)
    await second.server.kill('SIGTERM')
  } finally {
    stranger.close()
  }
})

/** Between a command and its server: the first answer that comes ends the server, and never arrives. */
async function severing(running: Running): Promise<{ readonly url: string } & AsyncDisposable> {
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
  }
  const proxy = createServer((client) => {
    const server = dial(Number(new URL(running.server.url).port), '127.0.0.1')
    keep(client)
    keep(server)
    client.pipe(server)
    server.once('close', () => client.destroy())
    server.once('data', () => void running.server.kill('SIGKILL').then(() => client.destroy()))
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  const address = proxy.address()
  assert.ok(address !== null && typeof address === 'object')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((done) => proxy.close(done))
    },
  }
}

suite('a server that is killed before its answer arrives', { timeout: 120_000 }, () => {
  const severed = async (running: Running, words: readonly string[], options: CliOptions = {}): Promise<CliResult> => {
    await using proxy = await severing(running)
    return await cli(words, {
      cwd: running.work,
      ...options,
      env: { SVC_HOME: running.server.home, SVC_API: proxy.url, ...options.env },
    })
  }
  const sameAgain = (err: string): readonly string[] => {
    const [, line] = /^hint: say the same again, it is done once only: svcctl (.*)$/m.exec(err) ?? assert.fail(err)
    return (line ?? '').split(' ')
  }

  test('bead create: not known whether it was done; the same with the printed key does it once', async () => {
    await using first = await run()
    const { home } = first.server
    await newCity(first.api, first.work, 'alpha')
    const lost = await severed(first, ['bead', 'create', 'painting', '-c', 'alpha'])
    assert.equal(lost.code, 12, lost.err)
    assert.equal(lost.out, '')
    assert.match(
      lost.err,
      /^error: POST \/v0\/city\/alpha\/beads was sent and no answer came \(.*\): whether it was done is not known\n/,
    )
    assert.match(lost.err, /^hint: or see what was accepted: svcctl request list$/m)
    await using second = await runAgain(home)
    await eventually(
      'the city is up',
      async () => (await second.api.get('/v0/city/alpha/beads')).status === 200 || undefined,
    )
    const again = await cli(sameAgain(lost.err), { cwd: first.work, env: { SVC_HOME: home } })
    assert.equal(again.code, 0, again.err)
    const { body } = await second.api.get('/v0/city/alpha/beads')
    assert.equal(at(body, 'total'), 1)
    await second.server.kill('SIGTERM')
  })

  test('city create: the accepted request is in the list, and goes on', async () => {
    await using first = await run()
    const { home } = first.server
    const lost = await severed(first, ['city', 'create', 'beta', '--wait', '-o', 'json'])
    assert.equal(lost.code, 12, lost.err)
    const problem = asMap(JSON.parse(lost.err))
    assert.equal(problem['exit_code'], 12)
    assert.match(String(problem['idempotency_key']), /^[0-9a-f-]{36}$/)
    await using second = await runAgain(home)
    const env = { SVC_HOME: home }
    const list = await cli(['request', 'list', '--operation', 'city.create', '-o', 'name'], { env })
    const again = await cli(
      ['city', 'create', 'beta', '--no-wait', '-o', 'name', '--idempotency-key', String(problem['idempotency_key'])],
      { cwd: first.work, env },
    )
    assert.deepEqual([again.code, again.out], [0, list.out], again.err)
    await second.server.kill('SIGTERM')
  })
})
