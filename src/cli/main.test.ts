import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { cliHere, type WorldOptions } from '../../test/support/cli.ts'
import {
  answerJson,
  answerProblem,
  fastClock,
  frame,
  openStream,
  type Script,
  scriptedServer,
} from '../../test/support/cli-server.ts'
import { OPERATIONS } from '../contract/index.ts'
import { flagName, GLOBAL_FLAGS } from './base/command.ts'
import { generatedTables } from './generate-tables.ts'
import { NOUNS } from './nouns.ts'

const AT = '2026-05-01T10:00:00.000Z'
const REQUEST = 'req-0123456789abcdef01234567'
const city = (name: string, more: object = {}) => ({
  name,
  uid: `uid-${name}`,
  path: `/cities/${name}`,
  running: true,
  status: 'running',
  host: 'h',
  observed_at: AT,
  ...more,
})
const accepted = { request_id: REQUEST, event_cursor: '__supervisor__:1' }

/** Runs words against a scripted server, named with SVC_API. */
async function against(script: Script, words: readonly string[], options: WorldOptions = {}) {
  await using server = await scriptedServer(script)
  const io = { newKey: () => 'key-1', ...options.io }
  const result = await cliHere(words, { ...options, io, env: { SVC_API: server.url, ...options.env } })
  return { ...result, requests: server.requests, url: server.url }
}

const answering =
  (status: number, body: unknown, headers?: Record<string, string>): Script =>
  (_, response) =>
    answerJson(response, status, body, headers)
const cities: Script = answering(200, {
  items: [city('alpha'), city('beta', { running: false, status: 'init_failed', error: 'no\tstore\n\u001b[31m' })],
  total: 2,
})

suite('generated tables', () => {
  test('they are what the contract says', () => {
    for (const { url, text } of generatedTables())
      assert.equal(readFileSync(url, 'utf8'), text, `${url.pathname} is stale: run npm run generate`)
  })

  test('every command loads, and calls operations that exist', async () => {
    const ids = new Set(OPERATIONS.map(({ id }) => id))
    for (const [noun, { load }] of Object.entries(NOUNS)) {
      const { commands } = await load()
      assert.ok(
        commands.some((command) => command.path[0] === noun),
        noun,
      )
      for (const { operations, examples, path } of commands) {
        assert.ok(examples.length > 0, `${path.join(' ')} has no example`)
        for (const operation of operations) assert.ok(ids.has(operation), operation)
      }
    }
  })
})

