/** Many beads and their edges in one write: all of them, or none (sheet 03 §4.1). */
import { type BeadBatchEdge, type BeadBatchNode, type BeadBatchRequest, PARENT_CHILD } from '../../../contract/beads.ts'
import type { Tx } from '../../../kernel/database.ts'
import { invalidField, type Problem } from '../../../kernel/problem.ts'
import { cycleProblem, type EdgeDraft, findCycle, type Relation, relationOf } from '../store/edges.ts'
import type { BeadName } from '../store/store.ts'
import type { WorkCity } from './city.ts'
import { assertOwnKeys, draftOf, type Place, placeOf, tierOf } from './drafts.ts'
import { assertMayEdgeNamed } from './steps.ts'

type Ids = ReadonlyMap<string, string>

/** One edge with both ends known. */
interface PlacedEdge {
  readonly from: string
  readonly to: EdgeDraft
}

/** Creates what the batch says; the ids by key. Throws before anything is written, or the write is undone. */
export function createBatch(tx: Tx, city: WorkCity, body: BeadBatchRequest, actor: string): Record<string, string> {
  const place = placeOf(city.config(), body.rig)
  const places = body.nodes.map(({ rig }, at) =>
    rig === undefined ? place : placeOf(city.config(), rig, `body.nodes[${at}].rig`),
  )
  assertKeys(body)
  const ids = idsOf(tx, city, body.nodes, places)
  const edges = (body.edges ?? []).map((edge, at) => placed(edge, `body.edges[${at}]`, ids))
  city.beads.assertExist(namedBeads(body))
  assertMayEdgeNamed(city.steps, dependingBeads(body), (id) => city.beads.find(id))
  assertOneParent(body, edges, ids)
  for (const { from, to } of edges)
    if (from === to.depends_on_id) throw refusedCycle([from, from], relationOf(to.type), { body, edges, ids })
  const own = Map.groupBy(edges, ({ from }) => from)
  for (const [at, node] of body.nodes.entries()) {
    const id = ids.get(node.key) ?? ''
    const { rig } = places[at] ?? { rig: '' }
    const draft = draftOf(city, node, { rig, prefix: '' }, `body.nodes[${at}]`)
    const outgoing = (own.get(id) ?? []).map(({ to }) => to)
    city.beads.insert(tx, { ...draft, id, ...familyOf(node, ids, at, draft.metadata), edges: outgoing }, actor)
    own.delete(id)
  }
  for (const [id, more] of own)
    city.beads.change(tx, id, { add_edges: more.map(({ to }) => to) }, actor, { cyclesChecked: true })
  // One look at what the batch can have closed, once everything is there.
  for (const relation of ['blocking', 'containment'] as const) {
    const cycle = findCycle(tx, relation, [...ids.values(), ...own.keys()], own.size === 0)
    if (cycle !== undefined) throw refusedCycle(cycle, relation, { body, edges, ids })
  }
  return Object.fromEntries(ids)
}

function assertKeys({ nodes }: BeadBatchRequest): void {
  const keys = new Set<string>()
  for (const [at, { key, parent_key, parent_id }] of nodes.entries()) {
    if (key.trim() === '') throw invalidField(`body.nodes[${at}].key`, 'is blank', key)
    if (keys.has(key)) throw invalidField(`body.nodes[${at}].key`, 'names another node already', key)
    if (parent_key !== undefined && parent_id !== undefined)
      throw invalidField(`body.nodes[${at}].parent_id`, 'is not taken with `parent_key`', parent_id)
    keys.add(key)
  }
}

/** Ids before anything is written, so that edges and metadata can name them. */
function idsOf(tx: Tx, { beads, config }: WorkCity, nodes: readonly BeadBatchNode[], places: readonly Place[]): Ids {
  const given = new Set<string>()
  return new Map(
    nodes.map((node, at) => {
      const { ephemeral } = tierOf(config(), node, `body.nodes[${at}]`)
      const id = beads.reserveId(tx, places[at]?.prefix ?? '', ephemeral, given)
      given.add(id)
      return [node.key, id]
    }),
  )
}

function placed(edge: BeadBatchEdge, at: string, ids: Ids): PlacedEdge {
  const from = endOf(edge.from_key, edge.from_id, `${at}.from`, ids)
  const depends_on_id = endOf(edge.to_key, edge.to_id, `${at}.to`, ids)
  return { from, to: { depends_on_id, type: edge.type ?? 'blocks' } }
}

