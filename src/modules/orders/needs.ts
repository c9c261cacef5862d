/** What of orders needs a person: files that are not valid, and runs that go on failing. */
import type { CatalogOrder } from '../../automation/catalog.ts'
import type { NeedDraft, NeedSource } from '../../kernel/needs.ts'
import { issueText } from '../../kernel/needs.ts'
import { allStates, findState } from './runs/states.ts'

/** One failure may be an accident. */
const FAILURES = 2

interface OrderFiles {
  orders(): readonly CatalogOrder[]
}

const scopedOf = ({ name, rig }: CatalogOrder): string => (rig === undefined ? name : `${name}:rig:${rig}`)

export const orderNeeds = (files: OrderFiles): NeedSource => ({
  name: 'orders',
  types: ['order.*', 'config.reloaded'],
  subjectsOf: ({ type, subject }) => {
    if (type !== 'order.changed' && type !== 'config.reloaded') return subject === undefined ? [] : [subject]
    const all = files.orders()
    const changed = type === 'config.reloaded' ? all : all.filter(({ name }) => name === subject)
    // The file of an order that is gone has no scope any more: both are looked at.
    return [...changed.map(scopedOf), ...(subject === undefined ? [] : [subject])]
  },
  subjects: (reader) => [...files.orders().map(scopedOf), ...allStates(reader).keys()],
  needsOf: (reader, scoped) => {
    const order = files.orders().find((one) => scopedOf(one) === scoped)
    if (order === undefined) return []
    const invalid = invalidNeed(order)
    if (invalid !== undefined) return [invalid]
    const { failures = 0, failed_at, error } = findState(reader, scoped) ?? {}
    return failures < FAILURES ? [] : [failingNeed(scoped, failures, { failed_at, error })]
  },
})

function invalidNeed(order: CatalogOrder): NeedDraft | undefined {
  const [first] = order.issues
  if (first === undefined) return undefined
  const scoped = scopedOf(order)
  return {
    key: 'invalid',
    kind: 'order_invalid',
    subject: { kind: 'order', id: scoped, name: order.name },
    title: `The order ${scoped} is not valid and never runs`,
    detail: order.issues.map(issueText).join('\n'),
    operations: [
      {
        operation: 'get-order',
        params: { name: scoped },
        label: 'Look',
        command: `svcctl order validate ${order.file}`,
      },
    ],
  }
}

function failingNeed(
  scoped: string,
  failures: number,
  { failed_at, error }: { readonly failed_at: number | undefined; readonly error: string | undefined },
): NeedDraft {
  return {
    key: 'failing',
    kind: 'order_failing',
    subject: { kind: 'order', id: scoped, name: scoped },
    ...(failed_at === undefined ? {} : { since: failed_at }),
    title: `The order ${scoped} failed ${failures} times in a row`,
    ...(error === undefined ? {} : { detail: error }),
    operations: [
      {
        operation: 'list-order-history',
        params: { name: scoped },
        label: 'Runs',
        command: `svcctl order history ${scoped}`,
      },
    ],
  }
}
