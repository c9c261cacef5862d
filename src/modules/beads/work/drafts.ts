/** What callers say about a bead, as the store takes it: names, times and keys checked (sheet 03 §§4.3, 4.4). */
import { MAX_OUTPUT_BYTES } from '../../../contract/base/work.ts'
import {
  type BeadBatchNode,
  type BeadCloseRequest,
  type BeadCreateRequest,
  type BeadPatchRequest,
  type BeadStatus,
  DEFAULT_ISSUE_TYPE,
  PARENT_CHILD,
} from '../../../contract/beads.ts'
import { invalidField, needVisible, type Problem, problem, timeMs } from '../../../kernel/problem.ts'
import { type EdgeDraft, parseNeed } from '../store/edges.ts'
import { type BeadRecord, isReservedKey } from '../store/record.ts'
import type { BeadChange, BeadDraft, BeadName } from '../store/store.ts'
import { isAllowed } from '../store/transitions.ts'
import type { WorkCity, WorkConfig } from './city.ts'

/** What a create and a node of a batch have in common. */
type Described = Omit<BeadCreateRequest, 'parent' | 'rig' | 'needs'>
type People = Pick<WorkCity, 'people'>
type Surroundings = People & Pick<WorkCity, 'config'>

export function draftOf({ people, config }: Surroundings, body: Described, place: Place, at = 'body'): BeadDraft {
  assertOwnKeys(body.metadata ?? {}, `${at}.metadata`)
  assertTitle(body.title, at)
  const { title, priority, description = '', assignee = '', labels, metadata, defer_until, from = '', ref = '' } = body
  return {
    title,
    ...place,
    ...tierOf(config(), body, at),
    priority: priority ?? null,
    description: description || null,
    assignee: assignee === '' ? null : people.canonical(assignee),
    from: from || null,
    ref: ref || null,
    defer_until: defer_until === undefined ? null : timeMs(`${at}.defer_until`, defer_until),
    ...(labels === undefined ? {} : { labels }),
    ...(metadata === undefined ? {} : { metadata }),
  }
}

/** The draft of a create; `needs` become edges. */
export function draftOfCreate(city: Surroundings, body: BeadCreateRequest): BeadDraft {
  const needs = body.needs ?? []
  const draft = draftOf(city, body, placeOf(city.config(), body.rig))
  const edges = needs.map(needOf)
  const parents = edges.map((edge) => (edge.type === PARENT_CHILD ? edge.depends_on_id : undefined))
  const parent = body.parent ?? parents.find((id) => id !== undefined) ?? null
  const other = parents.findIndex((id) => id !== undefined && id !== parent)
  if (other >= 0) throw invalidField(`body.needs[${other}]`, `is another parent than ${parent}`, needs[other])
  return { ...draft, parent, needs: needs.length === 0 ? null : needs, edges }
}

function needOf(need: string, at: number): EdgeDraft {
  const edge = parseNeed(need)
  if (edge.depends_on_id === '') throw invalidField(`body.needs[${at}]`, 'names no bead', need)
  return edge
}

/** The beads that a create names. */
export function namedByCreate({ parent, needs = [] }: BeadCreateRequest): readonly BeadName[] {
  const needed = needs.map((need, at) => ({ location: `body.needs[${at}]`, id: parseNeed(need).depends_on_id }))
  return parent === undefined ? needed : [{ location: 'body.parent', id: parent }, ...needed]
}

export interface Place {
  readonly rig: string
  readonly prefix: string
}

/** Where a new bead belongs: the rig and its prefix, or the city. */
export function placeOf(config: WorkConfig, name: string | undefined, location = 'body.rig'): Place {
  if (name === undefined) return { rig: '', prefix: config.prefix }
  const rig = config.rigs.find((one) => one.name === name)
  if (rig === undefined) throw noRig(name, location)
  return { rig: name, prefix: rig.prefix }
}

export function noRig(name: string, location: string): Problem {
  const errors = [{ location, message: 'is the name of no rig', value: name }]
  return problem('rig-not-found', `there is no rig ${name}`, { errors })
}

/** `issue_type`, or its alias; undefined where neither is there. */
function issueTypeOf({ issue_type, type }: Pick<BeadBatchNode, 'issue_type' | 'type'>, at: string): string | undefined {
  if (issue_type !== undefined && type !== undefined && issue_type !== type)
    throw invalidField(`${at}.type`, 'is another type than `issue_type`: say one of them', type)
  return issue_type ?? type
}

