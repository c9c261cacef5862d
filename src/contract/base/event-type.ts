/** Types of events, as families declare them. */
import type { Schema } from './schema.ts'

interface EventTypeEntry {
  readonly payload: Schema
  /** The log that has it; `both`: that of the city where it is about one that runs, else that of the supervisor. */
  readonly log: 'supervisor' | 'city' | 'both'
  readonly emittedBy: string
  readonly when: string
  /** What its `subject` is; whoever emits it must say it. */
  readonly subject?: string
}

/** Entries by type. That of `request.result.<operation>` also declares `<operation>`: what a 202 can be about. */
export interface EventTypes {
  readonly [type: string]: EventTypeEntry
}