suite('words', () => {
  const usage: readonly [readonly string[], string, string][] = [
    [['citi'], "unknown command 'citi'", 'did you mean city?'],
    [['city', 'lst'], "unknown command 'lst'", 'did you mean list?'],
    [['city', 'lst', '--help'], "unknown command 'lst'", 'did you mean list?'],
    [['nonsense', '-h'], "unknown command 'nonsense'", 'see: svcctl --help'],
    [['city', 'list', '--outptu', 'json'], "unknown option '--outptu'", 'did you mean --output?'],
    [['bead', 'create', '--prio', '1'], "unknown option '--prio'", 'did you mean --priority?'],
    [
      ['bead', 'create', '--verbose is ignored'],
      "unknown option '--verbose is ignored'",
      "a text that begins with a dash goes after --: svcctl bead create -- '--verbose is ignored'",
    ],
    [['bead', 'create', '--nope'], "unknown option '--nope'", "svcctl bead create -- '--nope'"],
    [['help', 'nope'], "unknown command 'nope'", 'see: svcctl --help'],
    [['city', 'list', 'extra'], 'too many arguments', 'see: svcctl city list --help'],
    [['city', 'create'], "missing required argument 'dir'", 'see: svcctl city create --help'],
    [['city', 'list', '-o', 'xml'], 'there is no output format "xml"', 'formats are table, wide, json, jsonl, yaml'],
    [['city', 'list', '-o', 'jsonpath={.items['], 'a brace or a quote is not closed', ''],
    [['city', 'list', '-o', 'json', '--columns', 'name'], '--columns is of tables', '-o jsonpath=…'],
    [['city', 'get', '--city'], "option '-c, --city <city>' argument missing", 'see: svcctl city get --help'],
    [['schema', 'nonsense'], "unknown command 'nonsense'", 'see: svcctl schema --help'],
    [['--city', 'a', 'molecule', 'strat'], "unknown command 'strat'", 'did you mean start?'],
    [['molecule', '--city'], "unknown option '--city'", 'see: svcctl molecule --help'],
    [['city', 'list', '--city', 'a', '--all-cities'], '--city and --all-cities are mutually exclusive', ''],
  ]
  for (const [words, message, hint] of usage) {
    test(`svcctl ${words.join(' ')} is a usage error`, async () => {
      const { out, err, code } = await cliHere(words)
      assert.equal(code, 2)
      assert.equal(out, '')
      assert.ok(err.includes(message), err)
      assert.ok(err.includes(hint), err)
    })
  }

  test('what is wrong with the words of events is text, also where JSON is asked for', async () => {
    for (const words of [
      ['events', '--json', '--follow', '--seq'],
      ['-q', 'events', '--json', '--nonsense'],
      ['--city', 'a', 'events', '-o', 'json', '--after', 'x'],
    ]) {
      const { err, code } = await cliHere(words)
      assert.equal(code, 2)
      assert.match(err, /^error: svcctl events: /, words.join(' '))
    }
  })

  test('no command has a flag of its own under the name of one that all have', async () => {
    const everywhere = new Set(GLOBAL_FLAGS.map(({ flags }) => flagName(flags)))
    for (const { load } of Object.values(NOUNS))
      for (const { path, flags = [] } of (await load()).commands)
        for (const one of flags) assert.ok(!everywhere.has(flagName(one.flags)), `${path.join(' ')} ${one.flags}`)
  })

  test('flags may stand anywhere', async () => {
    for (const words of [
      ['-o', 'name', 'city', 'list'],
      ['city', '--output=name', 'list'],
      ['city', 'list', '-o', 'name'],
      ['city', '--no-color', 'list', '-oname'],
    ]) {
      assert.equal((await against(cities, words)).out, 'alpha\nbeta\n', words.join(' '))
    }
    const { requests } = await against(answering(201, { status: 'recorded', seq: 1 }), [
      '--actor',
      'me',
      'event',
      '--city',
      'alpha',
      'emit',
      '--subject',
      's',
      'x.y',
    ])
    assert.deepEqual(JSON.parse(requests[0]?.body ?? ''), { type: 'x.y', actor: 'me', subject: 's' })
  })

  test('help is on stdout, with the exit code of success, for the program, a noun and a command', async () => {
    for (const words of [
      ['--help'],
      ['help'],
      [],
      ['city'],
      ['city', '--help'],
      ['help', 'city'],
      ['city', 'create', '-h'],
      ['help', 'city', 'create'],
      ['city', 'help', 'create'],
      ['city', 'help'],
      ['help', 'help'],
      ['--city', 'alpha', '--help'],
      ['--city', 'alpha', 'molecule'],
      ['-calpha', 'molecule', '--help'],
      ['--city=alpha', '-q', 'molecule', '-o', 'json', '-h'],
    ]) {
      const { out, err, code } = await cliHere(words)
      assert.deepEqual([code, err], [0, ''], words.join(' '))
      assert.match(out, /^Usage: svcctl/)
      assert.match(out, /Examples:/)
    }
  })

  test('every command explains itself from its operation', async () => {
    for (const [noun, { load }] of Object.entries(NOUNS)) {
      for (const { path, operations, examples } of (await load()).commands.filter(
        (command) => command.path[0] === noun,
      )) {
        const { out, code } = await cliHere([...path, '--help'])
        assert.equal(code, 0)
        assert.ok(out.includes(examples[0]?.line ?? '-'), path.join(' '))
        for (const operation of operations) assert.ok(out.includes(operation), `${path.join(' ')}: ${operation}`)
      }
    }
  })

  test('the version is that of the package', async () => {
    const manifest: { version: string } = JSON.parse(
      readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
    )
    for (const words of [['version'], ['--version'], ['-V'], ['version', '--client']])
      assert.equal((await cliHere(words)).out, `${manifest.version}\n`)
    const { out } = await against(answering(200, { version: '9.9.9' }), ['version', '-o', 'json'])
    assert.deepEqual(JSON.parse(out), { client: manifest.version, server: '9.9.9' })
    assert.deepEqual(
      JSON.parse((await cliHere(['version', '--json'], { env: { SVC_API: 'http://127.0.0.1:9' } })).out),
      { client: manifest.version },
    )
  })
})