function endOf(key: string | undefined, id: string | undefined, at: string, ids: Ids): string {
  if (key !== undefined && id !== undefined) throw invalidField(`${at}_id`, `is not taken with \`${at}_key\``, id)
  if (key !== undefined) return keyed(key, `${at}_key`, ids)
  if (id === undefined) throw invalidField(`${at}_key`, `is required where there is no \`${at}_id\``)
  return id
}

function keyed(key: string, at: string, ids: Ids): string {
  const id = ids.get(key)
  if (id === undefined) throw invalidField(at, 'is the key of no node', key)
  return id
}

/** Beads that must exist already. */
function namedBeads({ nodes, edges = [] }: BeadBatchRequest): readonly BeadName[] {
  const name = (location: string, id: string | undefined) => (id === undefined ? [] : [{ location, id }])
  return [
    ...nodes.flatMap(({ parent_id }, at) => name(`body.nodes[${at}].parent_id`, parent_id)),
    ...edges.flatMap(({ from_id, to_id }, at) => [
      ...name(`body.edges[${at}].from_id`, from_id),
      ...name(`body.edges[${at}].to_id`, to_id),
    ]),
  ]
}

/** Beads that get edges. */
const dependingBeads = ({ edges = [] }: BeadBatchRequest): readonly BeadName[] =>
  edges.flatMap(({ from_id: id }, at) => (id === undefined ? [] : [{ location: `body.edges[${at}].from_id`, id }]))

const parentOf = ({ parent_key, parent_id }: BeadBatchNode, ids: Ids): string | undefined =>
  parent_key === undefined ? parent_id : ids.get(parent_key)

function assertOneParent({ nodes }: BeadBatchRequest, edges: readonly PlacedEdge[], ids: Ids): void {
  const parents = new Map(nodes.map((node) => [ids.get(node.key), parentOf(node, ids)]))
  for (const [at, { from, to }] of edges.entries()) {
    if (to.type !== PARENT_CHILD) continue
    const known = parents.get(from)
    if (known !== undefined && known !== to.depends_on_id)
      throw invalidField(`body.edges[${at}]`, 'gives a second parent to a bead')
    parents.set(from, to.depends_on_id)
  }
}

interface Placed {
  readonly body: BeadBatchRequest
  readonly edges: readonly PlacedEdge[]
  readonly ids: Ids
}

/** In the words of the batch: ids of its nodes nobody has seen, and now there will be none. */
function refusedCycle(cycle: readonly string[], relation: Relation | undefined, { body, edges, ids }: Placed): Problem {
  const isStep = (from: string | undefined, to: string | undefined) =>
    cycle.some((id, at) => id === from && to !== undefined && cycle[at + 1] === to)
  const edge = edges.findIndex(({ from, to }) => relationOf(to.type) === relation && isStep(from, to.depends_on_id))
  const child = body.nodes.findIndex((node) => isStep(ids.get(node.key), parentOf(node, ids)))
  const parent = body.nodes[child]?.parent_key === undefined ? 'parent_id' : 'parent_key'
  const location = edge < 0 && child >= 0 ? `body.nodes[${child}].${parent}` : `body.edges[${Math.max(edge, 0)}]`
  const keys = new Map([...ids].map(([key, id]) => [id, key]))
  return cycleProblem(
    cycle.map((id) => keys.get(id) ?? id),
    location,
  )
}

function familyOf(node: BeadBatchNode, ids: Ids, at: number, metadata: Readonly<Record<string, string>> = {}) {
  const { parent_key, parent_id = null, metadata_refs } = node
  const parent = parent_key === undefined ? parent_id : keyed(parent_key, `body.nodes[${at}].parent_key`, ids)
  if (metadata_refs === undefined) return { parent }
  assertOwnKeys(metadata_refs, `body.nodes[${at}].metadata_refs`)
  const refs = Object.entries(metadata_refs).map(([name, key]) => [
    name,
    keyed(key, `body.nodes[${at}].metadata_refs.${name}`, ids),
  ])
  return { parent, metadata: { ...metadata, ...Object.fromEntries(refs) } }
}
