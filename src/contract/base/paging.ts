/** Lists: keyset pages, the list envelope and blocking reads (sheet 01 §1.6, §1.7; decisions 5, 6). */

import { durationSchema } from './names.ts'
import { array, boolean, choice, component, integer, optional, type Schema, string } from './schema.ts'

export const DEFAULT_LIMIT = 100
export const MAX_LIMIT = 1000
/** `total` of a filtered event list is exact up to here. */
export const MAX_EXACT_TOTAL = 10_000
export const DEFAULT_WAIT_MS = 30_000
export const MAX_WAIT_MS = 120_000

export const PageQuery = {
  limit: optional(
    integer({
      minimum: 0,
      maximum: MAX_LIMIT,
      description: 'Items on a page; 0 or absent: 100.',
      default: DEFAULT_LIMIT,
    }),
  ),
  cursor: optional(string({ description: '`next_cursor` of the page before; with the same filters.' })),
}

export const LIST_ORDERS = ['asc', 'desc'] as const
export type ListOrder = (typeof LIST_ORDERS)[number]
export const OrderQuery = {
  order: optional(choice(LIST_ORDERS, { description: 'Which end to start from.' })),
}

export const BlockingQuery = {
  index: optional(
    integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        'Wait until something that matters here has a greater event sequence; the `X-SVC-Index` of the last read.',
    }),
  ),
  wait: optional(durationSchema('How long to wait with `index`: at most 2m, 30s where absent.')),
}

/** `{items, total, next_cursor?, …}` of `item`: what every list says. */
export const listFields = <T extends Schema>(item: T) => ({
  items: array(item),
  total: integer({ minimum: 0, description: 'Size of the whole filtered set.' }),
  total_capped: optional(boolean({ description: 'True: there may be more than `total`.' })),
  next_cursor: optional(string({ description: 'Present if and only if there may be more.' })),
  partial: optional(boolean({ description: 'True: some source could not be read.' })),
  partial_errors: optional(array(string(), { description: '`<source>: <message>`, one per failure.' })),
})

/** A list of `item`, as the component `name`. */
export const listBody = <T extends Schema>(name: string, item: T) => component(name, listFields(item))
