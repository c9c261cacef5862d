/**
 * Keeps the table of needs as its sources say.
 *
 * N1  What a need is follows from the state of its thing alone: an event only says which thing to look at again. So an event
 *     that is handled twice, late, or together with others leads to the same list.
 * N2  A need has one id from `need.opened` to `need.cleared`; the row and its event are one write.
 * N3  An event that changes no need leads to no write: most changes of beads and sessions are such.
 * N4  When a city starts, everything that may have a need is looked at once: what happened while it was down is told then.
 */
import { NEED_KIND_WORDS } from '../../contract/needs.ts'
import { type Clock, nextTurn } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { type StoredEvent, typeMatches } from '../../kernel/event-log.ts'
import { randomHex } from '../../kernel/ids.ts'
import type { NeedDraft, NeedSource } from '../../kernel/needs.ts'
import type { Reaction } from '../../kernel/reactions.ts'
import type { Store } from '../../kernel/store.ts'
import {
  bodyOf,
  deleteNeed,
  insertNeed,
  type NeedRow,
  rowsOf,
  sourcesIn,
  subjectsOf,
  updateNeed,
  wireNeed,
} from './rows.ts'

export interface ProjectionDeps {
  readonly city: string
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  /** Those of all families; asked for once all of them are open. */
  readonly sources: () => readonly NeedSource[]
}

/** A thing of which nothing can be told yet is looked at again, and counts as without needs after so many looks. */
const AGAIN_MS = 5_000
const LOOKS_AGAIN = 12
/** Things that one write of the start looks at: others wait no longer than for them. */
const SUBJECTS_A_WRITE = 50

export class Projection {
  readonly #deps: ProjectionDeps
  /** Things that could not be looked at, by source, and how often. */
  readonly #untold = new Map<NeedSource, Map<string, number>>()
  #known: readonly NeedSource[] | undefined
  #cancel: (() => void) | undefined
  #closed = false

  constructor(deps: ProjectionDeps) {
    this.#deps = deps
  }

  reaction(): Reaction {
    return {
      name: 'needs',
      // Any other event is passed without a look: most of a busy log are no news for needs.
      types: [...new Set(this.#sources.flatMap(({ types }) => types))],
      since: 'head',
      concerns: (event) => this.#sourcesOf(event.type).some((source) => this.#changes(source, event)),
      react: (tx, event) => {
        for (const source of this.#sourcesOf(event.type)) this.#followed(tx, source, event)
      },
    }
  }

  /** N4. */
  async open(signal: AbortSignal): Promise<void> {
    const { db } = this.#deps.store
    const sources = this.#sources
    const known = new Set(sources.map(({ name }) => name))
    for (const gone of sourcesIn(db).filter((name) => !known.has(name))) await this.#forget(gone)
    for (const source of sources) {
      const subjects = [...new Set([...source.subjects(db), ...subjectsOf(db, source.name)])]
      for (let at = 0; at < subjects.length && !signal.aborted; at += SUBJECTS_A_WRITE) {
        const some = subjects.slice(at, at + SUBJECTS_A_WRITE)
        await db.write((tx) => {
          for (const subject of some) this.look(tx, source, subject)
        })
        await nextTurn()
      }
    }
  }

  /** Looks at one thing again, in a write. */
  look(tx: Tx, source: NeedSource, subject: string): void {
    const drafts = source.needsOf(tx, subject) ?? this.#later(source, subject)
    if (drafts === undefined) return
    this.#untold.get(source)?.delete(subject)
    const before = new Map(rowsOf(tx, source.name, subject).map((row) => [row.key, row]))
    for (const draft of drafts) {
      const known = before.get(draft.key)
      before.delete(draft.key)
      if (known === undefined) this.#opened(tx, { source, subject, draft })
      else this.#kept(tx, known, draft)
    }
    for (const over of before.values()) this.#cleared(tx, over)
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
  }

  /** Undefined: what stands stays, and the thing is looked at again. */
  #later(source: NeedSource, subject: string): readonly NeedDraft[] | undefined {
    const looks = this.#untold.get(source) ?? new Map<string, number>()
    this.#untold.set(source, looks)
    const times = (looks.get(subject) ?? 0) + 1
    looks.set(subject, times)
    if (times > LOOKS_AGAIN) return []
    if (!this.#closed) this.#cancel ??= this.#deps.clock.after(AGAIN_MS, () => void this.#lookAgain())
    return undefined
  }

  async #lookAgain(): Promise<void> {
    this.#cancel = undefined
    const waiting = [...this.#untold].flatMap(([source, looks]) => [...looks.keys()].map((id) => [source, id] as const))
    await this.#deps.store.db
      .write((tx) => {
        for (const [source, subject] of waiting) this.look(tx, source, subject)
      })
      .catch(() => {
        if (!this.#closed) this.#cancel ??= this.#deps.clock.after(AGAIN_MS, () => void this.#lookAgain())
      })
  }

  /** Changes a need that is there, and says so. */
  change(tx: Tx, need: NeedRow, actor: string): void {
    updateNeed(tx, need)
    this.#tell(tx, 'need.changed', need, actor)
  }

  /** Every family is open when the first of its events is looked at, and keeps its sources until it closes. */
  get #sources(): readonly NeedSource[] {
    this.#known ??= this.#deps.sources()
    return this.#known
  }

  #sourcesOf(type: string): readonly NeedSource[] {
    return this.#sources.filter(({ types }) => types.some((pattern) => typeMatches(pattern, type)))
  }

  /** N3. */
  #changes(source: NeedSource, event: StoredEvent): boolean {
    const { db } = this.#deps.store
    return source.subjectsOf(event).some((subject) => {
      const drafts = source.needsOf(db, subject)
      const rows = rowsOf(db, source.name, subject)
      if (drafts === undefined || drafts.length !== rows.length) return true
      return drafts.some((draft) => {
        const known = rows.find(({ key }) => key === draft.key)
        return known === undefined || !isSame(this.#updated(known, draft), known)
      })
    })
  }

  #updated(known: NeedRow, draft: NeedDraft): NeedRow {
    return {
      ...known,
      kind: draft.kind,
      severity: draft.severity ?? NEED_KIND_WORDS[draft.kind][0],
      holdsUp: draft.holdsUp ?? 0,
      since: draft.since ?? known.since,
      body: bodyOf(draft),
    }
  }

  #followed(tx: Tx, source: NeedSource, event: StoredEvent): void {
    for (const subject of new Set(source.subjectsOf(event))) this.look(tx, source, subject)
  }

