/**
 * What a family contributes to the list of needs. The list is a projection: it is brought up to date in a write that follows
 * each event that a source names, so reading it looks at nothing else.
 */
import type { OperationId } from '../contract/index.ts'
import type { Need, NeedKind, NeedSeverity } from '../contract/needs.ts'
import type { Database, Tx } from './database.ts'
import type { StoredEvent } from './event-log.ts'

type Reader = Pick<Database, 'get' | 'all'> | Pick<Tx, 'get' | 'all'>

/** What a person can do about a need; the usual action first. */
export type NeedAction = Need['operations'][number] & { readonly operation: OperationId }

/** A need as its family sees it; id, city, snooze and the first `since` are the projection's. */
export interface NeedDraft extends Pick<Need, 'subject' | 'title'> {
  /** Tells the needs of one subject apart; stays the same while it is the same need. */
  readonly key: string
  readonly kind: NeedKind
  /** Absent: as the kind says. */
  readonly severity?: NeedSeverity
  /** Milliseconds since the epoch; absent: since it was seen first. */
  readonly since?: number
  readonly detail?: string
  readonly holdsUp?: number
  readonly operations?: readonly NeedAction[]
  /** Whole; the projection cuts it. */
  readonly content?: string
}

export interface NeedSource {
  /** Names its rows: never changed, never used for another source. */
  readonly name: string
  /** Types of the events after which its needs may be others: exact, or `prefix.*`. */
  readonly types: readonly string[]
  /** Ids of the things whose needs the event may have changed. */
  subjectsOf(event: StoredEvent): readonly string[]
  /** All needs of one thing as they are now. Undefined: that cannot be told yet, and it is asked again in a moment. */
  needsOf(reader: Reader, subject: string): readonly NeedDraft[] | undefined
  /** Ids of all things that may have a need: looked at when the city starts. */
  subjects(reader: Reader): readonly string[]
}

/** A problem of a file as one line of a need. */
export const issueText = ({
  file,
  line,
  column,
  message,
}: {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}): string => `${file}:${line}:${column}: ${message}`
