import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  answerProblem,
  type FastClock,
  fastClock,
  frame,
  HEARTBEAT,
  openStream,
  type Script,
  type ScriptedServer,
  scriptedServer,
  trickle,
} from '../../test/support/cli-server.ts'
import { codePoint } from '../../test/support/code-point.ts'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { fc } from '../../test/support/random.ts'
import { Client } from './client.ts'
import { type FollowOptions, type Frame, follow, type RetryNotice } from './follow.ts'
import { ApiProblem, DecodeError, Unreachable } from './problems.ts'

const PARAMS = { params: { cityName: 'alpha' } }

function clientOf(url: string, clock: FastClock = fastClock()) {
  return new Client({ baseUrl: url, clock, random: () => 1, newKey: () => 'key' })
}

interface Session extends AsyncDisposable {
  readonly server: ScriptedServer
  readonly clock: FastClock
  readonly notices: RetryNotice[]
  /** Frames until `count` came. */
  take(count: number, options?: Partial<FollowOptions>): Promise<Frame[]>
}

async function session(script: Script): Promise<Session> {
  const server = await scriptedServer(script)
  const clock = fastClock()
  const notices: RetryNotice[] = []
  return {
    server,
    clock,
    notices,
    async take(count, options = {}) {
      const stop = new AbortController()
      const frames: Frame[] = []
      const onRetry = (notice: RetryNotice) => notices.push(notice)
      for await (const one of follow(clientOf(server.url, clock), 'stream-city-events', {
        ...PARAMS,
        signal: stop.signal,
        onRetry,
        ...options,
      })) {
        frames.push(one)
        if (frames.length === count) break
      }
      return frames
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

const resumePoints = (server: ScriptedServer) => server.requests.map((request) => request.headers['last-event-id'])

suite('frames', () => {
  test('heartbeats are swallowed and leave the resume point alone', async () => {
    await using run = await session((_, response, count) => {
      openStream(response)
      if (count > 0) return void response.write(frame('8', { n: 2 }))
      response.write(frame('7', { n: 1 }) + HEARTBEAT)
      response.end()
    })
    const frames = await run.take(2)
    assert.deepEqual(
      frames.map(({ id, data }) => [id, data]),
      [
        ['7', '{"n":1}'],
        ['8', '{"n":2}'],
      ],
    )
    assert.deepEqual(resumePoints(run.server), [undefined, '7'])
  })

  test('a stream that comes byte by byte, with CRLF and with several data lines, is the same stream', async () => {
    const text =
      '\uFEFFid: 1\r\nevent: event\r\ndata: {"a":"é😀\u2028\u2029\u0085"}\r\n\r\n: comment\r\n\r\nid: 2\rdata: x\rdata: y\r\rretry: 5\n\nevent: event\nid: 3\ndata:{}\n\n'
    await using run = await session(async (_, response) => {
      openStream(response)
      await trickle(response, text)
    })
    const frames = await run.take(3)
    assert.deepEqual(frames, [
      { id: '1', event: 'event', data: '{"a":"é😀\u2028\u2029\u0085"}' },
      { id: '2', event: 'message', data: 'x\ny' },
      { id: '3', event: 'event', data: '{}' },
    ])
  })

  test('a frame larger than a mebibyte arrives whole', async () => {
    const big = JSON.stringify({ text: 'ü'.repeat(1_500_000) })
    await using run = await session((_, response) => {
      openStream(response)
      response.write(frame('1', big))
      response.write(frame('2', { n: 2 }))
    })
    const frames = await run.take(2)
    assert.equal(frames[0]?.data, big)
    assert.equal(frames[1]?.id, '2')
  })

  test('however the bytes are cut, the frames are the same', async () => {
    const text = fc.string({ unit: codePoint, maxLength: 40 })
    const event = fc.record({ id: fc.integer({ min: 1, max: 99 }), text })
    await fc.assert(
      fc.asyncProperty(
        fc.array(event, { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 20 }),
        async (events, cuts) => {
          const bytes = Buffer.from(
            events.map(({ id, text }) => frame(String(id), { text: text.toWellFormed() })).join(HEARTBEAT),
          )
          await using run = await session((_, response) => {
            openStream(response)
            let at = 0
            for (const cut of [...cuts, bytes.length]) {
              response.write(bytes.subarray(at, at + cut))
              at += cut
            }
            response.end()
          })
          const frames = await run.take(-1, { reconnect: false })
          assert.deepEqual(
            frames.map(({ id, data }) => [id, data]),
            events.map(({ id, text }) => [String(id), JSON.stringify({ text: text.toWellFormed() })]),
          )
        },
      ),
      { numRuns: 40 },
    )
  })

  test('bytes that are no UTF-8, or no event stream at all, are an error and not silence', async () => {
    await using broken = await session((_, response) => {
      openStream(response)
      response.write(Uint8Array.of(0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x0a, 0x0a))
    })
    await assert.rejects(broken.take(1), DecodeError)
    await using page = await session((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
    })
    await assert.rejects(page.take(1), { name: 'DecodeError', message: 'expected an event stream, got text/html' })
  })
})

suite('resuming', () => {
  test('half a frame before the end of a connection is not delivered, and comes again', async () => {
    await using run = await session((_, response, count) => {
      openStream(response)
      if (count === 0) response.end(`${frame('1', { n: 1 })}id: 2\nevent: event\ndata: {"n":`)
      else response.write(frame('2', { n: 2 }))
    })
    const frames = await run.take(2)
    assert.deepEqual(
      frames.map((one) => one.data),
      ['{"n":1}', '{"n":2}'],
    )
    assert.deepEqual(resumePoints(run.server), [undefined, '1'])
  })

  test('a reset in the middle of a frame is survived', async () => {
    await using run = await session((_, response, count) => {
      openStream(response)
      response.write(frame(String(count + 1), { n: count + 1 }))
      if (count < 2) response.write('id: 99\ndata: {', () => response.socket?.resetAndDestroy())
    })
    const frames = await run.take(3)
    assert.deepEqual(
      frames.map((one) => one.id),
      ['1', '2', '3'],
    )
    assert.deepEqual(resumePoints(run.server), [undefined, '1', '2'])
    assert.equal(run.notices[0]?.reason, 'connection reset')
  })

  test('the first connection uses the cursor of the query, every later one the id of the last frame', async () => {
    await using run = await session((_, response, count) => {
      openStream(response)
      response.end(frame(`a:${count},b:2`, {}))
    })
    await run.take(2, { query: { after_seq: '5', type: ['x.y', 'z.*'] } })
    assert.equal(run.server.requests[0]?.url, '/v0/city/alpha/events/stream?after_seq=5&type=x.y&type=z.*')
    assert.deepEqual(resumePoints(run.server), [undefined, 'a:0,b:2'])
  })

  test('a consumer that takes longer than the watchdog is not taken for a silent server', async () => {
    await using run = await session((_, response) => {
      openStream(response)
      response.write(frame('1', {}) + frame('2', {}))
    })
    const clock = new ManualClock()
    const client = new Client({ baseUrl: run.server.url, clock, random: () => 1, newKey: () => 'key' })
    const stream = follow(client, 'stream-city-events', { ...PARAMS, signal: new AbortController().signal })
    await stream.next()
    await clock.advance(3_600_000)
    assert.equal((await stream.next()).value?.id, '2')
    assert.equal(run.server.closed.length, 0)
    await stream.return(undefined)
  })

  test('delays double to half a minute, and start over after progress', async () => {
    await using run = await session((_, response, count) => {
      if (count === 0 || count === 8) {
        openStream(response)
        return void response.end(frame(String(count), {}))
      }
      if (count > 8) {
        openStream(response)
        return void response.end(count === 10 ? frame('10', {}) : '')
      }
      answerProblem(response, 500, 'internal', 'internal: no')
    })
    await run.take(3)
    assert.deepEqual(
      run.notices.map((notice) => notice.delayMs),
      [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 1000, 2000],
    )
  })

  test('Retry-After is honoured, up to two minutes', async () => {
    await using run = await session((_, response, count) => {
      if (count === 1)
        return answerProblem(response, 503, 'unavailable', 'unavailable: draining', { 'retry-after': '7' })
      if (count === 2)
        return answerProblem(response, 429, 'too-many-streams', 'too_many: streams', { 'retry-after': '9999' })
      openStream(response)
      response.end(frame(String(count), {}))
    })
    await run.take(2)
    assert.deepEqual(
      run.notices.map((notice) => notice.delayMs),
      [1000, 7000, 120_000],
    )
  })

  test('silence longer than three heartbeats is a lost connection', { timeout: 20_000 }, async () => {
    await using run = await session((_, response, count) => {
      openStream(response)
      response.write(count === 0 ? frame('1', {}) : frame('2', {}))
    })
    await run.take(2)
    assert.equal(run.notices[0]?.reason, 'nothing received for 45 s')
  })

  test('a server that accepts and says nothing is not waited for either', { timeout: 20_000 }, async () => {
    await using run = await session((_, response, count) => {
      if (count === 1) return
      openStream(response)
      response.end(frame(String(count), {}))
    })
    await run.take(2)
    assert.equal(run.notices[1]?.reason, 'nothing received for 45 s')
  })

  for (const [status, code] of [
    [410, 'cursor-expired'],
    [400, 'invalid-cursor'],
    [401, 'unauthorized'],
    [422, 'validation-failed'],
  ] as const) {
    test(`${status} ends a stream that was open`, async () => {
      await using run = await session((_, response, count) => {
        if (count === 0) {
          openStream(response)
          return void response.end(frame('1', {}))
        }
        answerProblem(response, status, code, `${code}: no`)
      })
      await assert.rejects(
        run.take(2),
        (error) => error instanceof ApiProblem && error.status === status && error.code === code,
      )
    })
  }

  test('the 404 of a city that restarts is waited out, that of a city that is gone is not', async () => {
    const script: Script = (_, response, count) => {
      if (count === 1 || count === 2)
        return answerProblem(response, 404, 'city-not-found', 'not_found: city not found or not running: alpha')
      openStream(response)
      response.end(frame(String(count), {}))
    }
    await using restarting = await session(script)
    const frames = await restarting.take(2, { mayReturn: async () => true })
    assert.deepEqual(
      frames.map((one) => one.id),
      ['0', '3'],
    )
    await using gone = await session(script)
    await assert.rejects(gone.take(2, { mayReturn: async () => false }), { code: 'city-not-found' })
  })
})

suite('setting up', () => {
  for (const [status, code] of [
    [404, 'city-not-found'],
    [503, 'no-event-providers'],
    [410, 'cursor-expired'],
    [500, 'internal'],
  ] as const) {
    test(`${status} ${code} is told at once`, async () => {
      await using run = await session((_, response) =>
        answerProblem(response, status, code, `${code}: no`, { 'retry-after': '1' }),
      )
      await assert.rejects(run.take(1, { mayReturn: async () => true }), { code })
      assert.equal(run.server.requests.length, 1)
    })
  }

  test('a server that says "come again" is asked again', async () => {
    await using run = await session((_, response, count) => {
      if (count === 0) return answerProblem(response, 429, 'too-many-streams', 'too_many: streams')
      if (count === 1) return answerProblem(response, 503, 'unavailable', 'unavailable: draining')
      openStream(response)
      response.write(frame('1', {}))
    })
    assert.equal((await run.take(1)).length, 1)
  })

  test('nobody listening is told at once, after a success it is waited out', async () => {
    const free = await scriptedServer(() => undefined)
    await free[Symbol.asyncDispose]()
    const stream = follow(clientOf(free.url), 'stream-city-events', { ...PARAMS, signal: new AbortController().signal })
    await assert.rejects(stream.next(), (error) => error instanceof Unreachable && error.refused)
  })

  test('without reconnecting, the end of the connection is the end', async () => {
    await using run = await session((_, response) => {
      openStream(response)
      response.write(frame('1', {}), () => response.socket?.resetAndDestroy())
    })
    assert.equal((await run.take(9, { reconnect: false })).length, 1)
  })
})

suite('stopping', () => {
  test('the signal ends it with its reason, and the connection with it', async () => {
    await using run = await session((_, response) => {
      openStream(response)
      response.write(frame('1', {}))
    })
    const stop = new AbortController()
    const frames: Frame[] = []
    await assert.rejects(async () => {
      for await (const one of follow(clientOf(run.server.url), 'stream-city-events', {
        ...PARAMS,
        signal: stop.signal,
      })) {
        frames.push(one)
        setImmediate(() => stop.abort(new Error('enough')))
      }
    }, /enough/)
    assert.equal(frames.length, 1)
    while (run.server.closed.length === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('a consumer that leaves closes the connection', async () => {
    await using run = await session((_, response) => {
      openStream(response)
      response.write(frame('1', {}))
    })
    await run.take(1)
    while (run.server.closed.length === 0) await new Promise((resolve) => setImmediate(resolve))
  })

  test('the signal also ends a wait between two connections', async () => {
    const stop = new AbortController()
    await using run = await session((_, response, count) => {
      if (count > 0) return answerProblem(response, 503, 'unavailable', 'unavailable: no', { 'retry-after': '100' })
      openStream(response)
      response.end(frame('1', {}))
    })
    const onRetry = ({ delayMs }: RetryNotice) => (delayMs > 1000 ? stop.abort(new Error('enough')) : undefined)
    await assert.rejects(run.take(2, { signal: stop.signal, onRetry }), /enough/)
  })
})
