import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { readableText } from '../../../runtimes/terminal/readable.ts'
import {
  behindReplay,
  type Chapter,
  lineChapter,
  type TerminalSources,
  type Typed,
  terminalChapter,
} from './chapters.ts'
import { BLOCK_BYTES, type ByteLog, type Dialect } from './entries.ts'
import { Transcript } from './transcript.ts'

function logOf(text: string, dropped = 0): ByteLog {
  const all = Buffer.from(text)
  return {
    startOffset: () => Promise.resolve(dropped),
    endOffset: () => Promise.resolve(all.length),
    read: (offset, maxBytes) => {
      const from = Math.max(offset, dropped)
      return Promise.resolve({ offset: from, bytes: all.subarray(from, Math.max(from, offset + maxBytes)) })
    },
  }
}

/** `+text` goes on in the entry before it, `-` is nothing, everything else is an entry. */
const dialect: Dialect = (line) => {
  if (line.startsWith('-')) return undefined
  const message = {
    role: 'assistant',
    provider: 'test',
    status: 'final',
    blocks: [{ type: 'text', text: line }],
  } as const
  return { message: { ...message, blocks: [...message.blocks] }, ...(line.startsWith('+') ? { merge: 'run' } : {}) }
}
const noFloor = () => Promise.resolve(0)

async function backward(transcript: Transcript, size: number) {
  let page = await transcript.newest(size)
  const items = [...page.items]
  while (page.older && page.items[0] !== undefined) {
    page = await transcript.before(page.items[0].id, size)
    items.unshift(...page.items)
  }
  return items.map(({ id, entry }) => [id, entry.message.blocks])
}

async function forward(transcript: Transcript, size: number) {
  const items = []
  let place = { chapter: 1, offset: 0, sub: 0 }
  for (;;) {
    const page = await transcript.forward(place, size)
    items.push(...page.items)
    if (!page.newer || page.place === undefined) return items.map(({ id, entry }) => [id, entry.message.blocks])
    place = page.place
  }
}

test('a transcript reads the same from either end, in pages of any size, over blocks and chapters', async () => {
  const line = fc.oneof(
    fc.string({ minLength: 1, maxLength: 40 }).map((text) => `a${text.replaceAll('\n', '')}`),
    fc.string({ maxLength: 20 }).map((text) => `+${text.replaceAll('\n', '')}`),
    fc.constant('-'),
    fc.constant(`+${'x'.repeat(30_000)}`),
    fc.constant(`long${'y'.repeat(70_000)}`),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(line, { maxLength: 30 }), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 7 }),
      async (chapters, size) => {
        const transcript = new Transcript(
          chapters.map(
            (lines, at): Chapter =>
              lineChapter(at + 1, logOf(lines.map((one) => `${one}\n`).join('')), dialect, noFloor),
          ),
        )
        const whole = await forward(transcript, 1_000)
        assert.deepEqual(await forward(transcript, size), whole)
        assert.deepEqual(await backward(transcript, size), whole)
        for (const [index, entry] of whole.entries()) {
          const page = await transcript.after(String(entry[0]), 1)
          assert.equal(page.items[0]?.id, whole[index + 1]?.[0])
        }
      },
    ),
    { numRuns: 60 },
  )
})

test('half a line at the end is no entry until it is whole', async () => {
  const transcript = new Transcript([lineChapter(1, logOf('one\ntwo'), dialect, noFloor)])
  assert.equal((await transcript.newest(10)).items.length, 1)
})

test('an id that is in the middle of a line, or of nothing, is refused', async () => {
  const transcript = new Transcript([lineChapter(1, logOf('one\ntwo\n'), dialect, noFloor)])
  for (const id of ['1-2', '1-99', '2-0', 'x', '1-4.5.6'])
    await assert.rejects(transcript.before(id, 10), { code: 'transcript-cursor-invalidated' }, id)
})

test('a log whose beginning was dropped is read from what is left', async () => {
  const transcript = new Transcript([lineChapter(1, logOf('one\ntwo\nthree\n', 4), dialect, noFloor)])
  assert.deepEqual(
    (await transcript.newest(10)).items.map(({ id }) => id),
    ['1-4', '1-8'],
  )
})

