/** Steps of a molecule in the order of its formula, items behind what repeats: a page costs what it shows. */
import type { MoleculeStepStatus } from '../../../contract/automation/words.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { PlanNode } from '../engine/base/plans.ts'
import { type MoleculeRow, parseStep, rootOf, type StepRow } from '../engine/base/rows.ts'
import { ROWS_PER_MOLECULE } from '../engine/base/schema.ts'

type Reader = Pick<Tx, 'get' | 'all'>

export interface StepsFilter {
  readonly status?: readonly MoleculeStepStatus[] | undefined
  readonly superseded?: boolean | undefined
}

/** A list, and how far it has been gone through. */
interface Level {
  readonly list: number
  node: number
  id: number
  readonly rows: StepRow[]
}

const CHUNK = 100
/** The order of the index: of the same step, what is older comes first. */
const LIST = `SELECT * FROM molecule_steps WHERE parent = ? AND (node, id) > (?, ?) ORDER BY node, id LIMIT ${CHUNK}`
const STEP = 'SELECT * FROM molecule_steps WHERE id = ?'

/** Those that are wanted, behind a row where one is given; they are looked for one by one. */
export function* stepsBehind(
  reader: Reader,
  { molecule, nodes }: { readonly molecule: MoleculeRow; readonly nodes: readonly PlanNode[] },
  { status, superseded = false }: StepsFilter,
  behind: number | undefined,
): Generator<StepRow, void> {
  const root = rootOf(molecule.n)
  const levels = behind === undefined ? [levelOf(root)] : levelsAt(reader, root, behind)
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    if (level.rows.length === 0) level.rows.push(...reader.all(LIST, level.list, level.node, level.id).map(parseStep))
    const row = level.rows.shift()
    if (row === undefined) {
      levels.pop()
      continue
    }
    level.node = row.node
    level.id = row.id
    if ((superseded || !row.superseded) && (status === undefined || status.includes(row.status))) yield row
    if (hasList(row, nodes)) levels.push(levelOf(row.id))
  }
}

const levelOf = (list: number): Level => ({ list, node: -1, id: 0, rows: [] })

/** Where the walk stands once it has shown a row: at it in its list, at what is around it in theirs. */
function levelsAt(reader: Reader, root: number, id: number): Level[] {
  const levels = [levelOf(id)]
  for (let at = id; at !== root; ) {
    const found = reader.get(STEP, at)
    // The row of another molecule, or of none: there is nothing behind it.
    if (found === undefined || found.parent === null) return []
    const { node, parent } = parseStep(found)
    if (parent === null) return []
    levels.unshift({ list: parent, node, id: at, rows: [] })
    at = parent
  }
  return levels
}

function hasList({ node, item_index: item }: StepRow, nodes: readonly PlanNode[]): boolean {
  const of = nodes[node]
  return of === undefined || of.children.length > 0 || (of.step.repeat !== undefined && item === 0)
}

export function countSteps(reader: Reader, { n }: MoleculeRow, { status, superseded = false }: StepsFilter): number {
  const root = rootOf(n)
  const wanted = [
    ...(superseded ? [] : ['superseded = 0']),
    ...(status === undefined ? [] : ['status IN (SELECT value FROM json_each(?))']),
  ].map((one) => ` AND ${one}`)
  const row = reader.get(
    `SELECT count(*) AS steps FROM molecule_steps WHERE id > ? AND id < ?${wanted.join('')}`,
    root,
    root + ROWS_PER_MOLECULE,
    ...(status === undefined ? [] : [JSON.stringify(status)]),
  )
  return Number(row?.steps ?? 0)
}
