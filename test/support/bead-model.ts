/**
 * What the beads of a city should be, in plain objects (sheet 03 §§1–5, decisions 42–48): no SQL, no counters, no indexes.
 * Everything that the service keeps up to date is worked out here from nothing, each time.
 */
import assert from 'node:assert/strict'
import type { Fields } from './document.ts'

export const LEASE_MS = 900_000
const BLOCKING = new Set(['blocks', 'waits-for', 'conditional-blocks'])
const NO_WORK = new Set([
  'merge-request',
  'gate',
  'molecule',
  'step',
  'convoy',
  'message',
  'session',
  'agent',
  'role',
  'rig',
])
const NO_WORK_LABELS = ['svc:session', 'svc:order-tracking', 'order-tracking']
const HOLDS = ['hold:mayor', 'hold:external']
/** Fields that say how a bead ended; opening it again forgets them. */
const ENDING = ['closed_at', 'close_reason', 'outcome', 'output_json', 'failure_class', 'failure_reason'] as const
/** Kept in columns, shown in the metadata; those of the first list are fields of their own too. */
const TYPED_MIRRORS = ['routed_to', 'outcome', 'session_id'] as const
const HIDDEN_MIRRORS = [
  'output_json',
  'failure_class',
  'failure_reason',
  'session_name',
  'work_branch',
  'work_commit',
] as const
const TEXTS = ['close_reason', 'assignee', 'from', 'parent', 'ref', 'rig', 'description'] as const

type Text = Exclude<(typeof TEXTS)[number], 'parent'> | (typeof TYPED_MIRRORS)[number] | (typeof HIDDEN_MIRRORS)[number]

export interface ModelBead extends Partial<Record<Text, string | undefined>> {
  readonly id: string
  title: string
  status: string
  issue_type: string
  priority?: number | undefined
  readonly created_at: number
  updated_at: number
  closed_at?: number | undefined
  defer_until?: number | undefined
  lease_expires_at?: number | undefined
  readonly ephemeral: boolean
  readonly needs?: readonly string[] | undefined
  labels: readonly string[]
  metadata: Readonly<Record<string, string>>
  edges: readonly ModelEdge[]
  readonly comments: ModelComment[]
  revision: number
}
export interface ModelEdge {
  readonly to: string
  readonly type: string
}
export interface ModelComment {
  readonly text: string
  readonly author?: string
  readonly at: number
}
export interface ModelEvent {
  readonly type: string
  readonly actor: string
  readonly subject: string
  readonly payload: Fields
}
export interface Claimant {
  readonly assignee: string
  readonly session_id?: string
  readonly session_name?: string
  readonly branch?: string
}
export type Tier = 'in_progress' | 'assigned' | 'routed'

export class BeadModel {
  now: number
  beads = new Map<string, ModelBead>()
  readonly gone = new Set<string>()
  /** What should be in the log since the last look. */
  events: ModelEvent[] = []

  constructor(now: number) {
    this.now = now
  }

  need(id: string): ModelBead {
    const bead = this.beads.get(id)
    assert.ok(bead, `the model has no ${id}`)
    return bead
  }

  takeEvents(): readonly ModelEvent[] {
    const { events } = this
    this.events = []
    return events
  }

  // ---- what follows from what is there -------------------------------------------------------------------------------

  isBlocked({ edges }: ModelBead): boolean {
    return edges.some(({ to, type }) => BLOCKING.has(type) && this.beads.get(to)?.status !== 'closed')
  }

  /** Its dates allow it, and nothing that it depends on is in its way. */
  isUnhindered(bead: ModelBead): boolean {
    return !this.isBlocked(bead) && (bead.defer_until === undefined || bead.defer_until <= this.now)
  }

  isReady(bead: ModelBead): boolean {
    const workable = !NO_WORK.has(bead.issue_type) && !bead.labels.some((label) => NO_WORK_LABELS.includes(label))
    return bead.status === 'open' && workable && this.isUnhindered(bead)
  }

  parentOf({ edges }: ModelBead): string | undefined {
    return edges.find(({ type }) => type === 'parent-child')?.to
  }

