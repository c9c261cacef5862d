/**
 * The beads of one city: every change of one goes through here, in the caller's write.
 *
 * B1  What a change did and its events are in the same write; nothing changed: nothing written, no event, same revision.
 * B2  The type of the event follows from the difference: to closed is `bead.closed`, whatever asked for it.
 * B3  `revision` is one more with every visible change of the bead itself. `is_blocked` and the lease are not: what
 *     others do, and what merely keeps a claim alive, spoils nobody's If-Match.
 * B4  `blockers` of dependents follows in the write that closes, reopens, deletes or creates what they depend on, where
 *     they are not too many (shifts.ts); each that becomes blocked or free by it gets a `bead.updated`.
 * B5  An id is never given out twice.
 */
import { PARENT_CHILD } from '../../../contract/beads.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import type { EventDraft, EventLog } from '../../../kernel/event-log.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { type BeadColumns, COLUMN_NAMES, type ColumnName, completed, sqlValue } from './columns.ts'
import { namesOfDifferences } from './differences.ts'
import { cycleOf, cycleProblem, dropEdges, type EdgeDraft, type EdgeEffect, putEdge } from './edges.ts'
import { BeadIds } from './ids.ts'
import { type BeadRecord, parseRecord, RECORD_SQL } from './record.ts'
import { BeadRows } from './rows.ts'
import { BLOCKING_SQL, beginShift, type Shifted, shiftOn } from './shifts.ts'
import { eventSnapshot } from './snapshot.ts'
import { consequences } from './transitions.ts'
import type { WordIndex } from './words.ts'

export type BeadDraft = Partial<BeadColumns> & {
  readonly title: string
  readonly labels?: readonly string[]
  readonly metadata?: Readonly<Record<string, string>>
  readonly edges?: readonly EdgeDraft[]
} & ({ readonly id: string } | { readonly prefix: string })

/** What should be; what is absent stays. */
export type BeadChange = Partial<BeadColumns> & {
  /** The whole set. */
  readonly labels?: readonly string[]
  /** All of it. */
  readonly metadata?: Readonly<Record<string, string>>
  readonly add_edges?: readonly EdgeDraft[]
  readonly remove_edges?: readonly { readonly depends_on_id: string; readonly type?: string | undefined }[]
  /** What changed about it elsewhere, such as its comments. */
  readonly touched?: readonly string[]
}

/** A bead that somebody names, and where. */
export interface BeadName {
  readonly location: string
  readonly id: string
}

export interface ChangeOptions {
  /** Events beside the generic one, if anything changed. */
  readonly also?: (after: BeadRecord) => readonly EventDraft[]
  /** The caller looks for cycles itself, over all that it adds. */
  readonly cyclesChecked?: boolean
}

export interface BeadStoreDeps {
  readonly db: Pick<Database, 'get' | 'all' | 'write' | 'join'>
  readonly log: Pick<EventLog, 'append'>
  readonly clock: Clock
  readonly ids?: BeadIds
  /** Called after the commit that makes a bead wait for a date. */
  readonly deferred?: (until: number) => void
  /** Throws where some of these may not be deleted by whoever asks. */
  readonly mayRemove?: (ids: readonly string[]) => void
  /** Called after a commit that left dependents to be told: `shiftOn` does it. */
  readonly shifting?: () => void
}

/** Put together once: a statement is found by its text. */
const ONE = `${RECORD_SQL} WHERE b.id = ?`
const SOME = `${RECORD_SQL} WHERE b.id IN (SELECT value FROM json_each(?))`
const MAX_LABELS = 500
const MAX_METADATA = 1_000
const MAX_METADATA_CHARACTERS = 1_048_576
const LOADED_AT_ONCE = 100
const MAX_NAMED_REFERRERS = 100
/** Beads that go in one write of a long deletion, and edges that are dropped in one. */
export const MAX_REMOVED_IN_SLICE = 100
/** Bytes of their long fields, which take their time to be read, told of and given back. */
const MAX_REMOVED_BYTES = 1_048_576
/** Edges `d` of open beads `b` that keep what they go to from being deleted. */
const usedBy = (types: string): string => `FROM bead_deps d JOIN beads b ON b.id = d.issue_id WHERE b.status <> 'closed'
  AND (d.${BLOCKING_SQL} OR d.type IN (${types}))`
