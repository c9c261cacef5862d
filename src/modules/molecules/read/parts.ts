/** What beads ask about molecules (decision 93): which are their parts, and what they work on. */
import type { Tx } from '../../../kernel/database.ts'
import type { Plans } from '../engine/base/plans.ts'
import { isLive, parseMolecule } from '../engine/base/rows.ts'
import { ROWS_PER_MOLECULE } from '../engine/base/schema.ts'

type Reader = Pick<Tx, 'get' | 'all'>

export interface Part {
  readonly role: 'root' | 'work'
  readonly molecule: string
  readonly step: string
  readonly output: readonly string[]
}

export interface PartTie {
  readonly bead: string
  readonly molecule: string
  readonly is: 'root' | 'part' | 'subject'
  readonly live: boolean
  /** The whole molecule is about the bead, not one of its items. */
  readonly whole: boolean
}

const ROOT = 'SELECT id FROM molecules WHERE id = ?'
const STEP = `SELECT m.id, m.plan, s.path, s.node FROM molecule_beads b
  JOIN molecule_steps s ON s.id = b.step JOIN molecules m ON m.n = b.step / ${ROWS_PER_MOLECULE} WHERE b.bead = ?`

export function partOf(reader: Reader, plans: Pick<Plans, 'get'>, bead: string): Part | undefined {
  if (reader.get(ROOT, bead) !== undefined) return { role: 'root', molecule: bead, step: '', output: [] }
  const row = reader.get(STEP, bead)
  if (row === undefined) return undefined
  const step = plans.get(String(row.plan)).nodes[Number(row.node)]?.step
  const part = { molecule: String(row.id), step: String(row.path) }
  return { ...part, role: 'work', output: step?.output ?? [] }
}

/** Live molecules that hand their steps to this target where a step names no other, the newest ones. */
export const liveFor = (reader: Reader, target: string, limit: number): readonly string[] =>
  reader
    .all(
      "SELECT id FROM molecules WHERE target = ? AND status IN ('pending', 'active', 'waiting') ORDER BY n DESC LIMIT ?",
      target,
      limit,
    )
    .map(({ id }) => String(id))

/** `m.*` has a bead too: the one that the molecule is about. */
const TIES = {
  root: 'SELECT value AS tied, m.* FROM json_each(?) JOIN molecules m ON m.id = value',
  part: `SELECT b.bead AS tied, m.* FROM json_each(?) JOIN molecule_beads b ON b.bead = value
    JOIN molecules m ON m.n = b.step / ${ROWS_PER_MOLECULE}`,
  subject: `SELECT d.bead AS tied, d.step = m.n * ${ROWS_PER_MOLECULE} AS whole, m.* FROM json_each(?) JOIN molecule_drives d ON d.bead = value
    JOIN molecules m ON m.n = d.step / ${ROWS_PER_MOLECULE}`,
} as const
const KINDS = ['root', 'part', 'subject'] as const

export function tiesOf(reader: Reader, beads: readonly string[]): readonly PartTie[] {
  const ids = JSON.stringify(beads)
  return KINDS.flatMap((is) =>
    reader.all(TIES[is], ids).map((row) => {
      const { id, status } = parseMolecule(row)
      return { bead: String(row.tied), molecule: id, is, live: isLive(status), whole: row.whole === 1 }
    }),
  )
}
