/** What the engine needs of its neighbours, in types of its own. Whatever takes a `tx` is a part of that write. */
import type { Value } from '../../../../automation/plan.ts'
import type { Tx } from '../../../../kernel/database.ts'

/** A bead as far as the engine looks at it. */
export interface EngineBead {
  readonly id: string
  readonly title: string
  readonly description: string | null
  readonly status: 'open' | 'in_progress' | 'closed'
  readonly issue_type: string
  readonly priority: number | null
  readonly rig: string
  readonly assignee: string | null
  readonly session_id: string | null
  readonly outcome: string | null
  readonly output_json: string | null
  readonly failure_class: string | null
  readonly failure_reason: string | null
  readonly close_reason: string | null
  readonly work_commit: string | null
  readonly work_branch: string | null
  readonly metadata: Readonly<Record<string, string>>
}

export interface BeadOfStep {
  readonly id: string
  readonly issue_type: 'task' | 'gate' | 'molecule'
  readonly status: 'open' | 'in_progress'
  readonly title: string
  readonly description: string | null
  readonly rig: string
  readonly priority: number | null
  readonly labels: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  readonly assignee: string | null
  readonly routed_to: string | null
  /** Null: it is the root itself. */
  readonly root: string | null
  readonly attempt: number | null
}

export interface Ending {
  readonly outcome: 'pass' | 'fail' | 'canceled'
  readonly reason?: string
  readonly failure_class?: 'transient' | 'hard'
  readonly failure_reason?: string
}

export interface BeadMember {
  readonly id: string
  readonly title: string
  readonly status: 'open' | 'in_progress' | 'closed'
}

export interface EngineBeads {
  /** For a bead that is made in this very write: its texts may tell it. */
  newId(tx: Tx, rig: string): string
  create(tx: Tx, bead: BeadOfStep, actor: string): void
  find(id: string): EngineBead | undefined
  /** Closes it, unless it is closed or gone already: then undefined, else the bead as it was. */
  close(tx: Tx, id: string, ending: Ending, actor: string): EngineBead | undefined
  /** Closed: in progress again. */
  resume(tx: Tx, id: string, actor: string): void
  /** What it is given to: nobody, nowhere; and open, where somebody was at it. */
  give(tx: Tx, id: string, actor: string): void
  /** Makes it wait for another. */
  block(tx: Tx, id: string, by: string, actor: string): void
  comment(tx: Tx, id: string, text: string): void
  /** Members of a convoy, children of a bead: in their order. */
  members(id: string): readonly BeadMember[]
  /** Pairs `[waits, for]` among these. */
  edgesAmong(ids: readonly string[]): readonly (readonly [string, string])[]
  remove(tx: Tx, ids: readonly string[], actor: string): void
}

export interface ExecStart {
  /** For `sh -c`, as written. */
  readonly command: string
  readonly timeout_ms: number
  readonly env: Readonly<Record<string, string>>
  readonly inherit_env: readonly string[]
  readonly file_dir: string
  readonly rig: string
  /** Where the work was done; undefined where no session did it. */
  readonly work_dir: string | undefined
  /** As `SVC_VAR_<NAME>`. */
  readonly vars: Readonly<Record<string, Value>>
  readonly molecule_id: string
  readonly step_id: string
  readonly bead_id: string | undefined
  readonly attempt: number
  /** For its standard input. */
  readonly context: Readonly<Record<string, Value>>
}

/** How a command ended (decision 99). */
export interface ExecEnd {
  readonly kind: 'exited' | 'signal' | 'timed_out' | 'interrupted' | 'not_started'
  readonly exit_code?: number
  readonly signal?: string
  /** A sentence, where the kind does not say all. */
  readonly error?: string
  /** The end of what it wrote. */
  readonly output: string
}

export interface EngineExecs {
  /** A run that starts after the commit, or, where it is queued, once a slot is free. */
  begin(tx: Tx, exec: ExecStart): { readonly id: string; readonly isQueued: boolean }
  cancel(tx: Tx, id: string): void
}

export interface WorkPlace {
  readonly path: string
  readonly branch?: string
}

export interface EngineSurroundings {
  readonly city: { readonly name: string; readonly path: string }
  /** Where a rig is, for templates; undefined where there is none of that name. */
  rig(name: string): { readonly name: string; readonly path?: string } | undefined
  /** Where a session works, and on which branch: as the supervisor knows it, not as somebody says. */
  workPlace(session: string): WorkPlace | undefined
  /** The full name of who is meant: with `/` as is, else the rig's agent, else the city's; and whether it is known. */
  resolveTarget(target: string, rig: string): { readonly target: string; readonly known: boolean }
  /** The one name of somebody (decision 42). */
  canonical(name: string): string
  /** The turn of a session is over that works on what has ended: after the commit. */
  interrupt(holder: { readonly session_id: string | null; readonly assignee: string | null }, why: string): void
  /** The run of an order ends with its molecule, in the same write. */
  orderEnded(
    tx: Tx,
    runId: string,
    ended: { readonly outcome: 'pass' | 'fail' | 'canceled'; readonly reason?: string; readonly timed_out?: boolean },
  ): void
}
