/** What is remembered of each order (`order_states`). */
import type { Database, Row, SqlValue, Tx } from '../../../kernel/database.ts'

export interface OrderState {
  readonly scoped: string
  /** What `enable` or `disable` said, where the files say otherwise. */
  readonly enabled: boolean | undefined
  readonly active: boolean
  readonly gone: boolean
  readonly trigger: string
  readonly since: number
  readonly seen_seq: number
  readonly cooled_from: number | undefined
  readonly failures: number
  readonly failed_at: number | undefined
  readonly refusals: number
  readonly refused_at: number | undefined
  readonly check_exec: string | undefined
  readonly holds: boolean
  readonly checked_at: number | undefined
  readonly evaluated_at: number | undefined
  readonly error: string | undefined
}

export type StateChange = Partial<Omit<OrderState, 'scoped'>>
type Reader = Pick<Database, 'get' | 'all'> | Tx

const number = (value: unknown): number | undefined => (value === null ? undefined : Number(value))
const text = (value: unknown): string | undefined => (value === null ? undefined : String(value))

const stateOf = (row: Row): OrderState => ({
  scoped: String(row.scoped),
  enabled: row.enabled === null ? undefined : row.enabled === 1,
  active: row.active === 1,
  gone: row.gone === 1,
  trigger: String(row.trigger),
  since: Number(row.since),
  seen_seq: Number(row.seen_seq),
  cooled_from: number(row.cooled_from),
  failures: Number(row.failures),
  failed_at: number(row.failed_at),
  refusals: Number(row.refusals),
  refused_at: number(row.refused_at),
  check_exec: text(row.check_exec),
  holds: row.holds === 1,
  checked_at: number(row.checked_at),
  evaluated_at: number(row.evaluated_at),
  error: text(row.error),
})

export const allStates = (db: Reader): ReadonlyMap<string, OrderState> =>
  new Map(db.all('SELECT * FROM order_states').map((row) => [String(row.scoped), stateOf(row)]))

export function findState(db: Reader, scoped: string): OrderState | undefined {
  const row = db.get('SELECT * FROM order_states WHERE scoped = ?', scoped)
  return row === undefined ? undefined : stateOf(row)
}

export function insertState(
  tx: Tx,
  state: Pick<OrderState, 'scoped' | 'active' | 'trigger' | 'since' | 'seen_seq'>,
): void {
  tx.run(
    'INSERT INTO order_states (scoped, active, trigger, since, seen_seq) VALUES (?, ?, ?, ?, ?)',
    state.scoped,
    Number(state.active),
    state.trigger,
    state.since,
    state.seen_seq,
  )
}

const COLUMNS = [
  'enabled',
  'active',
  'gone',
  'trigger',
  'since',
  'seen_seq',
  'cooled_from',
  'failures',
  'failed_at',
  'refusals',
  'refused_at',
  'check_exec',
  'holds',
  'checked_at',
  'evaluated_at',
  'error',
] as const satisfies readonly (keyof StateChange)[]

/** A key that is there and undefined is forgotten. */
export function changeState(tx: Tx, scoped: string, change: StateChange): void {
  const named = COLUMNS.filter((column) => column in change)
  if (named.length === 0) return
  const values = named.map((column): SqlValue => {
    const value = change[column]
    return value === undefined ? null : typeof value === 'boolean' ? Number(value) : value
  })
  tx.run(
    `UPDATE order_states SET ${named.map((column) => `${column} = ?`).join(', ')} WHERE scoped = ?`,
    ...values,
    scoped,
  )
}

/** Forgets an order that is gone, with its runs that ended before that time; 0 while it has others. */
export function forgetState(tx: Tx, scoped: string, before: number): number {
  tx.run(
    "DELETE FROM order_runs WHERE scoped = ? AND status <> 'running' AND coalesce(finished_at, started_at) < ?",
    scoped,
    before,
  )
  if (tx.get('SELECT 1 FROM order_runs WHERE scoped = ? LIMIT 1', scoped) !== undefined) return 0
  return tx.run('DELETE FROM order_states WHERE scoped = ?', scoped)
}

/** How many orders of a rig have a state, those left out whose files are gone. */
export function ordersOfRig(reader: Pick<Database, 'get'>, rig: string): number {
  const ending = `:rig:${rig}`
  return Number(reader.get(OF_RIG, ending.length, ending)?.orders)
}

const OF_RIG = 'SELECT count(*) AS orders FROM order_states WHERE gone = 0 AND substr(scoped, -?) = ?'
