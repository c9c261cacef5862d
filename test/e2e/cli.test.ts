// The real program against a real supervisor: what it prints, how it ends, and that every line is what the published
// schemas say (spec §6).
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type CliOptions, type CliResult, cliHere, entry, cli as run } from '../support/cli.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const root = resolve(import.meta.dirname, '../..')
const readJson = (name: string) => JSON.parse(readFileSync(join(root, name), 'utf8'))

type LineKind = 'cityListLine' | 'supervisorListLine' | 'cityStreamLine' | 'supervisorStreamLine'
const ajv = addFormats.default(new Ajv2020({ strict: false, validateSchema: false, allErrors: true }))
ajv.addSchema(readJson('openapi.json'), 'openapi.json')
ajv.addSchema(readJson('events.json'), 'events.json')

interface Line {
  readonly seq: number
  readonly type: string
  readonly payload: Record<string, unknown>
  readonly city?: string
}

/** The lines of an output, each valid against its own definition and against the document as a whole. */
function validLines(out: string, kind: LineKind): Line[] {
  const texts = out.split('\n')
  assert.equal(texts.pop(), '', 'the last line has its end')
  return texts.map((text) => {
    const line: Line = JSON.parse(text)
    for (const schema of [`events.json#/$defs/${kind}`, 'events.json']) {
      assert.ok(ajv.validate({ $ref: schema }, line), `${schema}: ${text}: ${ajv.errorsText()}`)
    }
    return line
  })
}

function assertValid(component: string, text: string): void {
  assert.ok(
    ajv.validate({ $ref: `openapi.json#/components/schemas/${component}` }, JSON.parse(text)),
    `${component}: ${text}: ${ajv.errorsText()}`,
  )
}

interface World extends AsyncDisposable {
  readonly server: RunningSupervisor
  cli(words: readonly string[], options?: CliOptions): Promise<CliResult>
  /** As `cli`, and it must succeed in silence on stderr. */
  ok(...words: string[]): Promise<string>
  /** What a test needs to have happened, without a process of its own. */
  given(...words: string[]): Promise<string>
}

