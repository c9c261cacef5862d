/** What packs need of a running city; made by the wiring. */

import type { ErrorDetail } from '../../../contract/base/problems.ts'
import type { TextFiles } from '../../../files/configuration.ts'
import type { EventDraft } from '../../../kernel/event-log.ts'
import type { JobFailure, Jobs } from '../../../kernel/jobs.ts'

export interface PackEdit<T> {
  readonly actor: string
  readonly ifMatch?: string | undefined
  readonly etag?: () => string
  readonly change: (files: TextFiles) => T
  readonly events: (result: T) => readonly EventDraft[]
  /** Also where the files on disk are refused as they are: for edits that mend them. */
  readonly mends?: boolean
}

/** A running city, as far as packs are concerned. */
export interface PackCity {
  readonly name: string
  readonly dir: string
  /** Of the configuration in force. */
  readonly revision: string
  /** Newest event of its log. */
  readonly head: () => number
  edit<T>(edit: PackEdit<T>): Promise<{ readonly result: T; readonly revision: string }>
  /** Puts an event into its log that no edit of its files brings. */
  append(event: EventDraft): Promise<void>
  /** Loads what is on disk; of a refusal the failure says why. */
  reload(): Promise<{ readonly revision: string; readonly refused: JobFailure | undefined }>
  /** What in files names something that the import brings. */
  referrers(name: string, rig: string): readonly ErrorDetail[]
  /** Paths that materialisation found taken by somebody else. */
  foreignFiles(): readonly string[]
  readonly launch: Jobs['launch']
}

/** Comment-preserving edits of TOML text. */
export interface TomlEditor {
  addTable(text: string, path: readonly (string | number)[], values: Readonly<Record<string, string>>): string
  removeTable(text: string, path: readonly (string | number)[]): string
}
