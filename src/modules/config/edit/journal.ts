/** The journal of a city's edits: one intent at a time, committed with its files or ended after a crash (T1–T3). */
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Store } from '../../../kernel/store.ts'
import { fileProblem } from './answers.ts'
import {
  clearIntent,
  commitIntent,
  type Intent,
  isUntouched,
  readIntent,
  resumeIntent,
  stageFiles,
  swapFiles,
  syncDirectories,
  unstageFiles,
  writeIntent,
} from './transaction.ts'

interface EditJournalDeps {
  readonly name: string
  readonly dir: string
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
}

export class EditJournal {
  readonly #deps: EditJournalDeps
  #isOpen: boolean

  constructor(deps: EditJournalDeps) {
    this.#deps = deps
    this.#isOpen = readIntent(deps.store) !== undefined
  }

  /** An intent is in the store that has not been completed. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Files, events and the caller's rows, together or not at all. */
  async commit(intent: Intent, alsoWrite: (tx: Tx) => void): Promise<void> {
    const { dir, store, clock } = this.#deps
    await store.db.write((tx) => writeIntent(tx, intent, clock.now()))
    this.#isOpen = true
    try {
      await stageFiles(dir, intent)
      swapFiles(dir, intent)
    } catch (error) {
      // Once a file is swapped the edit can only be completed: by the next one, a reload or the next start.
      if (isUntouched(dir, intent)) await this.#discard(intent)
      throw fileProblem(error)
    }
    await syncDirectories(dir, intent)
    // Refused here, the files are new and the intent stays: whoever comes next, or the next start, completes it.
    await this.#close((tx) => {
      commitIntent(tx, store, intent)
      alsoWrite(tx)
    })
  }

  /** Completes or discards the intent that is in the store; tells which, undefined where there is none. */
  async finish(): Promise<{ readonly completed: boolean; readonly files: readonly string[] } | undefined> {
    const { dir, store } = this.#deps
    const intent = this.#isOpen ? readIntent(store) : undefined
    if (intent === undefined) {
      this.#isOpen = false
      return undefined
    }
    const completed = await resumeIntent(dir, intent).catch((error: unknown) => {
      throw fileProblem(error)
    })
    await this.#close((tx) => (completed ? commitIntent(tx, store, intent) : clearIntent(tx)))
    return { completed, files: intent.files.map(({ path }) => path) }
  }

  async #discard(intent: Intent): Promise<void> {
    try {
      unstageFiles(this.#deps.dir, intent)
      await this.#close(clearIntent)
    } catch (error) {
      this.#deps.log.warn({ city: this.#deps.name, err: error }, 'edit not discarded')
    }
  }

  async #close(write: (tx: Tx) => void): Promise<void> {
    await this.#deps.store.db.write((tx) => {
      write(tx)
      tx.afterCommit(() => {
        this.#isOpen = false
      })
    })
  }
}
