/** Chaos at the callback of an adapter, on a clock of our own: schedule, order and ends are as decided. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { eventually } from '../../../../test/support/eventually.ts'
import { settled } from '../../../../test/support/manual-clock.ts'
import { OutboxBench } from '../../../../test/support/outbox-bench.ts'
import { verify } from '../../../messaging/signature.ts'
import { Callbacks } from './callbacks.ts'
import type { Post, Posted } from './post.ts'

const MINUTE = 60_000
const RECEIPT = '{"delivered":true,"message_id":"m-1"}'

const answer = (status: number, body = RECEIPT, retryAfter?: string): Posted => ({
  status,
  retryAfter,
  body: Buffer.from(body),
})

interface Attempt {
  readonly id: string
  readonly attempt: number
  readonly conversation: string
  readonly at: number
  readonly post: Post
}

/** A callback that answers as it is told. */
class Remote {
  readonly bench: OutboxBench
  readonly callbacks: Callbacks
  readonly attempts: Attempt[] = []
  underWay = 0
  most = 0
  reply: (attempt: Attempt) => Posted | Promise<Posted> = () => answer(200)

  constructor(t: TestContext) {
    t.after(() => this.callbacks.close())
    this.bench = new OutboxBench(t)
    const { clock, store, adapters, outbox } = this.bench
    this.callbacks = new Callbacks({
      db: store.db,
      clock,
      log: pino({ level: 'silent' }),
      adapters,
      outbox,
      said: ({ transcript_id, sequence }) => {
        const entry = store.transcripts.entry(transcript_id, sequence)
        return entry === undefined
          ? undefined
          : { conversation: store.transcripts.need(transcript_id).conversation, entry }
      },
      call: (post) => this.#answer(post),
    })
  }

  async start(): Promise<void> {
    this.callbacks.follow(await this.bench.register('callback'))
  }

  async #answer(post: Post): Promise<Posted> {
    const { delivery_id: id, attempt, conversation } = JSON.parse(post.body.toString())
    // It is on disk before it is made.
    const stored = this.bench.get(id)
    assert.deepEqual([stored.state, stored.attempts], ['flying', attempt])
    const one = { id, attempt, conversation: conversation.conversation_id, at: this.bench.clock.now(), post }
    this.attempts.push(one)
    this.most = Math.max(this.most, ++this.underWay)
    try {
      return await this.reply(one)
    } finally {
      this.underWay--
    }
  }

  /** Times between attempts of one delivery. */
  waits(id: string): readonly number[] {
    const times = this.attempts.filter((one) => one.id === id).map(({ at }) => at)
    return times.slice(1).map((at, index) => at - (times[index] ?? 0))
  }
}

test('what is said is posted, signed by every secret that is good, and its receipt is kept', async (t) => {
  const remote = new Remote(t)
  const { bench } = remote
  await remote.start()
  const secret = await bench.write((tx) => bench.adapters.rotate(tx, bench.adapters.need('chat', 'a', tx), 'api'))
  const old = await bench.write((tx) => bench.adapters.rotate(tx, bench.adapters.need('chat', 'a', tx), 'api'))
  const { id } = await bench.say('one')
  await settled()
  const [{ post, attempt } = assert.fail('nothing was posted')] = remote.attempts
  assert.equal(post.url.href, 'http://127.0.0.1:9/publish')
  assert.equal(attempt, 1)
  for (const one of [secret, old])
    assert.deepEqual(
      verify([one], (name) => post.headers[name], post.body, bench.clock.now()),
      { valid: true, id },
    )
  const stored = bench.get(id)
  assert.deepEqual([stored.state, stored.receipt?.message_id], ['delivered', 'm-1'])
})

test('429 with Retry-After pauses everything, and is no fault', async (t) => {
  const remote = new Remote(t)
  const { bench } = remote
  await remote.start()
  remote.reply = ({ attempt, conversation }) =>
    conversation === 'one' && attempt === 1 ? answer(429, 'slow down', '60') : answer(200)
  const limited = await bench.say('one')
  await settled()
  const other = await bench.say('two')
  await settled()
  assert.equal(remote.attempts.length, 1, 'nobody else is tried meanwhile')
  await bench.clock.advance(MINUTE - 1)
  assert.equal(remote.attempts.length, 1)
  await bench.clock.advance(1)
  assert.deepEqual([bench.get(limited.id).state, bench.get(other.id).state], ['delivered', 'delivered'])
  assert.deepEqual(remote.waits(limited.id), [MINUTE])
  assert.equal(bench.adapters.need('chat', 'a').failures, 0)
})

