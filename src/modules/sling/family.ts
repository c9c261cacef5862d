/** Sling, as the supervisor joins it. */
import { slingOperations } from '../../contract/automation/sling.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createSlingHandlers } from './handlers.ts'
import type { SlingCity } from './ports.ts'

export const slings = defineFamily({
  operations: slingOperations,
  handlers: (_: undefined) => createSlingHandlers(),
  open: (city: SlingCity) => city,
})