const IN_USE = usedBy(`'${PARENT_CHILD}', 'tracks'`)
const IN_USE_BY_OTHERS = usedBy(`'tracks'`)
/** As SQLite has it. */
const NO_LIMIT = -1
/** Edges that other beads have to some: takes these twice. */
const FROM_OUTSIDE = `SELECT DISTINCT issue_id AS id, depends_on_id AS target FROM bead_deps
  WHERE depends_on_id IN (SELECT value FROM json_each(?)) AND issue_id NOT IN (SELECT value FROM json_each(?))`

export class BeadStore {
  readonly #deps: BeadStoreDeps
  readonly #ids: BeadIds
  readonly #rows: BeadRows

  constructor(deps: BeadStoreDeps) {
    this.#deps = deps
    this.#ids = deps.ids ?? new BeadIds()
    this.#rows = new BeadRows(deps.db)
  }

  /** The index of their words: who looks for some waits until it is settled. */
  get words(): WordIndex {
    return this.#rows.words
  }

  find(id: string): BeadRecord | undefined {
    const row = this.#deps.db.get(ONE, id)
    return row === undefined ? undefined : parseRecord(row)
  }

  /** The bead with this id, or the one that was read in this very write and is still as it was. */
  need(bead: string | BeadRecord): BeadRecord {
    if (typeof bead !== 'string') return bead
    const found = this.find(bead)
    if (found === undefined) throw problem('bead-not-found', `there is no bead ${bead}`)
    return found
  }

  /** The beads with these ids, in this order; those that are not there are left out. */
  load(ids: readonly string[]): readonly BeadRecord[] {
    if (ids.length === 0) return []
    const rows = this.#deps.db.all(SOME, JSON.stringify(ids))
    const records = new Map(rows.map((row: Row) => [String(row.id), parseRecord(row)]))
    return ids.flatMap((id) => records.get(id) ?? [])
  }

  /** As `load`, some at a time, for an answer that ends when it is full: a thousand of the largest would be a gigabyte. */
  *each(ids: readonly string[]): Generator<BeadRecord, void> {
    for (let from = 0; from < ids.length; from += LOADED_AT_ONCE)
      yield* this.load(ids.slice(from, from + LOADED_AT_ONCE))
  }

