/**
 * The streams of sessions and agents over real HTTP: every frame is checked against the contract as it comes in, and what
 * a client puts together of them is what the transcript says, wherever it was cut off.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TRANSCRIPT_FORMATS, type TranscriptFormat } from '../../src/contract/sessions/session-transcript.ts'
import { asMap, at } from '../support/document.ts'
import { assertProblem } from '../support/http.ts'
import { type Running, run } from '../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../support/session-api.ts'
import { openStream, type SseFrame, type SseReader } from '../support/sse.ts'

const EVENTS: { readonly [Format in TranscriptFormat]: string } = {
  conversation: 'turn',
  raw: 'message',
  structured: 'structured',
}
const AGENTS = `[[agent]]
name = "scribe"
provider = "talker"
session = "acp"
[[agent]]
name = "brief"
provider = "talker"
session = "acp"
[[agent]]
name = "pair"
provider = "bash"
min_active_sessions = 2
`
/** Everything that our agent can say, more than once. */
const TALK = [
  'say one',
  'think two\nsay three',
  'tool hammer',
  'stream 20',
  'plan\nsay four',
  'hex c3a9f09f9880',
  'say z',
]

describe('streams of sessions', { concurrency: 4 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha', AGENTS)
  })
  after(() => running[Symbol.asyncDispose]())

  const follow = (id: string, query: string, last?: string): Promise<SseReader> =>
    openStream(city.api, `${city.base}${sessionPath(id)}/stream?${query}`, {
      headers: last === undefined ? {} : { 'last-event-id': last },
    })
  const followAgent = (agent: string, last?: string): Promise<SseReader> =>
    openStream(city.api, `${city.base}/agents/${agent}/output/stream`, {
      headers: last === undefined ? {} : { 'last-event-id': last },
    })

  /** Our agent, after it has said everything. */
  async function talked(): Promise<string> {
    const id = await city.startTalker()
    for (const text of TALK) await city.message(id, text)
    await city.said(id, 'z')
    await city.until(id, 'is idle', ({ activity }) => activity === 'idle')
    return id
  }

  for (const format of TRANSCRIPT_FORMATS) {
    test(`${format}: what was said before the stream and while it is open makes the transcript`, async () => {
      const id = await city.startTalker()
      await city.message(id, 'say early')
      await city.said(id, 'early')
      await using stream = await follow(id, `format=${format}`)
      for (const text of TALK) await city.message(id, text)
      const whole = await settledTranscript(city, id, format)
      await caughtUp(stream, format, whole)
      assert.equal(stream.headers['svc-session-state'], 'active')
      assert.equal(stream.headers['svc-session-status'], undefined)
      await city.forget(id)
    })

    test(`${format}: a stream that is resumed after any of its frames loses nothing and doubles nothing`, async () => {
      const id = await talked()
      await using first = await follow(id, `format=${format}`)
      for (const text of TALK) await city.message(id, text)
      const whole = await settledTranscript(city, id, format)
      await caughtUp(first, format, whole)
      const frames = framesOf(first, format)
      const cuts = [0, 1, Math.floor(frames.length / 2), frames.length - 1]
      for (const cut of new Set(cuts.filter((one) => one < frames.length))) {
        const taken = frames.slice(0, cut + 1)
        await using second = await follow(id, `format=${format}`, taken.at(-1)?.id)
        await caughtUp(second, format, whole, taken)
      }
      // The query says the same where a client cannot set the header.
      const lastId = encodeURIComponent(frames[0]?.id ?? '')
      await using third = await follow(id, `format=${format}&after_cursor=${lastId}`)
      await caughtUp(third, format, whole, frames.slice(0, 1))
      await city.forget(id)
    })

    test(`${format}: a client that is cut off again and again while the agent talks has all of it at the end`, async () => {
      const id = await city.startTalker()
      await city.message(id, 'say begin')
      await city.said(id, 'begin')
      const taken: SseFrame[] = []
      await city.message(id, 'stream 2000')
      // A frame at a time, until it has said all.
      while (!taken.some(({ data }) => data.includes('chunk 2000 '))) {
        await using stream = await follow(id, `format=${format}`, taken.at(-1)?.id)
        await stream.until(() => framesOf(stream, format).length > 0)
        taken.push(...framesOf(stream, format))
      }
      const whole = await settledTranscript(city, id, format)
      await using last = await follow(id, `format=${format}`, taken.at(-1)?.id)
      await caughtUp(last, format, whole, taken)
      await city.forget(id)
    })

    test(`${format}: a question comes to who is there and to who comes later, and so does its end`, async () => {
      const id = await city.startTalker()
      await using early = await follow(id, `format=${format}`)
      const asked = await city.ask(id)
      await using late = await follow(id, `format=${format}`)
      for (const stream of [early, late]) {
        const { data } = await named(stream, 'pending')
        assert.equal(at(JSON.parse(data), 'request_id'), asked.request_id)
      }
      assert.equal(at(JSON.parse((await named(early, 'activity')).data), 'activity'), 'in-turn')
      await city.done('POST', `${sessionPath(id)}/respond`, { action: 'deny' })
      for (const stream of [early, late]) {
        assert.deepEqual(JSON.parse((await named(stream, 'pending_cleared')).data), { request_id: asked.request_id })
        await stream.until(() => activities(stream).at(-1) === 'idle')
      }
      await city.forget(id)
    })

    test(`${format}: who was away when a question was answered hears of it, and who comes back before sees it again`, async () => {
      const id = await city.startTalker()
      const asked = await city.ask(id)
      const known = await (async () => {
        await using stream = await follow(id, `format=${format}`)
        return (await named(stream, 'pending')).id
      })()
      await using open = await follow(id, `format=${format}`, known)
      assert.equal((await named(open, 'pending')).id, known)
      await city.done('POST', `${sessionPath(id)}/respond`, { action: 'approve' })
      await named(open, 'pending_cleared')
      await using later = await follow(id, `format=${format}`, known)
      assert.deepEqual(JSON.parse((await named(later, 'pending_cleared')).data), { request_id: asked.request_id })
      const whole = await settledTranscript(city, id, format)
      await using first = await follow(id, `format=${format}`)
      await caughtUp(first, format, whole)
      assert.ok(!first.frames.some(({ event }) => event.startsWith('pending')))
      await city.forget(id)
    })

    test(`${format}: the stream ends when its session is closed, after everything that it said`, async () => {
      const id = await talked()
      await using stream = await follow(id, `format=${format}`)
      const whole = await settledTranscript(city, id, format)
      await caughtUp(stream, format, whole)
      await city.close(id)
      await stream.ended
      assert.ok(stream.complete, 'the server ended it in order')
      const last = stream.frames.at(-1) ?? assert.fail('no frame')
      assert.equal(last.event, 'ended')
      assert.equal(at(JSON.parse(last.data), 'session_id'), id)
      assert.equal(at(JSON.parse(last.data), 'state'), 'closed')

      await using again = await follow(id, `format=${format}`)
      assert.equal(again.headers['svc-session-state'], 'closed')
      assert.equal(again.headers['svc-session-status'], 'stopped')
      await again.ended
      assert.deepEqual(folded(format, framesOf(again, format)), whole)
      assert.equal(again.frames.at(-1)?.event, 'ended')
      assert.deepEqual(activities(again), ['idle'])
      await city.forget(id)
    })
  }

  test('what a shell shows comes as text, in order, with what was typed into it', async () => {
    const id = await city.start()
    await using stream = await follow(id, 'format=conversation')
    for (const n of [1, 2, 3, 4, 5]) {
      await city.message(id, `echo out-$((${n}*7))`)
      await city.said(id, `out-${n * 7}`)
    }
    await stream.until(() => shown(framesOf(stream, 'conversation')).includes('out-35'))
    const parts = turnsIn(framesOf(stream, 'conversation'))
    const typed = parts.filter(({ role }) => role === 'user').map(({ text }) => text)
    assert.deepEqual(
      typed,
      [1, 2, 3, 4, 5].map((n) => `echo out-$((${n}*7))`),
    )
    const output = parts.filter(({ role }) => role === 'output').map(({ text }) => text)
    assert.deepEqual(output.join('').match(/^out-\d+/gm), ['out-7', 'out-14', 'out-21', 'out-28', 'out-35'])
    for (const frame of framesOf(stream, 'conversation')) assert.equal(at(JSON.parse(frame.data), 'format'), 'text')
    await city.forget(id)
  })

  test('a shell that is resumed after any frame shows every line once', async () => {
    const id = await city.start()
    const taken: SseFrame[] = []
    for (let n = 0; n < 12; n++) {
      await using stream = await follow(id, 'format=raw', taken.at(-1)?.id)
      await city.message(id, `echo line-${n}-$((${n}+0))`)
      await stream.until(() => rawText([...taken, ...framesOf(stream, 'raw')]).includes(`\rline-${n}-${n}`))
      taken.push(...framesOf(stream, 'raw'))
    }
    const lines = [...rawText(taken).matchAll(/\rline-(\d+)-\d+/g)].map(([, n]) => Number(n))
    assert.deepEqual(
      lines,
      Array.from({ length: 12 }, (_, n) => n),
    )
    await city.forget(id)
  })

  test('the stream of a session that sleeps says so, and goes on when it wakes', async () => {
    const id = await city.startTalker()
    await city.done('POST', `${sessionPath(id)}/suspend`)
    await using stream = await follow(id, '')
    assert.equal(stream.headers['svc-session-state'], 'suspended')
    assert.equal(stream.headers['svc-session-status'], 'stopped')
    await city.message(id, 'say awake')
    await stream.until(() => shown(framesOf(stream, 'conversation')).includes('awake'))
    await city.forget(id)
  })

  test('a session that is deleted ends its streams', async () => {
    const id = await city.startTalker()
    await using stream = await follow(id, '')
    await stream.until(() => stream.frames.length > 0)
    await city.done('DELETE', sessionPath(id))
    await stream.ended
    assert.equal(stream.frames.at(-1)?.event, 'ended')
  })

  test('what cannot be streamed is refused before the head: no such session, a cursor that is none, a wrong format', async () => {
    const id = await city.startTalker()
    const open = (path: string, headers = {}) => city.send('GET', path, undefined, headers)
    assertProblem(await open('/sessions/s-ffffffffffffffff/stream'), 'session-not-found')
    assertProblem(await open('/agents/nobody/output/stream'), 'agent-not-found')
    assertProblem(await open(`${sessionPath(id)}/stream?format=screen`), 'validation-failed')
    assertProblem(await open(`${sessionPath(id)}/stream`, { 'last-event-id': 'x y' }), 'invalid-cursor')
    assertProblem(await open('/agents/scribe/output/stream', { 'last-event-id': '1-2' }), 'invalid-cursor')
    await city.forget(id)
  })

  test('a structured stream whose place is gone begins anew and says so', async () => {
    const id = await talked()
    await using stream = await follow(id, 'format=structured', '77-12345')
    const first = await named(stream, 'structured')
    assert.equal(at(JSON.parse(first.data), 'operation'), 'reset')
    assert.equal(at(JSON.parse(first.data), 'reset_reason'), 'cursor_invalidated')
    const whole = await settledTranscript(city, id, 'structured')
    await caughtUp(stream, 'structured', whole)
    await city.forget(id)
  })

  test('thinking is shown to those who want it, and to nobody else', async () => {
    const id = await city.startTalker()
    await city.message(id, 'think deeply\nsay done')
    await city.said(id, 'done')
    await using thinking = await follow(id, 'include_thinking=true')
    await using plain = await follow(id, '')
    await thinking.until(() => shown(framesOf(thinking, 'conversation')).includes('[thinking] deeply'))
    await plain.until(() => shown(framesOf(plain, 'conversation')).includes('done'))
    assert.ok(!shown(framesOf(plain, 'conversation')).includes('[thinking]'))
    await city.forget(id)
  })

  test('somebody who watches is seen by others', async () => {
    const id = await city.startTalker()
    assert.equal((await city.get(id)).attached, false)
    await using stream = await follow(id, 'attended=true')
    await stream.until(() => stream.frames.length > 0)
    assert.equal((await city.get(id)).attached, true)
    await city.forget(id)
  })

  test('a client that takes nothing of a flood is cut off, and the others lose nothing', {
    timeout: 90_000,
  }, async () => {
    const id = await city.startTalker()
    await using stuck = await follow(id, 'format=raw')
    await using quick = await follow(id, 'format=raw')
    stuck.response.pause()
    stuck.response.socket.pause()
    await city.message(id, 'flood 24000000\nsay flooded')
    await quick.until(() => rawText(framesOf(quick, 'raw')).includes('flooded'), 60_000)
    const opened = performance.now()
    await stuckIsCut(stuck)
    assert.ok(performance.now() - opened < 60_000)
    assert.ok(!stuck.complete, 'it was cut, not ended')
    assert.equal(quick.complete, false)
    await city.forget(id)
  })

  // --- Agents ----------------------------------------------------------------------------------------------------------

  test('the stream of an agent goes over its sessions, one after the other, and ends with the agent', async () => {
    await using stream = await followAgent('scribe')
    assert.equal(stream.headers['svc-agent-status'], 'stopped')
    const first = await city.startTalker({ kind: 'agent', name: 'scribe' })
    await city.message(first, 'say first')
    await stream.until(() => shown(framesOf(stream, 'conversation')).includes('first'))
    await city.close(first)
    assert.equal(at(JSON.parse((await named(stream, 'ended')).data), 'session_id'), first)

    const second = await city.startTalker({ kind: 'agent', name: 'scribe' })
    await city.message(second, 'say second')
    await stream.until(() => shown(framesOf(stream, 'conversation')).includes('second'))
    const turns = framesOf(stream, 'conversation').map(({ data }) => at(JSON.parse(data), 'session_id'))
    assert.deepEqual([...new Set(turns)], [first, second])

    await using late = await followAgent('scribe')
    assert.equal(late.headers['svc-agent-status'], undefined)
    const asked = await city.ask(second)
    for (const one of [stream, late])
      assert.equal(at(JSON.parse((await named(one, 'pending')).data), 'request_id'), asked.request_id)

    await city.configure(AGENTS.replace(/\[\[agent\]\]\nname = "scribe"\n[^[]*/, ''))
    await city.done('POST', `${sessionPath(second)}/close`)
    await Promise.all([stream.ended, late.ended])
    assert.ok(stream.complete && late.complete)
    await city.configure(AGENTS)
  })

  test('the stream of an agent that is resumed after any of its frames loses nothing and doubles nothing', async () => {
    const id = await city.startTalker({ kind: 'agent', name: 'brief' })
    await using stream = await followAgent('brief')
    for (const text of TALK) await city.message(id, text)
    await city.said(id, 'z')
    await stream.until(() => shown(framesOf(stream, 'conversation')).endsWith('z'))
    const frames = framesOf(stream, 'conversation')
    const whole = folded('conversation', frames)
    for (const cut of [0, Math.floor(frames.length / 2), frames.length - 1]) {
      const taken = frames.slice(0, cut + 1)
      await using again = await followAgent('brief', taken.at(-1)?.id)
      await caughtUp(again, 'conversation', whole, taken)
    }
    // A place of the session that is in none of its logs: it is told anew.
    await using anew = await followAgent('brief', `${id}/999-5`)
    await caughtUp(anew, 'conversation', whole)
    await city.forget(id)
  })

  test('a header that is empty leaves it to the query where a stream goes on', async () => {
    const id = await talked()
    await using first = await follow(id, 'format=conversation')
    // Before anything more is said: the first frame would have it already where the machine is busy.
    await first.until(() => framesOf(first, 'conversation').length > 0)
    const cursor = encodeURIComponent(framesOf(first, 'conversation')[0]?.id ?? '')
    await city.message(id, 'say after')
    await first.until(() => shown(framesOf(first, 'conversation')).endsWith('after'))
    await using second = await follow(id, `format=conversation&after_cursor=${cursor}`, '')
    await second.until(() => shown(framesOf(second, 'conversation')).endsWith('after'))
    assert.ok(!shown(framesOf(second, 'conversation')).includes('one'))
    await city.forget(id)
  })

  test('the output of a pool is that of none of its instances; each of them has its own', async () => {
    const refused = await city.send('GET', '/agents/pair/output/stream')
    assertProblem(refused, 'ambiguous-session', /^ambiguous: pair has several instances: pair-1, pair-2$/)
    await city.is('pair-1', 'active')
    await using stream = await followAgent('pair-1')
    await city.message('pair-1', 'echo mine')
    await stream.until(() => shown(framesOf(stream, 'conversation')).includes('mine'))
  })
})

