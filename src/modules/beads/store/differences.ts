/** What an event calls the differences between two versions of a bead. Pure. */
import { type ColumnName, MIRRORED_COLUMNS, SHOWN_COLUMNS } from './columns.ts'
import type { BeadRecord } from './record.ts'

/** Columns whose change is nobody's business, and those that show in `metadata` only. */
const QUIET: ReadonlySet<string> = new Set(['lease_ms', 'lease_expires_at', 'updated_at'])
const SHOWN_AS_METADATA: ReadonlySet<string> = new Set(
  MIRRORED_COLUMNS.filter((column) => !SHOWN_COLUMNS.includes(column)),
)

/** Wire names of what differs, for `changed` of the event. */
export function namesOfDifferences(
  before: BeadRecord,
  after: BeadRecord,
  differing: readonly ColumnName[],
  edgesChanged: boolean,
): readonly string[] {
  const names = differing
    .filter((name) => !QUIET.has(name))
    .map((name) => (SHOWN_AS_METADATA.has(name) ? 'metadata' : name))
  // Only an import says when it was changed.
  if (differing.includes('updated_at')) names.push('updated_at')
  return [
    ...names,
    ...(sameList(before.labels, after.labels) ? [] : ['labels']),
    ...(sameMap(before.metadata, after.metadata) ? [] : ['metadata']),
    ...(edgesChanged ? ['dependencies'] : []),
    ...(before.blockers > 0 === after.blockers > 0 ? [] : ['is_blocked']),
  ]
}

const sameList = (one: readonly string[], other: readonly string[]): boolean =>
  one === other || (one.length === other.length && one.every((text, at) => text === other[at]))

function sameMap(one: Readonly<Record<string, string>>, other: Readonly<Record<string, string>>): boolean {
  if (one === other) return true
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}