suite('exit codes', () => {
  const table: readonly [number, string, number][] = [
    [400, 'invalid-request', 6],
    [401, 'unauthorized', 4],
    [403, 'csrf-required', 4],
    [403, 'read-only', 4],
    [404, 'city-not-found', 3],
    [409, 'city-name-taken', 5],
    [410, 'cursor-expired', 10],
    [412, 'precondition-failed', 5],
    [413, 'payload-too-large', 1],
    [421, 'host-not-allowed', 1],
    [422, 'validation-failed', 6],
    [429, 'too-many-streams', 1],
    [500, 'internal', 1],
    [501, 'unsupported', 1],
    [503, 'unavailable', 7],
    [503, 'missing-dependency', 5],
    [504, 'gateway-timeout', 1],
  ]
  for (const [status, code, expected] of table) {
    test(`${status} ${code} is exit code ${expected}`, async () => {
      const script: Script = (_, response) => answerProblem(response, status, code, `${code}: sentence`)
      const plain = await against(script, ['city', 'get', 'alpha'])
      assert.equal(plain.code, expected)
      assert.equal(plain.out, '')
      assert.match(plain.err, new RegExp(`^error: ${code}: sentence\n(hint: .*\n)?request id: rid-${status}\n$`))
      const json = await against(script, ['city', 'get', 'alpha', '--json'])
      assert.deepEqual([json.code, json.out], [expected, ''])
      const body: { code: string; request_id: string } = JSON.parse(json.err)
      assert.deepEqual([body.code, body.request_id], [code, `rid-${status}`])
    })
  }

  test('fields that failed are listed', async () => {
    const { err } = await against(
      answering(422, {
        status: 422,
        code: 'validation-failed',
        detail: 'validation_failed: no',
        errors: [{ location: 'body.name', message: 'too long' }],
      }),
      ['city', 'create', 'x', '--no-wait'],
    )
    assert.match(err, /^error: validation_failed: no\n {2}--name: too long\n/)
  })

  test('what is wrong with files is told whole in a terminal, with its line', async () => {
    const issue = (file: string, line: number, message: string) => ({
      ...{ severity: 'error', file, line, column: 1, key: 'workspace.provider', message },
      hint: `as on line ${line}`,
    })
    const issues = [
      issue('agents/a-name-that-is-long/agent.toml', 12, 'there is no provider of this name anywhere'),
      issue('city.toml', 3, 'short'),
    ]
    const { out, code } = await against(answering(200, { valid: false, issues }), ['config', 'validate', '-c', 'a'], {
      terminal: true,
    })
    assert.equal(code, 6)
    const lines = out.split('\n')
    for (const line of lines) assert.ok(line.length <= 80, line)
    const said = out.replaceAll(/\s+/g, '')
    for (const part of [':12:1', 'city.toml:3:1', 'as on line 12'])
      assert.ok(said.includes(part.replaceAll(' ', '')), out)
    assert.match(out, /provider of/)
    assert.match(out, /anywhere/)
  })

  test('readings of the health say what they are of', async () => {
    const checks = [
      { name: 'event_loop', status: 'degraded', value: 284.2, unit: 'ms', detail: 'more than 250 ms' },
      { name: 'reconciler', status: 'ok', value: 25_029.9, unit: 'ms' },
      { name: 'storage', status: 'ok' },
      { name: 'other', status: 'ok', value: 3 },
    ]
    const { out } = await against(answering(200, { status: 'degraded', version: '1', uptime_sec: 1, checks }), [
      'health',
    ])
    assert.match(
      out,
      /event_loop\tdegraded \(284\.2 ms late\) more than 250 ms\nreconciler\tok \(last round 25 s ago\)\nstorage\tok\nother\tok \(3\)\n/,
    )
  })

  test('nobody there is exit code 7 with the way to change that', async () => {
    const { err, code, out } = await cliHere(['city', 'list'], { env: { SVC_API: 'http://127.0.0.1:9' } })
    assert.deepEqual([code, out], [7, ''])
    assert.match(err, /^error: cannot reach http:\/\/127\.0\.0\.1:9: .+\nhint: start it with: svcctl serve\n$/)
  })

  test('a name that nothing has, and TLS where none is spoken, are said in words', async () => {
    const unknown = await cliHere(['city', 'list', '--api', 'http://nope.invalid'], { io: { clock: fastClock() } })
    assert.equal(unknown.code, 7)
    // Where no names are looked up at all, nothing is known of this one.
    assert.match(
      unknown.err,
      /: (?:no such host\nhint: name it with --api URL or SVC_API|name look-up failed\nhint: another program .*)\n$/,
    )
    await using server = await scriptedServer(() => undefined)
    const { err, code } = await cliHere(['city', 'list', '--api', server.url.replace('http:', 'https:')], {
      io: { clock: fastClock() },
    })
    assert.equal(code, 7)
    assert.match(err, /^error: cannot reach https:\S+: what listens there does not speak TLS\nhint: .*\n$/)
  })

  test('a server that does not answer is exit code 7', async () => {
    const { err, code } = await against(() => undefined, ['health'], { io: { clock: fastClock() } })
    assert.deepEqual([code, err], [7, 'error: no answer within 30 s\n'])
  })

  test('a reader that went away is no failure', async () => {
    const { code, err } = await against(cities, ['city', 'list'], { breakAfter: 0 })
    assert.deepEqual([code, err], [0, ''])
  })

  test('control characters of a server do not reach the terminal', async () => {
    const { err } = await against(
      (_, response) => answerProblem(response, 500, 'internal', 'internal: \u001b]0;title\u0007'),
      ['city', 'get', 'a'],
    )
    assert.ok(err.includes('\\x1b]0;title\\x07'))
  })
})

