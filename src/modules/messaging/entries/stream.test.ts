// Streams of transcripts, whatever their clients take and retention removes: no gap, no double.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { SEED, seededRandom } from '../../../../test/support/random.ts'
import type { Attachment } from '../../../kernel/feed.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { normalConversation } from '../../../messaging/conversation.ts'
import { opened, SAID } from '../testing.ts'
import type { Transcripts } from './store.ts'
import { TranscriptStreams } from './stream.ts'

const ROOM = normalConversation({ provider: 'irc', account_id: 'a', conversation_id: '#x', kind: 'room' }, 'alpha')

/** A client that takes as much as it likes, and notes what it was given. */
class Client {
  readonly sequences: number[] = []
  readonly deliveries: string[] = []
  ended = false
  takes = true
  #from = 0
  #attachment: Attachment | undefined
  readonly #streams: TranscriptStreams
  readonly #transcripts: Transcripts
  readonly #id: string

  constructor(streams: TranscriptStreams, transcripts: Transcripts, id: string) {
    this.#streams = streams
    this.#transcripts = transcripts
    this.#id = id
  }

  /** What it asks to go on behind: 0, from the oldest on, until it was given something. */
  get last(): number {
    return this.sequences.at(-1) ?? this.#from
  }

  open(after: number | undefined): void {
    const transcript = this.#transcripts.need(this.#id)
    const feed = this.#streams.follow(transcript, after)
    this.ended = false
    this.#from = after ?? transcript.next - 1
    this.#attachment = feed.attach({
      write: (batch) => {
        this.#note(batch.toString())
        return this.takes
      },
      end: () => {
        this.ended = true
      },
    })
  }

  drain(): void {
    this.takes = true
    this.#attachment?.drained()
  }

  cut(): void {
    this.#attachment?.detach()
    this.#attachment = undefined
  }

  #note(text: string): void {
    for (const frame of text.split('\n\n')) {
      const id = /^id: (\d+)$/m.exec(frame)?.[1]
      if (id !== undefined) this.sequences.push(Number(id))
      else if (frame.startsWith('event: delivery')) this.deliveries.push(frame.slice(frame.indexOf('{')))
    }
  }
}

const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

async function settled(): Promise<void> {
  for (let n = 0; n < 8; n++) await turn()
}

for (const life of [1, 2, 3, 4, 5, 6]) {
  test(`no gap and no double over reconnects, slow clients and retention (${life})`, async (t) => {
    const { db, transcripts } = opened(t)
    const streams = new TranscriptStreams({ transcripts, encode: (frames) => Buffer.from(frames.join('')) })
    const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
    const random = seededRandom(SEED + life)
    t.diagnostic(`SVC_SEED=${SEED}`)
    const clients = Array.from({ length: 4 }, () => new Client(streams, transcripts, id))
    const say = (many: number) =>
      db.write((tx) => {
        for (let n = 0; n < many; n++)
          transcripts.append(tx, id, { ...SAID, text: 'x'.repeat(random.between(0, 3000)) })
      })
    await say(120)
    for (const [index, client] of clients.entries()) client.open(index === 0 ? undefined : 0)
    let lost = 0
    for (let round = 0; round < 120; round++) {
      const client = random.pick(clients)
      assert.ok(client !== undefined)
      const what = random.next()
      if (what < 0.5) await say(random.between(1, 5))
      else if (what < 0.6) client.takes = false
      else if (what < 0.75) client.drain()
      else if (what < 0.9) {
        client.cut()
        try {
          client.open(client.last)
        } catch (error) {
          assert.equal(Reflect.get(Object(error), 'code'), 'cursor-expired')
          client.ended = true
        }
      } else if (what < 0.93) {
        const { next } = transcripts.need(id)
        const slowest = Math.min(...clients.map(({ last }) => last))
        // Mostly what everybody has; now and then more.
        const earliest = random.chance(0.8) ? Math.max(1, slowest - 5) : next - 2
        await db.write((tx) =>
          tx.run('UPDATE transcripts SET earliest_sequence = max(earliest_sequence, ?) WHERE id = ?', earliest, id),
        )
      } else await settled()
      for (const one of clients) {
        if (!one.ended) continue
        // Overtaken: the cursor says so, and whoever starts again from the oldest knows what it has missed.
        const { last } = one
        assert.ok(last < transcripts.need(id).earliest - 1)
        if (last > 0) assert.throws(() => one.open(last), { code: 'cursor-expired' })
        lost++
        one.sequences.length = 0
        one.open(0)
      }
    }
    for (const client of clients) client.drain()
    await settled()
    await settled()
    const head = transcripts.need(id).next - 1
    for (const client of clients.filter(({ ended }) => !ended)) {
      const [first] = client.sequences
      if (first !== undefined) assert.deepEqual(client.sequences, upTo(first, head))
    }
    t.diagnostic(`${head} entries, ${lost} overtaken`)
    streams.end()
    assert.ok(clients.every(({ ended }) => ended))
  })
}

