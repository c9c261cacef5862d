/** What events say of a step and of its attempt. */
import type { StepRow } from '../base/rows.ts'
import type { Run } from '../base/run.ts'

interface Said {
  readonly bead?: string | null
  readonly status?: string
  readonly reason?: string | null | undefined
}

/** Its own bead and status, where the event is not about others. */
export function payloadOf(run: Run, row: StepRow, { bead = row.bead, status = row.status, reason = null }: Said = {}) {
  return {
    molecule_id: run.molecule.id,
    step_id: row.path,
    attempt: row.attempt,
    ...(bead === null ? {} : { bead_id: bead }),
    status,
    ...(reason === null ? {} : { reason }),
  }
}
