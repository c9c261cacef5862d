/** What orders need of their neighbours, in types of their own. Whatever takes a `tx` is a part of that write. */
import type { CatalogOrder } from '../../../automation/catalog.ts'
import type { Value } from '../../../automation/plan.ts'
import type { Tx } from '../../../kernel/database.ts'

export interface OrderCatalog {
  orders(): readonly CatalogOrder[]
  onChange(listener: () => void): () => void
}

/** A command of an order, or the check of its condition. It starts after the commit. */
export interface OrderExec {
  readonly id: string
  readonly owner: 'order' | 'condition'
  /** Given back at its end. */
  readonly ref: string
  readonly command: string
  readonly rig: string | undefined
  readonly file_dir: string
  /** `SVC_ORDER`. */
  readonly order: string
  readonly run_id: string | undefined
  readonly timeout_ms: number
  readonly vars: Readonly<Record<string, Value>>
  readonly env: Readonly<Record<string, string>>
  readonly inherit_env: readonly string[]
  readonly stdin: Value
  readonly idempotent: boolean
}

export interface OrderExecs {
  /** Whether it has to wait for a free slot; its start is told then. */
  begin(tx: Tx, exec: OrderExec): boolean
  /** False: there is none of that id any more, and nobody will be told of an end. */
  lives(id: string): boolean
}

/** How a command ended (decision 99). */
export interface ExecEnded {
  readonly kind: 'exited' | 'signal' | 'timed_out' | 'interrupted' | 'not_started'
  readonly exit_code?: number
  readonly signal?: string
  readonly error?: string
  readonly output: string
  readonly truncated: boolean
}

export interface MoleculeStart {
  readonly formula: string
  /** Values as they are. */
  readonly vars: Readonly<Record<string, Value>>
  /** What texts of the order came to: each is read by the type that its variable has. */
  readonly texts: Readonly<Record<string, Value>>
  /** Names of `texts` that are templates: what they came to holds data of events. */
  readonly derived: readonly string[]
  readonly title: string | undefined
  readonly rig: string | undefined
  readonly target: string | undefined
  readonly bead: string | undefined
  readonly keep_ms: number
  readonly timeout_ms: number | undefined
  readonly order: { readonly name: string; readonly run_id: string }
  readonly actor: string
}

export interface OrderMolecules {
  /** Its id; refuses as `POST /molecules` does, before it has written anything or after. */
  start(tx: Tx, start: MoleculeStart): string
  /** False: there is none of that id any more, or it has ended. */
  lives(id: string): boolean
  /** Root of a bead that is a step, or a root itself. */
  rootOf(beadId: string): string | undefined
}

/** How a molecule ended. */
export interface MoleculeEnded {
  readonly outcome: 'pass' | 'fail' | 'canceled'
  readonly reason?: string
  /** It failed because it took too long as a whole. */
  readonly timed_out?: boolean
}

export interface Suspension {
  /** True while the city, or the rig, is suspended. */
  of(rig: string | undefined): boolean
}