  wire(bead: ModelBead): Fields {
    const { id, title, status, issue_type, priority, labels, needs, revision } = bead
    const texts = TEXTS.map((name) => [name, name === 'parent' ? this.parentOf(bead) : bead[name]])
    const mirrors = [...TYPED_MIRRORS, ...HIDDEN_MIRRORS].map((name) => [`svc.${name}`, bead[name]])
    const metadata = { ...bead.metadata, ...said(mirrors) }
    const dependencies = bead.edges
      .map(({ to, type }) => ({ issue_id: id, depends_on_id: to, type }))
      .sort((a, b) => compare([a.depends_on_id, a.type], [b.depends_on_id, b.type]))
    return {
      id,
      title,
      status,
      issue_type,
      created_at: iso(bead.created_at),
      updated_at: iso(bead.updated_at),
      is_blocked: this.isBlocked(bead),
      revision,
      ...said([...texts, ...TYPED_MIRRORS.map((name) => [name, bead[name]]), ['priority', priority], ['needs', needs]]),
      ...said(TIMES.map((name) => [name, bead[name] === undefined ? undefined : iso(bead[name])])),
      ...(bead.ephemeral ? { ephemeral: true } : {}),
      ...(labels.length === 0 ? {} : { labels: [...labels] }),
      ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      ...(dependencies.length === 0 ? {} : { dependencies }),
    }
  }

  /** Those that satisfy it, newest first. */
  select(fits: (bead: ModelBead) => boolean): readonly ModelBead[] {
    return [...this.beads.values()].filter(fits).sort((a, b) => -compare([a.created_at, a.id], [b.created_at, b.id]))
  }

  ready(): readonly ModelBead[] {
    return this.select((bead) => this.isReady(bead)).toSorted(byUrgency)
  }

  hook(agent: string, sessionId?: string): readonly { readonly tier: Tier; readonly bead: ModelBead }[] {
    const free = (bead: ModelBead) => !bead.labels.some((label) => HOLDS.includes(label))
    const mine = ({ assignee }: ModelBead) => assignee !== undefined && [agent, sessionId].includes(assignee)
    const underWay = (bead: ModelBead) =>
      bead.status === 'in_progress' &&
      bead.issue_type !== 'message' &&
      this.isUnhindered(bead) &&
      !isElsewhere(bead, { assignee: agent, ...(sessionId === undefined ? {} : { session_id: sessionId }) })
    const tier = (name: Tier, beads: readonly ModelBead[]) => beads.map((bead) => ({ tier: name, bead }))
    return [
      ...tier('in_progress', this.select((bead) => mine(bead) && free(bead) && underWay(bead)).toSorted(byUrgency)),
      ...tier('assigned', this.select((bead) => mine(bead) && free(bead) && this.isReady(bead)).toSorted(byUrgency)),
      ...tier(
        'routed',
        this.select(
          (bead) =>
            this.isReady(bead) &&
            free(bead) &&
            bead.assignee === undefined &&
            bead.routed_to === agent &&
            bead.issue_type !== 'epic',
        ).toReversed(),
      ),
    ]
  }

  children(id: string): readonly ModelBead[] {
    return this.select((bead) => this.parentOf(bead) === id).toReversed()
  }

  /** It and everything below it. */
  family(id: string): readonly string[] {
    return [id, ...this.children(id).flatMap((child) => this.family(child.id))]
  }

  /** Open beads that keep it from being deleted. */
  referrers(id: string): readonly string[] {
    return [...this.beads.values()]
      .filter(({ status }) => status !== 'closed')
      .filter(({ edges }) => edges.some(({ to, type }) => to === id && isHold(type)))
      .map((bead) => bead.id)
  }

  /** True where an edge would make a circle of edges that block, or of parents; or lead from a bead to itself. */
  closesCycle(from: string, { to, type }: ModelEdge): boolean {
    if (from === to) return true
    if (!isChecked(type)) return false
    const alike = (one: string) => BLOCKING.has(one) === BLOCKING.has(type)
    const seen = new Set<string>()
    const leads = (at: string): boolean => {
      if (at === from) return true
      if (seen.has(at)) return false
      seen.add(at)
      return (this.beads.get(at)?.edges ?? []).some(
        (edge) => isChecked(edge.type) && alike(edge.type) && leads(edge.to),
      )
    }
    return leads(to)
  }

  /** True where there is a circle now. */
  hasCycle(): boolean {
    return [...this.beads.values()].some(({ id, edges }) => edges.some((edge) => this.closesCycle(id, edge)))
  }

  // ---- what is done ---------------------------------------------------------------------------------------------------