suite('output', () => {
  const now = Date.parse('2026-05-01T10:03:00.000Z')
  const clock = {
    now: () => now,
    after: (ms: number, work: () => void) => {
      const timer = setTimeout(work, ms)
      return () => clearTimeout(timer)
    },
  }

  test('off a terminal: tabs, absolute times, no colour, nothing that breaks a row', async () => {
    const { out } = await against(cities, ['city', 'list', '-o', 'wide'])
    assert.deepEqual(
      out.split('\n').map((line) => line.split('\t')),
      [
        ['alpha', 'running', 'true', '/cities/alpha', '', '', '', 'uid-alpha', 'h', AT],
        ['beta', 'init_failed', 'false', '/cities/beta', 'no\\tstore\\n\\x1b[31m', '', '', 'uid-beta', 'h', AT],
        [''],
      ],
    )
  })

  test('on a terminal: aligned, cut to its width, relative times, colours', async () => {
    const { out } = await against(cities, ['city', 'list', '-o', 'wide'], {
      terminal: true,
      columns: 200,
      io: { clock },
    })
    const [header = '', alpha = '', beta = ''] = out.replaceAll('\u001b', 'ESC').split('\n')
    assert.match(header, /^ESC\[2mNAME {3}STATUS/)
    assert.match(alpha, /^alpha {2}ESC\[32mrunning {4}ESC\[39m .*3m ago$/)
    assert.match(beta, /^beta {3}ESC\[31minit_failedESC\[39m .*no store \\x1b\[31m/)
    const narrow = await against(cities, ['city', 'list'], {
      terminal: true,
      columns: 60,
      env: { NO_COLOR: '1' },
      io: { clock },
    })
    for (const line of narrow.out.split('\n')) assert.ok(line.length <= 60, line)
    assert.ok(!narrow.out.includes('\u001b'))
    assert.ok(
      !(await against(cities, ['city', 'list', '--no-color'], { terminal: true, io: { clock } })).out.includes(
        '\u001b',
      ),
    )
  })

  test('-o json is the body as it came; jsonl and name are its items', async () => {
    const body = '{ "items": [ {"name":"a","n":1.0,"status":"running"} ], "total": 1 }'
    const headers = { 'content-type': 'application/json', 'x-svc-request-id': 'rid-200' }
    const raw: Script = (_, response) => void response.writeHead(200, headers).end(body)
    assert.equal((await against(raw, ['city', 'list', '-o', 'json'])).out, `${body}\n`)
    assert.equal((await against(raw, ['city', 'list', '-o', 'jsonl'])).out, '{"name":"a","n":1,"status":"running"}\n')
    assert.equal((await against(raw, ['city', 'list', '-o', 'name'])).out, 'a\n')
  })

  test('an empty list is empty, and says so to a person', async () => {
    const none = answering(200, { items: [], total: 0 })
    const said = async (words: readonly string[], options: WorldOptions = {}) => {
      const { out, err } = await against(none, words, options)
      return [out, err]
    }
    for (const format of ['table', 'jsonl', 'name'])
      assert.deepEqual(await said(['city', 'list', '-o', format]), ['', ''])
    for (const command of [
      ['city', 'list'],
      ['worktree', 'list', '--city', 'alpha'],
      ['session', 'list', '--city', 'alpha'],
    ])
      assert.deepEqual(await said(command, { terminal: true }), ['', 'nothing to show\n'], command.join(' '))
    assert.equal((await against(none, ['city', 'list', '--json'])).out, '{"items":[],"total":0}\n')
  })

  test('what the output of ended processes takes is a line of the status of a city', async () => {
    const none = { total: 0, running: 0, suspended: 0, quarantined: 0, unread: 0, ready: 0, in_progress: 0, open: 0 }
    const counts = {
      agents: none,
      rigs: none,
      work: none,
      mail: none,
      events: { head_seq: 1, oldest_seq: 1, bytes: 1 },
    }
    const runs = { total: 3, bytes: 5 * 1024 ** 2, observed_at: '2026-05-01T12:00:00Z' }
    const status = { name: 'alpha', running: 0, suspended: false, config: {}, ...counts }
    const shown = async (body: object) =>
      (await against(answering(200, body), ['city', 'status', 'alpha'], { terminal: true })).out
    assert.match(await shown({ ...status, runs }), /3, 5\.0 MiB of output/)
    assert.doesNotMatch(await shown(status), /of output/)
  })

  test('a list in pages is one list', async () => {
    const pages: Script = ({ url }, response) =>
      answerJson(
        response,
        200,
        url.includes('cursor=two')
          ? { items: [city('b')], total: 2 }
          : { items: [city('a')], total: 2, next_cursor: 'two' },
      )
    assert.equal((await against(pages, ['city', 'list', '-o', 'name'])).out, 'a\nb\n')
    const { out } = await against(pages, ['city', 'list', '-o', 'json'])
    assert.deepEqual(JSON.parse(out), { total: 2, items: [city('a'), city('b')] })
  })

  test('--debug tells of every request on stderr, --quiet keeps notes away', async () => {
    const { err } = await against(cities, ['city', 'list', '--debug'])
    assert.match(err, /debug: GET \/v0\/cities\?limit=1000 200 \d+ ms rid-200/)
  })
})

suite('discovery', () => {
  async function withHome<T>(run: (home: string) => Promise<T>): Promise<T> {
    const home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
    try {
      return await run(home)
    } finally {
      rmSync(home, { recursive: true })
    }
  }
  const endpoint = (home: string, value: unknown, mode = 0o600) =>
    writeFileSync(join(home, 'endpoint.json'), typeof value === 'string' ? value : JSON.stringify(value), { mode })
  const { pid } = process

  test('endpoint.json names the server and its token; SVC_TOKEN beats the token', () =>
    withHome(async (home) => {
      await using server = await scriptedServer(cities)
      endpoint(home, { url: server.url, pid, started_at: AT, token: 'from-file' })
      assert.equal((await cliHere(['city', 'list'], { env: { SVC_HOME: home } })).code, 0)
      await cliHere(['city', 'list'], { env: { SVC_HOME: home, SVC_TOKEN: 'from-env' } })
      assert.deepEqual(
        server.requests.map((request) => request.headers.authorization),
        ['Bearer from-file', 'Bearer from-env'],
      )
    }))

  test('--api beats SVC_API beats endpoint.json, and the token of the file goes to its own server only', () =>
    withHome(async (home) => {
      await using mine = await scriptedServer(cities)
      await using other = await scriptedServer(cities)
      await using third = await scriptedServer(cities)
      endpoint(home, { url: mine.url, pid, token: 'secret' })
      const env = { SVC_HOME: home, SVC_API: other.url }
      await cliHere(['city', 'list'], { env })
      await cliHere(['city', 'list', '--api', `${third.url}/`], { env })
      await cliHere(['city', 'list', '--api', mine.url.replace('127.0.0.1', 'localhost')], { env })
      const seen = [mine, other, third].map((server) => server.requests.map((request) => request.headers.authorization))
      assert.deepEqual(seen, [['Bearer secret'], [undefined], [undefined]])
    }))

  test('a broken endpoint.json is told, not skipped', () =>
    withHome(async (home) => {
      endpoint(home, '{"url":')
      const { code, err } = await cliHere(['city', 'list'], { env: { SVC_HOME: home } })
      assert.equal(code, 7)
      assert.match(err, /^error: could not discover the supervisor: .*endpoint\.json: /)
    }))

  /** What a planted or forgotten file makes of a command: whether it fails, and what the server behind the file hears. */
  async function withFile(file: (home: string, url: string) => void, api?: (url: string) => string) {
    return withHome(async (home) => {
      await using server = await scriptedServer(cities)
      file(home, server.url)
      const named = api === undefined ? [] : ['--api', api(server.url)]
      const { code, err } = await cliHere(['city', 'list', ...named], { env: { SVC_HOME: home } })
      return { code, err, tokens: server.requests.map(({ headers }) => headers.authorization) }
    })
  }

  for (const [name, file, complaint] of [
    [
      'that others may read',
      (home, url) => endpoint(home, { url, pid, token: 'secret' }, 0o644),
      /endpoint\.json is open to other users/,
    ],
    [
      'in a directory that others may write to',
      (home, url) => {
        endpoint(home, { url, pid, token: 'secret' })
        chmodSync(home, 0o777)
      },
      /svc-cli-\w+ is open to other users/,
    ],
    [
      'that is a link to one',
      (home, url) => {
        endpoint(home, { url, pid, token: 'secret' })
        renameSync(join(home, 'endpoint.json'), join(home, 'elsewhere'))
        symlinkSync(join(home, 'elsewhere'), join(home, 'endpoint.json'))
      },
      /endpoint\.json is (open to other users|no regular file)/,
    ],
    [
      'of a supervisor that has ended',
      (home, url) => endpoint(home, { url, pid: 2 ** 22 + 1, token: 'secret' }),
      /process 4194305, has ended/,
    ],
    [
      'whose process is another one of the same pid',
      (home, url) => endpoint(home, { url, pid, process_start: '1', token: 'secret' }),
      /has ended/,
    ],
    ['without a pid', (home, url) => endpoint(home, { url, token: 'secret' }), /has ended/],
  ] as const satisfies readonly (readonly [string, (home: string, url: string) => void, RegExp])[]) {
    test(`an endpoint.json ${name} gets no token and no request out of anybody`, async () => {
      const { code, err, tokens } = await withFile(file)
      assert.equal(code, 7)
      assert.match(err, complaint)
      assert.deepEqual(tokens, [])
      // Who names the server gets there, without what the file says.
      const named = await withFile(file, (url) => url)
      assert.deepEqual([named.code, named.tokens], [0, [undefined]])
    })
  }

  test('an endpoint.json of another user is not believed', { skip: process.getuid?.() !== 0 }, async () => {
    const planted = (home: string, url: string) => {
      endpoint(home, { url, pid, token: 'of the planter' })
      chownSync(join(home, 'endpoint.json'), 65_534, 65_534)
    }
    const { code, err, tokens } = await withFile(planted)
    assert.equal(code, 7)
    assert.match(err, /endpoint\.json belongs to another user \(uid 65534\)/)
    assert.deepEqual(tokens, [])
  })

  test('an --api that is no URL is a usage error', async () => {
    for (const api of ['nonsense', 'ftp://x', 'http://user:pw@x', 'http://x?y'])
      assert.equal((await cliHere(['city', 'list', '--api', api])).code, 2, api)
  })

  const route: Script = ({ url }, response) => {
    if (url.startsWith('/v0/cities'))
      return answerJson(response, 200, {
        items: [city('alpha'), city('inner', { path: '/cities/alpha/inner' })],
        total: 2,
      })
    answerJson(response, 200, { items: [], total: 0, event_cursor: 'composite:9' }, { 'x-svc-index': '7' })
  }

  test('the city: --city, then SVC_CITY, then the directory, innermost first, then none', async () => {
    const seq = async (words: readonly string[], options: WorldOptions = {}) => {
      const { requests, out, err } = await against(route, ['events', '--seq', ...words], options)
      assert.equal(err, '')
      return [requests.at(-1)?.url.split('?')[0], out]
    }
    const inAlpha = { cwd: '/cities/alpha/src' }
    assert.deepEqual(await seq([]), ['/v0/events', 'composite:9\n'])
    assert.deepEqual(await seq([], inAlpha), ['/v0/city/alpha/events', '7\n'])
    assert.deepEqual(await seq([], { cwd: '/cities/alphabet' }), ['/v0/events', 'composite:9\n'])
    assert.deepEqual(await seq([], { cwd: '/cities/alpha/inner/deep' }), ['/v0/city/inner/events', '7\n'])
    assert.deepEqual(await seq([], { ...inAlpha, env: { SVC_CITY: 'beta' } }), ['/v0/city/beta/events', '7\n'])
    assert.deepEqual(await seq(['-c', 'gamma'], { ...inAlpha, env: { SVC_CITY: 'beta' } }), [
      '/v0/city/gamma/events',
      '7\n',
    ])
    assert.deepEqual(await seq(['-A'], { ...inAlpha, env: { SVC_CITY: 'beta' } }), ['/v0/events', 'composite:9\n'])
    assert.deepEqual(await seq(['--city', './inner'], { cwd: '/cities/alpha' }), ['/v0/city/inner/events', '7\n'])
    assert.deepEqual(await seq(['--city', '/cities/alpha']), ['/v0/city/alpha/events', '7\n'])
  })

  test('a path without a city is not found', async () => {
    const { code, err } = await against(route, ['events', '--city', '/elsewhere'])
    assert.equal(code, 3)
    assert.match(err, /^error: svcctl events: no city is registered at \/elsewhere\n/)
  })

  test('a directory reached through a link is the city it leads to', () =>
    withHome(async (home) => {
      mkdirSync(join(home, 'real'))
      symlinkSync(join(home, 'real'), join(home, 'link'))
      const script: Script = ({ url }, response) =>
        url.startsWith('/v0/cities')
          ? answerJson(response, 200, { items: [city('linked', { path: join(home, 'real') })], total: 1 })
          : answerJson(response, 200, { items: [], total: 0 }, { 'x-svc-index': '3' })
      assert.equal((await against(script, ['events', '--seq'], { cwd: join(home, 'link') })).out, '3\n')
    }))

  test('a command that needs a city says so', async () => {
    const { code, err } = await against(route, ['event', 'emit', 'x.y'])
    assert.equal(code, 2)
    assert.match(err, /^error: no city in scope\nhint: /)
  })
})

suite('asynchronous commands', () => {
  const payload = { request_id: REQUEST, name: 'alpha', path: '/cities/alpha' }
  const terminal = (type: string, body: object) =>
    frame(
      '__supervisor__:2',
      { seq: 2, type, ts: AT, actor: 'supervisor', payload: body, city: 'alpha' },
      'tagged_event',
    )
  const creating =
    (stream: string): Script =>
    ({ method, url }, response) => {
      if (method === 'POST') return answerJson(response, 202, accepted)
      if (url.startsWith('/v0/requests/'))
        return answerJson(response, 200, {
          request_id: REQUEST,
          operation: 'city.create',
          status: 'running',
          event_cursor: 'x:1',
          created_at: AT,
        })
      openStream(response)
      response.write(stream)
    }

  test('a command waits for its outcome, in a terminal and in a pipe alike; with --no-wait the 202 is the answer', async () => {
    const script = creating(terminal('request.result.city.create', payload))
    const left = await against(script, ['city', 'create', 'x', '--no-wait', '-o', 'json'])
    assert.deepEqual([left.out, left.err, left.code], [`${JSON.stringify(accepted)}\n`, '', 0])
    const table = await against(script, ['city', 'create', 'x', '--no-wait'])
    assert.equal(table.out, `request_id\t${REQUEST}\nevent_cursor\t__supervisor__:1\n`)
    const waited = await against(script, ['city', 'create', 'x', '-o', 'json'])
    assert.deepEqual(
      [JSON.parse(waited.out), waited.err, waited.code],
      [payload, `waiting for city.create (${REQUEST})\n`, 0],
    )
    for (const terminal of [true, false]) {
      const made = await against(script, ['city', 'create', 'x', '-o', 'name'], { terminal })
      assert.deepEqual([made.out, made.code], ['alpha\n', 0], 'the name of what was made')
    }
    const hurried = await against(script, ['city', 'create', 'x', '--no-wait', '-o', 'name'], { terminal: true })
    assert.deepEqual([hurried.out, hurried.err], [`${REQUEST}\n`, ''])
    assert.equal((await against(script, ['city', 'create', 'x', '--wait', '-q'])).err, '')
  })

  test('a failed operation is exit code 9', async () => {
    const failed = {
      request_id: REQUEST,
      operation: 'city.create',
      error_code: 'city_init_failed',
      error_message: 'no store',
    }
    const script = creating(terminal('request.failed', failed))
    const { code, out, err } = await against(script, ['city', 'create', 'x', '--wait', '-q'])
    assert.deepEqual([code, out, err], [9, '', 'error: city.create failed: city_init_failed: no store\n'])
    const json = await against(script, ['city', 'create', 'x', '--wait', '-q', '--json'])
    assert.deepEqual(JSON.parse(json.err), failed)
  })

  test('a wait that is too short is exit code 8, with the way to go on', async () => {
    const { code, out, err } = await against(creating(''), ['city', 'create', 'x', '--wait', '--timeout', '200ms'])
    assert.deepEqual([code, out], [8, ''])
    assert.match(
      err,
      /error: city\.create took longer than 0\.2 s; it may still finish\nhint: svcctl request wait req-/,
    )
  })

  test('the key is made up once, or given', async () => {
    const keys = async (...words: string[]) =>
      (await against(creating(''), ['city', 'create', 'x', '--no-wait', ...words])).requests[0]?.headers[
        'idempotency-key'
      ]
    assert.equal(await keys(), 'key-1')
    assert.equal(await keys('--idempotency-key', 'mine'), 'mine')
  })

  test('a relative directory is meant from here', async () => {
    const { requests } = await against(
      creating(''),
      ['city', 'create', '../x', '--name', 'n', '--provider', 'p', '--no-wait'],
      {
        cwd: '/here/and',
      },
    )
    assert.deepEqual(JSON.parse(requests[0]?.body ?? ''), { dir: '/here/x', name: 'n', provider: 'p' })
  })

  test('request wait answers at once for one that is over', async () => {
    const info = {
      request_id: REQUEST,
      operation: 'city.start',
      status: 'failed',
      event_cursor: 'x:1',
      created_at: AT,
      error_code: 'interrupted',
      error_message: 'crash',
    }
    const { code, err, requests } = await against(answering(200, info), ['request', 'wait', REQUEST])
    assert.deepEqual([code, err, requests.length], [9, 'error: city.start failed: interrupted: crash\n', 1])
  })

  test('unregistering asks in a terminal and wants --yes elsewhere', async () => {
    const script = creating('')
    const words = ['city', 'unregister', 'alpha', '--no-wait']
    const refused = await against(script, words)
    assert.deepEqual([refused.code, refused.requests.length], [2, 0])
    const no = await against(script, words, { terminal: true, input: 'n\n' })
    assert.deepEqual([no.code, no.requests.length], [1, 0])
    assert.match(no.err, /^Unregister city alpha\? .*\[y\/N\] error: not done\n/)
    assert.equal((await against(script, words, { terminal: true, input: 'y\n' })).code, 0)
    assert.equal((await against(script, [...words, '--yes'])).code, 0)
  })

  test('unregistering never takes the city one stands in', async () => {
    const { code, requests } = await against(cities, ['city', 'unregister', '--yes'], { cwd: '/cities/alpha' })
    assert.deepEqual([code, requests.length], [2, 0])
  })
})

suite('event emit', () => {
  const recorded = answering(201, { status: 'recorded', seq: 5 })
  test('the payload comes from the word, a file or stdin', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-cli-'))
    writeFileSync(join(folder, 'p.json'), '{"from":"file"}')
    const sent = async (payload: string) => {
      const { requests, code } = await against(
        recorded,
        ['event', 'emit', 'x.y', '-c', 'alpha', '--payload', payload],
        { cwd: folder, input: '{"from":"stdin"}' },
      )
      return [code, requests[0] && JSON.parse(requests[0].body)]
    }
    assert.deepEqual(await sent('{"from":"word"}'), [0, { type: 'x.y', actor: 'human', payload: { from: 'word' } }])
    assert.deepEqual(await sent('@p.json'), [0, { type: 'x.y', actor: 'human', payload: { from: 'file' } }])
    assert.deepEqual(await sent('-'), [0, { type: 'x.y', actor: 'human', payload: { from: 'stdin' } }])
    for (const bad of ['[1]', 'null', '{', '@missing.json']) assert.deepEqual(await sent(bad), [2, undefined])
    rmSync(folder, { recursive: true })
  })

  test('the actor is who runs it', async () => {
    const actor = async (env: Record<string, string>, ...words: string[]) =>
      JSON.parse(
        (await against(recorded, ['event', 'emit', 'x.y', '-c', 'alpha', ...words], { env })).requests[0]?.body ?? '{}',
      ).actor
    assert.equal(await actor({ SVC_SESSION_ID: 's-1' }), 's-1')
    assert.equal(await actor({ SVC_SESSION_ID: 's-1', SVC_AGENT: 'mayor' }), 'mayor')
    assert.equal(await actor({ SVC_AGENT: 'mayor' }, '--actor', 'ci'), 'ci')
  })
})

suite('api', () => {
  test('mutations get their headers, and the key where the operation takes one', async () => {
    const { requests, out } = await against(answering(202, accepted), ['api', 'post', 'v0/city', '-d', '{"dir":"/x"}'])
    assert.equal(out, `${JSON.stringify(accepted)}\n`)
    assert.deepEqual(
      [
        requests[0]?.method,
        requests[0]?.url,
        requests[0]?.headers['x-svc-request'],
        requests[0]?.headers['idempotency-key'],
        requests[0]?.headers['content-type'],
        requests[0]?.body,
      ],
      ['POST', '/v0/city', '1', 'key-1', 'application/json', '{"dir":"/x"}'],
    )
    const own = await against(
      answering(202, accepted),
      [
        'api',
        'POST',
        '/v0/city/{cityName}/stop',
        '-c',
        'a b',
        '-H',
        'X-SVC-Request: 2',
        '-H',
        'Content-Type: text/x',
        '-d',
        '-',
      ],
      { input: 'raw' },
    )
    assert.deepEqual(
      [
        own.requests[0]?.url,
        own.requests[0]?.headers['x-svc-request'],
        own.requests[0]?.headers['idempotency-key'],
        own.requests[0]?.headers['content-type'],
        own.requests[0]?.body,
      ],
      ['/v0/city/a%20b/stop', '2', undefined, 'text/x', 'raw'],
    )
  })

  test('an error is a failure; with -i it is also the answer', async () => {
    const script: Script = (_, response) => answerProblem(response, 404, 'route-not-found', 'not_found: no')
    const plain = await against(script, ['api', 'GET', '/nope'])
    assert.deepEqual([plain.code, plain.out], [3, ''])
    const included = await against(script, ['api', 'GET', '/nope', '-i'])
    assert.equal(included.code, 3)
    assert.match(included.out, /^HTTP 404\n[\s\S]*x-svc-request-id: rid-404\n(?:[\w-]+: .*\n)*\n\{"type"/)
  })

  test('--paginate walks to the last page', async () => {
    const script: Script = ({ url }, response) =>
      answerJson(response, 200, url.includes('cursor=2') ? { n: 2 } : { n: 1, next_cursor: '2' })
    const { out, requests } = await against(script, ['api', 'GET', '/v0/cities?limit=1', '--paginate'])
    assert.equal(out, '{"n":1,"next_cursor":"2"}\n{"n":2}\n')
    assert.deepEqual(
      requests.map(({ url }) => url),
      ['/v0/cities?limit=1', '/v0/cities?limit=1&cursor=2'],
    )
  })

  test('a stream passes through as it is', async () => {
    const { out } = await against(
      (_, response) => {
        openStream(response)
        response.end(frame('1', {}))
      },
      ['api', 'GET', '/v0/events/stream'],
    )
    assert.equal(out, frame('1', {}))
  })
})

suite('completion', () => {
  const complete = async (...words: string[]) => {
    const { out, err, code } = await against(cities, ['__complete', ...words])
    assert.deepEqual([err, code], ['', 0])
    return out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t')[0])
  }

  test('commands, verbs, flags, values and cities', async () => {
    assert.deepEqual(await complete('ev'), ['events', 'event'])
    assert.deepEqual(await complete('city', 'st'), ['start', 'stop', 'status'])
    assert.deepEqual(await complete('events', '--f'), ['--follow'])
    assert.deepEqual(await complete('city', 'list', '-o', 'j'), ['json', 'jsonl', 'jsonpath='])
    assert.deepEqual(await complete('city', 'stop', ''), ['alpha', 'beta'])
    assert.deepEqual(await complete('events', '--city', 'a'), ['alpha'])
    assert.deepEqual(await complete('city', 'list', '-o', 'y'), ['yaml'])
    assert.deepEqual(await complete('city', 'list', '--sort', 'nam'), ['name'])
    assert.deepEqual(await complete('city', 'list', '--sort', 'path,-nam'), ['path,-name'])
    assert.deepEqual(await complete('schema', ''), [
      'openapi',
      'events',
      'city',
      'agent',
      'formula',
      'order',
      'command',
    ])
    assert.deepEqual(await complete('city', 'stop', 'alpha', ''), ['alpha', 'beta'])
    assert.deepEqual(await complete('session', 'rename', 'helper', 'title', ''), [])
    assert.ok((await complete('events', '--type', 'city.')).includes('city.created'))
  })

  test('a server that is slow or not there is silence, soon', async () => {
    const started = performance.now()
    for (const script of [() => undefined, answering(500, {})] satisfies Script[]) {
      const { out, err, code } = await against(script, ['__complete', 'city', 'get', ''])
      assert.deepEqual([out, err, code], ['', '', 0])
    }
    assert.ok(performance.now() - started < 3_000)
    assert.equal((await cliHere(['__complete', 'city', 'get', ''], { env: { SVC_API: 'nonsense' } })).code, 0)
  })

  test('a script for each shell', async () => {
    for (const shell of ['bash', 'zsh', 'fish'])
      assert.match((await cliHere(['completion', shell])).out, /svcctl __complete/)
  })
})