const framesOf = (stream: SseReader, format: TranscriptFormat): readonly SseFrame[] =>
  stream.frames.filter(({ event }) => event === EVENTS[format])

/** Waits for a frame of that kind. */
async function named(stream: SseReader, event: string): Promise<SseFrame> {
  await stream.until(() => stream.frames.some((frame) => frame.event === event))
  return stream.frames.findLast((frame) => frame.event === event) ?? assert.fail(event)
}

const activities = (stream: SseReader): readonly unknown[] =>
  stream.frames.filter(({ event }) => event === 'activity').map(({ data }) => at(JSON.parse(data), 'activity'))

function listIn(data: unknown, key: string): readonly unknown[] {
  const list = asMap(data)[key] ?? []
  assert.ok(Array.isArray(list))
  return list
}

const turnsIn = (frames: readonly SseFrame[]) =>
  frames.flatMap(({ data }) =>
    listIn(JSON.parse(data), 'turns').map((turn) => ({
      role: String(at(turn, 'role')),
      text: String(at(turn, 'text')),
    })),
  )
const shown = (frames: readonly SseFrame[]): string => turnsIn(frames).reduce((all, { text }) => all + text, '')
const rawText = (frames: readonly SseFrame[]): string =>
  frames
    .flatMap(({ data }) => listIn(JSON.parse(data), 'messages'))
    .map((message) => {
      const value = at(message, 'value')
      return typeof value === 'string' ? value : JSON.stringify(value)
    })
    .join('')

