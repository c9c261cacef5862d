/** A root and what belongs to it, with the edges between (sheet 03 §4.5): a few queries, whatever its size. */
import {
  type Bead,
  type BeadDep,
  type BeadGraphResponse,
  MAX_GRAPH_BEADS,
  MAX_SHOWN_DEPENDENCIES,
} from '../../../contract/beads.ts'
import { fill } from '../../../kernel/page.ts'
import type { Reader } from '../store/edges.ts'
import { wireBead } from '../store/record.ts'
import type { BeadStore } from '../store/store.ts'

/** Its molecule, a convoy's members, and everything below any of them; never what merely depends on them. */
const MEMBERS = `WITH RECURSIVE members (id) AS (
  SELECT * FROM (SELECT ? UNION SELECT id FROM beads WHERE root_bead_id = ?
    UNION SELECT t.id FROM bead_deps d JOIN beads t ON t.id = d.depends_on_id
      WHERE d.issue_id = ? AND d.type = 'tracks' AND ?)
  UNION SELECT b.id FROM members m JOIN beads b ON b.parent = m.id
  LIMIT ${MAX_GRAPH_BEADS + 1}
) SELECT id FROM members`
const EDGES = 'SELECT depends_on_id, type FROM bead_deps WHERE issue_id = ?'

export function readGraph(beads: BeadStore, reader: Reader, rootId: string): BeadGraphResponse {
  const root = beads.need(rootId)
  const isConvoy = root.issue_type === 'convoy'
  const found = reader.all(MEMBERS, rootId, rootId, rootId, isConvoy ? 1 : 0).map((row) => String(row.id))
  // The root is among them, however many they are.
  const all = [rootId, ...found.filter((id) => id !== rootId)]
  const { items: loaded } = fill(beads.each(all.slice(0, MAX_GRAPH_BEADS)), wireBead)
  const members = loaded.toSorted(byAge)
  const ids = new Set(members.map(({ id }) => id))
  const deps = members
    .flatMap((member) => edgesOf(reader, member))
    .filter(({ depends_on_id: target }) => ids.has(target))
    // A child depends on its parent, and the arrow goes the other way about, as for all.
    .map(({ issue_id, depends_on_id, type }) => ({ from: depends_on_id, to: issue_id, kind: type }))
  return {
    root: wireBead(root),
    beads: members,
    deps,
    membership: isConvoy ? 'direct-root-id+parent-closure+convoy-members' : 'direct-root-id+parent-closure',
    ...(all.length > loaded.length ? { truncated: true } : {}),
  }
}

const byAge = (a: Bead, b: Bead): number =>
  Date.parse(a.created_at) - Date.parse(b.created_at) || (a.id < b.id ? -1 : 1)

/** A bead is shown with the first of its edges, and those are almost always all. */
function edgesOf(reader: Reader, { id, dependencies = [] }: Bead): readonly BeadDep[] {
  if (dependencies.length < MAX_SHOWN_DEPENDENCIES) return dependencies
  return reader
    .all(EDGES, id)
    .map((row) => ({ issue_id: id, depends_on_id: String(row.depends_on_id), type: String(row.type) }))
}
