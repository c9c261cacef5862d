/** Cities, as the supervisor joins them. */
import { cityOperations } from '../../contract/cities.ts'
import { defineFamily } from '../../kernel/family.ts'
import { type CityRoom, createCityHandlers } from './handlers.ts'

export const cities = defineFamily({
  operations: cityOperations,
  handlers: createCityHandlers,
  open: (city: CityRoom) => city,
})
