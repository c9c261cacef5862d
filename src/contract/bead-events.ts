/** What the log of a city says about beads (sheet 03 §12). */
import Type from 'typebox'
import { Timestamp } from './base/names.ts'
import { Bead } from './beads.ts'

const snapshot = { bead: Bead }
const changed = Type.Array(Type.String(), {
  description:
    'Fields that differ; `comments` where one was added, `is_blocked` where something else closed or opened.',
})
const revision = Type.Integer({ minimum: 1, description: 'Of the bead, with this change.' })
const bead_id = Type.String()

/** The bead as it is after the change; of a very large one without its edges, text or metadata. */
export const BeadPayload = Type.Object(snapshot, { $id: 'BeadPayload', additionalProperties: false })
export const BeadChangedPayload = Type.Object(
  { ...snapshot, changed, revision },
  { $id: 'BeadChangedPayload', additionalProperties: false },
)
export const BeadClaimedPayload = Type.Object(
  {
    bead_id,
    assignee: Type.String(),
    session_id: Type.Optional(Type.String()),
    lease_expires_at: Timestamp,
  },
  { $id: 'BeadClaimedPayload', additionalProperties: false },
)
export const BeadReleasedPayload = Type.Object(
  {
    bead_id,
    previous_assignee: Type.Optional(Type.String()),
    reason: Type.String({ description: '`released`, or why it was taken from them.' }),
  },
  { $id: 'BeadReleasedPayload', additionalProperties: false },
)
export const BeadReopenedPayload = Type.Object({ bead_id }, { $id: 'BeadReopenedPayload', additionalProperties: false })
export const BeadLeaseExpiredPayload = Type.Object(
  { bead_id, previous_assignee: Type.Optional(Type.String()) },
  { $id: 'BeadLeaseExpiredPayload', additionalProperties: false },
)
export const BeadClaimRejectedPayload = Type.Object(
  {
    bead_id,
    existing_claimant: Type.Optional(Type.String({ description: 'Absent: it is closed, and nobody has it.' })),
    attempted_claimant: Type.String(),
  },
  { $id: 'BeadClaimRejectedPayload', additionalProperties: false },
)

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
