/**
 * What turns have used, in the store.
 *
 * U1  A turn counts once: it is named by its session and by the key that its source gave it, for as long as turns are kept.
 * U2  Turn, totals and event are one write; what was counted is never counted anew, whatever prices become.
 * U3  One source tells of a session: whoever told first, so that a log and a report do not count the same turn twice.
 * U4  A total is one look-up; time ranges add up hours, and turns only at their two ends.
 */
import { cut } from '../../contract/base/text.ts'
import {
  MOST_TOKENS,
  UNKNOWN_MODEL,
  type UsageBy,
  type UsageReport,
  type UsageTotals,
  type UsageTurn,
} from '../../contract/sessions/usage.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { Database, Row, SqlValue, Tx } from '../../kernel/database.ts'
import type { EventLog } from '../../kernel/event-log.ts'
import { formatUsd, type Nano, parseUsd } from '../../kernel/money.ts'
import { type Prices, priceOf } from './prices.ts'

export const TURNS_KEPT_MS = 90 * 86_400_000
const HOUR_MS = 3_600_000
/** More groups than these are not counted. */
const MAX_COUNTED = 10_000

/** Who has used it. */
export interface Spender {
  readonly id: string
  readonly agent: string
  readonly provider: string
  /** The model that it was told to use, for turns that name none. */
  readonly model: string | undefined
}

export interface Turn extends UsageReport {
  readonly id: string
  readonly source: UsageTurn['source']
  readonly at: number
}

export interface LedgerDeps {
  readonly db: Database
  readonly events: EventLog
  readonly prices: () => Prices
  /** What it works on, and for which convoy. */
  readonly work: (sessionId: string) => { readonly bead?: string; readonly convoy?: string }
}

export interface Range {
  readonly from: number
  readonly to: number
}

export const dayOf = (at: number): string => cut(new Date(at).toISOString(), 10)
const hourOf = (at: number): string => cut(new Date(at).toISOString(), 13)
const hourStart = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS

const SUMS = 'turns, input, output, cache_read, cache_write, cost_nano, unpriced'
const ADDED = SUMS.split(', ')
  .map((column) => `${column} = ${column} + excluded.${column}`)
  .join(', ')
const ADD = `INSERT INTO usage_totals (kind, hour, key, ${SUMS}) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (kind, hour, key) DO UPDATE SET ${ADDED}`
const SUM_ALL = SUMS.split(', ')
  .map((column) => `sum(${column}) AS ${column}`)
  .join(', ')
/** The same sums of rows of turns. */
const SUM_TURNS = `1 AS turns, input, output, cache_read, cache_write, coalesce(cost_nano, 0) AS cost_nano, cost_nano IS NULL AS unpriced`
const TOKENS = 'input + output + cache_read + cache_write'
const SHOWN = 'key, turns, input, output, cache_read, cache_write, CAST(cost_nano AS TEXT) AS cost, unpriced'

/** Columns of a turn by what totals are about. */
const COLUMN = {
  session: 'session_id',
  agent: 'agent',
  bead: 'bead',
  convoy: 'convoy',
  model: 'model',
  day: 'day',
} as const

export interface Group {
  readonly key: string
  readonly totals: UsageTotals
  /** Where the next page begins. */
  readonly place: readonly (string | number)[]
}

/** Logs and protocols may count wrongly too. */
const bounded = (tokens: number): number => Math.min(tokens, MOST_TOKENS)

export class Ledger {
  readonly #deps: LedgerDeps

  constructor(deps: LedgerDeps) {
    this.#deps = deps
  }

