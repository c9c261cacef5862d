/** Agents while they are being composed, and how they are named. */

import type { Place } from '../../../files/issues.ts'
import type { TableNode } from '../../../files/toml.ts'
import type { Home } from './context.ts'

/** An agent on its way to its final place. */
export type AgentDraft = {
  readonly name: string
  /** Bindings from the outermost inwards, joined by dots; empty for an agent of the root. */
  readonly binding: string
  /** The rig it is in; empty for the city. */
  readonly rig: string
  readonly fields: TableNode
  /** What its own file says: before conventions, patches and defaults. */
  readonly declared: TableNode
  readonly home: Home
  /** `agent_defaults` of its own pack; undefined for agents of the root, which take the city's. */
  readonly defaults: TableNode | undefined
  readonly origin: string
  readonly at: Place
}

/** `[<rig>/][<binding>.]<name>`. */
export function draftIdentity(draft: Pick<AgentDraft, 'rig' | 'binding' | 'name'>): string {
  const local = draft.binding === '' ? draft.name : `${draft.binding}.${draft.name}`
  return draft.rig === '' ? local : `${draft.rig}/${local}`
}

/** `[<binding>.]<name>`: the name without the rig. */
export function localName(draft: Pick<AgentDraft, 'binding' | 'name'>): string {
  return draft.binding === '' ? draft.name : `${draft.binding}.${draft.name}`
}

/** The drafts that `name` means among those of one scope: the exact name, else every one whose bare name it is. */
export function draftsNamed(drafts: readonly AgentDraft[], name: string): AgentDraft[] {
  const exact = drafts.filter((draft) => localName(draft) === name)
  return exact.length > 0 ? exact : drafts.filter((draft) => draft.name === name)
}
