// biome-ignore-all format: generated from the contract by src/cli/generate-tables.ts; do not edit
import type { Table } from '../framework/table.ts'

export const USAGE: Table<'list-usage' | 'get-session-usage' | 'get-budget'> = {
  'list-usage': {"method":"GET","summary":"List what was used, by session, agent, bead, convoy, model or day","description":"What cost most comes first; days come newest first. With `since` or `until` only turns in between count; those older than 90 days by whole hours.","fields":{"by":{"at":"query","kind":"text","choices":["session","agent","bead","convoy","model","day"],"says":"What a row is about (default: `session`)."},"key":{"at":"query","kind":"text","many":true,"says":"Only these; any of them."},"since":{"at":"query","kind":"text","says":"From then on: a day, a time, or that long ago."},"until":{"at":"query","kind":"text","says":"Until then: a day with its end, a time, or that long ago."}},"city":true,"paged":true,"lists":true},
  'get-session-usage': {"method":"GET","summary":"What a session has used, turn by turn","description":"Newest first. Turns are kept for 90 days, totals for good.","fields":{"id":{"at":"params","kind":"text","required":true,"says":"Id, alias or name of a session."}},"city":true,"paged":true,"lists":true},
  'get-budget': {"method":"GET","summary":"What today cost, and what it may cost","description":"Days are those of UTC.","fields":{},"city":true},
}
