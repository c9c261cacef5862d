/**
 * What turns have used, in the store.
 *
 * U1  A turn counts once: it is named by its session and by the key that its source gave it, for as long as turns are kept.
 *     It is a row from the first that is known of it, and grows while it is open; no count of it ever falls.
 * U2  Turn, totals and event are one write; what was counted is never counted anew, whatever prices become.
 * U3  Reports count only for sessions that nothing else counts: an agent cannot take the place of its log or protocol.
 * U5  A session has one turn at a time: one that is still open when the next begins, or when its process ends, was cut.
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

/** Totals by day of what agents reported themselves: `kind` of their rows. */
export const REPORTED = 'day_reported'
export const TURNS_KEPT_MS = 90 * 86_400_000
const HOUR_MS = 3_600_000
/** More groups than these are not counted. */
const MAX_COUNTED = 10_000

/** Who has used it. */
export interface Spender {
  readonly id: string
  /** What its turns are added up by. */
  readonly agent: string
  /** Its name in events. */
  readonly actor: string
  /** Its log or its protocol counts its turns. */
  readonly logged: boolean
  /** It has a process. */
  readonly runs: boolean
  readonly provider: string
  /** The model that it was told to use, for turns that name none. */
  readonly model: string | undefined
}

export interface Turn extends UsageReport {
  readonly id: string
  readonly source: UsageTurn['source']
  readonly at: number
  /** When it began, where its source says that. */
  readonly began?: number | undefined
  /** Absent: it has ended. */
  readonly state?: UsageTurn['state'] | undefined
}

/** A row of a turn. */
interface Kept {
  readonly at: number
  readonly bead: string | undefined
  readonly convoy: string | undefined
  readonly model: string
  readonly input: number
  readonly output: number
  readonly cache_read: number
  readonly cache_write: number
  readonly cost: Nano | undefined
  readonly costSource: UsageTurn['cost_source']
  readonly source: UsageTurn['source']
  readonly agent: string
}

