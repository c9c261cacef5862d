/**
 * How runs begin and end: the one place that makes them and says so.
 *
 * F1  A run, what it starts and `order.fired` are one write; its end, `order.completed` or `order.failed` another.
 * F2  A run ends once, whatever ends again what it had started.
 * F3  While one runs no other begins, unless the order allows it or somebody forces it. It is looked at in the write.
 */
import { inBudget } from '../../../automation/bounded.ts'
import { hasMarks, renderText, TemplateFailure } from '../../../automation/language.ts'
import type { OrderDefinition } from '../../../automation/order.ts'
import type { Value } from '../../../automation/plan.ts'
import type { OrderSource } from '../../../contract/automation/orders.ts'
import { cut } from '../../../contract/base/text.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { EventLog, StoredEvent } from '../../../kernel/event-log.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { invalidField } from '../../../kernel/problem.ts'
import type { ResolvedOrder } from '../definitions/definition.ts'
import { causeOf } from './causes.ts'
import type { ExecEnded, MoleculeEnded, OrderExecs, OrderMolecules } from './ports.ts'
import {
  endRun,
  findRun,
  insertRun,
  payloadOf,
  pruneOutputs,
  pruneRuns,
  queueRun,
  type RunEnd,
  type RunRow,
  setMolecule,
} from './rows.ts'
import { changeState, findState } from './states.ts'

export interface FiringDeps {
  readonly events: EventLog
  readonly clock: Clock
  readonly execs: OrderExecs
  readonly molecules: OrderMolecules
}

export interface Cause {
  readonly source: OrderSource
  readonly reason: string
  readonly actor: string
  readonly slot?: number
  readonly handed?: readonly StoredEvent[]
  /** Variables that somebody gave by hand. */
  readonly vars?: Readonly<Record<string, Value>>
}

type Definition = OrderDefinition
type Vars = Readonly<Record<string, Value>>

const SUPERVISOR = 'supervisor'
/** Processor time of the texts of one run. */
const TEXTS_MS = 100
const DEFAULT_EXEC_TIMEOUT_MS = 300_000
const MAX_ERROR = 2_000

/** Begins a run; undefined where its time of cron has one. Throws what refuses to be started, with nothing kept. */
export function begin(
  deps: FiringDeps,
  tx: Tx,
  order: ResolvedOrder,
  definition: Definition,
  cause: Cause,
): RunRow | undefined {
  const { handed = [] } = cause
  const now = deps.clock.now()
  const id = newRunId()
  const scope = scopeOf(handed)
  const vars = inBudget(TEXTS_MS, () => varsOf(definition, cause.vars, scope))
  const run = {
    ...draftOf(order, definition, cause, now),
    id,
    status: 'running' as const,
    vars,
    finished_at: undefined,
    error: undefined,
  }
  if (!insertRun(tx, { ...run, depth: depthOf(deps, tx, handed) })) return undefined
  const molecule = start(deps, tx, { order, definition, run, cause, vars, scope })
  if (molecule !== undefined) setMolecule(tx, id, molecule)
  return fired(deps, tx, id, cause.actor, { cooled_from: now })
}

/** How many runs led to what these events begin: one more than to the run that they come from. */
function depthOf(deps: FiringDeps, tx: Tx, handed: readonly StoredEvent[]): number {
  const depths = handed.map((event) => causeOf(tx, deps, event)?.depth)
  return Math.max(0, ...depths.map((depth) => (depth === undefined ? 0 : depth + 1)))
}

/** Records a run that could not be started, as one that has failed: the next trigger tries again. */
export function failToBegin(
  deps: FiringDeps,
  tx: Tx,
  order: ResolvedOrder,
  definition: Definition,
  cause: Cause,
  error: string,
): RunRow | undefined {
  const now = deps.clock.now()
  const run = {
    ...draftOf(order, definition, cause, now),
    id: newRunId(),
    status: 'running' as const,
    vars: undefined,
    finished_at: undefined,
    error: undefined,
  }
  if (!insertRun(tx, run)) return undefined
  fired(deps, tx, run.id, cause.actor, { cooled_from: now })
  return ended(deps, tx, run.id, { status: 'failed', error: cut(error, MAX_ERROR) })
}

