/** What is wrong with a file of a city: its configuration, a formula, an order. */
import { component, integer, optional, type Static, string } from './schema.ts'

export const ConfigIssue = component('ConfigIssue', {
  file: string({ description: 'Relative to the city; `<pack>/<path>` in a pack.' }),
  line: integer({ minimum: 0, description: 'From 1; 0 for what stands in no file.' }),
  column: integer({ minimum: 0 }),
  key: string({ description: 'Dotted path of the key; empty for the file as a whole.' }),
  message: string(),
  hint: optional(string()),
})
/** So many issues stand in one event. */
export const MAX_FAILURE_ISSUES = 100

export type ConfigIssue = Static<typeof ConfigIssue>
