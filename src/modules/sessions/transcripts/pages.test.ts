import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readPage } from './pages.ts'
import type { Item, Page } from './transcript.ts'

const item = (n: number): Item => ({
  id: `1-${n}`,
  text: false,
  entry: {
    offset: n,
    end: n + 1,
    message: { role: 'assistant', provider: 'claude', status: 'final', blocks: [] },
    raw: [n],
  },
})

/** A log of so many entries, read in pages as it is. */
function logOf(count: number) {
  const all = Array.from({ length: count }, (_, n) => item(n))
  const page = (from: number, to: number): Page => ({
    items: all.slice(Math.max(from, 0), to),
    older: from > 0,
    newer: to < count,
    place: undefined,
    unreadable: 0,
  })
  const at = (id: string) => Number(id.split('-')[1])
  return {
    room: 1,
    newest: async (limit: number) => page(count - limit, count),
    before: async (id: string, limit: number) => page(at(id) - limit, at(id)),
    after: async (id: string, limit: number) => page(at(id) + 1, at(id) + 1 + limit),
  }
}
const numbersOf = ({ items }: Page) => items.map(({ entry }) => entry.offset)

test('the last thing that was said is the page of one, however much that is not shown comes behind it', async () => {
  const shown = (one: Item) => one.entry.offset % 1_000 === 0
  const log = logOf(3_500)
  const last = await readPage(log, { limit: 1 }, shown)
  assert.deepEqual([numbersOf(last), last.older], [[3_000], true])
  const before = await readPage(log, { limit: 2, before: '1-3000' }, shown)
  assert.deepEqual([numbersOf(before), before.older, before.newer], [[1_000, 2_000], true, true])
  const first = await readPage(log, { limit: 5, before: '1-1000' }, shown)
  assert.deepEqual([numbersOf(first), first.older], [[0], false])
  const after = await readPage(log, { limit: 2, after: '1-0' }, shown)
  assert.deepEqual([numbersOf(after), after.newer], [[1_000, 2_000], true])
})

test('a page where all is shown is the page of the log, and both ends are refused together', async () => {
  const log = logOf(10)
  assert.deepEqual(numbersOf(await readPage(log, { limit: 3 }, () => true)), [7, 8, 9])
  assert.deepEqual(numbersOf(await readPage(log, { limit: 3, after: '1-2' }, () => true)), [3, 4, 5])
  assert.deepEqual(numbersOf(await readPage(log, {}, () => false)), [])
  await assert.rejects(
    readPage(log, { before: '1-1', after: '1-2' }, () => true),
    { code: 'validation-failed' },
  )
})

test('a page of a terminal ends where its room does, from either side, and says that there is more', async () => {
  const BLOCK = 64 * 1024
  const sized = (from: string | undefined, looks: readonly Page[]) => {
    const rest = [...looks]
    const next = () => Promise.resolve(rest.shift() ?? assert.fail(`one look too many from ${from}`))
    return { room: 1024 * 1024, newest: next, before: next, after: next }
  }
  const blocks = (count: number): Page => ({
    items: Array.from({ length: count }, (_, n) => {
      const { entry } = item(n * BLOCK)
      return { id: `1-${n * BLOCK}`, text: true, entry: { ...entry, end: (n + 1) * BLOCK } }
    }),
    older: true,
    newer: true,
    place: undefined,
    unreadable: 0,
  })
  const newest = await readPage(sized('the end', [blocks(2), blocks(14)]), {}, () => true)
  assert.deepEqual([newest.items.length, newest.older], [16, true])
  const after = await readPage(sized('an id', [blocks(15), blocks(1)]), { after: '1-0' }, () => true)
  assert.deepEqual([after.items.length, after.newer], [16, true])
})
