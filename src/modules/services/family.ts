/** Workspace services, as the supervisor joins them. */
import { serviceOperations } from '../../contract/services.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createServiceHandlers, type ServiceCity } from './handlers.ts'
import { serviceNeeds } from './needs.ts'
import type { ServicesDeps } from './ports.ts'
import { Services } from './services.ts'
import { SERVICES_SCHEMA } from './store.ts'

export interface ServiceContext extends ServicesDeps {
  readonly store: ServiceCity['store']
  /** Calls for every change of the configuration. */
  readonly onReconfigured: (listener: () => void) => void
}

export const services = defineFamily({
  operations: serviceOperations,
  schema: migrationsOf('services', SERVICES_SCHEMA),
  handlers: createServiceHandlers,
  open: (context: ServiceContext): ServiceCity => {
    const all = new Services(context)
    context.onReconfigured(() => all.reconfigured())
    return { name: context.city.name, path: context.city.path, store: context.store, services: all, deps: context }
  },
  phases: { starting_agents: ({ services: all }) => all.start() },
  needs: ({ services: all }) => [serviceNeeds(all)],
  async stop({ services: all, deps }, { preserve, force }) {
    try {
      if (preserve) await all.release()
      else await all.stop(force)
    } finally {
      await deps.runtime.close()
    }
  },
})
