// Entries that grow while they are followed: what a client joins is what a page shows.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { readableText } from '../../../runtimes/terminal/readable.ts'
import { lineChapter, type Typed, terminalChapter } from './chapters.ts'
import type { ByteLog, Dialect } from './entries.ts'
import { Follower, type FrameInput, SessionTail } from './stream.ts'
import { formatPlace, Transcript } from './transcript.ts'
import { turnsOf } from './views.ts'

/** How many texts are being made. */
let rendering = 0
async function rendered(bytes: Buffer, before: Buffer) {
  rendering += 1
  return readableText(bytes, before).finally(() => {
    rendering -= 1
  })
}

/** A log that grows. */
function growingLog() {
  let all = Buffer.alloc(0)
  const log: ByteLog = {
    startOffset: () => Promise.resolve(0),
    endOffset: () => Promise.resolve(all.length),
    read: (offset, maxBytes) => Promise.resolve({ offset, bytes: all.subarray(offset, offset + maxBytes) }),
  }
  return {
    log,
    grow(bytes: Buffer) {
      all = Buffer.concat([all, bytes])
      return all.length
    },
  }
}

/** Follows a transcript; each look reads what has come since the one before. */
function following(transcript: Transcript) {
  const turns: { id: string; role: string; text: string }[] = []
  let wake = () => {}
  const tail = new SessionTail(
    {
      id: 's',
      polled: false,
      held: () => false,
      transcript: () => Promise.resolve(transcript),
      state: () => ({ state: 'active', reason: undefined, running: true, activity: undefined, pending: undefined }),
      listen: (look) => {
        wake = look
        return () => {}
      },
    },
    { clock: systemClock, encode: (frames) => Buffer.from(frames.join('\n')) },
  )
  const frame = ({ items }: FrameInput) =>
    items
      .flatMap((item) => turnsOf(item, true))
      .map((turn) => JSON.stringify(turn))
      .join('\n')
  const sink = {
    write(bytes: Buffer) {
      for (const line of bytes.toString().split('\n').filter(Boolean)) turns.push(JSON.parse(line))
      return true
    },
    end() {},
  }
  const options = {
    format: { key: 'test', upsert: false, shows: () => true, frame, id: formatPlace },
    after: undefined,
    lost: undefined,
    question: undefined,
    onEnd: () => {},
  }
  const follower = new Follower(tail, options, sink)
  return {
    turns,
    /** Until everything that is there was read. */
    async look() {
      wake()
      for (let turn = 0; turn < 20; turn = rendering > 0 ? 0 : turn + 1)
        await new Promise((resolve) => setImmediate(resolve))
    },
    stop: () => follower.stop(),
  }
}

/** Pieces of one id are one text. */
function joined(turns: readonly { id: string; role: string; text: string }[]) {
  const entries = new Map<string, { id: string; role: string; text: string }>()
  for (const { id, role, text } of turns) entries.set(id, { id, role, text: `${entries.get(id)?.text ?? ''}${text}` })
  return [...entries.values()]
}

async function shownByPage(transcript: Transcript) {
  const page = await transcript.newest(100)
  return page.items.flatMap((item) => turnsOf(item, true)).map(({ id, role, text }) => ({ id, role, text }))
}

const dialect: Dialect = (line) => {
  const [kind = '', text = ''] = line.split(':')
  if (kind === '') return undefined
  const base = { role: 'assistant', provider: 'test', status: 'final' } as const
  if (kind === 'think') return { merge: 'think', message: { ...base, blocks: [{ type: 'thinking', thinking: text }] } }
  return { ...(kind === 'say' ? { merge: 'say' } : {}), message: { ...base, blocks: [{ type: 'text', text }] } }
}

test('chunks that come one by one are the entries of the page, under the same ids', async () => {
  const line = fc.oneof(
    fc.constant(':unsaid\n'),
    fc.string({ unit: fc.constantFrom('a', 'b', ' ') }).map((text) => `say:s${text}\n`),
    fc.string({ unit: fc.constantFrom('a', 'b', ' ') }).map((text) => `think:t${text}\n`),
    fc.constant('tool:x\n'),
  )
  const steps = fc.array(fc.array(line, { minLength: 1, maxLength: 5 }), { maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(steps, async (groups) => {
      const { log, grow } = growingLog()
      const transcript = new Transcript([lineChapter(1, log, dialect, () => Promise.resolve(0))])
      const client = following(transcript)
      for (const group of groups) {
        grow(Buffer.from(group.join('')))
        await client.look()
      }
      assert.deepEqual(joined(client.turns).map(plain), (await shownByPage(transcript)).map(plain))
      client.stop()
    }),
    { numRuns: 50 },
  )
})

const plain = ({ id, role, text }: { id: string; role: string; text: string }) => ({ id, role, text })

test('output of a terminal that is cut anywhere joins to what the page shows, around what was typed', async () => {
  const part = fc.oneof(
    fc.constantFrom('line\r\n', '$ ', 'café ', '\u001b[31mred\u001b[0m ', '\r\n', ' ', '\u001b]0;title\u0007x'),
    fc.constant('typed'),
  )
  const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 })
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 20 }), cuts, async (parts, sizes) => {
      const { log, grow } = growingLog()
      const typed: Typed[] = []
      const transcript = new Transcript([
        terminalChapter(1, {
          provider: 'shell',
          log,
          typed: ({ after, from, to }) =>
            typed.filter(({ seq, end_offset: at }) => seq > after && at >= from && at <= to),
          lastTyped: (offset) => typed.findLast(({ end_offset: at }) => at < offset)?.seq ?? 0,
          render: rendered,
        }),
      ])
      const client = following(transcript)
      let end = 0
      let turn = 0
      for (const text of parts) {
        if (text === 'typed') {
          const seq = typed.length + 1
          typed.push({ seq, id: `d${seq}`, text: `message ${seq}`, end_offset: end, at: '2026-01-01T00:00:00.000Z' })
          await client.look()
          continue
        }
        for (let bytes = Buffer.from(text); bytes.length > 0; turn++) {
          const size = sizes[turn % sizes.length] ?? 1
          end = grow(bytes.subarray(0, size))
          bytes = bytes.subarray(size)
          await client.look()
        }
      }
      assert.equal(new Set(client.turns.map(({ id }) => id)).size, client.turns.length, 'a piece has its own name')
      assert.deepEqual(flowing(client.turns), flowing(await shownByPage(transcript)))
      client.stop()
    }),
    { numRuns: 60 },
  )
})

/** Pieces of output behind each other are one text; blanks before the cursor are shown while it is there. */
function flowing(turns: readonly { role: string; text: string }[]) {
  const texts: { role: string; text: string }[] = []
  for (const { role, text } of turns) {
    const last = texts.at(-1)
    if (last?.role === 'output' && role === 'output') last.text += text
    else texts.push({ role, text })
  }
  return texts
    .map(({ role, text }) => ({ role, text: text.trim().replaceAll(/ +\n/g, '\n') }))
    .filter(({ text }) => text !== '')
}
