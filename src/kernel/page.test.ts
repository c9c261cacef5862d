import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import { PAGE_BYTES, Page } from './page.ts'
import { Problem } from './problem.ts'

const isInvalid = { code: 'invalid-cursor', status: 400 }
const forged = (value: unknown) => `v1:${Buffer.from(JSON.stringify(value)).toString('base64url')}`

interface Item {
  readonly at: number
  readonly id: string
  readonly text: string
}

/** A list of items in the order of their keys, read as one of a store is. */
function listed(all: readonly Item[], limit: number, cursor: string | undefined) {
  const page = new Page('items', ['number', 'string'], { limit, cursor })
  const [at, id] = page.after ?? [-1, '']
  const behind = all.filter((item) => item.at > at || (item.at === at && item.id > id))
  return page.of(
    behind.slice(0, page.ask),
    (item) => [item.at, item.id],
    (item) => ({ text: item.text, id: item.id }),
  )
}

function walk(all: readonly Item[], limit: number) {
  const pages: { readonly id: string; readonly text: string }[][] = []
  let cursor: string | undefined
  do {
    assert.ok(pages.length <= all.length, 'it does not end')
    const { items, next_cursor } = listed(all, limit, cursor)
    pages.push(items)
    cursor = next_cursor
  } while (cursor !== undefined)
  return pages
}

const MIB = 1024 * 1024
const text = fc.oneof(
  { weight: 3, arbitrary: fc.string({ maxLength: 20 }) },
  // Of three bytes each, of six in JSON, and of one.
  fc
    .tuple(fc.constantFrom('€', '\u0001', 'x'), fc.integer({ min: MIB / 2, max: 3 * MIB }))
    .map(([one, times]) => one.repeat(times)),
)

test('pages of any limit and any sizes give the whole list once, in order, and none is above 8 MiB', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ at: fc.nat(3), text }), { maxLength: 12 }),
      fc.integer({ min: 1, max: 14 }),
      (drafts, limit) => {
        const all = drafts
          .map((draft, index) => ({ ...draft, id: String(index).padStart(3, '0') }))
          .toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
        const pages = walk(all, limit)
        assert.deepEqual(
          pages.flat().map(({ id }) => id),
          all.map(({ id }) => id),
        )
        for (const page of pages) {
          assert.ok(page.length <= limit)
          assert.ok(page.length > 0 || all.length === 0)
          assert.ok(page.length === 1 || Buffer.byteLength(JSON.stringify(page)) <= PAGE_BYTES)
        }
      },
    ),
    { numRuns: 25 },
  )
})

test('a page takes all that fits: the next item would be above 8 MiB, or above the limit', () => {
  const all = ['a', 'b', 'c', 'd'].map((id, at) => ({ at, id, text: 'x'.repeat(3 * MIB) }))
  assert.deepEqual(
    walk(all, 100).map((page) => page.length),
    [2, 2],
  )
  const small = all.map((item) => ({ ...item, text: '' }))
  assert.deepEqual(
    walk(small, 3).map((page) => page.length),
    [3, 1],
  )
  assert.deepEqual(
    walk(small, 4).map((page) => page.length),
    [4],
  )
})

test('a page looks at no more than it needs', () => {
  let looked = 0
  function* endless() {
    for (;;) yield ++looked
  }
  const page = new Page('numbers', ['number'], { limit: 10 })
  const { items, next_cursor } = page.of(
    endless(),
    (n) => [n],
    (n) => n,
  )
  assert.deepEqual([items.length, looked], [10, 11])
  assert.deepEqual(new Page('numbers', ['number'], { cursor: next_cursor }).after, [10])
})

test('a limit of 0 or none is the default', () => {
  for (const limit of [0, undefined]) assert.equal(new Page('items', [], { limit }).limit, 100)
})

test('a cursor reads back as its key, in its own list only', () => {
  fc.assert(
    fc.property(fc.string({ unit: codePoint }), fc.maxSafeInteger(), (string, number) => {
      const key = [string.toWellFormed(), number === 0 ? 0 : number] as const
      const parts = ['string', 'number'] as const
      const { next_cursor: cursor } = new Page('seq', parts, {}).behind(key)
      assert.match(cursor ?? '', /^v1:[A-Za-z0-9_-]+$/)
      assert.deepEqual(new Page('seq', parts, { cursor }).after, key)
      for (const other of [['number', 'string'], ['string'], ['string', 'number', 'string'], []] as const)
        assert.throws(() => new Page('seq', other, { cursor }), isInvalid)
      assert.throws(() => new Page('city', parts, { cursor }), isInvalid)
    }),
  )
})

test('a cursor that was given out before stays good', () => {
  const cursor = 'v1:WyJyZXF1ZXN0IiwxNzAwMDAwMDAwMDAwLCJyZXEtMSJd'
  assert.deepEqual(new Page('request', ['number', 'string'], { cursor }).after, [1_700_000_000_000, 'req-1'])
})

test('no other text is a cursor', () => {
  const read = (cursor: string) => () => new Page('seq', ['number'], { cursor })
  for (const token of [
    '',
    'v1:',
    'v2:WyJzZXEiLDFd',
    'v1:!!!',
    forged({ seq: 1 }),
    forged(['seq', 1.5]),
    forged(['seq', null]),
    forged(['seq', [1]]),
    forged(['seq', 1e300]),
    forged('seq'),
    `v1:${'A'.repeat(5_000)}`,
  ]) {
    assert.throws(read(token), isInvalid, token)
  }
  fc.assert(fc.property(fc.string(), (token) => assert.throws(read(token), isInvalid)))
})

test('a cursor of another list is refused where it was sent', () => {
  const { next_cursor: cursor } = new Page('city', ['string'], {}).behind(['alpha'])
  try {
    new Page('seq', ['number'], { cursor })
    assert.fail('it was taken')
  } catch (error) {
    assert.ok(error instanceof Problem)
    assert.equal(error.options.errors?.[0]?.location, 'query.cursor')
  }
})