/** What a client holds after these frames: the same whichever way it was cut into frames. */
function folded(format: TranscriptFormat, frames: readonly SseFrame[]): readonly unknown[] {
  return fold(
    format,
    frames.map(({ data }) => JSON.parse(data)),
  )
}

function fold(format: TranscriptFormat, bodies: readonly unknown[]): readonly unknown[] {
  if (format === 'raw') return bodies.flatMap((body) => listIn(body, 'messages').map((one) => at(one, 'value')))
  if (format === 'structured') {
    const messages = new Map<unknown, unknown>()
    for (const message of bodies.flatMap((body) => listIn(body, 'structured_messages')))
      messages.set(at(message, 'id'), message)
    return [...messages.values()]
  }
  const turns: { role: unknown; text: string }[] = []
  for (const turn of bodies.flatMap((body) => listIn(body, 'turns'))) {
    const last = turns.at(-1)
    const [role, text] = [at(turn, 'role'), String(at(turn, 'text'))]
    if (last !== undefined && last.role === role) last.text += text
    else turns.push({ role, text })
  }
  return turns
}

/** The transcript as a client of the stream holds it, once nothing more is to come. */
async function settledTranscript(city: SessionApi, id: string, format: TranscriptFormat): Promise<readonly unknown[]> {
  await city.until(id, 'has nothing to do', ({ queued, activity }) => queued === 0 && activity === 'idle')
  return fold(format, [await city.transcript(id, '&limit=1000', format)])
}

/** Waits until the frames make `whole`; with those that were taken before. */
async function caughtUp(
  stream: SseReader,
  format: TranscriptFormat,
  whole: readonly unknown[],
  taken: readonly SseFrame[] = [],
): Promise<void> {
  const held = () => folded(format, [...taken, ...framesOf(stream, format)])
  const size = JSON.stringify(whole).length
  await stream.until(() => JSON.stringify(held()).length >= size).catch(() => {})
  assert.deepEqual(held(), whole)
}

/** It takes again what the kernel kept for it, until it finds that nobody is there. */
async function stuckIsCut(stream: SseReader): Promise<void> {
  const socket = stream.response.socket
  await new Promise<void>((resolve) => {
    // Nothing is read for longer than the server waits for a client that takes nothing.
    const timer = setTimeout(() => {
      socket.resume()
      stream.response.resume()
      resolve()
    }, 33_000)
    timer.unref()
    void stream.ended.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
  await stream.ended
}