/** The type of a new bead and how it is kept: as it says itself, else as the policy of its type says. */
export function tierOf(
  { beads }: WorkConfig,
  body: Pick<BeadBatchNode, 'issue_type' | 'type' | 'ephemeral'>,
  at: string,
) {
  const issue_type = issueTypeOf(body, at) ?? DEFAULT_ISSUE_TYPE
  const { policies = {} } = beads
  const storage = Object.hasOwn(policies, issue_type) ? policies[issue_type]?.storage : undefined
  const ephemeral = body.ephemeral ?? storage === 'ephemeral'
  return { issue_type, ephemeral, no_history: !ephemeral && storage === 'no_history' }
}

const assertTitle = (title: string, at: string): void => needVisible(`${at}.title`, title)

export function assertOwnKeys(metadata: object, at: string): void {
  for (const key of Object.keys(metadata)) {
    if (isReservedKey(key)) throw invalidField(`${at}.${key}`, 'is kept by the service: it cannot be set', key)
  }
}

/** What a merge patch comes to (sheet 03 §4.4). */
export function changeOfPatch({ people }: People, before: BeadRecord, patch: BeadPatchRequest): BeadChange {
  const { title, status, description, priority, assignee, parent, defer_until } = patch
  const issue_type = issueTypeOf(patch, 'body')
  if (title !== undefined) assertTitle(title, 'body')
  if (status !== undefined) assertAllowed(before, status)
  return {
    ...(title === undefined ? {} : { title }),
    ...(status === undefined ? {} : { status }),
    ...(issue_type === undefined ? {} : { issue_type }),
    ...(description === undefined ? {} : { description: description || null }),
    ...(priority === undefined ? {} : { priority }),
    ...(assignee === undefined ? {} : { assignee: personOf(people, assignee) }),
    ...(parent === undefined ? {} : { parent: parent || null }),
    ...(defer_until === undefined
      ? {}
      : { defer_until: defer_until === null ? null : timeMs('body.defer_until', defer_until) }),
    ...labelsOf(before, patch),
    ...metadataOf(before, patch),
  }
}

/** Null and empty are nobody. */
export const personOf = (people: WorkCity['people'], name: string | null): string | null =>
  name === null || name === '' ? null : people.canonical(name)

function assertAllowed(before: BeadRecord, status: BeadStatus): void {
  if (!isAllowed(before.status, status))
    throw problem('conflict-wrong-state', `${before.id} is ${before.status}: reopen it before it can be ${status}`)
}

/** Added first, then removed: what is in both is gone. */
function labelsOf(before: BeadRecord, { labels, remove_labels }: BeadPatchRequest): Pick<BeadChange, 'labels'> {
  if (labels == null && remove_labels == null) return {}
  const gone = new Set(remove_labels ?? [])
  return { labels: [...before.labels, ...(labels ?? [])].filter((label) => !gone.has(label)) }
}

function metadataOf(before: BeadRecord, { metadata }: BeadPatchRequest): Pick<BeadChange, 'metadata'> {
  if (metadata == null) return {}
  assertOwnKeys(metadata, 'body.metadata')
  const merged = new Map(Object.entries(before.metadata))
  for (const [key, value] of Object.entries(metadata)) {
    if (value === null) merged.delete(key)
    else merged.set(key, value)
  }
  return { metadata: Object.fromEntries(merged) }
}

/** What closing records; the time comes with the status. */
export function changeOfClose(body: BeadCloseRequest = {}): BeadChange {
  const { reason, outcome, failure_class, failure_reason, commit } = body
  return {
    status: 'closed',
    ...(reason === undefined || reason === '' ? {} : { close_reason: reason }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(failure_class === undefined ? {} : { failure_class }),
    ...(failure_reason === undefined ? {} : { failure_reason }),
    ...(commit === undefined || commit === '' ? {} : { work_commit: commit }),
    ...('output' in body ? { output_json: outputOf(body.output) } : {}),
  }
}

function outputOf(output: unknown): string {
  const json = JSON.stringify(output)
  if (Buffer.byteLength(json) > MAX_OUTPUT_BYTES)
    throw invalidField('body.output', `takes at most ${MAX_OUTPUT_BYTES / 1024} KiB of JSON`)
  return json
}
