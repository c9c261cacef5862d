/** Orders, as the supervisor joins them. Their files are of the family of formulas. */
import { orderOperations } from '../../contract/automation/orders.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { Store } from '../../kernel/store.ts'
import { createOrderHandlers } from './handlers.ts'
import { orderNeeds } from './needs.ts'
import { Orders, type OrdersDeps } from './orders.ts'
import { ORDER_SCHEMAS } from './schema.ts'

export interface OrderContext extends OrdersDeps {
  readonly store: Store
  readonly rigNames: () => readonly string[]
  /** Tells it of the ends of what it has started, from now on. */
  readonly listen: (orders: Orders) => void
}

export const orders = defineFamily({
  operations: orderOperations,
  schema: migrationsOf('orders', ...ORDER_SCHEMAS),
  handlers: createOrderHandlers,
  opensIn: 'resolving_formulas',
  open: (context: OrderContext) => {
    const all = new Orders(context)
    context.listen(all)
    return { catalog: context.catalog, store: context.store, orders: all, rigNames: context.rigNames }
  },
  // Commands and molecules that an earlier run of the supervisor has left are taken up by then.
  phases: { starting_agents: ({ orders: all }) => all.start() },
  needs: ({ catalog }) => [orderNeeds(catalog)],
  retention: ({ orders: all }) => [{ name: 'orders', run: () => all.sweep() }],
  stop: ({ orders: all }) => all.stop(),
})