test('500, 401, 404 and answers that are no receipt are tried ten times, then the next one goes', async (t) => {
  for (const [reply, kind] of [
    [answer(500, 'oops'), 'transient'],
    [answer(401, ''), 'auth'],
    [answer(404, ''), 'not_found'],
    [answer(302, ''), 'transient'],
    [answer(200, '<html>'), 'transient'],
    [answer(200, '{}'), 'transient'],
    [{ ...answer(200), body: undefined }, 'transient'],
  ] as const) {
    const remote = new Remote(t)
    const { bench } = remote
    await remote.start()
    remote.reply = (one) => (one.id === first.id ? reply : answer(200))
    const first = await bench.say('one')
    const second = await bench.say('one')
    // The end of the attempt is a write of its own: its pause begins when it is on disk, so time stands still until then.
    await eventually('the first attempt has failed', () => (bench.get(first.id).answered > 0 ? true : undefined))
    for (let look = 0; look < 12; look++) await bench.clock.advance(10 * MINUTE)
    const dead = bench.get(first.id)
    assert.deepEqual([dead.state, dead.attempts, dead.answered, dead.failure_kind], ['dead', 10, 10, kind])
    assert.deepEqual(remote.waits(first.id).slice(0, 5), [1_000, 5_000, 30_000, 2 * MINUTE, 10 * MINUTE])
    assert.equal(bench.get(second.id).state, 'delivered')
    const ids = remote.attempts.map(({ id }) => id)
    assert.equal(ids.indexOf(second.id), 10, 'in order')
    assert.ok(bench.events().includes('extmsg.outbound_failed'))
    assert.equal(bench.adapters.need('chat', 'a').status, 'online', 'the last one was delivered')
    assert.ok(
      bench.events().filter((type) => type === 'extmsg.adapter_changed').length >= 2,
      'failing, and online again',
    )
    await remote.callbacks.close()
  }
})

test('400, 413, 422 and final receipts are the end at once', async (t) => {
  for (const reply of [
    answer(400),
    answer(413),
    answer(422, 'bad text'),
    answer(200, '{"delivered":false,"failure_kind":"permanent"}'),
    answer(200, '{"delivered":false,"failure_kind":"unsupported","error":"no rooms here"}'),
    answer(200, '{"delivered":false,"failure_kind":"not_found"}'),
  ]) {
    const remote = new Remote(t)
    const { bench } = remote
    await remote.start()
    remote.reply = () => reply
    const { id } = await bench.say('one')
    await settled()
    assert.deepEqual([bench.get(id).state, bench.get(id).attempts], ['dead', 1])
    assert.equal(bench.adapters.need('chat', 'a').failures, 0, 'it works')
    await remote.callbacks.close()
  }
})

test('cuts and silence are no answers: they are tried for a day, and the message is not given up before', async (t) => {
  const remote = new Remote(t)
  const { bench } = remote
  await bench.outbox.start()
  await remote.start()
  remote.reply = () => Promise.reject(new Error('ECONNRESET'))
  const { id } = await bench.say('one')
  await bench.clock.advance(24 * 60 * MINUTE - 1_000)
  const waiting = bench.get(id)
  assert.deepEqual([waiting.state, waiting.answered], ['ready', 0])
  assert.ok(waiting.attempts > 100, `${waiting.attempts} attempts`)
  assert.equal(bench.adapters.need('chat', 'a').status, 'failing')
  await bench.clock.advance(1_000)
  assert.deepEqual([bench.get(id).state, bench.get(id).last_error], ['dead', 'ECONNRESET'])
})

test('a slow one has eight at a time and no more, one of each conversation and in order', async (t) => {
  const remote = new Remote(t)
  const { bench } = remote
  await remote.start()
  const waiting: (() => void)[] = []
  remote.reply = () => new Promise((resolve) => waiting.push(() => resolve(answer(200))))
  const said: string[] = []
  for (let index = 0; index < 36; index++) said.push((await bench.say(`room ${index % 12}`)).id)
  await settled()
  assert.equal(remote.underWay, 8)
  for (let guard = 0; said.some((id) => bench.get(id).state !== 'delivered') && guard < 200; guard++) {
    waiting.shift()?.()
    await settled()
  }
  assert.deepEqual(
    said.filter((id) => bench.get(id).state !== 'delivered'),
    [],
  )
  assert.equal(remote.most, 8)
  for (let room = 0; room < 12; room++) {
    const order = remote.attempts.filter(({ conversation }) => conversation === `room ${room}`).map(({ id }) => id)
    assert.deepEqual(
      order,
      said.filter((_, index) => index % 12 === room),
    )
  }
})

test('a city that stops ends its calls, and makes them again when it starts', async (t) => {
  const remote = new Remote(t)
  const { bench } = remote
  await remote.start()
  const hanging = Promise.withResolvers<Posted>()
  remote.reply = () => hanging.promise
  const { id } = await bench.say('one')
  await settled()
  const closed = remote.callbacks.close()
  hanging.reject(new Error('aborted'))
  await closed
  assert.equal(bench.get(id).state, 'flying', 'nobody knows whether it arrived')
  await bench.outbox.start()
  assert.deepEqual([bench.get(id).state, bench.get(id).attempts], ['ready', 1])
})