  create(bead: ModelBead, edges: readonly ModelEdge[], actor = 'api'): void {
    assert.ok(!this.beads.has(bead.id) && !this.gone.has(bead.id), `${bead.id} was given out before`)
    bead.labels = setOf(bead.labels)
    for (const edge of edges) putEdge(bead, edge)
    this.beads.set(bead.id, bead)
    this.#tell('bead.created', actor, bead.id, { bead: this.wire(bead) })
  }

  /** Changes one bead; if that can be seen, its revision and its events follow. */
  change(
    id: string,
    mutate: (bead: ModelBead) => void,
    actor = 'api',
    also: (bead: ModelBead) => readonly (readonly [type: string, payload: Fields])[] = () => [],
    touched: readonly string[] = [],
  ): ModelBead {
    const bead = this.need(id)
    const before = this.wire(bead)
    const flags = this.#flags()
    mutate(bead)
    bead.labels = setOf(bead.labels)
    const changed = [...differences(before, this.wire(bead)), ...touched].sort()
    if (changed.length === 0) return bead
    bead.updated_at = this.now
    bead.revision++
    const after = this.wire(bead)
    const closed = before.status !== 'closed' && after.status === 'closed'
    this.#tell(closed ? 'bead.closed' : 'bead.updated', actor, id, { bead: after, changed, revision: bead.revision })
    if (before.status === 'closed' && after.status !== 'closed') this.#tell('bead.reopened', actor, id, { bead_id: id })
    for (const [type, payload] of also(bead)) this.#tell(type, actor, id, payload)
    this.#tellFlips(flags, id, actor)
    return bead
  }

  /** A status, with what goes along with it. */
  setStatus(bead: ModelBead, status: string): void {
    if (status === bead.status) return
    if (status === 'closed') {
      bead.closed_at = this.now
      bead.lease_expires_at = undefined
    }
    if (status === 'open') {
      if (bead.status === 'closed') {
        for (const name of ENDING) bead[name] = undefined
        bead.assignee = undefined
      }
      bead.session_id = bead.session_name = bead.lease_expires_at = undefined
    }
    bead.status = status
  }

  /** Somebody else has it: a lease goes on for them in full, the session does not. */
  setAssignee(bead: ModelBead, assignee: string | undefined): void {
    if (assignee !== bead.assignee && bead.lease_expires_at !== undefined) {
      bead.session_id = bead.session_name = undefined
      bead.lease_expires_at = assignee === undefined ? undefined : this.now + LEASE_MS
    }
    bead.assignee = assignee
  }

  claim(id: string, claimant: Claimant, actor = claimant.assignee): void {
    const { assignee } = claimant
    const before = this.need(id)
    const renewed = before.assignee === assignee && before.status === 'in_progress'
    const session = claimant.session_id ?? (renewed ? before.session_id : undefined)
    const keepsName = renewed && session === before.session_id
    this.change(
      id,
      (bead) => {
        bead.status = 'in_progress'
        bead.assignee = assignee
        bead.session_name = claimant.session_name ?? (keepsName ? bead.session_name : undefined)
        bead.session_id = session
        bead.work_branch = claimant.branch ?? bead.work_branch
        bead.lease_expires_at = this.now + LEASE_MS
      },
      actor,
      (bead) => {
        const lease_expires_at = iso(bead.lease_expires_at ?? 0)
        return [['bead.claimed', { bead_id: id, assignee, ...said([['session_id', session]]), lease_expires_at }]]
      },
    )
  }

  reject(id: string, attempted_claimant: string, actor = attempted_claimant): void {
    const holder = said([['existing_claimant', this.need(id).assignee]])
    this.#tell('bead.claim_rejected', actor, id, { bead_id: id, ...holder, attempted_claimant })
  }

  /** Open, and nobody's. */
  free(id: string, actor: string, type: string, more: Fields = {}): void {
    const previous = said([['previous_assignee', this.need(id).assignee]])
    const open = (bead: ModelBead) => {
      this.setStatus(bead, 'open')
      bead.assignee = undefined
    }
    this.change(id, open, actor, () => [[type, { bead_id: id, ...previous, ...more }]])
  }

  comment(id: string, comment: ModelComment): void {
    const add = (bead: ModelBead) => bead.comments.push(comment)
    this.change(id, add, comment.author ?? 'api', undefined, ['comments'])
  }

