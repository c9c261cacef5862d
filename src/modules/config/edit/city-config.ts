/** What is known of a city's configuration, and how it is changed: the face that `service.ts` has for everybody else. */

import type { Edit, Edited } from '../../../files/configuration.ts'
import type { ConfigFiles } from '../../../files/files.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { DriftReport } from '../compose/drift.ts'
import type { EffectiveConfig } from '../compose/effective.ts'
import type { ChangedNames } from './changes.ts'

export const CONFIG_SOURCES = ['start', 'watch', 'api', 'reload'] as const
export type ConfigSource = (typeof CONFIG_SOURCES)[number]

/** Why the files on disk are not what is in force. */
export interface ConfigError {
  /** Hash of the files that were refused. */
  readonly revision: string
  readonly at: number
  /** When what is on disk ceased to be in force; earlier than `at` where it was refused again since. */
  readonly since: number
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
  /** Called when files on disk were looked at and what is in force stayed as it was: what is no part of it may differ. */
  onLooked(listener: () => void): () => void
  edit<T>(input: Edit<EffectiveConfig, T>): Promise<Edited<EffectiveConfig, T>>
  reload(source: ConfigSource, soft?: boolean): Promise<ReloadOutcome>
}

/** Times and places of the last refusal, as the API shows them. */
export const errorView = ({ revision, at, since, issues }: ConfigError) => ({
  revision,
  at: isoTime(at),
  since: isoTime(since),
  issues: issues.map((issue) => ({ ...issue })),
})