/** Records a time of cron that came while a run was under way. */
export function skip(
  deps: FiringDeps,
  tx: Tx,
  order: ResolvedOrder,
  definition: Definition,
  cause: Cause,
): RunRow | undefined {
  const now = deps.clock.now()
  const id = newRunId()
  const draft = draftOf(order, definition, cause, now)
  if (!insertRun(tx, { ...draft, id, status: 'skipped', vars: undefined, finished_at: now, error: undefined }))
    return undefined
  const run = findRun(tx, id)
  if (run === undefined) return undefined
  deps.events.append(tx, { type: 'order.skipped', actor: SUPERVISOR, subject: run.scoped, payload: payloadOf(run) })
  pruneRuns(tx, run.scoped, now, deps.events.agesCount())
  return run
}

/** F2: undefined where it had ended, or never was. */
export function ended(deps: FiringDeps, tx: Tx, runId: string, end: RunEnd): RunRow | undefined {
  const now = deps.clock.now()
  const run = endRun(tx, runId, end, now)
  if (run === undefined) return undefined
  const type = run.status === 'succeeded' ? 'order.completed' : 'order.failed'
  deps.events.append(tx, { type, actor: SUPERVISOR, subject: run.scoped, payload: payloadOf(run) })
  if (run.status === 'succeeded') changeState(tx, run.scoped, { failures: 0, failed_at: undefined })
  else if (run.status !== 'canceled') {
    const failures = (findState(tx, run.scoped)?.failures ?? 0) + 1
    changeState(tx, run.scoped, { failures, failed_at: now })
  }
  if (end.output !== undefined) pruneOutputs(tx, run.scoped)
  pruneRuns(tx, run.scoped, now, deps.events.agesCount())
  return run
}

/** `limit` is the key that says how long it may take. */
export function endOfExec(
  { kind, exit_code, signal, error, output, truncated }: ExecEnded,
  limit: 'timeout' | 'check_timeout' = 'timeout',
): RunEnd {
  const wrote = { ...(output === '' ? {} : { output }), truncated }
  switch (kind) {
    case 'exited':
      return exit_code === 0
        ? { status: 'succeeded', exit_code, ...wrote }
        : {
            status: 'failed',
            ...(exit_code === undefined ? {} : { exit_code }),
            error: error ?? `exit code ${exit_code}`,
            ...wrote,
          }
    case 'signal':
      return {
        status: 'failed',
        ...(signal === undefined ? {} : { signal }),
        error: error ?? `ended by ${signal}`,
        ...wrote,
      }
    case 'timed_out':
      return { status: 'timed_out', error: error ?? `it took longer than its \`${limit}\``, ...wrote }
    case 'interrupted':
      return { status: 'failed', error: error === undefined ? 'interrupted' : `interrupted: ${error}`, ...wrote }
    case 'not_started':
      return { status: 'failed', error: error ?? 'its command could not be begun', ...wrote }
  }
}

export function endOfMolecule({ outcome, reason, timed_out: isLate }: MoleculeEnded): RunEnd {
  if (outcome === 'pass') return { status: 'succeeded' }
  if (outcome === 'canceled') return { status: 'canceled', error: reason ?? 'its molecule was canceled' }
  const error = reason ?? 'its molecule failed'
  return { status: isLate === true ? 'timed_out' : 'failed', error }
}

// --- What is started -----------------------------------------------------------------------------------------------

interface Starting {
  readonly order: ResolvedOrder
  readonly definition: Definition
  readonly run: Omit<RunRow, 'n'>
  readonly cause: Cause
  readonly vars: Vars
  readonly scope: Scope
}

