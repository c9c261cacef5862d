/** Lists that come in pages, as one. */
import type { Reply } from '../client/client.ts'

interface Page<T> {
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
  return { items, json: JSON.stringify({ ...envelope, items }), more: next !== undefined }
}
