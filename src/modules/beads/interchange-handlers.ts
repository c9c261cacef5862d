/** Handlers of import and export. */

import { LINES_TYPE } from '../../contract/base/operation.ts'
import type { exportBeads, importBeads } from '../../contract/beads.ts'
import { type Handler, ok, StreamBody } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { exportLines } from './interchange/export.ts'
import { importLines } from './interchange/import.ts'
import type { WorkCity } from './work/city.ts'

export interface InterchangeDeps {
  readonly clock: Clock
  /** A running city, or the spec's 404. */
  readonly city: (name: string) => WorkCity
}

export function createInterchangeHandlers({ clock, city }: InterchangeDeps) {
  const importAll: Handler<typeof importBeads> = async ({ params, query, body, signal }) => {
    const one = city(params.cityName)
    const report = await importLines(one, body, query, clock, signal)
    return ok(report, { 'X-SVC-Index': String(one.store.log.head) })
  }

  const exportAll: Handler<typeof exportBeads> = ({ params, query }) => {
    const one = city(params.cityName)
    const index = String(one.store.log.head)
    return ok(new StreamBody(exportLines(one, query, clock), LINES_TYPE), { 'X-SVC-Index': index })
  }

  return { 'import-beads': importAll, 'export-beads': exportAll }
}