  /** Throws bead-not-found, with the place, where one of those that a body names is missing. */
  assertExist(named: Iterable<BeadName>): void {
    for (const { id, location } of named) {
      if (this.#deps.db.get('SELECT 1 FROM beads WHERE id = ?', id) !== undefined) continue
      const errors = [{ location, message: 'is the id of no bead', value: id }]
      throw problem('bead-not-found', `there is no bead ${id}`, { errors })
    }
  }

  /** An id for a bead that will be inserted in this write; not one of `given`, which are not there yet either. */
  reserveId(tx: Tx, prefix: string, ephemeral: boolean, given: ReadonlySet<string>): string {
    for (;;) {
      const id = this.#ids.next(tx, prefix, ephemeral)
      if (!given.has(id)) return id
    }
  }

  /** Creates a bead; a new one closes no cycle, so none is looked for. */
  insert(tx: Tx, draft: BeadDraft, actor: string): BeadRecord {
    const now = this.#deps.clock.now()
    const { labels: named = [], metadata = {}, edges = [] } = draft
    const labels = sortedSet(named)
    assertSizes(labels, metadata)
    const id = 'id' in draft ? draft.id : this.#ids.next(tx, draft.prefix, draft.ephemeral === true)
    const created_at = draft.created_at ?? now
    const columns = completed({ ...draft, created_at, updated_at: draft.updated_at ?? created_at })
    const n = this.#rows.insert(tx, id, columns, labels, metadata, now)
    this.#notice(tx, columns, now)
    const parent = columns.parent === null ? [] : [{ depends_on_id: columns.parent, type: PARENT_CHILD }]
    const effect = this.#putEdges(tx, id, [...parent, ...edges], now)
    if (effect.changed)
      tx.run('UPDATE beads SET blockers = ?, parent = ? WHERE id = ?', effect.blockers, effect.parent ?? null, id)
    const written = { ...columns, n, id, revision: 1, blockers: 0, labels, metadata, dependencies: [] }
    const made = !effect.changed && isKeptAsIs(written, COLUMN_NAMES) ? written : this.need(id)
    // Edges that dangled until now: a closed target is one that is done.
    if (made.status === 'closed') this.#shiftDependents(tx, id, false, actor)
    this.#append(tx, { type: 'bead.created', actor, subject: id, payload: { bead: eventSnapshot(made) } })
    return made
  }

  /** Makes the bead as `change` says; the bead as it is then (B1). */
  change(
    tx: Tx,
    bead: string | BeadRecord,
    change: BeadChange,
    actor: string,
    options: ChangeOptions = {},
  ): BeadRecord {
    const before = this.need(bead)
    const { id } = before
    const now = this.#deps.clock.now()
    const { labels, metadata, add_edges, remove_edges, touched = [], parent, ...columns } = change
    const edges = this.#changeEdges(tx, before, change, now, options)
    const wanted: BeadRecord = {
      ...before,
      ...consequences(before, columns, now),
      ...columns,
      parent: edges.parent === undefined ? before.parent : edges.parent,
      labels: labels === undefined ? before.labels : sortedSet(labels),
      metadata: metadata ?? before.metadata,
      blockers: before.blockers + edges.blockers,
    }
    const differing = COLUMN_NAMES.filter((name) => sqlValue(before[name]) !== sqlValue(wanted[name]))
    const changed = [...new Set([...namesOfDifferences(before, wanted, differing, edges.changed), ...touched])]
    if (changed.length === 0) {
      if (differing.length > 0) this.#rows.update(tx, before, wanted, differing, now)
      return differing.length > 0 ? wanted : before
    }
    assertSizes(wanted.labels, wanted.metadata)
    const updated_at = columns.updated_at ?? Math.max(now, before.updated_at)
    const named = new Set<ColumnName>([...differing, 'updated_at'])
    const written = { ...wanted, updated_at, revision: before.revision + 1 }
    this.#rows.update(tx, before, written, [...named], now)
    if (differing.includes('defer_until')) this.#notice(tx, written, now)
    const after = !edges.changed && isKeptAsIs(written, differing) ? written : this.need(id)
    this.#tell(tx, before, after, changed, actor, options)
    if ((before.status === 'closed') !== (after.status === 'closed'))
      this.#shiftDependents(tx, id, after.status !== 'closed', actor)
    return after
  }

  /**
   * Deletes a bead for good. Refuses while open beads refer to it; with `cascade` its children go too and edges to it are
   * dropped. Edges of closed beads are dropped either way: opened again, they would wait for something that never comes.
   */
  remove(tx: Tx, id: string, actor: string, cascade: boolean): readonly string[] {
    this.need(id)
    const going = cascade ? this.#below(id, NO_LIMIT) : [id]
    this.#deps.mayRemove?.(going)
    if (!cascade) this.refuseReferred(id)
    this.removeSome(tx, this.load(going.toReversed()), actor, NO_LIMIT)
    return going
  }

  /**
   * Deletes these, which have no other children, children before their parents; how many. First of all the edges that others
   * have to them are dropped, which is one change of each of those: where the edges are `most`, that is all.
   */
  removeSome(tx: Tx, records: readonly BeadRecord[], actor: string, most: number): number {
    const ids = JSON.stringify(records.map(({ id }) => id))
    const edges = tx.all(`${FROM_OUTSIDE} LIMIT ?`, ids, ids, most)
    for (const [dependent, rows] of Map.groupBy(edges, ({ id }) => String(id)))
      this.change(tx, dependent, { remove_edges: rows.map((row) => ({ depends_on_id: String(row.target) })) }, actor)
    if (edges.length === most) return 0
    this.#rows.remove(tx, records)
    for (const bead of records)
      this.#append(tx, { type: 'bead.deleted', actor, subject: bead.id, payload: { bead: eventSnapshot(bead) } })
    return records.length
  }

  /** How many of these, from the first on, are to go in one write of a long deletion; at least one. */
  sliceOf(ids: readonly string[]): number {
    const rows = this.#deps.db.all(
      `SELECT id, coalesce(octet_length(description), 0) + coalesce(octet_length(output_json), 0) + octet_length(metadata) AS bytes
        FROM beads WHERE id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(ids.slice(0, MAX_REMOVED_IN_SLICE)),
    )
    const bytesOf = new Map(rows.map(({ id, bytes }) => [String(id), Number(bytes)]))
    let bytes = 0
    const tooMuch = ids.findIndex((id, at) => {
      bytes += bytesOf.get(id) ?? 0
      return at === MAX_REMOVED_IN_SLICE || (at > 0 && bytes > MAX_REMOVED_BYTES)
    })
    return tooMuch < 0 ? ids.length : tooMuch
  }

  /** How many beads and edges of others a deletion is about, counted up to one more than `most`. */
  removalSize(id: string, cascade: boolean, most: number): number {
    const going = cascade ? this.#below(id, most + 1) : [id]
    const ids = JSON.stringify(going)
    const edges = this.#deps.db.get(`SELECT count(*) AS size FROM (${FROM_OUTSIDE} LIMIT ?)`, ids, ids, most + 1)
    return going.length + Number(edges?.size)
  }

  /** It and what is below it, parents first. */
  #below(id: string, most: number): readonly string[] {
    const sql = `WITH RECURSIVE below (id) AS (SELECT ? UNION SELECT b.id FROM below
      CROSS JOIN beads AS b ON b.parent = below.id LIMIT ?) SELECT id FROM below`
    return this.#deps.db.all(sql, id, most).map((row) => String(row.id))
  }

  #changeEdges(tx: Tx, before: BeadRecord, change: BeadChange, now: number, options: ChangeOptions): EdgeEffect {
    const { parent, add_edges = [], remove_edges = [] } = change
    const orphaned = parent === null && before.parent !== null
    const removing = orphaned
      ? [...remove_edges, { depends_on_id: before.parent ?? '', type: PARENT_CHILD }]
      : remove_edges
    const adding =
      typeof parent === 'string' ? [...add_edges, { depends_on_id: parent, type: PARENT_CHILD }] : add_edges
    let effect: EdgeEffect = { changed: false, blockers: 0 }
    for (const { depends_on_id, type } of removing) effect = sum(effect, dropEdges(tx, before.id, depends_on_id, type))
    for (const edge of adding) {
      const cycle = options.cyclesChecked === true ? undefined : cycleOf(tx, before.id, edge)
      if (cycle !== undefined) throw cycleProblem(cycle, typeof parent === 'string' ? 'body.parent' : undefined)
    }
    return sum(effect, this.#putEdges(tx, before.id, adding, now))
  }

  #putEdges(tx: Tx, id: string, edges: readonly EdgeDraft[], now: number): EdgeEffect {
    // Of several parents the last one is meant.
    const parent = edges.findLastIndex(({ type }) => type === PARENT_CHILD)
    return edges
      .filter(({ type }, at) => type !== PARENT_CHILD || at === parent)
      .reduce<EdgeEffect>((effect, edge) => sum(effect, putEdge(tx, id, edge, now)), { changed: false, blockers: 0 })
  }

  #tell(
    tx: Tx,
    before: BeadRecord,
    after: BeadRecord,
    changed: readonly string[],
    actor: string,
    { also }: ChangeOptions,
  ): void {
    const closed = after.status === 'closed' && before.status !== 'closed'
    const payload = { bead: eventSnapshot(after), changed: [...changed], revision: after.revision }
    this.#append(tx, { type: closed ? 'bead.closed' : 'bead.updated', actor, subject: after.id, payload })
    if (before.status === 'closed' && after.status !== 'closed')
      this.#append(tx, { type: 'bead.reopened', actor, subject: after.id, payload: { bead_id: after.id } })
    for (const draft of also?.(after) ?? []) this.#append(tx, draft)
  }

  /** Tells more of those that do not know yet what has closed or opened; false where all do (B4). */
  shiftOn(tx: Tx): boolean {
    return this.#tellShifted(tx, shiftOn(tx))
  }

  /** What depends on it has one blocker less or more: those that one write can tell, and the others soon (B4). */
  #shiftDependents(tx: Tx, id: string, opens: boolean, actor: string): void {
    if (this.#tellShifted(tx, beginShift(tx, id, opens, actor))) tx.afterCommit(() => this.#deps.shifting?.())
  }

  #tellShifted(tx: Tx, { flipped, actor, isOver }: Shifted): boolean {
    for (const bead of this.load(flipped)) {
      const payload = { bead: eventSnapshot(bead), changed: ['is_blocked'], revision: bead.revision }
      this.#append(tx, { type: 'bead.updated', actor, subject: bead.id, payload })
    }
    return !isOver
  }

  #notice(tx: Tx, { defer_until: until }: BeadColumns, now: number): void {
    if (until !== null && until > now) tx.afterCommit(() => this.#deps.deferred?.(until))
  }

  #append(tx: Tx, draft: EventDraft): void {
    this.#deps.log.append(tx, draft)
  }

  /** Those of these that open beads refer to. */
  inUse(ids: readonly string[]): ReadonlySet<string> {
    const rows = this.#deps.db.all(
      `SELECT id FROM (SELECT value AS id FROM json_each(?)) AS asked WHERE EXISTS (SELECT 1 ${IN_USE} AND d.depends_on_id = asked.id)`,
      JSON.stringify(ids),
    )
    return new Set(rows.map(({ id }) => String(id)))
  }

  /** Throws still-referenced, with their names, where open beads refer to it; its children may be meant to lose it. */
  refuseReferred(id: string, { children = true }: { readonly children?: boolean } = {}): void {
    const rows = this.#deps.db.all(
      `SELECT d.issue_id, d.type ${children ? IN_USE : IN_USE_BY_OTHERS} AND d.depends_on_id = ? ORDER BY d.issue_id LIMIT ${MAX_NAMED_REFERRERS}`,
      id,
    )
    if (rows.length === 0) return
    throw problem(
      'still-referenced',
      `${id} is still in use; \`cascade=true\` deletes its children and drops edges to it`,
      {
        errors: rows.map((row) => ({
          location: 'path.id',
          message: `${String(row.issue_id)} ${referenceOf(String(row.type))}`,
          value: String(row.issue_id),
        })),
      },
    )
  }
}