  #opened(tx: Tx, { source, subject, draft }: { source: NeedSource; subject: string; draft: NeedDraft }): void {
    const need: NeedRow = {
      id: `nd-${randomHex(8)}`,
      key: draft.key,
      kind: draft.kind,
      severity: draft.severity ?? NEED_KIND_WORDS[draft.kind][0],
      holdsUp: draft.holdsUp ?? 0,
      since: draft.since ?? this.#deps.clock.now(),
      snoozedUntil: undefined,
      body: bodyOf(draft),
    }
    insertNeed(tx, source.name, subject, need)
    this.#tell(tx, 'need.opened', need)
  }

  #kept(tx: Tx, known: NeedRow, draft: NeedDraft): void {
    const now = this.#updated(known, draft)
    // What has become something else is shown again, however long it was to be left alone.
    if (!isSame(now, known)) this.change(tx, { ...now, snoozedUntil: undefined }, 'supervisor')
  }

  #cleared(tx: Tx, { id, kind, body }: NeedRow): void {
    deleteNeed(tx, id)
    const { subject } = body
    this.#deps.store.log.append(tx, {
      type: 'need.cleared',
      actor: 'supervisor',
      subject: id,
      payload: { id, kind, subject },
    })
  }

  #tell(tx: Tx, type: 'need.opened' | 'need.changed', need: NeedRow, actor = 'supervisor'): void {
    const { content: _, content_cut: __, ...payload } = wireNeed(this.#deps.city, need)
    this.#deps.store.log.append(tx, { type, actor, subject: need.id, payload })
  }

  /** A source that no family has any more. */
  async #forget(source: string): Promise<void> {
    const { db } = this.#deps.store
    await db.write((tx) => {
      for (const subject of subjectsOf(tx, source))
        for (const row of rowsOf(tx, source, subject)) this.#cleared(tx, row)
    })
  }
}

const isSame = (one: NeedRow, other: NeedRow): boolean =>
  JSON.stringify({ ...one, snoozedUntil: 0 }) === JSON.stringify({ ...other, snoozedUntil: 0 })