  /** False: it counts already, or another source tells of this session. */
  record(tx: Tx, who: Spender, turn: Turn): boolean {
    if (!this.#isFirst(tx, who.id, turn)) return false
    const { source, at, id: key } = turn
    const [input, output] = [bounded(turn.input), bounded(turn.output)]
    const [cache_read, cache_write] = [bounded(turn.cache_read ?? 0), bounded(turn.cache_write ?? 0)]
    const model = turn.model ?? who.model ?? UNKNOWN_MODEL
    const tokens = { input, output, cache_read, cache_write }
    const told = turn.cost_usd === undefined ? undefined : parseUsd(turn.cost_usd)
    const cost = told ?? priceOf(this.#deps.prices(), model, tokens)
    const costSource = cost === undefined ? undefined : told === undefined ? ('prices' as const) : ('harness' as const)
    const { bead, convoy } = this.#deps.work(who.id)
    const day = dayOf(at)
    const spent = [input, output, cache_read, cache_write] as const
    tx.run(
      `INSERT INTO usage_turns (session_id, key, at, day, agent, bead, convoy, provider, model, input, output, cache_read, cache_write,
        cost_nano, cost_source, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ...[who.id, key, at, day, who.agent, bead ?? null, convoy ?? null, who.provider, model],
      ...spent,
      cost ?? null,
      costSource ?? null,
      source,
    )
    const about = { session: who.id, agent: who.agent, bead, convoy, model, day, city: '' }
    for (const [kind, of] of Object.entries(about)) {
      if (of === undefined) continue
      for (const one of kind === 'day' ? [''] : ['', hourOf(at)])
        tx.run(ADD, kind, one, of, ...spent, cost ?? 0, cost === undefined ? 1 : 0)
    }
    this.#deps.events.append(tx, {
      type: 'usage.recorded',
      actor: who.agent,
      subject: who.id,
      payload: {
        session_id: who.id,
        agent: who.agent,
        ...(bead === undefined ? {} : { bead_id: bead }),
        ...(convoy === undefined ? {} : { convoy_id: convoy }),
        provider: who.provider,
        model,
        ...tokens,
        ...(cost === undefined ? {} : { cost_usd: formatUsd(cost) }),
        ...(costSource === undefined ? {} : { cost_source: costSource }),
        source,
        key,
      },
    })
    return true
  }

  /** Of all time; undefined: nothing was recorded. */
  totals(kind: UsageBy | 'city', key: string): UsageTotals | undefined {
    const row = this.#deps.db.get(
      `SELECT ${SHOWN} FROM usage_totals WHERE kind = ? AND hour = '' AND key = ?`,
      kind,
      key,
    )
    return row === undefined ? undefined : totalsOf(row)
  }

  /** What is known to have been spent. */
  spent(tx: Pick<Tx, 'get'>, kind: 'session' | 'day', key: string): Nano {
    const row = tx.get(
      "SELECT CAST(cost_nano AS TEXT) AS cost FROM usage_totals WHERE kind = ? AND hour = '' AND key = ?",
      kind,
      key,
    )
    return BigInt(String(row?.cost ?? 0))
  }

  /** A turn by its key. */
  turn(sessionId: string, key: string): UsageTurn | undefined {
    const row = this.#deps.db.get(`${TURNS} WHERE session_id = ? AND key = ?`, sessionId, key)
    return row === undefined ? undefined : turnOf(row)
  }

  /** Newest first, from behind the place. */
  turns(sessionId: string, behind: readonly (string | number)[], limit: number) {
    const { db } = this.#deps
    const [at = Number.MAX_SAFE_INTEGER, id = Number.MAX_SAFE_INTEGER] = behind
    const rows = db.all(
      `${TURNS} WHERE session_id = ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?`,
      sessionId,
      at,
      id,
      limit + 1,
    )
    const last = rows.length > limit ? rows[limit - 1] : undefined
    const total = db.get('SELECT count(*) AS n FROM usage_turns WHERE session_id = ?', sessionId)
    return {
      items: rows.slice(0, limit).map(turnOf),
      total: Number(total?.n ?? 0),
      next: last === undefined ? undefined : [Number(last.at), Number(last.id)],
    }
  }

  /** What cost most first; days newest first. */
  groups(
    by: UsageBy,
    where: { readonly range: Range | undefined; readonly keys: readonly string[] | undefined; readonly now: number },
    behind: readonly (string | number)[] | undefined,
    limit: number,
  ): { readonly items: readonly Group[]; readonly total: number; readonly capped: boolean } {
    const { db } = this.#deps
    const source = sourceOf(by, where.range, where.now)
    const only = where.keys === undefined ? '' : 'WHERE key IN (SELECT value FROM json_each(?))'
    const values = [...source.values, ...(where.keys === undefined ? [] : [JSON.stringify(where.keys)])]
    const counted = Number(
      db.get(`SELECT count(*) AS n FROM (SELECT 1 FROM (${source.sql}) ${only} LIMIT ${MAX_COUNTED + 1})`, ...values)
        ?.n,
    )
    const after = behind === undefined ? undefined : afterPlace(by, behind)
    const from = after === undefined ? only : `${only === '' ? 'WHERE' : `${only} AND`} ${after.sql}`
    const rows = db.all(
      `SELECT ${SHOWN}, ${TOKENS} AS tokens FROM (${source.sql}) ${from} ORDER BY ${by === 'day' ? 'key DESC' : `cost_nano DESC, ${TOKENS} DESC, key`} LIMIT ?`,
      ...values,
      ...(after?.values ?? []),
      limit,
    )
    return {
      items: rows.map((row) => ({
        key: String(row.key),
        totals: totalsOf(row),
        place: by === 'day' ? [String(row.key)] : [String(row.cost), Number(row.tokens), String(row.key)],
      })),
      total: Math.min(counted, MAX_COUNTED),
      capped: counted > MAX_COUNTED,
    }
  }

  /** Of everything in that time. */
  sum(range: Range | undefined, now: number): UsageTotals {
    if (range === undefined) return this.totals('city', '') ?? NOTHING
    const { sql, values } = sourceOf('day', range, now)
    const sums = `SELECT '' AS key, ${SUM_ALL} FROM (${sql}) HAVING count(*) > 0`
    const row = this.#deps.db.get(`SELECT ${SHOWN} FROM (${sums})`, ...values)
    return row === undefined ? NOTHING : totalsOf(row)
  }

  // --- Logs --------------------------------------------------------------------------------------------------------

  /** Up to where each log of the session was read. */
  positions(sessionId: string): ReadonlyMap<string, LogPosition> {
    const rows = this.#deps.db.all('SELECT log, position, state FROM usage_logs WHERE session_id = ?', sessionId)
    return new Map(
      rows.map(({ log, position, state }) => [String(log), { offset: Number(position), state: String(state) }]),
    )
  }

  reached(tx: Tx, sessionId: string, log: string, { offset, state }: LogPosition): void {
    tx.run('INSERT OR REPLACE INTO usage_logs VALUES (?, ?, ?, ?)', sessionId, log, offset, state)
  }

  #isFirst(tx: Tx, sessionId: string, { id, source }: Turn): boolean {
    if (tx.get('SELECT 1 FROM usage_turns WHERE session_id = ? AND key = ?', sessionId, id) !== undefined) return false
    const before = tx.get(
      'SELECT source FROM usage_turns WHERE session_id = ? ORDER BY at DESC, id DESC LIMIT 1',
      sessionId,
    )
    return before === undefined || (before.source === 'report') === (source === 'report')
  }
}

export interface LogPosition {
  readonly offset: number
  /** What its reader has to know from what is before. */
  readonly state: string
}

/** SQL: rows with `key` and the sums. */
function sourceOf(by: UsageBy, range: Range | undefined, now: number): { sql: string; values: SqlValue[] } {
  if (range === undefined)
    return { sql: `SELECT key, ${SUMS} FROM usage_totals WHERE kind = ? AND hour = ''`, values: [by] }
  // Of what is that old only hours are known.
  const kept = hourStart(now - TURNS_KEPT_MS)
  const from = range.from < kept ? hourStart(range.from) : range.from
  const to = range.to < kept ? hourStart(range.to + HOUR_MS - 1) : range.to
  const first = hourStart(from + HOUR_MS - 1)
  const last = hourStart(to)
  const turns = `SELECT ${COLUMN[by]} AS key, ${SUM_TURNS} FROM usage_turns WHERE at >= ? AND at < ? AND ${COLUMN[by]} IS NOT NULL`
  const key = by === 'day' ? 'substr(hour, 1, 10)' : 'key'
  const whole = `SELECT ${key} AS key, ${SUMS} FROM usage_totals WHERE kind = ? AND hour >= ? AND hour < ?`
  const inOne = first > last
  const sql = inOne ? turns : `${whole} UNION ALL ${turns} UNION ALL ${turns}`
  const kind = by === 'day' ? 'city' : by
  const values = inOne ? [from, to] : [kind, hourOf(first), hourOf(last), from, first, last, to]
  return { sql: `SELECT key, ${SUM_ALL} FROM (${sql}) GROUP BY key`, values }
}

function afterPlace(by: UsageBy, place: readonly (string | number)[]): { sql: string; values: SqlValue[] } {
  if (by === 'day') return { sql: 'key < ?', values: [place[0] ?? ''] }
  const [cost = '0', tokens = 0, key = ''] = place
  const exact = BigInt(cost)
  return {
    sql: `(cost_nano < ? OR (cost_nano = ? AND (${TOKENS} < ? OR (${TOKENS} = ? AND key > ?))))`,
    values: [exact, exact, tokens, tokens, key],
  }
}

export const NOTHING: UsageTotals = { turns: 0, input: 0, output: 0, cache_read: 0, cache_write: 0, unpriced_turns: 0 }

function totalsOf({ turns, input, output, cache_read, cache_write, cost, unpriced }: Row): UsageTotals {
  return {
    turns: Number(turns),
    input: Number(input),
    output: Number(output),
    cache_read: Number(cache_read),
    cache_write: Number(cache_write),
    ...(Number(turns) > Number(unpriced) ? { cost_usd: formatUsd(BigInt(String(cost))) } : {}),
    unpriced_turns: Number(unpriced),
  }
}

const TURNS = 'SELECT *, CAST(cost_nano AS TEXT) AS cost FROM usage_turns'

function turnOf(row: Row): UsageTurn {
  return {
    session_id: String(row.session_id),
    agent: String(row.agent),
    ...(row.bead === null ? {} : { bead_id: String(row.bead) }),
    ...(row.convoy === null ? {} : { convoy_id: String(row.convoy) }),
    provider: String(row.provider),
    model: String(row.model),
    input: Number(row.input),
    output: Number(row.output),
    cache_read: Number(row.cache_read),
    cache_write: Number(row.cache_write),
    ...(row.cost === null ? {} : { cost_usd: formatUsd(BigInt(String(row.cost))) }),
    ...(row.cost_source === 'harness' || row.cost_source === 'prices' ? { cost_source: row.cost_source } : {}),
    source: row.source === 'report' || row.source === 'log' ? row.source : 'protocol',
    key: String(row.key),
    at: isoTime(Number(row.at)),
  }
}