const referenceOf = (type: string): string =>
  type === PARENT_CHILD
    ? 'is a child of it'
    : type === 'tracks'
      ? 'is a convoy that tracks it'
      : `depends on it (${type})`

/** False where what is read is another text than what was written: halves of surrogate pairs are replaced. */
const isKeptAsIs = (record: BeadRecord, columns: readonly ColumnName[]): boolean =>
  columns.every((name) => {
    const value = record[name]
    return typeof value !== 'string' || value.isWellFormed()
  })

/** As it is kept: sorted, each once, and text as the database takes it. */
const sortedSet = (labels: readonly string[]): readonly string[] =>
  labels.length === 0 ? [] : [...new Set(labels.map((label) => label.toWellFormed()))].sort()

function sum(one: EdgeEffect, other: EdgeEffect): EdgeEffect {
  const effect = { changed: one.changed || other.changed, blockers: one.blockers + other.blockers }
  const parent = other.parent === undefined ? one.parent : other.parent
  return parent === undefined ? effect : { ...effect, parent }
}

export function assertSizes(labels: readonly string[], metadata: Readonly<Record<string, string>>): void {
  if (labels.length > MAX_LABELS) throw invalidField('body.labels', `a bead has at most ${MAX_LABELS} labels`)
  if (Object.keys(metadata).length > MAX_METADATA)
    throw invalidField('body.metadata', `a bead has at most ${MAX_METADATA} keys of metadata`)
  let length = 0
  for (const key in metadata) length += key.length + (metadata[key]?.length ?? 0)
  if (length > MAX_METADATA_CHARACTERS)
    throw invalidField('body.metadata', `a bead has at most ${MAX_METADATA_CHARACTERS} characters of metadata`)
}
