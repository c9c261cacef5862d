/** Types of events, as families declare them. */
import type { Schema } from './schema.ts'

interface EventTypeEntry {
  readonly payload: Schema
  /** Whose log it is in (decision 12). */
  readonly log: 'supervisor' | 'city'
  readonly emittedBy: string
  readonly when: string
  /** What its `subject` is; whoever emits it must say it. */
  readonly subject?: string
}

/** Entries by type. That of `request.result.<operation>` also declares `<operation>`: what a 202 can be about. */
export interface EventTypes {
  readonly [type: string]: EventTypeEntry
}