export interface LedgerDeps {
  readonly db: Database
  readonly events: EventLog
  readonly prices: () => Prices
  /** The bead that the session had at that time of a turn, or else in the turn, and its convoy. */
  readonly work: (
    sessionId: string,
    turn: { readonly at: number; readonly began: number | undefined },
  ) => { readonly bead?: string; readonly convoy?: string }
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
const ADD = `INSERT INTO usage_totals (kind, hour, key, ${SUMS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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

/** Parts of the place of a group. */
export const placeParts = (by: UsageBy): readonly ('string' | 'number')[] =>
  by === 'day' ? ['string'] : ['string', 'number', 'string']

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

  /** Undefined: nothing has changed, for it counts already or may not count. */
  record(tx: Tx, who: Spender, turn: Turn): UsageTurn['state'] | undefined {
    if (turn.source === 'report' && who.logged) return undefined
    const { id: key, state = 'ended' } = turn
    const row = tx.get(`${TURNS} WHERE session_id = ? AND key = ?`, who.id, key)
    if (row !== undefined && row.state !== 'open') return undefined
    if (row === undefined) this.cutOpen(tx, who)
    const before = row === undefined ? undefined : keptOf(row)
    const kept = this.#grown(who, turn, before)
    if (before !== undefined) this.#add(tx, who.id, before, -1)
    tx.run(
      KEEP,
      ...[who.id, key, kept.at, dayOf(kept.at), kept.agent, kept.bead ?? null, kept.convoy ?? null],
      ...[who.provider, kept.model, ...tokensOf(kept), kept.cost ?? null, kept.costSource ?? null, kept.source, state],
    )
    this.#add(tx, who.id, kept, 1)
    if (state !== 'open') this.#tell(tx, who, key)
    return state
  }

  /** U5: closes the turn that is open as it is. */
  cutOpen(tx: Tx, who: Spender): void {
    for (const { key } of tx.all("SELECT key FROM usage_turns WHERE session_id = ? AND state = 'open'", who.id)) {
      tx.run("UPDATE usage_turns SET state = 'cut' WHERE session_id = ? AND key = ?", who.id, String(key))
      this.#tell(tx, who, String(key))
    }
  }

  hasOpen(sessionId: string): boolean {
    const found = "SELECT 1 FROM usage_turns WHERE session_id = ? AND state = 'open' LIMIT 1"
    return this.#deps.db.get(found, sessionId) !== undefined
  }

  /** U1: what is known now, and no less than was known before. */
  #grown(who: Spender, turn: Turn, before: Kept | undefined): Kept {
    const most = (name: 'input' | 'output' | 'cache_read' | 'cache_write') =>
      Math.max(bounded(turn[name] ?? 0), before?.[name] ?? 0)
    const tokens = {
      input: most('input'),
      output: most('output'),
      cache_read: most('cache_read'),
      cache_write: most('cache_write'),
    }
    const model = turn.model ?? before?.model ?? who.model ?? UNKNOWN_MODEL
    const at = before?.at ?? turn.at
    const { bead = before?.bead, convoy = before?.convoy } = this.#deps.work(who.id, { at: turn.at, began: turn.began })
    const told = larger(turn.cost_usd === undefined ? undefined : parseUsd(turn.cost_usd), toldIn(before))
    const cost = told ?? priceOf(this.#deps.prices(), model, tokens)
    const costSource = told === undefined ? (cost === undefined ? undefined : 'prices') : 'harness'
    return { at, bead, convoy, model, ...tokens, cost, costSource, source: turn.source, agent: who.agent }
  }

  /** To all totals that a turn is part of, or from them. */
  #add(tx: Tx, session: string, turn: Kept, sign: 1 | -1): void {
    const { at, agent, bead = '', convoy, model, cost, source } = turn
    const day = dayOf(at)
    const values = [sign, ...tokensOf(turn).map((tokens) => sign * tokens)]
    const priced = [BigInt(sign) * (cost ?? 0n), cost === undefined ? sign : 0] as const
    const about = {
      session,
      agent,
      bead,
      convoy,
      model,
      day,
      city: '',
      [REPORTED]: source === 'report' ? day : undefined,
    }
    for (const [kind, of] of Object.entries(about)) {
      if (of === undefined) continue
      for (const hour of kind === 'day' || kind === REPORTED ? [''] : ['', hourOf(at)]) {
        tx.run(ADD, kind, hour, of, ...values, ...priced)
        if (sign === -1)
          tx.run('DELETE FROM usage_totals WHERE kind = ? AND hour = ? AND key = ? AND turns = 0', kind, hour, of)
      }
    }
  }

  #tell(tx: Tx, who: Spender, key: string): void {
    const row = tx.get(`${TURNS} WHERE session_id = ? AND key = ?`, who.id, key)
    if (row === undefined) return
    const { at: _, ...payload } = turnOf(row)
    this.#deps.events.append(tx, { type: 'usage.recorded', actor: who.actor, subject: who.id, payload })
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
  spent(tx: Pick<Tx, 'get'>, kind: 'session' | 'day' | typeof REPORTED, key: string): Nano {
    const row = tx.get(
      "SELECT CAST(cost_nano AS TEXT) AS cost FROM usage_totals WHERE kind = ? AND hour = '' AND key = ?",
      kind,
      key,
    )
    return BigInt(String(row?.cost ?? 0))
  }

  /** A turn that is over, by its key. */
  turn(sessionId: string, key: string): UsageTurn | undefined {
    const row = this.#deps.db.get(`${TURNS} WHERE session_id = ? AND key = ? AND state <> 'open'`, sessionId, key)
    return row === undefined ? undefined : turnOf(row)
  }

  /** Newest first, from behind the place. */
  turns(sessionId: string, behind: readonly [at: number, id: number] | undefined, limit: number) {
    const { db } = this.#deps
    const [at, id] = behind ?? [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]
    const rows = db.all(
      `${TURNS} WHERE session_id = ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?`,
      sessionId,
      at,
      id,
      limit,
    )
    const total = db.get('SELECT count(*) AS n FROM usage_turns WHERE session_id = ?', sessionId)
    return {
      turns: rows.map((row) => ({ place: [Number(row.at), Number(row.id)] as const, turn: turnOf(row) })),
      total: Number(total?.n ?? 0),
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
  const column = by === 'bead' ? "coalesce(bead, '')" : COLUMN[by]
  const turns = `SELECT ${column} AS key, ${SUM_TURNS} FROM usage_turns WHERE at >= ? AND at < ? AND ${column} IS NOT NULL`
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
const KEEP = `INSERT INTO usage_turns (session_id, key, at, day, agent, bead, convoy, provider, model, input, output, cache_read, cache_write,
  cost_nano, cost_source, source, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (session_id, key) DO UPDATE SET bead = excluded.bead, convoy = excluded.convoy, model = excluded.model,
    input = excluded.input, output = excluded.output, cache_read = excluded.cache_read, cache_write = excluded.cache_write,
    cost_nano = excluded.cost_nano, cost_source = excluded.cost_source, source = excluded.source, state = excluded.state`

const tokensOf = ({ input, output, cache_read, cache_write }: Kept) => [input, output, cache_read, cache_write] as const

const larger = (one: Nano | undefined, other: Nano | undefined): Nano | undefined =>
  one === undefined || (other !== undefined && other > one) ? other : one

/** What its harness says that it cost. */
const toldIn = (turn: Kept | undefined): Nano | undefined => (turn?.costSource === 'harness' ? turn.cost : undefined)

function keptOf(row: Row): Kept {
  const { bead_id: bead, convoy_id: convoy, cost_source: costSource, ...turn } = turnOf(row)
  const cost = row.cost === null ? undefined : BigInt(String(row.cost))
  return { ...turn, at: Number(row.at), bead, convoy, cost, costSource }
}

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
    state: row.state === 'open' || row.state === 'cut' ? row.state : 'ended',
    at: isoTime(Number(row.at)),
  }
}
