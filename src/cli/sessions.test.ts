// What sessions, needs and the status look like and send, against a server of a few lines; the real one is in test/e2e.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { cliHere, sourceOf, type WorldOptions } from '../../test/support/cli.ts'
import {
  answerJson,
  answerProblem,
  fastClock,
  frame,
  openStream,
  type SeenRequest,
  scriptedServer,
} from '../../test/support/cli-server.ts'

const AT = '2026-05-01T10:00:00.000Z'
const ID = 's-0123456789abcdef'
const listOf = (items: readonly unknown[], more: object = {}) => ({ items, total: items.length, ...more })
const city = (name: string, running = true) => ({
  name,
  uid: name,
  path: `/cities/${name}`,
  running,
  status: running ? 'running' : 'stopped',
  host: 'h',
  observed_at: AT,
})
const session = (more: object = {}) => ({
  id: ID,
  alias: 'helper',
  template: 'worker',
  state: 'active',
  title: 'Avatars',
  queued: 0,
  ...more,
})
const need = (id: string, more: object = {}) => ({
  ...{ id, kind: 'approval', severity: 'act', city: 'alpha', since: AT, holds_up: 2, operations: [] },
  ...{ subject: { kind: 'session', id: ID, name: 'helper' }, title: `helper asks for permission: ${id}` },
  ...more,
})
const status = (name: string, more: object = {}) => ({
  name,
  path: `/cities/${name}`,
  version: '1',
  uptime_sec: 5,
  suspended: false,
  running: 2,
  agents: { total: 3, running: 2, suspended: 0, quarantined: 0 },
  rigs: { total: 0, suspended: 0 },
  work: { open: 7, in_progress: 2, ready: 3 },
  mail: { total: 6, unread: 4 },
  events: { head_seq: 9, oldest_seq: 1, bytes: 100 },
  config: { revision: 'r', loaded_at: AT },
  observed_at: AT,
  ...more,
})

type Answer = (request: SeenRequest, response: ServerResponse) => void | Promise<void>
type Routes = Readonly<Record<string, unknown>>
const isAnswer = (value: unknown): value is Answer => typeof value === 'function'

/** Runs words against a server that answers by path: with a body, or with what a function does. */
async function against(routes: Routes, words: readonly string[], options: WorldOptions = {}) {
  await using server = await scriptedServer((request, response) => {
    const path = new URL(request.url, 'http://host').pathname
    const answer = routes[path] ?? routes[`${request.method} ${path}`]
    if (isAnswer(answer)) return answer(request, response)
    if (answer === undefined) return answerProblem(response, 404, 'city-not-found', `not_found: ${path}`)
    answerJson(response, 200, answer)
  })
  const result = await cliHere(words, {
    ...options,
    io: { newKey: () => 'key-1', ...options.io },
    env: { SVC_API: server.url, SVC_CITY: 'alpha', ...options.env },
  })
  return { ...result, requests: server.requests }
}
const bodyOf = ({ body }: SeenRequest): unknown => JSON.parse(body)
const inSession = { env: { SVC_SESSION_ID: ID, SVC_ALIAS: 'helper' } }