  /** Deletes them in this order; first edges of the others to them, which is one change of each, however many it has. */
  delete(ids: readonly string[], actor = 'api'): void {
    const goes = ({ to }: ModelEdge) => ids.includes(to)
    const left = [...this.beads.values()].filter(({ id, edges }) => !ids.includes(id) && edges.some(goes))
    for (const { id } of left) {
      const drop = (bead: ModelBead) => {
        bead.edges = bead.edges.filter((edge) => !goes(edge))
      }
      this.change(id, drop, actor)
    }
    for (const id of ids) this.#tell('bead.deleted', actor, id, { bead: this.wire(this.need(id)) })
    for (const id of ids) {
      this.beads.delete(id)
      this.gone.add(id)
    }
  }

  /** Time passes; what was not renewed is open again at that moment. */
  advance(ms: number): void {
    const until = this.now + ms
    for (;;) {
      const [next] = [...this.beads.values()]
        .filter((bead) => (bead.lease_expires_at ?? Number.POSITIVE_INFINITY) <= until)
        .sort((a, b) => (a.lease_expires_at ?? 0) - (b.lease_expires_at ?? 0))
      if (next === undefined) break
      this.now = next.lease_expires_at ?? this.now
      this.free(next.id, 'supervisor', 'bead.lease_expired')
    }
    this.now = until
  }

  #tell(type: string, actor: string, subject: string, payload: Fields): void {
    this.events.push({ type, actor, subject, payload })
  }

  #flags(): ReadonlyMap<string, boolean> {
    return new Map([...this.beads.values()].map((bead) => [bead.id, this.isBlocked(bead)]))
  }

  /** Others, not closed, that became blocked or free. */
  #tellFlips(before: ReadonlyMap<string, boolean>, cause: string, actor: string): void {
    for (const bead of this.beads.values()) {
      if (bead.id === cause || bead.status === 'closed' || before.get(bead.id) === this.isBlocked(bead)) continue
      const payload = { bead: this.wire(bead), changed: ['is_blocked'], revision: bead.revision }
      this.#tell('bead.updated', actor, bead.id, payload)
    }
  }
}

/** Another session of that name has a claim on it. */
export const isElsewhere = (bead: ModelBead, { assignee, session_id: own, session_name: name }: Claimant): boolean =>
  ![own, name].includes(assignee) &&
  ![undefined, own].includes(bead.session_id) &&
  own !== undefined &&
  bead.lease_expires_at !== undefined

const TIMES = ['closed_at', 'defer_until', 'lease_expires_at'] as const
export const iso = (ms: number): string => new Date(ms).toISOString()

/** One edge between two beads beside that of a parent, and one parent. */
export function putEdge(bead: ModelBead, edge: ModelEdge): void {
  const isParent = edge.type === 'parent-child'
  const stands = ({ to, type }: ModelEdge) =>
    isParent ? type !== 'parent-child' : type === 'parent-child' || to !== edge.to
  bead.edges = [...bead.edges.filter(stands), edge]
}

const isHold = (type: string): boolean => BLOCKING.has(type) || type === 'parent-child' || type === 'tracks'
const isChecked = (type: string): boolean => BLOCKING.has(type) || type === 'parent-child'
const setOf = (labels: readonly string[]): readonly string[] => [...new Set(labels)].sort()

/** The pairs whose value is there. */
function said(pairs: readonly (readonly unknown[])[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.filter(([, value]) => value !== undefined).map(([name, value]) => [String(name), value]),
  )
}

function compare(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  const at = one.findIndex((value, index) => value !== other[index])
  const [left, right] = [one[at], other[at]]
  return left === undefined || right === undefined ? 0 : left < right ? -1 : 1
}

const byUrgency = (a: ModelBead, b: ModelBead): number =>
  compare([a.priority ?? 2, a.created_at, a.id], [b.priority ?? 2, b.created_at, b.id])

const UNTOLD = new Set(['updated_at', 'revision', 'lease_expires_at'])

/** Fields that differ, as events call them. */
function differences(before: Fields, after: Fields): readonly string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => !UNTOLD.has(name))
  return names.filter((name) => {
    const [one, other] = [before[name], after[name]].map((value) => (name === 'metadata' ? ownMetadata(value) : value))
    return JSON.stringify(one) !== JSON.stringify(other)
  })
}

/** Without what has a field of its own, sorted. */
function ownMetadata(value: unknown): unknown {
  const typed = new Set<string>(TYPED_MIRRORS.map((name) => `svc.${name}`))
  return Object.entries(value ?? {})
    .filter(([key]) => !typed.has(key))
    .sort(([a], [b]) => (a < b ? -1 : 1))
}