test('what an agent repeats of an earlier conversation is not shown again', async () => {
  const log = logOf('begin\nold\nold\nend\nnew\n')
  const mark = (line: string) => (line === 'begin' ? 'begin' : line === 'end' ? 'end' : undefined)
  const floor = await behindReplay(log, mark)
  const transcript = new Transcript([lineChapter(1, log, dialect, () => Promise.resolve(floor))])
  const page = await transcript.newest(10)
  assert.deepEqual(
    page.items.flatMap(({ entry }) => entry.raw),
    ['new'],
  )
  assert.equal(page.older, false)
})

const FIRST = { seq: 1, id: 'd1', text: 'first', end_offset: 8, at: '2026-01-01T00:00:00.000Z' }
const SECOND = { seq: 2, id: 'd2', text: 'second', end_offset: 19, at: '2026-01-01T00:00:01.000Z' }
const THIRD = { seq: 3, id: 'd3', text: 'third', end_offset: 30, at: '2026-01-01T00:00:02.000Z' }
const OUTPUT = 'welcome\nanswer one\nanswer two\n'

const plainly = (bytes: Buffer) => Promise.resolve({ text: bytes.toString().trimEnd(), anew: false })
const terminal = (log: ByteLog, typed: readonly Typed[], render: TerminalSources['render'] = plainly) =>
  new Transcript([
    terminalChapter(1, {
      provider: 'shell',
      log,
      typed: ({ after, from, to }) => typed.filter(({ seq, end_offset: at }) => seq > after && at >= from && at <= to),
      lastTyped: (offset) => typed.findLast(({ end_offset: at }) => at < offset)?.seq ?? 0,
      render,
    }),
  ])
const texts = (page: { items: readonly { entry: { message: { blocks: readonly object[] } } }[] }) =>
  page.items.map(({ entry }) => entry.message.blocks.map((block) => ('text' in block ? block.text : '')).join())

test('messages typed into a terminal stand between the output before and after them', async () => {
  const transcript = terminal(logOf(OUTPUT), [FIRST, SECOND, THIRD])
  const all = ['welcome', 'first', 'answer one', 'second', 'answer two', 'third']
  const newest = await transcript.newest(10)
  assert.deepEqual(texts(newest), all)
  assert.deepEqual(texts(await transcript.forward({ chapter: 1, offset: 0, sub: 0 }, 10)), all)
  for (const [index, { id }] of newest.items.entries()) {
    assert.deepEqual(texts(await transcript.after(id, 10)), all.slice(index + 1), `after ${id}`)
    assert.deepEqual(texts(await transcript.before(id, 10)), all.slice(0, index), `before ${id}`)
  }
  const one = await transcript.forward({ chapter: 1, offset: 0, sub: 0 }, 1)
  assert.deepEqual(texts(await transcript.forward(one.place ?? assert.fail(), 10)), all.slice(1))
  const end = await transcript.forward({ chapter: 1, offset: 0, sub: 0 }, 10)
  assert.deepEqual(texts(await transcript.forward(end.place ?? assert.fail(), 10)), [])
})

test('a message that is recorded when the output behind it was read is shown once, and nothing else twice', async () => {
  const typed: Typed[] = []
  const transcript = terminal(logOf(OUTPUT), typed)
  const said: string[] = []
  let place = (await transcript.newest(10)).place ?? assert.fail()
  for (const message of [FIRST, SECOND, THIRD]) {
    typed.push(message)
    for (let look = 0; look < 3; look++) {
      const page = await transcript.forward(place, 10)
      said.push(...texts(page))
      place = page.place ?? assert.fail()
    }
  }
  assert.deepEqual(said, ['first', 'second', 'third'])
})

const PROMPT = '\u001b[?2004h$ '
const COMMAND = 'for i in 1 2; do echo $i; done'
/** As bash draws what is pasted: bright at first, and once more when Enter comes. */
const DRAWN = `\u001b[7m${COMMAND}\u001b[27m\r\u001b[C\u001b[C${COMMAND}\r\n\u001b[?2004l\r1\r\n2\r\n${PROMPT}`

