/** What chats and adapters keep for a while only. */
import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../../kernel/database.ts'
import { type Sweep, sweepOfRows } from '../../kernel/retention.ts'
import type { MessagingCity } from './http/city.ts'

const DAY_MS = 86_400_000
const ENDED_KEPT_MS = 30 * DAY_MS
const DELIVERED_KEPT_MS = 7 * DAY_MS
const DEAD_KEPT_MS = 30 * DAY_MS
const TOMBSTONES_KEPT_MS = 365 * DAY_MS

/** Rows of a table that go for the time in a column of theirs. */
interface AgedRows {
  readonly name: string
  readonly table: string
  readonly key: string
  readonly time: string
  readonly keptMs: number
  readonly where?: string
}

const AGED: readonly AgedRows[] = [
  { name: 'bindings', table: 'chat_bindings', key: 'id', time: 'ended_at', keptMs: ENDED_KEPT_MS },
  { name: 'participants', table: 'chat_participants', key: 'id', time: 'removed_at', keptMs: ENDED_KEPT_MS },
  {
    name: 'deliveries',
    table: 'outbox',
    key: 'seq',
    time: 'settled_at',
    where: "state = 'delivered'",
    keptMs: DELIVERED_KEPT_MS,
  },
  {
    name: 'deliveries',
    table: 'outbox',
    key: 'seq',
    time: 'settled_at',
    where: "state = 'dead'",
    keptMs: DEAD_KEPT_MS,
  },
  {
    name: 'transcript_tombstones',
    table: 'transcript_tombstones',
    key: 'id',
    time: 'deleted_at',
    // What is left of its entries goes first: only the tombstone says that they are nobody's.
    where: 'NOT EXISTS (SELECT 1 FROM transcript_entries AS e WHERE e.transcript_id = transcript_tombstones.id)',
    keptMs: TOMBSTONES_KEPT_MS,
  },
]

export const sweepsOfMessaging = ({ store: { db }, clock, retention }: MessagingCity): readonly Sweep[] => [
  { name: 'transcripts', setting: () => retention.settings, run: () => retention.sweep() },
  ...sweepsOfRows(db, clock),
  chatMail(db),
]

/** Rows that go for their age. */
export const sweepsOfRows = (db: Database, clock: Clock): readonly Sweep[] =>
  AGED.map(({ name, table, key, time, where = 'true', keptMs }) => {
    const old = `SELECT ${key} FROM ${table} WHERE ${where} AND ${time} < ? ORDER BY ${time}`
    return sweepOfRows(db, clock, {
      name,
      keptMs: () => keptMs,
      has: (before) => db.get(`${old} LIMIT 1`, before) !== undefined,
      remove: (tx, before, limit) => tx.run(`DELETE FROM ${table} WHERE ${key} IN (${old} LIMIT ?)`, before, limit),
    })
  })

const OF_GONE_ENTRIES = `SELECT c.transcript_id, c.sequence FROM transcripts AS t
  CROSS JOIN chat_mail AS c ON c.transcript_id = t.id AND c.sequence < t.earliest_sequence LIMIT ?`

/** Which mail an entry was goes with the entry. */
const chatMail = (db: MessagingCity['store']['db']): Sweep => ({
  name: 'chat_mail',
  run: async (round) => {
    let gone = 0
    for (let rows = BATCH; rows === BATCH && !round.isOver; gone += rows)
      rows = db.get(OF_GONE_ENTRIES, 1) === undefined ? 0 : await db.write((tx) => tx.run(DELETE_CHAT_MAIL, BATCH))
    return { chat_mail: gone }
  },
})

const BATCH = 200
const DELETE_CHAT_MAIL = `DELETE FROM chat_mail WHERE (transcript_id, sequence) IN (${OF_GONE_ENTRIES})`
