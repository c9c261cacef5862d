/**
 * Beads that close or open while very much depends on them: their dependents learn of it a slice at a time.
 *
 * S1  What a bead's dependents count it as is its status, but for those in its `ranges` of `bead_shifts`: these count it as
 *     it was before. A range is the ids after its first up to its second.
 * S2  A dependent is never ready before its last blocker is closed: whoever asks what is ready leaves out what depends on
 *     a bead that `opens` (IS_FREE). It may be hidden for as long as slices take, and no longer, also after a crash.
 * S3  Each dependent that becomes free or blocked is told of once, in the write of its slice.
 */
import { BLOCKING_TYPES } from '../../../contract/beads.ts'
import type { Tx } from '../../../kernel/database.ts'

type Reader = Pick<Tx, 'get' | 'all'>
type Range = readonly [after: string, upTo: string]

/** SQL: the type is one of those that block. */
export const BLOCKING_SQL = `type IN (${BLOCKING_TYPES.map((type) => `'${type}'`).join(', ')})`
/** SQL: nothing that `b` depends on has opened without its knowing; almost always nothing has, which is cheap to know. */
export const IS_FREE = `(NOT EXISTS (SELECT 1 FROM bead_shifts WHERE opens = 1) OR NOT EXISTS (
  SELECT 1 FROM bead_deps AS d CROSS JOIN bead_shifts AS s ON s.bead = d.depends_on_id AND s.opens = 1
    WHERE d.issue_id = b.id AND d.${BLOCKING_SQL}))`

/** After every id. */
const END = '\u{10ffff}'
const ALL: readonly Range[] = [['', END]]
/** Dependents that one write tells. */
const SLICE = 250

interface Shift {
  readonly bead: string
  readonly opens: boolean
  readonly actor: string
  readonly ranges: readonly Range[]
}

/** True where the dependent counts the target among its blockers. */
export function counts(reader: Reader, issueId: string, target: string): boolean {
  const row = reader.get(
    'SELECT (SELECT status FROM beads WHERE id = ?) AS status, (SELECT ranges FROM bead_shifts WHERE bead = ?) AS ranges',
    target,
    target,
  )
  const isOpen = row?.status !== 'closed'
  if (row?.ranges == null) return isOpen
  return isOpen !== rangesOf(row.ranges).some(([after, upTo]) => issueId > after && issueId <= upTo)
}

/** Dependents that learnt of it in one write. */
export interface Shifted {
  readonly actor: string
  /** Those that became free or blocked by it. */
  readonly flipped: readonly string[]
  /** There are more. */
  readonly isOver: boolean
}

const BEGUN = `SELECT (SELECT ranges FROM bead_shifts WHERE bead = ?) AS ranges,
  EXISTS (SELECT 1 FROM bead_deps WHERE depends_on_id = ?) AS depended`

/** A bead has closed or opened: the first slice of all that depend on it, but for those that had not yet learnt of the opposite. */
export function beginShift(tx: Tx, bead: string, opens: boolean, actor: string): Shifted {
  const row = tx.get(BEGUN, bead, bead)
  // Of most beads nobody waits: that is cheaper to know than who does.
  if (row?.ranges == null && row?.depended !== 1) return { actor, flipped: [], isOver: true }
  const ranges = row.ranges == null ? ALL : complement(rangesOf(row.ranges))
  return shiftSlice(tx, { bead, opens, actor, ranges }, row.ranges != null)
}

/** The next slice of dependents that have still to learn of something. */
export function shiftOn(tx: Tx): Shifted {
  const row = tx.get('SELECT * FROM bead_shifts LIMIT 1')
  if (row === undefined) return { actor: '', flipped: [], isOver: true }
  const { bead, actor, ranges, opens } = row
  return shiftSlice(
    tx,
    { bead: String(bead), actor: String(actor), ranges: rangesOf(ranges), opens: opens === 1 },
    true,
  )
}

export const isShifting = (reader: Reader): boolean => reader.get('SELECT 1 FROM bead_shifts LIMIT 1') !== undefined

/** Dependents of a bead in the order of their ids, which the index has by type; takes bead and range for each of those. */
const DEPENDENTS = BLOCKING_TYPES.map(
  (type) =>
    `SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = '${type}' AND issue_id > ? AND issue_id <= ?`,
).join(' UNION ALL ')

function shiftSlice(tx: Tx, shift: Shift, isKnown: boolean): Shifted {
  const { bead, opens, actor, ranges } = shift
  const [[after, upTo] = ['', ''], ...rest] = ranges
  const range = BLOCKING_TYPES.flatMap(() => [bead, after, upTo])
  const ids = tx.all(`${DEPENDENTS} ORDER BY issue_id LIMIT ${SLICE}`, ...range).map((row) => String(row.issue_id))
  const last = ids.length < SLICE ? undefined : ids.at(-1)
  const left: readonly Range[] = last === undefined ? rest : [[last, upTo], ...rest]
  const given = JSON.stringify(ids)
  const flipped =
    ids.length === 0
      ? []
      : tx.all(
          `SELECT id FROM beads WHERE id IN (SELECT value FROM json_each(?)) AND blockers = ? AND status <> 'closed' ORDER BY id`,
          given,
          opens ? 0 : 1,
        )
  if (ids.length > 0)
    tx.run(
      'UPDATE beads SET blockers = blockers + ? WHERE id IN (SELECT value FROM json_each(?))',
      opens ? 1 : -1,
      given,
    )
  if (left.length > 0) keep(tx, { ...shift, ranges: left })
  else if (isKnown) tx.run('DELETE FROM bead_shifts WHERE bead = ?', bead)
  return { actor, flipped: flipped.map(({ id }) => String(id)), isOver: left.length === 0 }
}

function keep(tx: Tx, { bead, opens, actor, ranges }: Shift): void {
  tx.run(
    'INSERT OR REPLACE INTO bead_shifts (bead, opens, ranges, actor) VALUES (?, ?, ?, ?)',
    bead,
    opens ? 1 : 0,
    JSON.stringify(ranges),
    actor,
  )
}

const rangesOf = (json: unknown): readonly Range[] => JSON.parse(String(json))

/** What is in none of the ranges, which are in order. */
function complement(ranges: readonly Range[]): readonly Range[] {
  const gaps: Range[] = []
  let from = ''
  for (const [after, upTo] of ranges) {
    if (after > from) gaps.push([from, after])
    from = upTo
  }
  return from === END ? gaps : [...gaps, [from, END]]
}
