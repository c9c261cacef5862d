/** What becomes of a line, given what is there already (I3, I4 of import.ts). */
import type { Caller } from '../../../kernel/caller.ts'
import type { Row, Tx } from '../../../kernel/database.ts'
import { Problem } from '../../../kernel/problem.ts'
import { sqlValue } from '../store/columns.ts'
import { cycleProblem, type Edge, relationOf } from '../store/edges.ts'
import type { BeadRecord } from '../store/record.ts'
import type { WorkCity } from '../work/city.ts'
import { importFault } from '../work/steps.ts'
import { inGivenOrder, withCommentId } from './interchange.ts'
import { byComment, type LineBead, type LineColumns, type LineComment, type LineEdge } from './line.ts'
import { readComments, readEdges } from './line-rows.ts'
import { forgery } from './speakers.ts'

type Outcome = 'created' | 'updated' | 'unchanged' | 'skipped'

export interface Item {
  readonly line: number
  readonly rig: string
  readonly bead: LineBead
}

export interface Verdict {
  readonly item: Item
  readonly outcome: Outcome | { readonly fault: string }
}

export const exists = (id: string): string => `${id} exists already`

/** What is there of the beads of some lines, read at once. */
export class Existing {
  readonly #records: ReadonlyMap<string, BeadRecord>
  readonly #edges: ReadonlyMap<string, readonly LineEdge[]>
  readonly #comments: ReadonlyMap<string, readonly LineComment[]>
  readonly #owners: Map<string, string>
  readonly #steps: WorkCity['steps']
  readonly #caller: Caller
  readonly #roots: ReadonlySet<string>

  constructor(city: WorkCity, reader: Pick<Tx, 'all'>, items: readonly Item[], caller: Caller) {
    this.#steps = city.steps
    this.#caller = caller
    const records = city.beads.load(items.map(({ bead }) => bead.id))
    const ids = records.map(({ id }) => id)
    this.#records = new Map(records.map((record) => [record.id, record]))
    this.#edges = readEdges(reader, ids)
    const targets = [...this.#edges.values()].flatMap((own) => own.map(({ depends_on_id }) => depends_on_id))
    const ties = targets.length === 0 ? [] : city.steps.ties([...new Set(targets)])
    this.#roots = new Set(ties.filter(({ is }) => is === 'root').map(({ bead }) => bead))
    this.#comments = readComments(reader, ids)
    const comments = items.flatMap(({ bead }) => bead.comments.flatMap(({ id }) => [id, withBead(bead.id, id)]))
    this.#owners = new Map(
      comments.length === 0
        ? []
        : reader
            .all(
              'SELECT id, bead FROM bead_comments WHERE id IN (SELECT value FROM json_each(?))',
              JSON.stringify(comments),
            )
            .map((row: Row) => [String(row.id), String(row.bead)]),
    )
  }

  record = (id: string): BeadRecord | undefined => this.#records.get(id)
  edges = (id: string): readonly LineEdge[] => this.#edges.get(id) ?? []
  /** Whether this is the root of a molecule here. Exports leave out edges to it, so a line that has none takes none away. */
  isRoot = (id: string): boolean => this.#roots.has(id)
  comments = (id: string): readonly LineComment[] => this.#comments.get(id) ?? []
  /** Why a molecule does not let a bead that is there lose these edges, or change at all. */
  fault = (bead: BeadRecord, gone: readonly LineEdge[], status: string): string | undefined =>
    importFault(this.#steps, bead, {
      gone: gone.map(({ depends_on_id }) => depends_on_id),
      closes: status === 'closed' && bead.status !== 'closed',
    })
  /** Why whoever imports may not say this in a line. */
  forgery = (bead: LineBead, comments: readonly LineComment[]): string | undefined =>
    forgery(this.#caller, { bead, record: this.record(bead.id), comments })
  /** The bead that has a comment of this id. */
  owner = (comment: string): string | undefined => this.#owners.get(comment)
  /** From now on a bead has a comment of this id. */
  take = (comment: string, bead: string): unknown => this.#owners.set(comment, bead)
}

interface Decision {
  readonly outcome: Verdict['outcome']
  /** Edges that are no longer. */
  readonly edges: readonly Edge[]
  /** Comments that are new or other than here. */
  readonly comments: readonly LineComment[]
}

