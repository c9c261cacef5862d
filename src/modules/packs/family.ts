/** Packs, as the supervisor joins them. */

import { packOperations } from '../../contract/packs.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { PackCity } from './city/city.ts'
import { createPackHandlers } from './handlers.ts'
import { packJobs } from './jobs.ts'
import type { Packs } from './service.ts'
import { PACK_TRUST_SCHEMA } from './store/trust.ts'

export interface PackRoom extends PackCity {
  readonly packs: Packs
  /** Brings what the packs of the city have to where agents find it. */
  stage(): Promise<void>
}

export const packs = defineFamily({
  operations: packOperations,
  supervisorSchema: migrationsOf('packs', PACK_TRUST_SCHEMA),
  handlers: createPackHandlers,
  open: (city: PackRoom) => city,
  phases: { resolving_formulas: (city) => city.stage() },
  jobs: (city) => packJobs(city.packs, () => city),
})
