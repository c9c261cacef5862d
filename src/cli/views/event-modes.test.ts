import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { cliHere, type WorldOptions } from '../../../test/support/cli.ts'
import {
  answerJson,
  answerProblem,
  type FastClock,
  fastClock,
  frame,
  HEARTBEAT,
  openStream,
  type SeenRequest,
  scriptedServer,
} from '../../../test/support/cli-server.ts'
import { Interrupted } from '../base/io.ts'

type Answer = (response: ServerResponse, request: SeenRequest, count: number) => void

interface Backend {
  readonly cities?: Answer
  readonly list?: Answer
  readonly stream?: Answer
}

const at = (seq: number): string => new Date(Date.parse('2026-05-01T10:00:00.000Z') + seq * 1000).toISOString()
const event = (seq: number, more: object = {}) => ({
  seq,
  type: 'x.y',
  ts: at(seq),
  actor: 'me',
  payload: { n: seq },
  ...more,
})
const lines = (...events: object[]): string => events.map((one) => `${JSON.stringify(one)}\n`).join('')

/** Runs `svcctl events` against answers for its three endpoints. */
async function events(backend: Backend, words: readonly string[], options: WorldOptions = {}) {
  const counts = { list: 0, stream: 0 }
  await using server = await scriptedServer((request, response) => {
    if (request.url.startsWith('/v0/cities'))
      return (backend.cities ?? ((to) => answerJson(to, 200, { items: [], total: 0 })))(response, request, 0)
    const kind = request.url.includes('/events/stream') ? 'stream' : 'list'
    const answer =
      backend[kind] ?? ((to: ServerResponse) => answerProblem(to, 500, 'internal', `internal: no ${kind} expected`))
    answer(response, request, counts[kind])
    counts[kind] += 1
  })
  const result = await cliHere(['events', ...words], { ...options, env: { SVC_API: server.url, ...options.env } })
  const urls = server.requests.map(({ url }) => decodeURIComponent(url)).filter((url) => !url.startsWith('/v0/cities'))
  return { ...result, urls, ids: server.requests.map(({ headers }) => headers['last-event-id']) }
}

const cityPage =
  (items: object[], head: string, more: object = {}): Answer =>
  (response) =>
    answerJson(response, 200, { items, total: items.length, ...more }, { 'x-svc-index': head })
const allPage =
  (items: object[], cursor: string, more: object = {}): Answer =>
  (response) =>
    answerJson(response, 200, { items, total: items.length, event_cursor: cursor, ...more })
const streamOf =
  (...parts: string[]): Answer =>
  (response) => {
    openStream(response)
    response.write(parts.join(''))
  }
/** Ends a follow as Ctrl-C would, once it has printed so many lines. */
function untilLines(count: number, clock: FastClock = fastClock()): WorldOptions & { out: string[] } {
  const stop = new AbortController()
  const out: string[] = []
  const stdout = {
    isTerminal: false,
    columns: 80,
    async write(text: string | Uint8Array) {
      out.push(String(text))
      if (out.join('').split('\n').length > count) stop.abort(new Interrupted(130))
    },
  }
  return { out, io: { stdout, clock, signal: stop.signal } }
}
const ALPHA = ['--city', 'alpha']

