/**
 * Lines of the interchange become beads (sheet 03 §11, decision 48).
 *
 * I1  Lines are taken in as they come, some hundred in one write; between two writes everybody else has a turn. Where the
 *     upload breaks off, the lines before it are in, and the whole import again repairs what is missing.
 * I2  A bead and its edges are in the same write, so nobody finds work ready that waits for a line still to come.
 * I3  The newer `updated_at` wins; of two that are as old, the import; one that says what is here already writes nothing.
 * I4  A line that is refused changes nothing, and the others do not notice.
 */
import { cut } from '../../../contract/base/text.ts'
import type { BeadImportIssue, BeadImportResponse } from '../../../contract/beads.ts'
import type { BodyLine, BodyLines } from '../../../kernel/call.ts'
import { actorOf, type Caller } from '../../../kernel/caller.ts'
import { type Clock, nextTurn } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { Problem, problem } from '../../../kernel/problem.ts'
import { insertComment } from '../store/comments.ts'
import { cycleOf, type Edge, tooFar } from '../store/edges.ts'
import { assertSizes } from '../store/store.ts'
import type { WorkCity } from '../work/city.ts'
import { ForeignMolecules, MAX_FREED, moleculeOf } from './foreign-molecules.ts'
import { type CycleOf, cycleFault, decide, Existing, exists, type Item, type Verdict } from './import-decision.ts'
import { remapped, type Scopes, scopeOf, scopesOf } from './import-scopes.ts'
import { markedUnset, type ReadLine, readLine, toBead, withIds } from './interchange.ts'
import type { LineComment } from './line.ts'
import { LineFault } from './line-values.ts'
import { PlannedBead, PlannedEdges } from './planned.ts'

interface ImportOptions {
  readonly rig?: string | undefined
  readonly mode?: 'upsert' | 'create' | undefined
  readonly dry_run?: boolean | undefined
  readonly remap?: boolean | undefined
}

/** Of one write: it holds up everybody else for so long. */
const MAX_CHUNK_LINES = 200
const MAX_CHUNK_CHARACTERS = 1024 * 1024
/** Beads that looks for cycles see in one write, after which it takes no further line; one line may need a long look or two. */
const MAX_LOOKED = 10_000
const MAX_LOOKED_FOR_LINE = 50_000
const MAX_ISSUES = 1_000
const MAX_DETAIL = 500
/** Targets of edges that have not come yet; more are not followed, and no more than MAX_ISSUES are told of anyway. */
const MAX_AWAITED = 100_000

interface ImportSurroundings {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Who imports: events name it, and it speaks for itself alone. */
  readonly caller: Caller
}

/** Reads all lines; refuses only where nothing more can be done. */
export function importLines(
  city: WorkCity,
  lines: BodyLines,
  options: ImportOptions,
  { signal, ...surroundings }: ImportSurroundings,
): Promise<BeadImportResponse> {
  return new Import(city, options, surroundings).run(lines, signal)
}

class Import {
  readonly #city: WorkCity
  readonly #options: ImportOptions
  readonly #clock: Clock
  readonly #caller: Caller
  readonly #actor: string
  readonly #scopes: Scopes
  readonly #counts = { created: 0, updated: 0, unchanged: 0, skipped: 0, failed: 0 }
  readonly #errors: BeadImportIssue[] = []
  readonly #warnings: BeadImportIssue[] = []
  /** By target, the first line that has an edge to it. */
  readonly #awaited = new Map<string, { readonly line: number; readonly id: string }>()
  /** What a dry run would have written. */
  readonly #planned = new Map<string, PlannedBead>()
  readonly #plannedEdges = new PlannedEdges()
  readonly #molecules = new ForeignMolecules()

  constructor(city: WorkCity, options: ImportOptions, { clock, caller }: Omit<ImportSurroundings, 'signal'>) {
    this.#city = city
    this.#options = options
    this.#clock = clock
    this.#caller = caller
    this.#actor = actorOf(caller)
    this.#scopes = scopesOf(city.config(), options.rig)
  }

  async run(lines: BodyLines, signal: AbortSignal): Promise<BeadImportResponse> {
    let chunk = new Map<string, Item>()
    let size = 0
    const flush = async () => {
      if (signal.aborted) throw problem('unavailable', 'the import was interrupted; run it again', { retryAfterSec: 1 })
      const items = [...chunk.values()]
      chunk = new Map()
      size = 0
      if (items.length > 0) await this.#take(items)
    }
    for await (const line of lines) {
      const item = this.#read(line)
      if (item === undefined) continue
      // Twice in one file: the second is looked at when the first is in.
      if (chunk.has(item.bead.id)) await flush()
      chunk.set(item.bead.id, item)
      size += line.fault === undefined ? line.text.length : 0
      if (chunk.size >= MAX_CHUNK_LINES || size >= MAX_CHUNK_CHARACTERS) await flush()
    }
    await flush()
    await this.#freeFromMolecules()
    return this.#report()
  }

