/**
 * Pages of lists, by keyset: a cursor holds the key of the last item of a page, and the next page begins behind it.
 *
 * P1  A page ends at its limit, and before its items have more than 8 MiB of JSON; one item stands on it in any case.
 * P2  There is a `next_cursor` where something was found behind the last item: a list asks for one more than the limit.
 * P3  A cursor belongs to its kind: the list with its filters in its order. Another one is refused.
 */
import { DEFAULT_LIMIT } from '../contract/base/paging.ts'
import { cut } from '../contract/base/text.ts'
import { problem } from './problem.ts'

export const PAGE_BYTES = 8 * 1024 * 1024

interface PartTypes {
  readonly string: string
  readonly number: number
}
type PartName = keyof PartTypes
type KeyOf<Parts extends readonly PartName[]> = { readonly [At in keyof Parts]: PartTypes[Parts[At]] }

/** `limit` absent or 0: the default. */
export interface PageWanted {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

interface NextPage {
  readonly next_cursor?: string
}

export interface Paged<Item> extends NextPage {
  readonly items: Item[]
}

export class Page<const Parts extends readonly PartName[]> {
  readonly limit: number
  /** Key of the last item of the page before. */
  readonly after: KeyOf<Parts> | undefined
  readonly #kind: string

  /** `parts`: what the key of an item is made of. Throws 400 `invalid_cursor:` for a cursor of another list. */
  constructor(kind: string, parts: Parts, { limit, cursor }: PageWanted) {
    this.#kind = kind
    this.limit = limit || DEFAULT_LIMIT
    this.after = cursor === undefined ? undefined : parseToken(kind, parts, cursor)
  }

  /** How many a list looks for. */
  get ask(): number {
    return this.limit + 1
  }

  /** What of `found` stands on the page, as it is shown; nothing is taken from `found` that is not looked at. */
  of<Row>(found: Iterable<Row>, keyOf: (row: Row) => KeyOf<Parts>): Paged<Row>
  of<Row, Item>(found: Iterable<Row>, keyOf: (row: Row) => KeyOf<Parts>, wire: (row: Row) => Item): Paged<Item>
  of<Row>(
    found: Iterable<Row>,
    keyOf: (row: Row) => KeyOf<Parts>,
    wire: (row: Row) => unknown = (row) => row,
  ): Paged<unknown> {
    const { items, last, isAll } = fill(found, wire, this.limit)
    return isAll || last === undefined ? { items } : { items, ...this.behind(keyOf(last.row)) }
  }

  /** For a list that knows where it ended, though it may have found nothing there. */
  behind(key: KeyOf<Parts> | undefined): NextPage {
    if (key === undefined) return {}
    const text = JSON.stringify([this.#kind, ...key])
    return { next_cursor: `v1:${Buffer.from(text).toString('base64url')}` }
  }
}

/** The first rows that fit into an answer, as they are shown; one in any case. */
export function fill<Row, Item>(found: Iterable<Row>, wire: (row: Row) => Item, limit = Number.POSITIVE_INFINITY) {
  const items: Item[] = []
  let last: { readonly row: Row } | undefined
  // The brackets, less the comma that the first item goes without.
  let bytes = 1
  for (const row of found) {
    if (items.length >= limit) return { items, last, isAll: false }
    const item = wire(row)
    bytes += jsonBytes(item) + 1
    if (bytes > PAGE_BYTES && items.length > 0) return { items, last, isAll: false }
    items.push(item)
    last = { row }
  }
  return { items, last, isAll: true }
}

const jsonBytes = (item: unknown): number => Buffer.byteLength(JSON.stringify(item))

function parseToken<Parts extends readonly PartName[]>(kind: string, parts: Parts, token: string): KeyOf<Parts> {
  const [of, ...key] = decoded(token)
  if (of === kind && isKey(parts, key)) return key
  throw otherList(token)
}

/** What a cursor of another list is refused with. */
export const otherList = (token: string) =>
  problem('invalid-cursor', `cursor not a page of this list: "${cut(token, 80)}"`, {
    errors: [
      {
        location: 'query.cursor',
        message: 'is no page of this list with these filters in this order',
        value: cut(token, 80),
      },
    ],
  })

function decoded(token: string): readonly unknown[] {
  if (!/^v1:[A-Za-z0-9_-]{1,4096}$/.test(token)) return []
  try {
    const key: unknown = JSON.parse(Buffer.from(token.slice(3), 'base64url').toString('utf8'))
    return Array.isArray(key) ? key : []
  } catch {
    return []
  }
}

const isKey = <Parts extends readonly PartName[]>(
  parts: Parts,
  key: readonly unknown[],
): key is KeyOf<Parts> & readonly unknown[] =>
  key.length === parts.length && key.every((part, at) => typeof part === parts[at] && isExact(part))

const isExact = (part: unknown): boolean => typeof part === 'string' || Number.isSafeInteger(part)