suite('flags', () => {
  const wrong: readonly [readonly string[], string][] = [
    [['--after', '1', '--after-cursor', 'a:1', '--since', 'bad'], '--after and --after-cursor are mutually exclusive'],
    [['--watch', '--follow'], '--watch and --follow are mutually exclusive'],
    [['--seq', '--follow'], '--follow and --seq are mutually exclusive'],
    [
      ['--watch', '--since', '5 minutes', '--timeout', 'x'],
      'invalid --timeout "x": not a duration: "x" (write 30s, 5m, 1h30m or 7d)',
    ],
    [['--since', '-5m'], 'invalid --since "-5m": not a duration: "-5m" (write 30s, 5m, 1h30m or 7d)'],
    [['--payload-match', 'novalue'], 'invalid --payload-match "novalue": expected key=value'],
    [['--payload-match', '=x'], 'invalid --payload-match "=x": expected key=value'],
    [['--after', 'x'], 'invalid --after "x": expected the sequence number of an event'],
    [['--timeout', '5s'], '--timeout is only valid with --watch'],
    [['--follow', '--timeout', '5s'], '--timeout is only valid with --watch'],
    [['--seq', '--type', 'a.b'], '--type is not valid with --seq'],
    [['--seq', '--payload-match', 'a=b'], '--payload-match is not valid with --seq'],
    [['--seq', '--since', '5m'], '--since is not valid with --seq'],
    [['--seq', '--after', '5'], '--after is not valid with --seq'],
    [['--seq', '--after-cursor', 'a:5'], '--after-cursor is not valid with --seq'],
    [['--after', 'x', '--json'], 'invalid --after "x": expected the sequence number of an event'],
    [['extra', '-o', 'json'], 'too many arguments'],
    [['--nope'], "unknown option '--nope'"],
    [['extra'], 'too many arguments'],
  ]
  for (const [words, message] of wrong) {
    test(`${words.join(' ')} is refused before any request`, async () => {
      // Nobody listens there: the check must come before discovery.
      const { out, err, code } = await cliHere(['events', ...words], { env: { SVC_API: 'http://127.0.0.1:9' } })
      assert.deepEqual([code, out], [2, ''])
      assert.ok(err.startsWith(`error: svcctl events: ${message}`), err)
    })
  }

  test('a cursor of the other scope is refused', async () => {
    const inCity = await events({}, [...ALPHA, '--after-cursor', 'alpha:1'])
    assert.equal(inCity.code, 2)
    assert.ok(inCity.err.startsWith('error: svcctl events: --after-cursor is only valid in supervisor scope\n'))
    const over = await events({}, ['--after', '1'])
    assert.equal(over.code, 2)
    assert.ok(
      over.err.startsWith(
        'error: svcctl events: --after is only valid when a city is in scope; use --after-cursor for supervisor events\n',
      ),
    )
  })
})

