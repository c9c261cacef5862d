/** Pages as callers ask for them: `limit` counts what is shown, not what the log has besides (decision 235). */
import { present } from '../../../kernel/present.ts'
import { invalidField } from '../../../kernel/problem.ts'
import type { Item, Page, Transcript } from './transcript.ts'

const DEFAULT_LIMIT = 100
/** Entries that are looked at in one go where few of them are shown. */
const LOOK = 200
/** Then it is enough: a log of nothing but what is hidden is paged through like any other. */
const MAX_LOOKS = 50

export interface PageQuery {
  readonly limit?: number
  readonly before?: string
  readonly after?: string
}

type Pages = Pick<Transcript, 'newest' | 'before' | 'after' | 'room'>

export async function readPage(
  transcript: Pages,
  { limit = DEFAULT_LIMIT, before, after }: PageQuery,
  isShown: (item: Item) => boolean,
): Promise<Page> {
  if (before !== undefined && after !== undefined)
    throw invalidField('query.after', 'is one of two: `before` or `after`', after)
  const size = limit === 0 ? DEFAULT_LIMIT : limit
  if (after !== undefined) return forward(transcript, after, size, isShown)
  const first = before === undefined ? await transcript.newest(size) : await transcript.before(before, size)
  return backward(transcript, first, size, isShown)
}

const hasRoom = ({ room }: Pages, items: readonly Item[]): boolean =>
  items.reduce((sum, { text, entry }) => (text ? sum + entry.end - entry.offset : sum), 0) < room

async function backward(transcript: Pages, first: Page, size: number, isShown: (item: Item) => boolean): Promise<Page> {
  let [page, looked] = [first, first]
  let items = first.items.filter(isShown)
  for (let looks = 0; items.length < size && hasRoom(transcript, items) && looked.older && looks < MAX_LOOKS; looks++) {
    const oldest = looked.items[0]
    if (oldest === undefined) break
    looked = await transcript.before(oldest.id, LOOK)
    items = [...looked.items.filter(isShown), ...items]
    const { older, lostRuns } = looked
    page = { ...page, older, unreadable: page.unreadable + looked.unreadable, ...present({ lostRuns }) }
  }
  // More were found than were asked for: those are older ones.
  const older = page.older || items.length > size
  return { ...page, items: items.slice(-size), older }
}

async function forward(
  transcript: Pages,
  after: string,
  size: number,
  isShown: (item: Item) => boolean,
): Promise<Page> {
  let page = await transcript.after(after, size)
  let items = page.items.filter(isShown)
  for (let looks = 0; items.length < size && hasRoom(transcript, items) && page.newer && looks < MAX_LOOKS; looks++) {
    const newest = page.items.at(-1)
    if (newest === undefined) break
    const more = await transcript.after(newest.id, LOOK)
    items = [...items, ...more.items.filter(isShown)]
    page = { ...more, unreadable: page.unreadable + more.unreadable }
  }
  return { ...page, items: items.slice(0, size), newer: page.newer || items.length > size }
}
