/**
 * What a molecule runs by: a formula with everything inlined (decision 89). It is made once, kept as JSON under its hash, and
 * never changed: another grammar gets another `version`. Durations are milliseconds, texts are templates or expressions as
 * written; what they may read has been checked.
 */

/** JSON as variables, outputs and items are. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value }

export type VarType = 'string' | 'int' | 'bool' | 'json' | 'command'

export interface VarDeclaration {
  readonly type: VarType
  readonly description?: string
  readonly default?: Value
  readonly required?: true
  readonly enum?: readonly Value[]
  /** Over the whole value. */
  readonly pattern?: string
}

export interface Plan {
  readonly version: 1
  readonly formula: string
  readonly title: string
  readonly description?: string
  readonly target?: string
  readonly timeout?: number
  readonly vars: Readonly<Record<string, VarDeclaration>>
  readonly steps: readonly PlanStep[]
  /** Texts of the fragments that its templates render, by name. */
  readonly fragments: Readonly<Record<string, string>>
}

/** From the outside in: `needs`, `condition`, `repeat`, per item `retry` of the body and its check, `on_fail` (decision 80). */
export interface PlanStep {
  readonly id: string
  /** Ids of siblings. */
  readonly needs: readonly string[]
  readonly title?: string
  readonly description?: string
  readonly condition?: string
  readonly target?: string
  readonly assignee?: string
  readonly priority?: number
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, string>>
  /** Keys that a pass must report. */
  readonly output: readonly string[]
  readonly timeout?: number
  readonly always: boolean
  readonly on_fail: 'fail' | 'continue' | 'abort'
  readonly retry?: PlanRetry
  readonly check?: PlanCheck
  readonly repeat?: PlanRepeat
  readonly body: PlanBody
}

export interface PlanRetry {
  readonly max_attempts: number
  readonly backoff: number
  readonly max_backoff: number
}

export type PlanCheck = ({ readonly kind: 'exec' } & PlanExec) | { readonly kind: 'manual'; readonly question: string }

export interface PlanExec {
  /** For `sh -c`, as written; empty where `exec_var` names the command. */
  readonly exec: string
  /** Variable of the type `command` that holds the command; where it is blank there is no check. */
  readonly exec_var?: string
  readonly timeout: number
  readonly env: Readonly<Record<string, string>>
  readonly inherit_env: readonly string[]
  /** Directory of the file that says it. */
  readonly file_dir: string
}

export type PlanRepeat =
  | {
      readonly kind: 'for_each'
      /** Expression: a list. */
      readonly in: string
      readonly as: string
      readonly max_parallel: number
      readonly stop_on_fail: boolean
      readonly exclusive: boolean
    }
  /** One after the other: `from` and `to` are expressions, both included. */
  | { readonly kind: 'loop'; readonly from: string; readonly to: string; readonly as: string }

export type PlanBody =
  | { readonly kind: 'work' }
  | { readonly kind: 'gate'; readonly gate: PlanGate }
  /** `scope`: the steps are those of another formula, which sees of its caller only what it is given. */
  | { readonly kind: 'group'; readonly steps: readonly PlanStep[]; readonly scope?: PlanScope }

export type PlanGate =
  | { readonly kind: 'human' }
  /** Template: a duration, or a time (RFC 3339). */
  | { readonly kind: 'timer'; readonly timer: string }
  /** `match`: templates by path of the payload. */
  | { readonly kind: 'event'; readonly event: string; readonly match: Readonly<Record<string, string>> }

export interface PlanScope {
  readonly formula: string
  readonly vars: Readonly<Record<string, VarDeclaration>>
  /** Texts are templates. */
  readonly with: Readonly<Record<string, Value>>
}
