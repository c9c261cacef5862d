/**
 * Molecules of other cities in an import. Their roots, steps and gates are left out: no molecule here would hand them out, or
 * hear of their end; and what waits for such a root would wait for ever, so the edges to it go too.
 */
import type { Tx } from '../../../kernel/database.ts'
import type { BeadStore } from '../store/store.ts'
import type { JsonObject } from './exact-json.ts'
import { isObject, own } from './exact-json.ts'

/** Beads whose edges go in one write. */
export const MAX_FREED = 200
/** Ids that are remembered; files with more have their edges as they are. */
const MAX_LEFT_OUT = 100_000

/** The molecule of a line, where it is a part of one as this service makes them. */
export function moleculeOf(object: JsonObject): string | undefined {
  const metadata = own(object, 'metadata')
  if (!isObject(metadata)) return undefined
  const root = own(metadata, 'svc.root_bead_id')
  if (typeof root === 'string' && own(metadata, 'svc.step_id') !== undefined) return root
  const isRoot = own(object, 'issue_type') === 'molecule' && own(metadata, 'svc.formula_hash') !== undefined
  return isRoot ? String(own(object, 'id')) : undefined
}

interface LeftOut {
  readonly line: number
  readonly molecule: string
}

/** What an import left out, by id. */
export class ForeignMolecules {
  readonly #parts = new Map<string, LeftOut>()

  leaveOut(id: string, part: LeftOut): void {
    if (this.#parts.size < MAX_LEFT_OUT) this.#parts.set(id, part)
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0
  }

  has(id: string): boolean {
    return this.#parts.has(id)
  }

  /** One warning for each molecule, at the first of its lines. */
  warnings(): readonly { readonly line: number; readonly id: string; readonly detail: string }[] {
    const seen = new Set<string>()
    return [...this.#parts].flatMap(([id, { line, molecule }]) => {
      if (seen.has(molecule)) return []
      seen.add(molecule)
      return [
        { line, id, detail: `it is of the molecule ${molecule}, which does not come along: its beads are left out` },
      ]
    })
  }

  /** Takes away some of the edges to what was left out; returns how many. */
  free(tx: Tx, beads: BeadStore, actor: string): number {
    const rows = tx.all(
      `SELECT d.issue_id AS id, d.depends_on_id AS target, d.type FROM json_each(?) AS p
         CROSS JOIN bead_deps AS d ON d.depends_on_id = p.value
        WHERE NOT EXISTS (SELECT 1 FROM beads AS b WHERE b.id = d.depends_on_id) LIMIT ?`,
      JSON.stringify([...this.#parts.keys()]),
      MAX_FREED,
    )
    for (const { id, target, type } of rows) {
      const edge = { issue_id: String(id), depends_on_id: String(target), type: String(type) }
      beads.change(tx, String(id), { remove_edges: [edge] }, actor)
    }
    return rows.length
  }
}
