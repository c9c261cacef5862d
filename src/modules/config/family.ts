/** The configuration, as the supervisor joins it: one service per started city, before everything else. */

import { configOperations } from '../../contract/config.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily, StartFailure } from '../../kernel/family.ts'
import type { Jobs } from '../../kernel/jobs.ts'
import { toDetail } from './edit/answers.ts'
import { ConfigService, type ConfigServiceDeps, InvalidConfig } from './edit/service.ts'
import { CONFIG_SCHEMA } from './edit/transaction.ts'
import { type ConfigCity, createConfigHandlers, reloadJob } from './handlers.ts'
import { configNeeds } from './needs.ts'

interface ServiceDeps extends Omit<ConfigServiceDeps, 'onStatus'> {
  /** What is in force, or what is wrong, has changed. */
  readonly onStatus: (service: ConfigService) => void
}

export interface ConfigContext extends ServiceDeps {
  readonly suspended: () => boolean
  readonly launch: Jobs['launch']
  /** For files that cannot be loaded: gets what this machine lacks. True: another look may find more. */
  readonly prepare: (signal: AbortSignal) => Promise<boolean>
}

export const config = defineFamily({
  operations: configOperations,
  schema: migrationsOf('config', CONFIG_SCHEMA),
  handlers: createConfigHandlers,
  opensIn: 'loading_config',
  open: async (context: ConfigContext, signal): Promise<ConfigCity> => {
    const { suspended, launch, prepare, onStatus, ...deps } = context
    const open = () => openService({ ...deps, onStatus })
    // A checkout on a new machine lacks its packs, and nobody can ask a city that is not running for them.
    const service = await open().catch(async (error: unknown) => {
      if (deps.mends === true) throw error
      if (await prepare(signal)) return open()
      throw error
    })
    return {
      name: deps.name,
      path: deps.dir,
      store: deps.store,
      config: service,
      launch,
      get suspended() {
        return suspended()
      },
    }
  },
  needs: (city) => [configNeeds(city.config)],
  jobs: (city) => [reloadJob(city)],
  close: ({ config: service }) => service.close(),
})

async function openService({ onStatus, ...deps }: ServiceDeps): Promise<ConfigService> {
  const service = new ConfigService({ ...deps, onStatus: () => onStatus(service) })
  try {
    await service.open()
    return service
  } catch (error) {
    await service.close()
    if (error instanceof InvalidConfig)
      throw new StartFailure('city_config_failed', error.message, error.issues.map(toDetail))
    throw error
  }
}
