/**
 * What transcripts lose: entries that are too old, and those of transcripts that were deleted.
 *
 * R1  What is to go is out of sight in one write (`earliest_sequence`, or the row of the transcript), its rows go later in
 *     short ones: a long transcript holds nobody up, and a crash in between changes nothing.
 * R2  While the clock cannot say how old something is, nothing goes for its age.
 */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import type { Logger } from '../../../kernel/log.ts'
import type { Swept } from '../../../kernel/retention.ts'
import type { Attachments } from './attachments.ts'

/** Rows that go in one write. */
const BATCH = 200

export interface TranscriptRetentionDeps {
  readonly db: Database
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly attachments: Attachments
  /** False while the clock cannot be trusted. */
  readonly agesCount: () => boolean
  /** Undefined: entries are kept for ever. */
  readonly keptMs: () => number | undefined
}

export class TranscriptRetention {
  readonly #deps: TranscriptRetentionDeps
  #running: Promise<Swept> | undefined
  #again = false
  #closed = false

  constructor(deps: TranscriptRetentionDeps) {
    this.#deps = deps
  }

  /** What went. One that is asked for while another runs follows it. */
  sweep(): Promise<Swept> {
    this.#again = true
    this.#running ??= this.#sweeps().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** A transcript was deleted: what of it is left goes at once, and not with the next round. */
  soon(): void {
    this.sweep().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'entries of transcripts not removed'))
  }

  /** What the configuration says at the moment. */
  get settings(): number | undefined {
    return this.#deps.keptMs()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#running?.catch(() => {})
  }

  async #sweeps(): Promise<Swept> {
    let [entries, files] = [0, 0]
    while (this.#again && !this.#closed) {
      this.#again = false
      const agesCount = this.#deps.agesCount()
      const keptMs = agesCount ? this.#deps.keptMs() : undefined
      const { db, clock } = this.#deps
      const hidden = keptMs === undefined ? undefined : clock.now() - keptMs
      for (let gone = 1; gone > 0 && hidden !== undefined && !this.#closed; entries += gone)
        gone = await db.write((tx) => hideOlder(tx, hidden))
      for (let gone = 1; gone > 0 && !this.#closed; entries += gone) gone = await db.write(removeHidden)
      if (!this.#closed) files += await this.#deps.attachments.sweep(agesCount)
    }
    return { transcript_entries: entries, attachments: files }
  }
}

/** Takes the oldest transcripts' entries out of sight, and some of what is; how many rows went. */
function hideOlder(tx: Tx, before: number): number {
  const rows = tx.all(
    `SELECT e.transcript_id AS id, max(e.sequence) AS last FROM (
       SELECT transcript_id, sequence FROM transcript_entries WHERE created_at < ? ORDER BY created_at LIMIT ${BATCH}) AS e
     JOIN transcripts AS t ON t.id = e.transcript_id AND e.sequence >= t.earliest_sequence GROUP BY e.transcript_id`,
    before,
  )
  for (const { id, last } of rows)
    tx.run('UPDATE transcripts SET earliest_sequence = ? WHERE id = ?', Number(last) + 1, String(id))
  // What is hidden stands in the way of the next oldest until it is gone.
  return rows.length === 0 ? 0 : removeHidden(tx)
}

/** Removes some of what is out of sight; how many entries, 0 where nothing is. */
function removeHidden(tx: Tx): number {
  const hidden = tx.run(
    `DELETE FROM transcript_entries WHERE id IN (
       SELECT e.id FROM transcripts AS t CROSS JOIN transcript_entries AS e
       ON e.transcript_id = t.id AND e.sequence < t.earliest_sequence LIMIT ${BATCH})`,
  )
  const orphaned = tx.run(
    `DELETE FROM transcript_entries WHERE id IN (
       SELECT e.id FROM transcript_tombstones AS t CROSS JOIN transcript_entries AS e ON e.transcript_id = t.id
       LIMIT ${BATCH})`,
  )
  return hidden + orphaned
}
