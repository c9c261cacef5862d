/** The bead in an event: whole where it fits. */
import type { Bead } from '../../../contract/beads.ts'
import { MAX_EVENT_BYTES } from '../../../contract/events.ts'
import { type BeadRecord, wireBead } from './record.ts'

/** Room for the rest of the envelope and the names of what changed. */
const MAX_SNAPSHOT_BYTES = MAX_EVENT_BYTES - 16_384
/** Characters of long fields below which a bead always fits: each of them takes at most six bytes. */
const ALWAYS_FITS = 30_000
/** What is left out first where it does not fit; whoever needs it reads the bead. */
const EXPENDABLE = ['description', 'metadata', 'needs', 'dependencies', 'labels', 'close_reason'] as const

export function eventSnapshot(record: BeadRecord): Bead {
  const bead = wireBead(record)
  if (lengthOf(record) < ALWAYS_FITS) return bead
  for (const field of EXPENDABLE) {
    if (Buffer.byteLength(JSON.stringify(bead)) <= MAX_SNAPSHOT_BYTES) break
    delete bead[field]
  }
  return bead
}

/** Characters of the fields that may be long. */
function lengthOf({
  description,
  close_reason,
  output_json,
  failure_reason,
  metadata,
  labels,
  needs,
}: BeadRecord): number {
  let length = 0
  for (const text of [description, close_reason, output_json, failure_reason]) length += text?.length ?? 0
  for (const [key, value] of Object.entries(metadata)) length += key.length + value.length
  for (const text of [...labels, ...(needs ?? [])]) length += text.length
  return length
}