suite('list', () => {
  test('without bounds: the newest 500, oldest first, with a note when there are more', async () => {
    const few = await events({ list: cityPage([event(2), event(1)], '2') }, ALPHA)
    assert.deepEqual([few.out, few.err, few.code], [lines(event(1), event(2)), '', 0])
    assert.deepEqual(few.urls, ['/v0/city/alpha/events?limit=500&order=desc'])
    const many = await events(
      { list: allPage([event(9), event(8)], 'a:9', { total: 900, total_capped: true, next_cursor: 'n' }) },
      [],
    )
    assert.equal(many.out, lines(event(8), event(9)))
    assert.equal(many.err, 'svcctl events: showing the newest 2 of 900+; --since DURATION or a cursor gets more\n')
    assert.deepEqual(many.urls, ['/v0/events?limit=500&order=desc'])
  })

  test('with --since or a cursor: every page, forward, up to the head of the first', async () => {
    const list: Answer = (response, _, count) =>
      count === 0
        ? cityPage([event(1), event(2)], '3', { next_cursor: 'two' })(response, _, count)
        : cityPage([event(3), event(4)], '4', { next_cursor: 'more' })(response, _, count)
    const since = await events({ list }, [...ALPHA, '--since', '9999d', '--type', 'x.y'])
    assert.equal(since.out, lines(event(1), event(2), event(3)))
    assert.deepEqual(since.urls, [
      '/v0/city/alpha/events?limit=1000&order=asc&since=9999d&type=x.y',
      '/v0/city/alpha/events?limit=1000&order=asc&cursor=two&since=9999d&type=x.y',
    ])
    const after = await events({ list: allPage([event(7)], 'a:7') }, ['--after-cursor', 'a:6'])
    assert.deepEqual([after.out, after.urls], [lines(event(7)), ['/v0/events?limit=1000&order=asc&after_cursor=a:6']])
    assert.deepEqual((await events({ list: cityPage([], '7') }, [...ALPHA, '--after', '0'])).urls, [
      '/v0/city/alpha/events?limit=1000&order=asc&after_seq=0',
    ])
  })

  test('the filters pick lines and never change them', async () => {
    const odd = event(3, {
      type: 'bead.closed',
      payload: { bead: { type: 'bug' }, text: 'a\u2028b\u0085' },
      message: 'é',
    })
    const list = cityPage([event(4, { type: 'beads.x' }), odd, event(2, { payload: { bead: 'bug' } }), event(1)], '4')
    const picked = await events({ list }, [...ALPHA, '--payload-match', 'bead.type=bug'])
    assert.equal(picked.out, `${JSON.stringify(odd).replace('\u2028', '\\u2028').replace('\u0085', '\\u0085')}\n`)
    assert.deepEqual(JSON.parse(picked.out), odd)
    const typed = await events({ list }, [...ALPHA, '--type', 'bead.*', '--type', 'nothing'])
    assert.deepEqual(
      typed.out.split('\n').map((line) => line && JSON.parse(line).seq),
      [3, ''],
    )
    assert.deepEqual(typed.urls, ['/v0/city/alpha/events?limit=500&order=desc&type=bead.*&type=nothing'])
    const none = await events({ list }, [...ALPHA, '--payload-match', 'no=thing'])
    assert.deepEqual([none.out, none.err, none.code], ['', '', 0])
  })

  test('--payload-match is answered by the server, and followed through pages with few items or none', async () => {
    const list: Answer = (response, _, count) =>
      cityPage(count === 2 ? [event(1)] : [], '9', count < 2 ? { next_cursor: `p${count}` } : {})(response, _, count)
    const match = [...ALPHA, '--payload-match', 'n=1']
    const newest = await events({ list }, match)
    assert.deepEqual([newest.out, newest.err], [lines(event(1)), ''])
    assert.deepEqual(newest.urls, [
      '/v0/city/alpha/events?limit=500&order=desc&payload_match=n=1',
      '/v0/city/alpha/events?limit=500&order=desc&cursor=p0&payload_match=n=1',
      '/v0/city/alpha/events?limit=500&order=desc&cursor=p1&payload_match=n=1',
    ])
    const since = await events({ list }, [...match, '--after', '0'])
    assert.equal(since.out, lines(event(1)))
    assert.equal(since.urls.length, 3)
  })

  test('a failure is text on stderr, also with --json', async () => {
    const list: Answer = (response) => answerProblem(response, 503, 'unavailable', 'unavailable: the disk is full')
    const { out, err, code } = await events({ list }, [...ALPHA, '--json'])
    assert.deepEqual([out, code === 0], ['', false])
    assert.match(err, /^error: svcctl events: unavailable: the disk is full\n/)
  })

  test('a log that could not be read is told beside what could', async () => {
    const { out, err, code } = await events(
      { list: allPage([event(1)], 'a:1', { partial: true, partial_errors: ['beta: disk'] }) },
      ['-A'],
    )
    assert.deepEqual([out, err, code], [lines(event(1)), 'svcctl events: could not be read: beta: disk\n', 0])
  })

  test('--pretty is for people', async () => {
    const { out } = await events(
      { list: allPage([event(1, { city: 'alpha', subject: 's', message: 'two\nlines\u001b' })], 'a:1') },
      ['--pretty'],
    )
    assert.equal(out, '2026-05-01 10:00:01  alpha  x.y  s  two lines\\x1b  by me\n')
  })
})

suite('--seq', () => {
  test('one plain line', async () => {
    assert.equal((await events({ list: cityPage([], '0') }, [...ALPHA, '--seq'])).out, '0\n')
    const all = await events({ list: allPage([], '__supervisor__:4,alpha:2') }, ['--seq'])
    assert.deepEqual([all.out, all.urls], ['__supervisor__:4,alpha:2\n', ['/v0/events?limit=1&order=desc']])
  })

  test('a server without X-SVC-Index is an error', async () => {
    const { out, err, code } = await events(
      { list: (response) => answerJson(response, 200, { items: [], total: 0 }) },
      [...ALPHA, '--seq'],
    )
    assert.deepEqual([out, code], ['', 1])
    assert.match(err, /missing X-SVC-Index header/)
  })
})