/** The id of its molecule, where it starts one. */
function start(deps: FiringDeps, tx: Tx, starting: Starting): string | undefined {
  const { order, definition, run, cause, vars, scope } = starting
  const { action, timeout } = definition
  if (action.kind === 'formula') {
    const { formula, title, bead, target, keep } = action
    return deps.molecules.start(tx, {
      formula,
      vars: cause.vars ?? {},
      texts: Object.fromEntries(Object.entries(vars).filter(([name]) => !Object.hasOwn(cause.vars ?? {}, name))),
      derived: Object.entries(definition.vars).flatMap(([name, text]) =>
        hasMarks(JSON.stringify(text)) ? [name] : [],
      ),
      title: title === undefined ? undefined : rendered('order.title', title, scope),
      rig: order.file.rig,
      target,
      bead: bead === undefined ? undefined : rendered('order.bead', bead, scope),
      keep_ms: keep,
      timeout_ms: timeout,
      order: { name: order.scoped, run_id: run.id },
      actor: cause.actor,
    })
  }
  const isQueued = deps.execs.begin(tx, {
    id: run.id,
    owner: 'order',
    ref: run.id,
    command: action.exec,
    rig: order.file.rig,
    file_dir: order.file.dir,
    order: order.scoped,
    run_id: run.id,
    timeout_ms: timeout ?? DEFAULT_EXEC_TIMEOUT_MS,
    vars,
    env: action.env,
    inherit_env: action.inherit_env,
    stdin: contextOf(starting),
    idempotent: action.idempotent,
  })
  if (isQueued) queueRun(tx, run.id, deps.clock.now())
  return undefined
}

/** What the command finds on its standard input. */
function contextOf({ order, run, cause, vars, scope }: Starting): Value {
  return {
    order: order.scoped,
    ...(order.file.rig === undefined ? {} : { rig: order.file.rig }),
    run_id: run.id,
    trigger: run.trigger,
    reason: run.reason,
    ...(cause.slot === undefined ? {} : { scheduled_for: isoTime(cause.slot) }),
    vars,
    ...(scope.event === undefined ? {} : { event: scope.event }),
    events: scope.events,
    count: scope.events.length,
  }
}

interface Scope {
  readonly [name: string]: Value | undefined
  /** The newest of them. */
  readonly event?: Value
  readonly events: readonly Value[]
}

function scopeOf(handed: readonly StoredEvent[]): Scope {
  const events = handed.map(({ envelope }): Value => JSON.parse(envelope))
  const event = events.at(-1)
  return { events, ...(event === undefined ? {} : { event }) }
}

/** What was given by hand is data; texts of the order are templates. */
function varsOf(definition: Definition, given: Vars = {}, scope: Scope): Vars {
  const own = Object.entries(definition.vars)
    .filter(([name]) => !Object.hasOwn(given, name))
    .map(([name, value]) => [name, renderedIn(`order.vars.${name}`, value, scope)] as const)
  return Object.fromEntries([...own, ...Object.entries(given)])
}

/** Every text in it is a template. */
function renderedIn(at: string, value: Value, scope: Scope): Value {
  if (typeof value === 'string') return rendered(at, value, scope)
  if (Array.isArray(value)) return value.map((item, index) => renderedIn(`${at}[${index}]`, item, scope))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, renderedIn(`${at}.${key}`, item, scope)]))
}

function rendered(at: string, template: string, scope: Scope): string {
  try {
    return renderText(template, scope, {})
  } catch (error) {
    if (error instanceof TemplateFailure) throw invalidField(at, error.message, template)
    throw error
  }
}

// --- Rows and events -----------------------------------------------------------------------------------------------

const newRunId = (): string => `run-${randomHex(12)}`

function draftOf(order: ResolvedOrder, definition: Definition, cause: Cause, now: number) {
  const { handed = [] } = cause
  return {
    scoped: order.scoped,
    name: order.file.name,
    rig: order.file.rig,
    action: definition.action.kind,
    trigger: definition.trigger.kind,
    source: cause.source,
    reason: cause.reason,
    slot: cause.slot,
    molecule_id: undefined,
    first_seq: handed[0]?.seq,
    last_seq: handed.at(-1)?.seq,
    events: handed.length === 0 ? undefined : handed.length,
    started_at: now,
    queued_at: undefined,
    depth: 0,
    exit_code: undefined,
    signal: undefined,
  }
}

function fired(
  deps: FiringDeps,
  tx: Tx,
  id: string,
  actor: string,
  state: { readonly cooled_from: number },
): RunRow | undefined {
  const run = findRun(tx, id)
  if (run === undefined) return undefined
  changeState(tx, run.scoped, state)
  deps.events.append(tx, { type: 'order.fired', actor, subject: run.scoped, payload: payloadOf(run) })
  return run
}
