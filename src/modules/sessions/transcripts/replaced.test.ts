// Logs that somebody replaces while they are followed: a client holds one story, never the old one with the end of the new.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../kernel/clock.ts'
import { lineChapter } from './chapters.ts'
import type { ByteLog, Dialect } from './entries.ts'
import { Follower, type FrameInput, SessionTail } from './stream.ts'
import { formatPlace, Transcript } from './transcript.ts'

const OLD = ['the old story', 'goes on']
/** A line begins where the old one ends. */
const NEW = ['another story', 'as long', 'and longer']

/** A name that means another file after `looks` looks at it. */
function namedLog() {
  let text = OLD.map((line) => `${line}\n`).join('')
  let source = 'file 1'
  let looks = Number.POSITIVE_INFINITY
  const look = () => {
    if (--looks !== 0) return
    text = NEW.map((line) => `${line}\n`).join('')
    source = 'file 2'
  }
  const log: ByteLog = {
    startOffset: () => Promise.resolve(0),
    endOffset: async () => {
      look()
      return text.length
    },
    read: async (offset, maxBytes) => {
      look()
      return { offset, bytes: Buffer.from(text).subarray(offset, offset + maxBytes) }
    },
  }
  return {
    transcript: async () => {
      look()
      return new Transcript([lineChapter(1, log, dialect, () => Promise.resolve(0))], { source })
    },
    replaceAfter(count: number) {
      looks = count
    },
    get replaced() {
      return source === 'file 2'
    },
  }
}

const dialect: Dialect = (text) => ({
  message: { role: 'assistant', provider: 'test', status: 'final', blocks: [{ type: 'text', text }] },
})

/** A client; `seen` is what it held after each frame. */
function following(transcript: () => Promise<Transcript>) {
  const seen: string[][] = []
  let wake = () => {}
  const tail = new SessionTail(
    {
      id: 's',
      polled: false,
      held: () => false,
      transcript,
      state: () => ({ state: 'active', reason: undefined, running: true, activity: undefined, pending: undefined }),
      listen: (look) => {
        wake = look
        return () => {}
      },
    },
    { clock: systemClock, encode: (frames) => Buffer.from(frames.join('')) },
  )
  const sink = {
    write(bytes: Buffer) {
      const { anew, texts }: { anew: boolean; texts: string[] } = JSON.parse(bytes.toString())
      seen.push(anew ? texts : [...(seen.at(-1) ?? []), ...texts])
      return true
    },
    end() {},
  }
  const frame = ({ items, snapshot }: FrameInput) =>
    JSON.stringify({
      anew: snapshot !== undefined,
      texts: items.map(({ entry }) => entry.raw.map((raw) => textOf(raw)).join('')),
    })
  const format = { key: 'test', upsert: false, shows: () => true, frame, id: formatPlace }
  const follower = new Follower(
    tail,
    { format, after: undefined, lost: undefined, question: undefined, onEnd: () => {} },
    sink,
  )
  return {
    seen,
    /** Until everything that is there was read. */
    async look() {
      wake()
      for (let turn = 0; turn < 30; turn++) await new Promise((resolve) => setImmediate(resolve))
    },
    stop: () => follower.stop(),
  }
}

const textOf = (raw: unknown): string => (typeof raw === 'string' ? raw : JSON.stringify(raw))

for (let looks = 1; looks <= 30; looks++) {
  test(`a log that is replaced at look ${looks} is told anew, and never mixed with the one before`, async () => {
    const named = namedLog()
    const client = following(named.transcript)
    await client.look()
    named.replaceAfter(looks)
    for (let turn = 0; turn < 40 && !named.replaced; turn++) await client.look()
    assert.ok(named.replaced)
    await client.look()
    assert.deepEqual(client.seen.at(-1), NEW)
    for (const held of client.seen) assert.ok(isOneStory(held), JSON.stringify(client.seen))
    client.stop()
  })
}

const isOneStory = (held: readonly string[]): boolean =>
  [OLD, NEW].some((story) => held.every((line, at) => line === story[at]))