  /** Lines are sorted by id: what waits for a molecule can stand before the line of the molecule. */
  async #freeFromMolecules(): Promise<void> {
    if (this.#options.dry_run === true || this.#molecules.isEmpty) return
    const { store, beads } = this.#city
    for (;;) {
      const freed = await store.db.write((tx) => this.#molecules.free(tx, beads, this.#actor))
      if (freed < MAX_FREED) return
      await nextTurn()
    }
  }

  /** The bead of a line; undefined where the line is already dealt with. */
  #read(line: BodyLine): Item | undefined {
    if (line.fault !== undefined) return this.#fail(line.line, undefined, line.fault)
    let id: string | undefined
    try {
      const read = readLine(line.text)
      if (read.skip !== undefined) {
        this.#counts.skipped++
        return undefined
      }
      id = read.id
      const placed = this.#place(read)
      const molecule = moleculeOf(read.object)
      if (molecule !== undefined && !this.#exists(placed.read.id)) {
        this.#molecules.leaveOut(placed.read.id, { line: line.line, molecule })
        this.#counts.skipped++
        return undefined
      }
      const said = this.#isUnset(placed.read.id) ? markedUnset(placed.read) : placed.read
      const bead = toBead(said, () => this.#createdAt(said.id))
      assertSizes(bead.labels, bead.metadata)
      return { line: line.line, rig: placed.rig, bead }
    } catch (error) {
      if (error instanceof LineFault || isRefusal(error)) return this.#fail(line.line, id, reasonOf(error))
      throw error
    }
  }

  #place(read: ReadLine): { readonly read: ReadLine; readonly rig: string } {
    const { allowed, target } = this.#scopes
    const scope = scopeOf(read.id, allowed) ?? this.#keptIn(read.id)
    if (this.#options.remap === true) {
      const isOurs = (id: string) => scopeOf(id, allowed) !== undefined || this.#keptIn(id) !== undefined
      const rename = (id: string) => (isOurs(id) ? id : remapped(id, target.prefix))
      return { read: withIds(read, rename), rig: (scope ?? target).rig }
    }
    if (scope !== undefined) return { read, rig: scope.rig }
    throw new LineFault(
      `the prefix of ${read.id} is not ${allowed.map(({ prefix }) => prefix).join(' or ')}; \`remap\` gives it a new id`,
    )
  }

  /** Where a bead is that has a prefix which is nobody's any more: what was exported here is taken in here. */
  #keptIn(id: string): { readonly rig: string } | undefined {
    const rig = this.#city.store.db.get('SELECT rig FROM beads WHERE id = ?', id)?.rig
    if (rig === undefined || (this.#options.rig !== undefined && rig !== this.#options.rig)) return undefined
    return { rig: String(rig) }
  }

  /** True where the bead has no priority here: elsewhere the one that was written for it is its own. */
  #isUnset(id: string): boolean {
    return this.#city.store.db.get('SELECT 1 FROM beads WHERE id = ? AND priority IS NULL', id) !== undefined
  }

