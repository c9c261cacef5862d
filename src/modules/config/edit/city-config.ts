/** What is known of a city's configuration, and how it is changed: the face that `service.ts` has for everybody else. */

import type { ConfigFiles } from '../../../files/files.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import type { Reply } from '../../../kernel/call.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { EventDraft } from '../../../kernel/event-log.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import type { DriftReport } from '../compose/drift.ts'
import type { EffectiveConfig } from '../compose/effective.ts'
import type { Referrer } from '../compose/references.ts'
import type { ChangedNames } from './changes.ts'
import type { CityEdit } from './edited-files.ts'

export const CONFIG_SOURCES = ['start', 'watch', 'api', 'reload'] as const
export type ConfigSource = (typeof CONFIG_SOURCES)[number]

/** Why the files on disk are not what is in force. */
export interface ConfigError {
  /** Hash of the files that were refused. */
  readonly revision: string
  readonly at: number
  readonly issues: readonly ConfigIssue[]
}

export interface ConfigChange {
  readonly config: EffectiveConfig
  readonly previous: EffectiveConfig
  readonly source: ConfigSource
  readonly changed: ChangedNames
  /** What it means for running sessions, by identity of their agent: class and fields of each agent that differs. */
  readonly drift: ReadonlyMap<string, DriftReport>
  /** True: running sessions take the new configuration as theirs, without a restart. */
  readonly soft: boolean
}

export interface EditInput<T> {
  /** Value of `If-Match`: anything but `etag` of what is stored now answers 412. */
  readonly ifMatch?: string | undefined
  /** Hash of the thing that is edited; the revision of the configuration where absent. May refuse what does not exist. */
  readonly etag?: (config: EffectiveConfig, files: CityEdit) => string
  /** Who does it: `api` for a request. */
  readonly actor: string
  /** Changes the files; refuses by throwing a Problem. Called once, with nothing in between. */
  readonly change: (files: CityEdit) => T
  /** Events of the caller's family, in the transaction of the change; not called where nothing changed. */
  readonly events?: (outcome: EditOutcome<T>) => readonly EventDraft[]
  /** Who names the thing that goes away: where they are why the result does not compose, the answer is 409 with them. */
  readonly referrers?: (config: EffectiveConfig) => readonly Referrer[]
  /** Idempotency-Key of the request, with the answer to keep for it; both or neither. */
  readonly claim?: IdempotencyClaim | undefined
  readonly reply?: (outcome: EditOutcome<T>) => Reply
  /** Rows that change with the files. Not run again after a crash: for what can be made good at the next start. */
  readonly alsoWrite?: (tx: Tx, outcome: EditOutcome<T>) => void
  /** Only check: everything but the writing. */
  readonly dryRun?: boolean
  /** Works on the files as they are on disk, also where those are refused: for an edit that makes them valid. */
  readonly mends?: boolean
}

export interface EditOutcome<T> {
  readonly result: T
  /** The configuration with the change; of a dry run too. */
  readonly config: EffectiveConfig
  readonly previous: EffectiveConfig
  readonly changed: boolean
  readonly warnings: readonly ConfigIssue[]
}

export interface ReloadOutcome {
  readonly outcome: 'applied' | 'no_change' | 'rejected'
  /** Revision in force. */
  readonly revision: string
  readonly warnings: readonly ConfigIssue[]
  /** Of a rejection. */
  readonly issues: readonly ConfigIssue[]
}

/** What the files on disk amount to, without applying them. */
export interface CheckOutcome {
  readonly valid: boolean
  readonly revision: string | undefined
  readonly issues: readonly ConfigIssue[]
  readonly warnings: readonly ConfigIssue[]
  /** Configuration files of the city that were read, relative. */
  readonly read: ReadonlySet<string>
}

/** What other families need of a city's configuration. */
export interface CityConfig {
  current(): EffectiveConfig
  readonly revision: string
  readonly loadedAt: number
  readonly lastError: ConfigError | undefined
  readonly warnings: readonly ConfigIssue[]
  /** The files as they were when `current()` was loaded: prompts rendered from these fit it. */
  readonly files: ConfigFiles
  /** Called after the commit of each change, in order; returns the way to stop it. */
  onChange(listener: (change: ConfigChange) => void): () => void
  edit<T>(input: EditInput<T>): Promise<EditOutcome<T>>
  reload(source: ConfigSource, soft?: boolean): Promise<ReloadOutcome>
}

/** Times and places of the last refusal, as the API shows them. */
export const errorView = ({ revision, at, issues }: ConfigError) => ({
  revision,
  at: isoTime(at),
  issues: issues.map((issue) => ({ ...issue })),
})
