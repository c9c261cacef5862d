/** What the log of a city says about beads (sheet 03 §12). */

import { Timestamp } from './base/names.ts'
import { array, component, integer, optional, string } from './base/schema.ts'
import { Bead } from './beads.ts'

const snapshot = { bead: Bead }
const changed = array(string(), {
  description:
    'Fields that differ; `comments` where one was added, `is_blocked` where something else closed or opened.',
})
const revision = integer({ minimum: 1, description: 'Of the bead, with this change.' })
const bead_id = string()

/** The bead as it is after the change; of a very large one without its edges, text or metadata. */
export const BeadPayload = component('BeadPayload', snapshot)
export const BeadChangedPayload = component('BeadChangedPayload', { ...snapshot, changed, revision })
export const BeadClaimedPayload = component('BeadClaimedPayload', {
  bead_id,
  assignee: string(),
  session_id: optional(string()),
  lease_expires_at: Timestamp,
})
export const BeadReleasedPayload = component('BeadReleasedPayload', {
  bead_id,
  previous_assignee: optional(string()),
  reason: string({ description: '`released`, or why it was taken from them.' }),
})
export const BeadReopenedPayload = component('BeadReopenedPayload', { bead_id })
export const BeadLeaseExpiredPayload = component('BeadLeaseExpiredPayload', {
  bead_id,
  previous_assignee: optional(string()),
})
export const BeadClaimRejectedPayload = component('BeadClaimRejectedPayload', {
  bead_id,
  existing_claimant: optional(string({ description: 'Absent: it is closed, and nobody has it.' })),
  attempted_claimant: string(),
})

const beads = { log: 'city', emittedBy: 'beads' } as const

export const BEAD_EVENT_TYPES = {
  'bead.created': { payload: BeadPayload, ...beads, when: 'a bead was created or imported' },
  'bead.updated': { payload: BeadChangedPayload, ...beads, when: 'a bead changed in any way but to closed' },
  'bead.closed': { payload: BeadChangedPayload, ...beads, when: 'a bead became closed, whichever way' },
  'bead.deleted': { payload: BeadPayload, ...beads, when: 'a bead was deleted; its last version' },
  'bead.claimed': { payload: BeadClaimedPayload, ...beads, when: 'somebody took a bead; beside bead.updated' },
  'bead.released': {
    payload: BeadReleasedPayload,
    ...beads,
    when: 'a claimed bead was given back; beside bead.updated',
  },
  'bead.reopened': { payload: BeadReopenedPayload, ...beads, when: 'a closed bead is open again; beside bead.updated' },
  'bead.lease_expired': {
    payload: BeadLeaseExpiredPayload,
    ...beads,
    when: 'nobody renewed a claim, and the bead is open again; beside bead.updated',
  },
  'bead.claim_rejected': { payload: BeadClaimRejectedPayload, ...beads, when: 'a claim came too late' },
} as const