  /** For a line that does not say: what the bead has, so that the same line twice is the same. */
  #createdAt(id: string): number {
    const known = this.#city.store.db.get('SELECT created_at FROM beads WHERE id = ?', id)?.created_at
    return known === undefined ? this.#clock.now() : Number(known)
  }

  /** Takes them in, in as many writes as looks for cycles make of it. */
  async #take(items: readonly Item[]): Promise<void> {
    for (let rest = items; rest.length > 0; ) rest = rest.slice(await this.#takeSome(rest))
  }

  /** Takes the first of them in; how many. */
  async #takeSome(items: readonly Item[]): Promise<number> {
    const { db } = this.#city.store
    // Like a write a dry run lets others have their turn.
    await nextTurn()
    if (this.#options.dry_run === true) return this.#tell(this.#rehearse(items))
    try {
      return this.#tell(await db.write((tx) => this.#write(tx, items)))
    } catch (error) {
      if (!isRefusal(error)) throw error
      const [item] = items
      // One of them: halves find it soon.
      if (items.length > 1 || item === undefined) return this.#takeSome(items.slice(0, items.length >> 1))
      this.#fail(item.line, item.bead.id, reasonOf(error))
      return 1
    }
  }

  #tell(verdicts: readonly Verdict[]): number {
    for (const { item, outcome } of verdicts) this.#count(item, outcome)
    return verdicts.length
  }

  #write(tx: Tx, items: readonly Item[]): readonly Verdict[] {
    const there = new Existing(this.#city, tx, items, this.#caller)
    return untilLooked(items, (item, looked) => {
      const cycle: CycleOf = (id, edge) => cycleOf(tx, id, edge, looked)
      const { outcome, edges, comments } = decide(cycle, item, there, this.#options.mode)
      if (outcome === 'created') this.#create(tx, item, comments)
      else if (outcome === 'updated') this.#update(tx, item, edges, comments)
      return outcome
    })
  }

  #create(tx: Tx, { bead, rig }: Item, comments: readonly LineComment[]): void {
    const { id, columns, labels, metadata, edges } = bead
    // The edge says who the parent is, and more.
    this.#city.beads.insert(tx, { ...columns, parent: null, id, rig, labels, metadata, edges }, this.#actor)
    writeComments(tx, id, comments)
  }

  #update(tx: Tx, { bead }: Item, gone: readonly Edge[], comments: readonly LineComment[]): void {
    const { id, labels, metadata, edges } = bead
    const { parent: _parent, ...columns } = bead.columns
    writeComments(tx, id, comments)
    this.#city.beads.change(
      tx,
      id,
      {
        ...columns,
        labels,
        metadata,
        remove_edges: gone,
        add_edges: edges,
        touched: comments.length === 0 ? [] : ['comments'],
      },
      this.#actor,
      { cyclesChecked: true },
    )
  }

  #rehearse(items: readonly Item[]): readonly Verdict[] {
    const { db } = this.#city.store
    const there = new Existing(this.#city, db, items, this.#caller)
    return untilLooked(items, (item, looked) => {
      const cycle: CycleOf = (id, edge) => this.#plannedEdges.cycleOf(db, id, edge, looked)
      return this.#rehearseOne(item, there, cycle)
    })
  }

  /** What the import would do with a line; where another one has its bead already, that is what is there. */
  #rehearseOne(item: Item, there: Existing, cycle: CycleOf): Verdict['outcome'] {
    const { bead } = item
    const { mode } = this.#options
    const planned = new PlannedBead(bead)
    const earlier = this.#planned.get(bead.id)
    const outcome =
      earlier === undefined
        ? decide(cycle, item, there, mode).outcome
        : mode === 'create'
          ? { fault: exists(bead.id) }
          : (earlier.outcomeOf(planned) ?? cycleFault(cycle, bead.id, bead.edges) ?? 'updated')
    if (outcome === 'created' || outcome === 'updated') {
      this.#planned.set(bead.id, planned)
      this.#plannedEdges.put(bead.id, bead.edges)
    }
    return outcome
  }

  #count({ line, bead }: Item, outcome: Verdict['outcome']): void {
    if (typeof outcome !== 'string') {
      this.#fail(line, bead.id, outcome.fault)
      return
    }
    this.#counts[outcome]++
    this.#awaited.delete(bead.id)
    if (outcome === 'skipped') return
    for (const { depends_on_id } of bead.edges) this.#await(line, bead.id, depends_on_id)
  }

  #await(line: number, id: string, target: string): void {
    if (this.#awaited.has(target) || this.#awaited.size >= MAX_AWAITED || target.startsWith('external:')) return
    if (this.#planned.has(target) || this.#exists(target)) return
    this.#awaited.set(target, { line, id })
  }

  #exists(id: string): boolean {
    return this.#city.store.db.get('SELECT 1 FROM beads WHERE id = ?', id) !== undefined
  }

  #fail(line: number, id: string | undefined, why: string): undefined {
    this.#counts.failed++
    if (this.#errors.length >= MAX_ISSUES) return
    const detail = why.length > MAX_DETAIL ? `${cut(why, MAX_DETAIL)}…` : why
    this.#errors.push({ line, ...(id === undefined ? {} : { id }), detail })
  }

  #report(): BeadImportResponse {
    this.#warnings.push(...this.#molecules.warnings().slice(0, MAX_ISSUES))
    for (const [target, { line, id }] of this.#awaited) {
      if (this.#warnings.length >= MAX_ISSUES) break
      if (this.#molecules.has(target))
        this.#warnings.push({
          line,
          id,
          detail: `it waits for ${target}, of a molecule that does not come along: the edge is left out`,
        })
      else if (!this.#exists(target))
        this.#warnings.push({ line, id, detail: `it depends on ${target}, which is not there` })
    }
    return {
      ...this.#counts,
      ...(this.#options.dry_run === true ? { dry_run: true } : {}),
      warnings: this.#warnings.sort(byLine),
      errors: this.#errors.sort(byLine),
    }
  }
}

/** Decides about lines in their order, until looks for cycles have seen enough for one write. */
function untilLooked(
  items: readonly Item[],
  decideOn: (item: Item, looked: (beads: number) => void) => Verdict['outcome'],
): readonly Verdict[] {
  const verdicts: Verdict[] = []
  let all = 0
  for (const item of items) {
    let own = 0
    const outcome = decideOn(item, (beads) => {
      own += beads
      all += beads
      if (own > MAX_LOOKED_FOR_LINE) throw tooFar(item.bead.id)
    })
    verdicts.push({ item, outcome })
    if (all >= MAX_LOOKED) break
  }
  return verdicts
}

const byLine = (a: BeadImportIssue, b: BeadImportIssue): number => a.line - b.line

/** One line was refused, not the whole store. */
const isRefusal = (error: unknown): error is Problem => error instanceof Problem && error.status < 500

/** A line has no body: what is wrong with it is at the field. */
const reasonOf = ({ message }: Error): string => message.replace(/^body\./, '')

function writeComments(tx: Tx, bead: string, comments: readonly LineComment[]): void {
  for (const comment of comments) {
    tx.run('DELETE FROM bead_comments WHERE id = ? AND bead = ?', comment.id, bead)
    insertComment(tx, bead, comment)
  }
}
