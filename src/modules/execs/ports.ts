/** Commands that the city runs by itself, as those see them who begin them, and those who start their processes. */
import type { Value } from '../../automation/plan.ts'
import type { Tx } from '../../kernel/database.ts'

/** Whose command it is: the check of a step, the condition or the command of an order. */
export const EXEC_OWNERS = ['check', 'condition', 'order'] as const
export type ExecOwner = (typeof EXEC_OWNERS)[number]

/** What a command is told of its surroundings, as variables called `SVC_…`. */
export interface ExecAbout {
  readonly rig?: string
  /** Directory of the file that declares it. */
  readonly file_dir: string
  readonly molecule_id?: string
  readonly step_id?: string
  readonly bead_id?: string
  readonly attempt?: number
  readonly order?: string
  readonly run_id?: string
}

/** A command that is to be run; everything of it is kept until it has ended. */
export interface NewExec {
  /** Letters, digits, `_` and `-`; no two that live have the same. */
  readonly id: string
  readonly owner: ExecOwner
  /** What its owner knows it by. */
  readonly ref: string
  /** For `sh -c`, as written. */
  readonly command: string
  /** Relative to the city. */
  readonly cwd: string
  readonly timeout_ms: number
  readonly about: ExecAbout
  /** Become `SVC_VAR_<NAME>`. */
  readonly vars: Readonly<Record<string, Value>>
  readonly env: Readonly<Record<string, string>>
  /** Names of variables of the supervisor that it gets too. */
  readonly inherit_env: readonly string[]
  /** What it reads, as JSON, from its standard input. */
  readonly stdin: Value
  /** One that was cut off is begun anew. */
  readonly idempotent: boolean
}

/** One that waits or runs. */
export interface Exec extends NewExec {
  readonly state: 'queued' | 'running' | 'canceled'
  /** Milliseconds since the epoch. */
  readonly created_at: number
  readonly started_at: number | undefined
}

/** How it ended. Signals are told by their names: `SIGKILL`. */
export type ExecEnd =
  | { readonly kind: 'exited'; readonly exit_code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'timed_out' }
  /** Nobody knows how far it came: its processes were ended by somebody else. */
  | { readonly kind: 'interrupted' }
  /** Its command never ran. */
  | { readonly kind: 'not_started' }

export type ExecOutcome = ExecEnd & {
  /** A sentence, where the kind does not say all. */
  readonly error?: string
  /** The end of what it wrote to both its outputs, without secrets. */
  readonly output: string
  /** There was more of it. */
  readonly truncated: boolean
  readonly ended_at: number
}

/** Told of its commands, in the write that records it. Not of those that it has cancelled. */
export interface ExecListener {
  /** One that had to wait has a slot; one that had not is not told of. */
  started?(tx: Tx, exec: Exec): void
  ended(tx: Tx, exec: Exec, outcome: ExecOutcome): void
}

// --- What starts processes -----------------------------------------------------------------------------------------

/** One start of a command; there is more than one where it was begun anew. */
export interface ExecStart {
  readonly id: string
  readonly number: number
}

export interface ExecLaunch extends ExecStart {
  readonly command: string
  readonly cwd: string
  /** Without `SVC_EXEC_ID`, by which its processes are known. */
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string
}

export type ExecSight =
  /** Nothing has begun to run it: it may still come. */
  | { readonly state: 'unclaimed' }
  /** It was revoked before it began, and does not come. */
  | { readonly state: 'revoked' }
  | { readonly state: 'running'; readonly elapsedMs: number | undefined }
  /** Its command has ended with this status of a shell. */
  | { readonly state: 'done'; readonly status: number }
  /** What watched over it is gone, and nobody knows its status. */
  | { readonly state: 'lost' }

export interface ExecRuntime {
  /** Which run of the machine this is; empty where it does not tell. */
  readonly boot: string
  /** Begins it; throws where that is impossible. `gone` is called when nothing of its wrapper is left. */
  start(launch: ExecLaunch, gone: (error?: string) => void): void
  look(start: ExecStart): ExecSight
  /** False: it had begun already. */
  revoke(start: ExecStart): boolean
  /** Whoever writes more is ended. */
  readonly maxOutputBytes: number
  outputBytes(start: ExecStart): number
  /** The last of what it wrote. */
  tail(start: ExecStart, maxBytes: number): Buffer
  /** Gives back the room of its output, which may be what the disk is full of. */
  dropOutput(start: ExecStart): Promise<void>
  /** Asks all of its processes to end. */
  terminate(start: ExecStart): void
  /**
   * Ends what of it still runs, its command before what watches over that; all of its output is written then. Resolves
   * with those that could not be ended.
   */
  end(start: ExecStart): Promise<readonly number[]>
  /** Removes all of its files. */
  remove(id: string): Promise<void>
  /** Ids of which there are files. */
  list(): readonly string[]
}
