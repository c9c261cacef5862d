/** Handlers of import and export. */

import { LINES_TYPE } from '../../contract/base/operation.ts'
import type { beadOperations } from '../../contract/beads.ts'
import { type Handlers, ok, StreamBody } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { exportLines } from './interchange/export.ts'
import { importLines } from './interchange/import.ts'
import type { WorkCity } from './work/city.ts'

export function createInterchangeHandlers({ clock }: { readonly clock: Clock }) {
  return {
    'import-beads': async ({ query, body, signal, city, caller }) => {
      const report = await importLines(city, body, query, { clock, signal, caller })
      return ok(report, { 'X-SVC-Index': String(city.store.log.head) })
    },

    'export-beads': ({ query, city }) => {
      const index = String(city.store.log.head)
      return ok(new StreamBody(exportLines(city, query, clock), LINES_TYPE), { 'X-SVC-Index': index })
    },
  } satisfies Partial<Handlers<typeof beadOperations, WorkCity>>
}