suite('--watch', () => {
  test('without a cursor: from now on, the first match, one line', async () => {
    const stream = streamOf(
      frame('8', event(8)),
      HEARTBEAT,
      frame('9', event(9, { type: 'a.b' })),
      frame('10', event(10, { type: 'a.b' })),
    )
    const { out, err, code, urls } = await events({ list: cityPage([], '7'), stream }, [
      ...ALPHA,
      '--watch',
      '--type',
      'a.b',
    ])
    assert.deepEqual([out, err, code], [lines(event(9, { type: 'a.b' })), '', 0])
    assert.deepEqual(urls, [
      '/v0/city/alpha/events?limit=1&order=desc',
      '/v0/city/alpha/events/stream?type=a.b&after_seq=7',
    ])
  })

  test('with a cursor: everything that matched since, else the stream from there', async () => {
    const happened = await events({ list: allPage([event(5), event(6)], 'a:6') }, ['--watch', '--after-cursor', 'a:4'])
    assert.deepEqual([happened.out, happened.urls.length], [lines(event(5), event(6)), 1])
    const coming = await events(
      { list: allPage([event(5)], 'a:6'), stream: streamOf(frame('a:7', event(7), 'tagged_event')) },
      ['--watch', '--after-cursor', 'a:4', '--payload-match', 'n=7'],
    )
    assert.deepEqual([coming.out, coming.urls[1]], [lines(event(7)), '/v0/events/stream?after_cursor=a:6'])
  })

  test('silence until the deadline is success, and nothing on stdout', async () => {
    const { out, err, code } = await events(
      { list: allPage([], 'a:1'), stream: streamOf(HEARTBEAT, frame('a:2', event(2), 'tagged_event')) },
      ['--watch', '--type', 'no.such', '--timeout', '200ms'],
    )
    assert.deepEqual([out, err, code], ['', '', 0])
  })

  const silent: Answer = () => undefined
  for (const [phase, backend] of Object.entries<Backend>({
    cities: { cities: silent },
    head: { list: silent },
    stream: { list: allPage([], 'a:1'), stream: silent },
  })) {
    test(`so is a deadline that falls into the set-up (${phase})`, async () => {
      const { out, err, code } = await events(backend, ['--watch', '--timeout', '150ms'])
      assert.deepEqual([out, err, code], ['', '', 0])
    })
  }

  test('a stream that ends before a match is opened again where it was', async () => {
    for (const reset of [false, true]) {
      const stream: Answer = (response, request, count) => {
        openStream(response)
        if (count > 0) {
          assert.equal(request.headers['last-event-id'], 'a:2')
          return void response.write(frame('a:3', event(3, { type: 'x.y' }), 'tagged_event'))
        }
        const first = frame('a:2', event(2), 'tagged_event')
        if (reset) response.write(first, () => response.socket?.resetAndDestroy())
        else response.end(first)
      }
      const { out, err, code } = await events({ list: allPage([], 'a:1'), stream }, [
        '--watch',
        '--payload-match',
        'n=3',
      ])
      assert.deepEqual([out, code], [lines(event(3, { type: 'x.y' })), 0])
      assert.match(err, /^svcctl events: .*; retrying in .* s\n$/)
    }
  })

  test('a refused set-up is told as the server put it', async () => {
    const stream: Answer = (response) =>
      answerProblem(response, 503, 'no-event-providers', 'no_providers: no event providers available', {
        'retry-after': '1',
      })
    for (const mode of ['--watch', '--follow']) {
      const { out, err, code } = await events({ list: allPage([], '0'), stream }, [mode])
      assert.deepEqual([out, code], ['', 7])
      assert.match(err, /^error: svcctl events: no_providers: no event providers available\n/)
    }
    const unknown = await events(
      {
        list: (response) =>
          answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: alpha'),
      },
      [...ALPHA, '--watch'],
    )
    assert.equal(unknown.code, 3)
  })

  test('a frame that cannot be decoded is a failure', async () => {
    for (const data of ['{"seq":', '[]', '{"seq":"1"}']) {
      const { out, err, code } = await events(
        { list: allPage([], '0'), stream: streamOf(frame('a:1', data, 'tagged_event')) },
        ['--watch'],
      )
      assert.deepEqual([out, code], ['', 1])
      assert.match(err, /^error: svcctl events: decode: /)
    }
  })
})