test('a command that a shell draws twice as it is pasted stands once', async () => {
  const [first, second] = [PROMPT.length, PROMPT.length + DRAWN.length].map((end_offset, index) => ({
    ...FIRST,
    seq: index + 1,
    end_offset,
  }))
  const typed = [first ?? assert.fail(), second ?? assert.fail()]
  const transcript = terminal(logOf(`${PROMPT}${DRAWN}${DRAWN}`), typed, readableText)
  const shown = `${COMMAND}\n1\n2\n$ `
  assert.deepEqual(texts(await transcript.newest(10)), ['$ ', 'first', shown, 'first', shown])
})

test('raw output is every byte by its offset, whatever of it can be seen, and no letter is cut', async () => {
  const letters = 'é'.repeat(BLOCK_BYTES)
  const bytes = `x${letters}\u001b[K\u001b[K`
  const typed = [{ ...FIRST, end_offset: Buffer.byteLength(bytes) - 3 }]
  const transcript = terminal(logOf(bytes), typed, readableText)
  const newest = await transcript.newest(10)
  const earlier = await transcript.before(newest.items[0]?.id ?? '', 10)
  assert.deepEqual([newest.older, earlier.older], [true, false], 'no more is drawn than a page')
  const items = [...earlier.items, ...newest.items]
  const raw = items.flatMap(({ entry }) => (entry.message.role === 'user' ? [] : entry.raw))
  assert.equal(raw.length, 4)
  assert.equal(raw.join(''), bytes)
  assert.equal(texts({ items }).join('').replace('first', ''), `x${letters}`)
})

test('a line that no window holds is passed over in either direction, and what is around it is read', async () => {
  const huge = 'h'.repeat(40 * 1024 * 1024)
  const transcript = new Transcript([lineChapter(1, logOf(`one\ntwo\n${huge}\nthree\nfour\n`), dialect, noFloor)])
  const texts = (page: Awaited<ReturnType<typeof transcript.newest>>) =>
    page.items.map(({ entry }) => (entry.message.blocks[0]?.type === 'text' ? entry.message.blocks[0].text : ''))
  const newest = await transcript.newest(2)
  assert.deepEqual([texts(newest), newest.older], [['three', 'four'], true])
  const before = await transcript.before(newest.items[0]?.id ?? '', 10)
  assert.deepEqual([texts(before), before.older], [['one', 'two'], false])
  const after = await transcript.after(before.items[1]?.id ?? '', 10)
  assert.deepEqual([texts(after), after.newer], [['three', 'four'], false])
})

test('a line of that length that has not ended hides nothing before it, and what comes behind it is read', async () => {
  const begun = `one\n${'h'.repeat(40 * 1024 * 1024)}`
  const newest = await new Transcript([lineChapter(1, logOf(begun), dialect, noFloor)]).newest(10)
  assert.deepEqual([newest.items.length, newest.place], [1, { chapter: 1, offset: 4, sub: 0 }])
  const ended = new Transcript([lineChapter(1, logOf(`${begun}\ntwo\n`), dialect, noFloor)])
  const page = await ended.forward({ chapter: 1, offset: 4, sub: 0 }, 10)
  assert.deepEqual([page.items.map(({ entry }) => entry.raw), page.newer], [[['two']], false])
})

test('lines that nobody can read are counted where they stand', async () => {
  const json = (line: string) => (line.startsWith('{') ? dialect(line, 0) : undefined)
  const text = '{"a":1}\ncut off {"b\n\n{"b":2}\n{"c":3}\nmore nonsense\n{"d":4}\n'
  const transcript = new Transcript([lineChapter(1, logOf(text), json, noFloor)])
  const newest = await transcript.newest(2)
  assert.deepEqual([newest.items.length, newest.unreadable], [2, 1])
  const older = await transcript.before(newest.items[0]?.id ?? '', 10)
  assert.deepEqual([older.items.length, older.unreadable], [2, 1])
  const all = await transcript.forward({ chapter: 1, offset: 0, sub: 0 }, 100)
  assert.deepEqual([all.items.length, all.unreadable], [4, 2])
})
