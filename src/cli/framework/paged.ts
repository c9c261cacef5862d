/** Lists that come in pages, as one. */
import type { Reply } from '../../client/client.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import { usageError } from '../base/failure.ts'

export interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor?: string
}

export interface WholeList<T> {
  readonly items: readonly T[]
  /** The body as sent where one page was all; else the first body with every item in it. */
  readonly json: string
  /** There are more than `most`. */
  readonly more: boolean
}

const DEFAULT_MOST = 100
const LARGEST_PAGE = 1000

const limitFlag: FlagSpec = { flags: '--limit <n>', description: 'At most so many (default: 100).' }
export const pageFlags: readonly FlagSpec[] = [
  limitFlag,
  { flags: '--paginate', description: 'All there are, page by page.' },
]

/** How many items the flags ask for. */
export function mostOf(input: Input): number {
  const text = input.text('limit')
  if (text === undefined) return input.on('paginate') ? Number.POSITIVE_INFINITY : DEFAULT_MOST
  if (input.on('paginate')) throw usageError('--limit and --paginate are mutually exclusive')
  if (!/^[1-9]\d{0,8}$/.test(text)) throw usageError(`invalid --limit "${text}": expected a number above 0`)
  return Number(text)
}

/** How large to ask for pages where `most` items are wanted. */
export const pageSize = (most: number): number => Math.min(most, LARGEST_PAGE)

/** Walks the pages until the end, or until there are `most` items. */
export async function listAll<T>(
  fetchPage: (cursor: string | undefined) => Promise<Reply<Page<T>>>,
  most = Number.POSITIVE_INFINITY,
): Promise<WholeList<T>> {
  const first = await fetchPage(undefined)
  const items = [...first.body.items]
  let next = first.body.next_cursor
  if (next === undefined || items.length >= most) return { items, json: first.text, more: next !== undefined }
  while (next !== undefined && items.length < most) {
    const { body } = await fetchPage(next)
    items.push(...body.items)
    next = body.next_cursor
  }
  const { next_cursor: _, ...envelope } = first.body
  const wanted = items.slice(0, most)
  const more = next !== undefined || items.length > wanted.length
  return { items: wanted, json: JSON.stringify({ ...envelope, items: wanted }), more }
}
