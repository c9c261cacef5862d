/** The event bus, as the supervisor joins it. */
import { eventOperations } from '../../contract/events.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createEventHandlers, type EventCity } from './handlers.ts'

export const events = defineFamily({
  operations: eventOperations,
  handlers: createEventHandlers,
  traits: { 'emit-event': { quiet: true, keepsJson: true } },
  open: (city: EventCity) => city,
})