async function world(): Promise<World> {
  const server = await startSupervisor()
  const env = { SVC_HOME: server.home }
  const cli = (words: readonly string[], options: CliOptions = {}) =>
    run(words, { cwd: server.work, ...options, env: { ...env, ...options.env } })
  const succeed = (words: readonly string[], { out, err, code }: CliResult) => {
    assert.deepEqual([code, err], [0, ''], words.join(' '))
    return out
  }
  return {
    server,
    cli,
    ok: async (...words) => succeed(words, await cli(words)),
    given: async (...words) => succeed(words, await cliHere(words, { cwd: server.work, env })),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

const createAlpha = (w: World) => w.given('city', 'create', 'alpha', '--wait', '--quiet')
const emit = (w: World, type: string, payload: object = {}) =>
  w.given('event', 'emit', type, '-c', 'alpha', '--payload', JSON.stringify(payload))

/** Streams with `svcctl events`; does `then` once the stream is attached, and interrupts it once `done` is true of its output. */
async function stream(
  w: World,
  words: readonly string[],
  then: () => Promise<unknown>,
  done: (out: string) => boolean = () => false,
): Promise<CliResult> {
  const stop = new AbortController()
  const attached = Promise.withResolvers<void>()
  let [out, err] = ['', '']
  const running = w.cli(['events', '--debug', ...words], {
    signal: stop.signal,
    onOut(text) {
      out += text
      if (done(out)) stop.abort()
    },
    onErr(text) {
      err += text
      if (/^debug: GET \S+\/events\/stream\S* 200 /m.test(err)) attached.resolve()
    },
  })
  await Promise.race([attached.promise, running])
  await then().catch((error: unknown) => {
    stop.abort()
    throw error
  })
  const result = await running
  return { ...result, err: result.err.replaceAll(/^debug: .*\n/gm, '') }
}

suite('cities', () => {
  test('create, look, stop, start, restart, suspend, unregister, adopt', async () => {
    await using w = await world()
    const created = await w.cli(['city', 'create', 'alpha', '--wait', '-o', 'json'])
    assert.equal(created.code, 0)
    assert.match(created.err, /^waiting for city\.create \(req-[0-9a-f]{24}\)\n$/)
    assertValid('CityCreateSucceededPayload', created.out)
    assert.equal(await w.ok('city', 'list', '-o', 'name'), 'alpha\n')
    assertValid('ListBodyCityInfo', await w.ok('city', 'list', '--json'))
    assert.match(await w.ok('city', 'list'), /^alpha\trunning\ttrue\t\/.*\/alpha\t\n$/)
    assertValid('CityGetResponse', await w.ok('city', 'get', 'alpha', '--json'))
    assertValid('StatusBody', await w.ok('city', 'status', 'alpha', '--json'))
    assertValid('CityHealth', await w.ok('city', 'health', './alpha', '--json'))
    assertValid('CityGetResponse', await w.ok('city', 'suspend', 'alpha', '--json'))
    assert.match(await w.ok('city', 'resume', 'alpha'), /^suspended\tfalse$/m)
    assertValid('CityStopResult', await w.ok('city', 'stop', 'alpha', '--json'))
    assert.match(await w.ok('city', 'get', 'alpha'), /^status\tstopped$/m)
    assertValid('CityStartSucceededPayload', await w.ok('city', 'start', 'alpha', '--wait', '-q', '--json'))
    assertValid('CityRestartSucceededPayload', await w.ok('city', 'restart', 'alpha', '--wait', '-q', '--json'))
    const refused = await w.cli(['city', 'unregister', 'alpha'])
    assert.deepEqual(
      [refused.code, refused.err.split('\n')[0]],
      [2, 'error: this needs --yes where nobody can be asked'],
    )
    assertValid(
      'CityUnregisterSucceededPayload',
      await w.ok('city', 'unregister', 'alpha', '--yes', '--wait', '-q', '--json'),
    )
    assert.equal(await w.ok('city', 'list'), '')
    assertValid('CityCreateSucceededPayload', await w.ok('city', 'adopt', 'alpha', '--wait', '-q', '--json'))
    assertValid('CityInfo', await w.ok('city', 'adopt', 'alpha', '--json'))
    const twice = await w.cli(['city', 'create', 'alpha'])
    assert.deepEqual([twice.code, twice.out], [5, ''])
    assert.match(
      twice.err,
      /^error: conflict: city already initialized at \/.*\/alpha\n(hint: .*\n)?request id: \S+\n$/,
    )
  })

  test('--no-wait: the 202, and the request can be waited for', async () => {
    await using w = await world()
    const accepted = await w.ok('city', 'create', 'alpha', '--no-wait', '--json')
    assertValid('AsyncAcceptedResponse', accepted)
    const { request_id: id }: { request_id: string } = JSON.parse(accepted)
    assert.equal((await w.cli(['request', 'wait', id, '-o', 'name'])).out, 'alpha\n')
    assertValid('RequestInfo', await w.ok('request', 'get', id, '--json'))
    assert.equal(await w.ok('request', 'list', '--status', 'succeeded', '-o', 'name'), `${id}\n`)
    assert.equal((await w.cli(['request', 'get', 'req-000000000000000000000000'])).code, 3)
  })

  test('the same key creates once', async () => {
    await using w = await world()
    const create = () => w.ok('city', 'create', 'alpha', '--no-wait', '--json', '--idempotency-key', 'k-1')
    assert.equal(await create(), await create())
  })
})

suite('events', () => {
  test('a list in both scopes, valid line by line, oldest first, with its filters', async () => {
    await using w = await world()
    await createAlpha(w)
    const payload = { env: 'prod', bead: { type: 'bug' }, text: 'a\nb\u2028c\u0000\ud83d\ude00"' }
    const emitted = await w.ok(
      'event',
      'emit',
      'deploy.done',
      '-c',
      'alpha',
      '--subject',
      'web',
      '--payload',
      JSON.stringify(payload),
      '--json',
    )
    assertValid('EventEmitOutputBody', emitted)
    const all = validLines(await w.ok('events'), 'supervisorListLine')
    assert.deepEqual(
      all.map(({ type }) => type),
      ['supervisor.started', 'city.created', 'city.started', 'request.result.city.create', 'deploy.done'],
    )
    const city = validLines(await w.ok('events', '--city', 'alpha'), 'cityListLine')
    assert.deepEqual(
      city.map(({ seq }) => seq),
      [1, 2],
    )
    assert.deepEqual(city[1]?.payload, payload)
    assert.deepEqual(validLines(await w.ok('events', '-A', '--type', 'city.*'), 'supervisorListLine').length, 2)
    assert.deepEqual(
      validLines(await w.ok('events', '-c', 'alpha', '--payload-match', 'bead.type=bug'), 'cityListLine').length,
      1,
    )
    assert.equal(await w.ok('events', '-c', 'alpha', '--payload-match', 'bead.type=task'), '')
    assert.equal(
      validLines(await w.ok('events', '-c', 'alpha', '--since', '1h', '--after', '1'), 'cityListLine').length,
      1,
    )
    const inside = await w.cli(['events'], { cwd: join(w.server.work, 'alpha') })
    assert.equal(inside.out, await w.ok('events', '--city', 'alpha'))
  })

  test('--seq is where a later --after goes on, in both scopes', async () => {
    await using w = await world()
    await createAlpha(w)
    const [seq, cursor] = [
      (await w.ok('events', '-c', 'alpha', '--seq')).trimEnd(),
      (await w.ok('events', '--seq')).trimEnd(),
    ]
    assert.match(seq, /^\d+$/)
    assert.match(cursor, /^__supervisor__:\d+,alpha:\d+$/)
    assert.equal(await w.ok('events', '-c', 'alpha', '--after', seq), '')
    assert.equal(await w.ok('events', '--after-cursor', cursor), '')
    await emit(w, 'deploy.done')
    assert.equal(validLines(await w.ok('events', '-c', 'alpha', '--after', seq), 'cityListLine').length, 1)
    assert.equal(validLines(await w.ok('events', '--after-cursor', cursor), 'supervisorListLine').length, 1)
    assert.equal(validLines(await w.ok('events', '--watch', '--after-cursor', cursor), 'supervisorListLine').length, 1)
    const bad = await w.cli(['events', '--after-cursor', 'no such cursor'])
    assert.deepEqual([bad.code, bad.out], [6, ''])
    assert.match(bad.err, /^error: svcctl events: invalid_cursor: /)
  })

  test('--watch: the first match, or silence and success', async () => {
    await using w = await world()
    await createAlpha(w)
    const words = ['--watch', '-c', 'alpha', '--type', 'deploy.done', '--payload-match', 'n=2', '--timeout', '60s']
    const seen = await stream(w, words, async () => {
      for (const n of [1, 2, 3]) await emit(w, 'deploy.done', { n })
    })
    assert.deepEqual([seen.code, seen.err], [0, ''])
    const payloads = validLines(seen.out, 'cityStreamLine').map(({ payload }) => payload)
    assert.deepEqual(payloads, [{ n: 2 }])
    assert.equal(await w.ok('events', '--watch', '--type', 'no.such', '--timeout', '500ms'), '')
  })

  test('--follow: every frame, and the exit code of an interrupt', async () => {
    await using w = await world()
    await createAlpha(w)
    const types = (out: string, kind: LineKind) => validLines(out, kind).map(({ type }) => type)
    const city = await stream(
      w,
      ['--follow', '-c', 'alpha', '--after', '0'],
      () => emit(w, 'deploy.one'),
      (out) => out.includes('deploy.one'),
    )
    assert.deepEqual([city.code, city.err], [130, ''])
    assert.deepEqual(types(city.out, 'cityStreamLine'), ['city.started', 'deploy.one'])
    const all = await stream(
      w,
      ['--follow', '--since', '1h'],
      () => emit(w, 'deploy.two'),
      (out) => out.includes('deploy.two'),
    )
    assert.deepEqual(types(all.out, 'supervisorStreamLine').slice(-3), [
      'request.result.city.create',
      'deploy.one',
      'deploy.two',
    ])
  })

  test('--follow survives the restart of its city', async () => {
    await using w = await world()
    await createAlpha(w)
    const { out, code } = await stream(
      w,
      ['--follow', '-c', 'alpha'],
      () => w.given('city', 'restart', 'alpha', '--wait', '-q'),
      (text) => text.includes('city.started'),
    )
    assert.equal(code, 130)
    const types = validLines(out, 'cityStreamLine').map(({ type }) => type)
    assert.deepEqual(types, ['city.stopped', 'city.started'])
  })

  test('--follow survives kill -9 of the supervisor, and loses and doubles nothing', async () => {
    await using w = await world()
    await createAlpha(w)
    const args = ['--port', new URL(w.server.url).port]
    let second: RunningSupervisor | undefined
    try {
      const { out } = await stream(
        w,
        ['--follow', '--type', 'tick.*'],
        async () => {
          for (const n of [1, 2]) await emit(w, 'tick.tock', { n })
          await w.server.kill('SIGKILL')
          second = await startSupervisor({ home: w.server.home, args })
          await w.given('city', 'start', 'alpha', '--wait', '-q')
          for (const n of [3, 4]) await emit(w, 'tick.tock', { n })
        },
        (text) => text.includes('"n":4'),
      )
      const numbers = validLines(out, 'supervisorStreamLine').map(({ payload }) => payload['n'])
      assert.deepEqual(numbers, [1, 2, 3, 4])
    } finally {
      await second?.[Symbol.asyncDispose]()
    }
  })

  test('on a supervisor without cities a stream is refused in so many words', async () => {
    await using w = await world()
    for (const mode of ['--watch', '--follow']) {
      const { out, err, code } = await w.cli(['events', mode])
      assert.deepEqual([out, code], ['', 7])
      assert.match(err, /^error: svcctl events: no_providers: /)
    }
  })

  test('an unknown city is not found', async () => {
    await using w = await world()
    for (const mode of [[], ['--seq'], ['--watch'], ['--follow']]) {
      const { out, err, code } = await w.cli(['events', '--city', 'nope', ...mode])
      assert.deepEqual([out, code], ['', 3])
      assert.match(err, /^error: svcctl events: not_found: city not found or not running: nope\n/)
    }
  })

  test('a reserved type is rejected', async () => {
    await using w = await world()
    await createAlpha(w)
    const { code, err } = await w.cli(['event', 'emit', 'city.created', '-c', 'alpha'])
    assert.equal(code, 6)
    assert.match(err, /^error: validation_failed: /)
  })

  test('a pipe that closed ends it quietly', async () => {
    await using w = await world()
    const script = `("$0" "$1" events; echo "code $?" >&2) | true`
    const { stderr } = spawnSync('/bin/sh', ['-c', script, process.execPath, join(root, 'src/main.ts')], {
      env: { ...process.env, SVC_HOME: w.server.home },
      encoding: 'utf8',
    })
    assert.equal(stderr, 'code 0\n')
  })
})

suite('the rest', () => {
  test('health, readiness, documents, raw calls', async () => {
    await using w = await world()
    assertValid('HealthBody', await w.ok('health', '--json'))
    assert.match(await w.ok('health'), /^status\tok\nversion\t/)
    assertValid('ReadinessResponse', await w.ok('readiness', '--json'))
    assertValid('ProviderReadinessResponse', await w.ok('provider-readiness', 'shell', '--json'))
    assert.deepEqual(JSON.parse(await w.ok('schema', 'openapi')), readJson('openapi.json'))
    assert.equal(JSON.parse(await w.ok('schema', 'events')).title, readJson('events.json').title)
    for (const name of ['city', 'agent'])
      assert.deepEqual(JSON.parse(await w.ok('schema', name)), readJson(`${name}.schema.json`))
    const created = JSON.parse(await w.ok('schema', 'command', 'bead', 'create'))
    assert.equal(created.command, 'svcctl bead create')
    assert.ok(
      created.flags.some(({ words }: { words: string[] }) => words.includes('--priority')),
      JSON.stringify(created),
    )
    assert.deepEqual(created.operations, ['create-bead'])
    assert.deepEqual(JSON.parse(await w.ok('api', 'GET', '/v0/cities')), { items: [], total: 0 })
    const refused = await w.cli(['api', 'GET', '/nope', '--json'])
    assert.equal(refused.code, 3)
    const problem: { code: string; request_id: string } = JSON.parse(refused.err)
    assert.equal(problem.code, 'route-not-found')
    assert.ok(problem.request_id.length > 0)
  })

  test('the token of a server that wants one is found by itself', async () => {
    await using server = await startSupervisor({ args: ['--auth'] })
    const env = { SVC_HOME: server.home }
    assert.equal((await run(['city', 'list'], { env })).code, 0)
    const stranger = await run(['city', 'list', '--api', server.url])
    assert.equal(stranger.code, 4)
    assert.match(stranger.err, /^error: unauthorized: /)
  })

  test('nobody there: exit code 7 and how to change that', async () => {
    const { out, err, code } = await run(['events'], { env: { SVC_API: 'http://127.0.0.1:9' } })
    assert.deepEqual([out, code], ['', 7])
    assert.match(
      err,
      /^error: svcctl events: request failed: cannot reach http:\/\/127\.0\.0\.1:9: .*\nhint: start it with: svcctl serve\n$/,
    )
  })

  test('whoever stands in a directory that is gone is helped all the same', async () => {
    using place = temporaryDirectory()
    const gone = join(place.path, 'gone')
    const words = `mkdir gone && cd gone && rmdir ../gone && exec '${process.execPath}' '${entry}'`
    const env = { ...process.env, SVC_HOME: place.path, SVC_API: '', SVC_CITY: '' }
    const ended = (asked: string) =>
      spawnSync('sh', ['-c', `${words} ${asked}`], { cwd: place.path, env, encoding: 'utf8' })
    assert.match(ended('help output').stdout, /^What -o prints/)
    // A relative name is one below where they stood.
    const server = ended('serve --home state --port 70000')
    assert.deepEqual([server.status, existsSync(gone)], [2, false])
    assert.match(server.stderr, /^error: port must be a number/)
  })

  test('the version, and words nobody knows', async () => {
    assert.equal((await run(['version'])).out, `${readJson('package.json').version}\n`)
    const { err, code } = await run(['citi', 'list'])
    assert.deepEqual([code, err], [2, "error: unknown command 'citi'\nhint: did you mean city?\n"])
  })
})
