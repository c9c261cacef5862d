/**
 * The formulas and orders of one running city: what its files say now, and what the log says of their changes.
 *
 * D1  What the configuration in force says, or a file that nobody could refuse, is seen as soon as it has been looked at.
 * D2  A change is in the log once, with the state that it led to: what a crash or a stop came between is told at the next
 *     start. Of a city that starts for the first time nothing is told.
 * D3  Listeners are called behind the commit that tells of a change.
 */
import type { CatalogChange, CatalogFormula, CatalogOrder, CatalogPort } from '../../../automation/catalog.ts'
import type { ConfigFiles } from '../../../files/files.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { nextTurn } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Store } from '../../../kernel/store.ts'
import { Snapshot } from './snapshot.ts'
import type { DocumentLayout } from './sources.ts'

export interface CatalogDeps {
  readonly name: string
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Where files are, as the configuration in force says. */
  readonly layout: () => DocumentLayout
  /** The files as they are now, or as they were when that configuration was read. */
  readonly files: () => ConfigFiles
}

/** How long compiling may hold up everybody else before it makes a pause. */
const TURN_MS = 8

export class Catalog implements CatalogPort {
  readonly #deps: CatalogDeps
  readonly #listeners = new Set<(changes: readonly CatalogChange[]) => void>()
  #now: Snapshot
  #told: Promise<void> = Promise.resolve()
  #closed = false

  constructor(deps: CatalogDeps) {
    this.#deps = deps
    this.#now = new Snapshot(deps.layout(), deps.files())
  }

  /** Compiles everything, and tells what changed while the city was down. */
  async open(signal: AbortSignal): Promise<void> {
    await this.#warm(this.#now, signal)
    signal.throwIfAborted()
    await this.#tell()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#told
  }

  get now(): Snapshot {
    return this.#now
  }

  formula(name: string, rig?: string): CatalogFormula | undefined {
    return this.#now.formula(name, rig)
  }

  formulas(rig?: string): readonly CatalogFormula[] {
    return this.#now.formulas(rig).map(({ formula }) => formula)
  }

  orders(): readonly CatalogOrder[] {
    return this.#now.orders()
  }

  onChange(listener: (changes: readonly CatalogChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** What it would be with these files. */
  candidate(files: ConfigFiles, layout: DocumentLayout = this.#deps.layout()): Snapshot {
    return new Snapshot(layout, files, this.#now)
  }

  /** The files were looked at, or what the configuration says of them has changed. */
  look(files: ConfigFiles = this.#deps.files()): void {
    this.#install(this.candidate(files))
    void this.settle().catch((error: unknown) =>
      this.#deps.log.error({ city: this.#deps.name, err: error }, 'changes of formulas and orders not told'),
    )
  }

  /** Resolves when the log tells of what is seen now. */
  settle(): Promise<void> {
    const turn = this.#told.then(
      () => this.#tell(),
      () => this.#tell(),
    )
    this.#told = turn.catch(() => {})
    return turn
  }

  /** In the write that puts files in place: they are seen, and told of under the name of who did it, with its commit. */
  change(tx: Tx, candidate: Snapshot, actor: string): void {
    const changes = this.#write(tx, candidate, actor)
    tx.afterCommit(() => {
      this.#install(candidate)
      this.#notify(changes)
    })
  }

  async #tell(): Promise<void> {
    const snapshot = this.#now
    await this.#warm(snapshot, undefined)
    if (this.#closed) return
    await this.#deps.store.db.write((tx) => {
      // Somebody may have looked again meanwhile: that state is told of then.
      const changes = this.#write(tx, this.#now, 'supervisor')
      tx.afterCommit(() => this.#notify(changes))
    })
  }

  async #warm(snapshot: Snapshot, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#deps
    let until = clock.monotonic() + TURN_MS
    for (const rig of ['', ...snapshot.layout.rigs]) {
      for (const name of snapshot.names(rig)) {
        if (this.#closed || signal?.aborted === true) return
        snapshot.compiled(name, rig)
        if (clock.monotonic() < until) continue
        await nextTurn()
        until = clock.monotonic() + TURN_MS
      }
    }
    snapshot.forget()
  }

  #install(snapshot: Snapshot): void {
    this.#now = snapshot
  }

  /** Rows and events of what differs from what was told last. */
  #write(tx: Tx, snapshot: Snapshot, actor: string): readonly CatalogChange[] {
    const { store, clock } = this.#deps
    const isFirst = tx.get('SELECT 1 FROM document_state WHERE id = 1') === undefined
    const told = new Map(
      tx.all('SELECT key, stamp FROM document_stamps').map(({ key, stamp }) => [String(key), String(stamp)]),
    )
    const stamps = snapshot.stamps()
    const changes = [...new Set([...told.keys(), ...stamps.keys()])].sort().flatMap((key): readonly CatalogChange[] => {
      const [before, after] = [told.get(key), stamps.get(key)]
      if (before === after) return []
      if (after === undefined) tx.run('DELETE FROM document_stamps WHERE key = ?', key)
      else
        tx.run(
          'INSERT INTO document_stamps (key, stamp) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET stamp = excluded.stamp',
          key,
          after,
        )
      return [changeOf(key, before === undefined ? 'added' : after === undefined ? 'removed' : 'changed')]
    })
    if (isFirst) {
      tx.run('INSERT INTO document_state (id, seen_at) VALUES (1, ?)', clock.now())
      return []
    }
    for (const { kind, ...payload } of changes)
      store.log.append(tx, { type: `${kind}.changed`, actor, subject: payload.name, payload })
    return changes
  }

  #notify(changes: readonly CatalogChange[]): void {
    if (changes.length === 0) return
    for (const listener of this.#listeners) {
      try {
        listener(changes)
      } catch (error) {
        this.#deps.log.error({ city: this.#deps.name, err: error }, 'listener of formulas and orders failed')
      }
    }
  }
}

function changeOf(key: string, change: CatalogChange['change']): CatalogChange {
  const [kind, rig = '', name = ''] = key.split('\0')
  return { kind: kind === 'order' ? 'order' : 'formula', name, ...(rig === '' ? {} : { rig }), change }
}