suite('inside a session', () => {
  test('what an agent says of itself needs no name', async () => {
    for (const [verb, path] of [
      ['heartbeat', 'heartbeat'],
      ['drain-ack', 'drain-ack'],
      ['request-restart', 'request-restart'],
    ] as const) {
      const own = await against({ [`/v0/city/alpha/sessions/${ID}/${path}`]: session() }, ['session', verb], inSession)
      assert.deepEqual([own.code, own.requests.length], [0, 1], own.err)
      const other = await against(
        { [`/v0/city/alpha/sessions/s2/${path}`]: session() },
        ['session', verb, 's2'],
        inSession,
      )
      assert.equal(other.code, 0, other.err)
      const outside = await against({}, ['session', verb])
      assert.deepEqual([outside.code, outside.requests.length], [2, 0])
      assert.match(outside.err, /which session is missing/)
    }
  })

  const waits: readonly [string, readonly string[], object, string, readonly string[]][] = [
    ['only beads', ['de-1', 'de-2'], inSession, ID, ['de-1', 'de-2']],
    ['its own alias first', ['helper', 'de-1'], inSession, 'helper', ['de-1']],
    ['the id of another session first', ['s-fedcba9876543210', 'de-1'], inSession, 's-fedcba9876543210', ['de-1']],
    ['another one by its flag', ['--session', 'other', 'de-1'], inSession, 'other', ['de-1']],
    ['from outside', ['helper', 'de-1'], {}, 'helper', ['de-1']],
  ]
  for (const [name, words, options, id, beads] of waits)
    test(`session wait: ${name}`, async () => {
      const path = `/v0/city/alpha/sessions/${id}/waits`
      const wait = { id: 'w1', state: 'pending', session_id: ID, dep_ids: beads, dep_mode: 'any', expires_at: AT }
      const { code, err, requests } = await against({ [path]: wait }, ['session', 'wait', '--any', ...words], options)
      assert.equal(code, 0, err)
      assert.deepEqual(requests.map(bodyOf), [{ dep_ids: beads, dep_mode: 'any' }])
    })

  test('a wait for nothing is refused before anything is sent', async () => {
    const { code, err, requests } = await against({}, ['session', 'wait', 'helper'])
    assert.deepEqual([code, requests.length], [2, 0])
    assert.match(err, /what it waits for is missing/)
  })
})

suite('what is sent', () => {
  const bodies: readonly [readonly string[], string, unknown, string?][] = [
    [
      ['session', 'create', 'worker', '--alias', 'a', '--option', 'model=x', '--meta', 'k=v', '-m', '-', '--no-wait'],
      'POST /v0/city/alpha/sessions',
      { kind: 'agent', name: 'worker', alias: 'a', options: { model: 'x' }, metadata: { k: 'v' }, message: 'hello' },
      'hello',
    ],
    [
      ['session', 'create', 'shell', '--provider', '--no-wait'],
      'POST /v0/city/alpha/sessions',
      { kind: 'provider', name: 'shell' },
    ],
    [['session', 'update', 'a', '--alias', ''], 'PATCH /v0/city/alpha/sessions/a', { alias: '' }],
    [['session', 'message', 'a', 'two', 'words'], 'POST /v0/city/alpha/sessions/a/messages', { message: 'two words' }],
    [
      ['session', 'submit', 'a', '--intent', 'interrupt_now', 'stop'],
      'POST /v0/city/alpha/sessions/a/submit',
      { message: 'stop', intent: 'interrupt_now' },
    ],
    [
      ['agent', 'create', 'shop/worker', '--provider', 'p', '--set', 'max_active_sessions=3'],
      'POST /v0/city/alpha/agents',
      { name: 'worker', dir: 'shop', provider: 'p', max_active_sessions: 3 },
    ],
    [['agent', 'update', 'shop/worker', '--set', 'x=1'], 'PATCH /v0/city/alpha/agents/shop%2Fworker', { x: 1 }],
    [['agent', 'replace', 'shop/worker', '--set', 'x=1'], 'PUT /v0/city/alpha/agents/shop%2Fworker', { x: 1 }],
  ]
  for (const [words, route, body, input] of bodies)
    test(words.join(' '), async () => {
      const accepted = {
        ...session(),
        status: 'accepted',
        request_id: 'req-1',
        event_cursor: 'alpha:1',
        session_id: ID,
      }
      const { code, err, requests } = await against({ [route]: accepted }, words, input === undefined ? {} : { input })
      assert.equal(code, 0, err)
      assert.deepEqual(requests.map(bodyOf), [body])
    })

  test('an answer names the question that was seen', async () => {
    const pending = { request_id: 'r1', kind: 'approval', options: ['Blue', 'Red'], option_ids: ['b', 'r'] }
    const routes = {
      '/v0/city/alpha/sessions/a/pending': { supported: true, pending },
      'POST /v0/city/alpha/sessions/a/respond': session(),
    }
    for (const [words, reply] of [
      [['Blue'], { action: 'option', option_id: 'b' }],
      [['2'], { action: 'option', option_id: 'r' }],
      [['approve-always'], { action: 'approve_always' }],
      [['deny', '--text', 'no'], { action: 'deny', text: 'no' }],
    ] as const) {
      const { code, err, requests } = await against(routes, ['session', 'respond', 'a', ...words])
      assert.equal(code, 0, err)
      assert.deepEqual(bodyOf(requests.at(-1) ?? assert.fail()), { ...reply, request_id: 'r1' })
    }
    const { requests } = await against(routes, ['session', 'respond', 'a', 'deny', '--request', 'r0'])
    assert.deepEqual(bodyOf(requests.at(-1) ?? assert.fail()), { action: 'deny', request_id: 'r0' })
  })

  test('nothing to say is a usage error', async () => {
    const { code, err } = await against({}, ['session', 'message', 'a'])
    assert.equal(code, 2)
    assert.match(err, /missing required argument 'message'/)
  })
})