export function decide(cycleOf: CycleOf, item: Item, there: Existing, mode: 'upsert' | 'create' | undefined): Decision {
  const { bead } = item
  const record = there.record(bead.id)
  const outcome = (outcome: Verdict['outcome']): Decision => ({ outcome, edges: [], comments: [] })
  if (record !== undefined && mode === 'create') return outcome({ fault: exists(bead.id) })
  if (record !== undefined && bead.columns.updated_at < record.updated_at) return outcome('skipped')
  const had = there
    .edges(bead.id)
    .filter((edge) => !there.isRoot(edge.depends_on_id) || bead.edges.some((one) => sameEnds(one, edge)))
  const gone = had.filter((edge) => !bead.edges.some((one) => sameEnds(one, edge)))
  const fresh = bead.edges.filter((edge) => !had.some((one) => sameEnds(one, edge)))
  const comments = newComments(bead, there)
  if (comments === undefined) return outcome({ fault: 'comments: another bead has one of their ids' })
  if (record !== undefined && isSame(record, bead) && sameRows(bead.edges, had) && comments.length === 0)
    return outcome('unchanged')
  const molecules = record === undefined ? undefined : there.fault(record, gone, bead.columns.status)
  if (molecules !== undefined) return outcome({ fault: molecules })
  const forged = there.forgery(bead, comments)
  if (forged !== undefined) return outcome({ fault: forged })
  const cyclic = cycleFault(cycleOf, bead.id, fresh)
  if (cyclic !== undefined) return outcome(cyclic)
  return {
    outcome: record === undefined ? 'created' : 'updated',
    edges: gone.map(({ depends_on_id, type }) => ({ issue_id: bead.id, depends_on_id, type })),
    comments,
  }
}

/** The cycle that an edge of a bead would close. */
export type CycleOf = (id: string, edge: LineEdge) => readonly string[] | undefined

/** Why edges of a bead cannot be, where one of them closes a cycle, or nobody can tell. */
export function cycleFault(
  cycleOf: CycleOf,
  id: string,
  edges: readonly LineEdge[],
): { readonly fault: string } | undefined {
  try {
    for (const edge of edges) {
      const cycle = relationOf(edge.type) === undefined ? undefined : cycleOf(id, edge)
      if (cycle !== undefined) return { fault: cycleProblem(cycle).message }
    }
    return undefined
  } catch (error) {
    if (error instanceof Problem) return { fault: error.detail }
    throw error
  }
}

const sameEnds = (a: LineEdge, b: LineEdge): boolean => a.depends_on_id === b.depends_on_id && a.type === b.type

function isSame(record: BeadRecord, { columns, labels, metadata }: LineBead): boolean {
  const names = Object.keys(columns).filter((name): name is keyof LineColumns => name in record)
  const keys = Object.keys(metadata)
  return (
    names.every((name) => sqlValue(record[name]) === sqlValue(columns[name])) &&
    labels.length === record.labels.length &&
    labels.every((label, index) => label === record.labels[index]) &&
    keys.length === Object.keys(record.metadata).length &&
    keys.every((key) => Object.hasOwn(record.metadata, key) && record.metadata[key] === metadata[key])
  )
}

function sameRows(edges: readonly LineEdge[], had: readonly LineEdge[]): boolean {
  return edges.length === had.length && edges.every((edge) => had.some((one) => sameEdge(one, edge)))
}

const sameEdge = (a: LineEdge, b: LineEdge): boolean =>
  sameEnds(a, b) &&
  a.created_at === b.created_at &&
  a.created_by === b.created_by &&
  a.metadata === b.metadata &&
  a.interchange === b.interchange

/** Comments are only ever added: what was said here stays. Undefined where an id is in use elsewhere. */
function newComments(bead: LineBead, there: Existing): readonly LineComment[] | undefined {
  if (bead.comments.length === 0) return []
  const said = there.comments(bead.id)
  const had = new Map(said.map((comment) => [comment.id, comment]))
  const own: LineComment[] = []
  for (const comment of bead.comments) {
    const one = ownComment(comment, bead.id, there)
    if (one === undefined) return undefined
    own.push(one)
  }
  // Under other ids they may be in another order.
  return inGivenOrder(own, byComment).filter((one) => {
    const known = had.get(one.id)
    // It was elsewhere, where comments have other ids.
    return known === undefined ? !said.some((other) => isSameWord(other, one)) : !isSaid(known, one)
  })
}

const withBead = (bead: string, comment: string): string => `${bead}:${comment}`

/** The comment under an id that no other bead's comment has. */
function ownComment(comment: LineComment, bead: string, there: Existing): LineComment | undefined {
  const id = [comment.id, withBead(bead, comment.id)].find((one) => (there.owner(one) ?? bead) === bead)
  if (id === undefined) return undefined
  there.take(id, bead)
  return id === comment.id ? comment : withCommentId(comment, id)
}

/** bd keeps times of comments to the second. */
const isSameWord = (one: LineComment, other: LineComment): boolean =>
  one.text === other.text &&
  one.author === other.author &&
  (one.created_at === other.created_at || one.created_at - (one.created_at % 1_000) === other.created_at)

const isSaid = (known: LineComment, comment: LineComment): boolean =>
  known.text === comment.text &&
  known.author === comment.author &&
  known.created_at === comment.created_at &&
  known.interchange === comment.interchange
