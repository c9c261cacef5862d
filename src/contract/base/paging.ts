/** Lists: keyset pages, the list envelope and blocking reads (sheet 01 §1.6, §1.7; decisions 5, 6). */
import Type, { type TSchema } from 'typebox'
import { durationSchema } from './names.ts'

export const DEFAULT_LIMIT = 100
export const MAX_LIMIT = 1000
/** `total` of a filtered event list is exact up to here. */
export const MAX_EXACT_TOTAL = 10_000
export const DEFAULT_WAIT_MS = 30_000
export const MAX_WAIT_MS = 120_000

export const PageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_LIMIT,
      description: 'Items on a page; 0 or absent: 100.',
      default: DEFAULT_LIMIT,
    }),
  ),
  cursor: Type.Optional(Type.String({ description: '`next_cursor` of the page before; with the same filters.' })),
}

export const LIST_ORDERS = ['asc', 'desc'] as const
export type ListOrder = (typeof LIST_ORDERS)[number]
export const OrderQuery = {
  order: Type.Optional(Type.Enum(LIST_ORDERS, { description: 'Which end to start from.' })),
}

export const BlockingQuery = {
  index: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Wait until something that matters here has a greater event sequence; the `X-SVC-Index` of the last read.',
    }),
  ),
  wait: Type.Optional(durationSchema('How long to wait with `index`: at most 2m, 30s where absent.')),
}

/** `{items, total, next_cursor?, …}` of `item`, as the component `name`. */
export function listBody<T extends TSchema>(name: string, item: T) {
  return Type.Object(
    {
      items: Type.Array(item),
      total: Type.Integer({ minimum: 0, description: 'Size of the whole filtered set.' }),
      total_capped: Type.Optional(Type.Boolean({ description: 'True: there may be more than `total`.' })),
      next_cursor: Type.Optional(Type.String({ description: 'Present if and only if there may be more.' })),
      partial: Type.Optional(Type.Boolean({ description: 'True: some source could not be read.' })),
      partial_errors: Type.Optional(
        Type.Array(Type.String(), { description: '`<source>: <message>`, one per failure.' }),
      ),
    },
    { $id: name, additionalProperties: false },
  )
}