suite('live', () => {
  const turns = (...said: readonly (readonly [string, string, string])[]) => ({
    id: ID,
    turns: said.map(([role, id, text]) => ({ role, id, text })),
  })
  const streaming =
    (...frames: readonly string[]): Answer =>
    (_, response) => {
      openStream(response)
      response.end(frames.join(''))
    }
  const ended = frame('9-9', { state: 'closed', reason: 'closed', at: AT }, 'ended')
  const path = `/v0/city/alpha/sessions/a/stream`

  test('pieces of an answer are one text, and what waits for an answer is said beside it', async () => {
    const { out, err, code } = await against(
      {
        [path]: streaming(
          frame('1-1', turns(['user', '1-0', 'hi'], ['assistant', '1-1', 'Hel']), 'turn'),
          frame('1-2', turns(['assistant', '1-1', 'lo.']), 'turn'),
          frame('1-3~r', { request_id: 'r', kind: 'approval', prompt: 'Use Bash', options: ['Allow'] }, 'pending'),
          frame('1-3~r', { request_id: 'r', kind: 'approval', prompt: 'Use Bash', options: ['Allow'] }, 'pending'),
          frame('1-4', turns(['assistant', '1-9', 'Done']), 'turn'),
          ended,
        ),
      },
      ['session', 'logs', '-f', 'a'],
    )
    assert.equal(code, 0)
    assert.equal(out, '> hi\nHello.\nDone\n')
    const answer = 'svcctl session respond a <answer>'
    assert.equal(
      err,
      `waits for an answer: Use Bash [Allow]; answer with: ${answer}\nthe session ended: closed (closed)\n`,
    )
  })

  test('formats for programs are a JSON text a line', async () => {
    const raw = frame('1-1', { id: ID, messages: [{ id: '1-1', value: { a: 1 } }] }, 'message')
    const { out, requests } = await against({ [path]: streaming(raw, ended) }, [
      ...['session', 'logs', '-f', 'a', '--format', 'raw'],
    ])
    assert.equal(out, '{"id":"1-1","value":{"a":1}}\n')
    assert.match(requests[0]?.url ?? '', /\?format=raw$/)
  })

  test('a city that is not up yet after a restart of its server is waited for; a session that is gone is not', async () => {
    const restarting = (code: string) => {
      let connections = 0
      return (_: SeenRequest, response: ServerResponse) => {
        connections += 1
        if (connections === 2) return answerProblem(response, 404, code, `not_found: ${code}`)
        openStream(response)
        const said = turns(['assistant', `1-${connections}`, `part ${connections}`])
        response.end(connections === 1 ? frame('1-1', said, 'turn') : frame('1-3', said, 'turn') + ended)
      }
    }
    const words = ['session', 'logs', '-f', 'a']
    const cities = { '/v0/cities': listOf([city('alpha', false)]) }
    const back = await against({ [path]: restarting('city-not-found'), ...cities }, words, {
      io: { clock: fastClock() },
    })
    assert.deepEqual([back.code, back.out], [0, 'part 1\npart 3\n'], back.err)
    const resumed = back.requests.filter(({ url }) => url.includes('/stream'))
    assert.equal(resumed.at(-1)?.headers['last-event-id'], '1-1')
    const gone = await against({ [path]: restarting('session-not-found'), ...cities }, words, {
      io: { clock: fastClock() },
    })
    assert.deepEqual([gone.code, gone.out], [3, 'part 1\n'])
  })

  test('an agent that is removed while it is followed ends what shows it, and well', async () => {
    let connections = 0
    const stream = (_: SeenRequest, response: ServerResponse) => {
      connections += 1
      if (connections > 1) return answerProblem(response, 404, 'agent-not-found', 'not_found: there is no agent a')
      openStream(response)
      response.end(frame('1-1', turns(['assistant', '1-1', 'last words']), 'turn'))
    }
    const words = ['agent', 'logs', '-f', 'a']
    const routes = { '/v0/city/alpha/agents/a/output/stream': stream }
    const left = await against(routes, words, { io: { clock: fastClock() } })
    assert.deepEqual([left.code, left.out], [0, 'last words\n'], left.err)
    assert.match(left.err, /the agent is gone\n$/)
    const never = await against(routes, words)
    assert.equal(never.code, 3)
  })

  test('attach in a terminal shows a typed line once, and its answer', async () => {
    const [prompted, submitted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let out = ''
    const stdout = {
      isTerminal: true,
      columns: 80,
      async write(text: string | Uint8Array) {
        out += String(text)
        prompted.resolve()
      },
    }
    const stdin = sourceOf('', {
      isTerminal: true,
      async *chunks(signal) {
        await prompted.promise
        yield Buffer.from('echo ')
        yield Buffer.from('hi\n')
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      },
    })
    const { code, requests } = await against(
      {
        [path]: async (_: SeenRequest, response: ServerResponse) => {
          openStream(response)
          response.write(frame('1-1', turns(['output', '1-0', '$ ']), 'turn'))
          await submitted.promise
          response.write(frame('1-2', turns(['user', '1-2.1', 'echo hi'], ['output', '1-2', 'echo']), 'turn'))
          response.end(frame('1-9', turns(['output', '1-2', ' hi\nhi\n']), 'turn') + ended)
        },
        '/v0/city/alpha/sessions/a': (_: SeenRequest, response: ServerResponse) =>
          answerJson(response, 200, { id: ID }),
        '/v0/city/alpha/sessions/a/submit': (_: SeenRequest, response: ServerResponse) => {
          submitted.resolve()
          answerJson(response, 202, { status: 'accepted', request_id: 'r', event_cursor: '1', session_id: ID })
        },
      },
      ['session', 'attach', 'a'],
      { io: { stdin, stdout } },
    )
    assert.equal(code, 0)
    assert.equal(out, '$ hi\n')
    const sent = requests.filter(({ method }) => method === 'POST')
    assert.deepEqual(sent.map(bodyOf), [{ message: 'echo hi', intent: 'follow_up' }])
  })
})

suite('all cities', () => {
  const routes: Routes = {
    '/v0/cities': listOf([city('alpha'), city('beta', false), city('gamma'), city('delta')]),
    '/v0/city/alpha/sessions': listOf([session()]),
    '/v0/city/delta/sessions': listOf([session({ alias: 'other' })]),
    '/v0/city/gamma/sessions': (_: SeenRequest, response: ServerResponse) =>
      answerProblem(response, 500, 'internal', 'internal: broken'),
  }

  test('sessions of every city that runs; one that cannot say is named, and the exit code is not 0', async () => {
    const { out, err, code } = await against(routes, ['session', 'list', '-A'])
    assert.deepEqual([code, err], [1, 'warning: gamma: internal: broken\n'])
    assert.deepEqual(
      out
        .trimEnd()
        .split('\n')
        .map((row) => row.split('\t')[0]),
      ['alpha', 'delta'],
    )
  })
})

suite('status', () => {
  const routes: Routes = {
    '/v0/cities': listOf([city('alpha'), city('beta', false), city('gamma')]),
    '/v0/city/alpha/status': status('alpha'),
    '/v0/city/alpha/needs': listOf([need('r1')]),
    '/v0/city/gamma/status': (_: SeenRequest, response: ServerResponse) =>
      answerProblem(response, 500, 'internal', 'internal: broken'),
    '/v0/city/gamma/needs': listOf([]),
  }

  test('without a city: a line each, and a warning where one cannot tell', async () => {
    const { out, err, code } = await against(routes, ['status', '-A'])
    assert.equal(code, 1, err)
    assert.equal(out, 'alpha\trunning\t2\t7\t2\t3\t4\t1\t\nbeta\tstopped\t\t\t\t\t\t\t\ngamma\trunning\t\t\t\t\t\t\t\n')
    assert.match(err, /^warning: gamma: internal: broken\n$/)
  })

  test('as JSON: what the cities say of themselves', async () => {
    const { out } = await against(routes, ['status', '-A', '-o', 'json', '-q'])
    const { items, total } = JSON.parse(out)
    assert.equal(total, 3)
    assert.deepEqual(items[0], {
      ...{ name: 'alpha', path: '/cities/alpha', status: 'running' },
      ...{ running: 2, work: { open: 7, in_progress: 2, ready: 3 }, mail: { total: 6, unread: 4 }, needs: 1 },
    })
  })

  test('in a city: its summary, and what waits there', async () => {
    const { out } = await against(routes, ['status'])
    assert.match(out, /^work\t3 ready, 2 in progress, 7 open$/m)
    assert.match(out, /^needs\t1$/m)
    assert.match(out, /^alpha\thelper\tapproval\t.*\thelper asks for permission: r1\t2$/m)
    const gone = await against(routes, ['status', '-c', 'nowhere'])
    assert.deepEqual([gone.code, gone.out], [3, ''])
  })
})

suite('completion', () => {
  const routes: Routes = {
    '/v0/cities': listOf([city('alpha')]),
    '/v0/city/alpha/sessions': listOf([session(), session({ id: 's-fedcba9876543210', alias: undefined })]),
    '/v0/city/beta/sessions': listOf([session({ alias: 'other' })]),
    '/v0/city/alpha/agents': listOf([
      { name: 'worker', state: 'idle' },
      { name: 'shop/cook', state: 'stopped' },
    ]),
  }
  const completed = async (...words: readonly string[]) =>
    (await against(routes, ['__complete', ...words])).out.split('\n').filter(Boolean)

  test('sessions by alias and by id, with what they are', async () => {
    assert.deepEqual(await completed('session', 'get', ''), [
      'helper\tworker, active: Avatars',
      `${ID}\tworker, active: Avatars`,
      's-fedcba9876543210\tworker, active: Avatars',
    ])
    assert.equal((await completed('session', 'message', 'hel')).length, 1)
    assert.deepEqual(await completed('session', 'message', 'helper', 's'), [])
  })

  test('of the city that the line names', async () => {
    for (const flags of [['--city', 'beta'], ['--city=beta'], ['-c', 'beta']])
      assert.match((await completed(...flags, 'session', 'get', 'o'))[0] ?? '', /^other\t/)
  })

  test('agents, where an agent is meant', async () => {
    assert.deepEqual(await completed('agent', 'get', ''), ['worker\tidle', 'shop/cook\tstopped'])
    assert.deepEqual(await completed('session', 'create', 'sh'), ['shop/cook\tstopped'])
    assert.deepEqual(await completed('session', 'list', '--template', 'w'), ['worker\tidle'])
    assert.deepEqual(await completed('agent', 'create', 'w'), [])
  })

  test('a flag by what its operation takes, also where the flag does not say', async () => {
    assert.deepEqual(await completed('session', 'submit', 'a', '--intent', ''), [
      'default',
      'follow_up',
      'interrupt_now',
    ])
    assert.deepEqual(await completed('request', 'list', '--operation', 'session.c'), ['session.create'])
  })

  test('a city that does not run is no error', async () => {
    assert.deepEqual(await completed('-c', 'nowhere', 'session', 'get', ''), [])
  })
})