suite('--follow', () => {
  test('prints the frames as they came, over resets, and ends with 130 when interrupted', async () => {
    const world = untilLines(3)
    const stream: Answer = (response, _, count) => {
      openStream(response)
      if (count === 0)
        response.write(`${frame('8', '{"seq":8, "type":"x.y","ts":"t","n":1.0}')}id: 9\ndata: {"se`, () =>
          response.socket?.resetAndDestroy(),
        )
      else if (count === 1) response.end(frame('9', event(9, { type: 'other' })) + frame('10', event(10)))
      else response.write(frame('11', event(11)))
    }
    const { code, err, urls, ids } = await events(
      { list: cityPage([], '7'), stream },
      [...ALPHA, '--follow', '--type', 'x.y'],
      world,
    )
    assert.equal(world.out.join(''), `{"seq":8, "type":"x.y","ts":"t","n":1.0}\n${lines(event(10), event(11))}`)
    assert.equal(code, 130)
    const resumed = '/v0/city/alpha/events/stream?type=x.y'
    assert.deepEqual(urls.slice(1), [`${resumed}&after_seq=7`, resumed, resumed])
    assert.deepEqual(ids.slice(-3), [undefined, '8', '10'])
    assert.match(
      err,
      /^svcctl events: connection reset; retrying in 0\.8 s\nsvcctl events: the stream ended; retrying in 0\.8 s\n$/,
    )
  })

  test('--since fills in what was, then goes on without a gap or a repetition', async () => {
    const world = untilLines(4)
    const stream = streamOf(
      frame('a:2', event(2, { city: 'a' }), 'tagged_event'),
      frame('a:3', event(3, { city: 'a' }), 'tagged_event'),
      frame('a:4', event(4, { city: 'a' }), 'tagged_event'),
    )
    const list: Answer = (response, request, count) =>
      count === 0
        ? allPage([event(1, { city: 'a' }), event(2, { city: 'a' })], 'a:1', { next_cursor: 'n' })(
            response,
            request,
            count,
          )
        : allPage([event(3, { city: 'a' })], 'a:3')(response, request, count)
    const { urls } = await events({ list, stream }, ['--follow', '--since', '9999d'], world)
    assert.deepEqual(world.out.join(''), lines(...[1, 2, 3, 4].map((seq) => event(seq, { city: 'a' }))))
    assert.equal(urls[2], '/v0/events/stream?after_cursor=a:1')
  })

  test('--since with a cursor leaves out what is older', async () => {
    const now = new Date().toISOString()
    const world = untilLines(1)
    const stream = streamOf(frame('1', event(1)), frame('2', event(2, { ts: now })))
    await events({ stream }, [...ALPHA, '--follow', '--since', '1h', '--after', '0'], {
      ...world,
      io: { ...world.io, clock: { ...fastClock(), now: () => Date.now() } },
    })
    assert.equal(world.out.join(''), lines(event(2, { ts: now })))
  })

  test('a city that restarts is waited for, one that was unregistered is not', async () => {
    const gone: Answer = (response, _, count) => {
      if (count === 1)
        return answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: alpha')
      openStream(response)
      response.end(frame(String(count + 8), event(count + 8)))
    }
    const cities =
      (...names: string[]): Answer =>
      (response) =>
        answerJson(response, 200, { items: names.map((name) => ({ name, path: `/c/${name}` })), total: names.length })
    const world = untilLines(2)
    await events({ list: cityPage([], '7'), stream: gone, cities: cities('alpha') }, [...ALPHA, '--follow'], world)
    assert.equal(world.out.join(''), lines(event(8), event(10)))
    const ended = await events(
      { list: cityPage([], '7'), stream: gone, cities: cities('beta') },
      [...ALPHA, '--follow'],
      { io: { clock: fastClock() } },
    )
    assert.equal(ended.code, 3)
  })

  test('an expired cursor is exit code 10', async () => {
    const stream: Answer = (response) => answerProblem(response, 410, 'cursor-expired', 'cursor_expired: oldest is 90')
    const { code, err } = await events({ stream }, [...ALPHA, '--follow', '--after', '1'])
    assert.equal(code, 10)
    assert.match(err, /^error: svcctl events: cursor_expired: oldest is 90\n/)
  })

  test('a reader that went away ends it quietly', async () => {
    const { code, err } = await events(
      { list: cityPage([], '0'), stream: streamOf(frame('1', event(1)), frame('2', event(2))) },
      [...ALPHA, '--follow'],
      { breakAfter: 1 },
    )
    assert.deepEqual([code, err], [0, ''])
  })
})
