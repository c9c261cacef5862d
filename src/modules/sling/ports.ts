/** What sling needs of its neighbours. Whatever takes a `tx` is a part of that write. */

import type { Value } from '../../automation/plan.ts'
import type { Target } from '../../automation/target.ts'
import type { WorkWarning } from '../../contract/automation/molecules.ts'
import type { Tx } from '../../kernel/database.ts'
import type { Store } from '../../kernel/store.ts'

export interface SlungBead {
  readonly id: string
  readonly issue_type: string
  readonly status: 'open' | 'in_progress' | 'closed'
  /** Empty: of the city itself. */
  readonly rig: string
  readonly assignee: string | null
  readonly routed_to: string | null
  /** It is of a type that is never work by itself. */
  readonly isWork: boolean
  /** Why a molecule does not let it be given away; `driver`: the molecule that works on it. */
  readonly driver: string | undefined
  readonly partOf: string | undefined
}

export interface SlingBeads {
  find(id: string): SlungBead | undefined
  /** Members of a convoy that are not closed, oldest first. */
  members(convoy: string, limit: number): readonly SlungBead[]
  create(
    tx: Tx,
    task: { readonly title: string; readonly description: string | null; readonly rig: string },
    actor: string,
  ): string
  /** Nobody's, if somebody had it, and for the target. */
  route(tx: Tx, id: string, target: string, actor: string): void
}

export interface MoleculeWish {
  readonly formula: string
  readonly vars: Readonly<Record<string, Value>> | undefined
  readonly title: string | undefined
  readonly rig: string
  readonly bead: string | undefined
  readonly target: string
  readonly reassign: boolean
  readonly replace: boolean
  readonly setsCommands: boolean
  readonly actor: string
}

/** Agents and rigs, as they are configured now. */
export interface SlingTargets {
  resolve(word: string, rig: string): Target
  names(): readonly string[]
  /** False where there is no such rig. */
  hasRig(name: string): boolean
  rigNames(): readonly string[]
  /** Of a rig: who gets work that names nobody. */
  defaultOf(rig: string): string | undefined
  /** Of an agent: the formula for work that is given to it without one. */
  formulaOf(target: string): string | undefined
  /** Why nobody of this name works now; undefined where somebody may. */
  idle(target: string): WorkWarning | undefined
}

export interface SlingCity {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly beads: SlingBeads
  readonly targets: SlingTargets
  /** Starts a molecule; what the molecule warns of. */
  start(tx: Tx, wish: MoleculeWish): { readonly id: string; readonly warnings: readonly WorkWarning[] }
}