test('who asked for the oldest and was given nothing yet is ended where retention takes that away', async (t) => {
  const { db, transcripts } = opened(t)
  const streams = new TranscriptStreams({ transcripts, encode: (frames) => Buffer.from(frames.join('')) })
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  await db.write((tx) => {
    for (let n = 0; n < 9; n++) transcripts.append(tx, id, SAID)
  })
  const client = new Client(streams, transcripts, id)
  // Within the write: nothing can be given to it before.
  await db.write((tx) => {
    client.open(0)
    tx.run('UPDATE transcripts SET earliest_sequence = 5 WHERE id = ?', id)
  })
  await settled()
  assert.deepEqual([client.ended, client.last], [true, 0])
  client.open(client.last)
  await settled()
  assert.deepEqual(client.sequences, upTo(5, 9))
})

test('cursors mean what those of events mean', async (t) => {
  const { db, transcripts } = opened(t)
  const streams = new TranscriptStreams({ transcripts, encode: (frames) => Buffer.from(frames.join('')) })
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  await db.write((tx) => {
    for (let n = 0; n < 10; n++) transcripts.append(tx, id, SAID)
    tx.run('UPDATE transcripts SET earliest_sequence = 5 WHERE id = ?', id)
  })
  const got = async (after: number | undefined) => {
    const client = new Client(streams, transcripts, id)
    client.open(after)
    await settled()
    client.cut()
    return client.sequences
  }
  assert.deepEqual(await got(0), upTo(5, 10))
  assert.deepEqual(await got(4), upTo(5, 10))
  assert.deepEqual(await got(9), [10])
  assert.deepEqual(await got(10), [])
  assert.deepEqual(await got(1_000), [])
  assert.deepEqual(await got(undefined), [])
  assert.throws(() => streams.follow(transcripts.need(id), 3), {
    code: 'cursor-expired',
    options: { oldest_seq: 5, head_seq: 10 },
  })
})

test('a client hears how deliveries end: at once, when it takes bytes again, and after a reconnect', async (t) => {
  const { db, transcripts } = opened(t)
  const streams = new TranscriptStreams({ transcripts, encode: (frames) => Buffer.from(frames.join('')) })
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  const client = new Client(streams, transcripts, id)
  client.open(undefined)
  await settled()
  const say = () =>
    db.write((tx) => transcripts.append(tx, id, { ...SAID, kind: 'outbound', deliveryStatus: 'pending' }).sequence)
  const settle = (sequence: number, status: 'delivered' | 'dead') =>
    db.write((tx) => transcripts.settle(tx, id, sequence, { status }))
  await settle(await say(), 'delivered')
  assert.deepEqual(client.deliveries, ['{"sequence":1,"status":"delivered"}'])
  client.takes = false
  await settle(await say(), 'dead')
  assert.equal(client.deliveries.length, 1)
  client.drain()
  await settled()
  assert.equal(client.deliveries[1], '{"sequence":2,"status":"dead"}')
  const third = await say()
  client.cut()
  await settle(third, 'delivered')
  client.open(third)
  await settled()
  assert.ok(client.deliveries.includes('{"sequence":3,"status":"delivered"}'))
  assert.deepEqual(client.sequences, [1, 2, 3])
  await db.write((tx) => transcripts.delete(tx, transcripts.need(id, tx)))
  assert.ok(client.ended)
})

test('who follows as a member is ended when the membership ends, and nobody else', async (t) => {
  const { db, transcripts, members, streams } = opened(t)
  const { id } = await db.write((tx) => transcripts.ensure(tx, ROOM))
  const join = (mailbox: Mailbox) => db.write((tx) => members.join(tx, id, mailbox, { owner: 'manual', actor: 'api' }))
  const leave = (mailbox: Mailbox) => db.write((tx) => members.leave(tx, id, mailbox, 'manual', 'api'))
  for (const mailbox of ['agent:mayor', 'agent:clerk'] as const) await join(mailbox)
  const ended: string[] = []
  const follow = (name: string, reader?: Mailbox) =>
    streams.follow(transcripts.need(id), undefined, reader).attach({ write: () => true, end: () => ended.push(name) })
  follow('mayor', 'agent:mayor')
  follow('mayor again', 'agent:mayor')
  const clerk = follow('clerk', 'agent:clerk')
  follow('api')
  await leave('agent:mayor')
  assert.deepEqual(ended, ['mayor', 'mayor again'])
  await db.write((tx) => {
    members.leave(tx, id, 'agent:clerk', 'manual', 'api')
    members.join(tx, id, 'agent:clerk', { owner: 'manual', actor: 'api' })
  })
  assert.equal(ended.length, 2, 'who joins again in the same moment reads on')
  clerk.detach()
  await leave('agent:clerk')
  streams.end()
  assert.deepEqual(ended, ['mayor', 'mayor again', 'api'])
})
