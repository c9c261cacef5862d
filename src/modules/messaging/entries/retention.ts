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
import type { Attachments } from './attachments.ts'

const FIRST_MS = 60_000
const EVERY_MS = 10 * 60_000
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
  #cancel: (() => void) | undefined
  #running: Promise<void> | undefined
  #again = false
  #closed = false

  constructor(deps: TranscriptRetentionDeps) {
    this.#deps = deps
  }

  start(afterMs = FIRST_MS): void {
    if (this.#closed) return
    this.#cancel?.()
    this.#cancel = this.#deps.clock.after(afterMs, () => {
      void this.sweep().finally(() => this.start(EVERY_MS))
    })
  }

  /** One that is asked for while another runs follows it. */
  sweep(): Promise<void> {
    this.#again = true
    this.#running ??= this.#sweeps()
      .catch((error: unknown) => this.#deps.log.warn({ err: error }, 'old entries of transcripts not removed'))
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancel?.()
    await this.#running
  }

  async #sweeps(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false
      const agesCount = this.#deps.agesCount()
      const keptMs = agesCount ? this.#deps.keptMs() : undefined
      const { db, clock } = this.#deps
      if (keptMs !== undefined) while (!this.#closed && (await db.write((tx) => hideOlder(tx, clock.now() - keptMs))));
      while (!this.#closed && (await db.write(removeHidden)));
      if (!this.#closed) await this.#deps.attachments.sweep(agesCount)
    }
  }
}

/** Takes the oldest transcripts' entries out of sight; false where none is that old. */
function hideOlder(tx: Tx, before: number): boolean {
  const rows = tx.all(
    `SELECT e.transcript_id AS id, max(e.sequence) AS last FROM (
       SELECT transcript_id, sequence FROM transcript_entries WHERE created_at < ? ORDER BY created_at LIMIT ${BATCH}) AS e
     JOIN transcripts AS t ON t.id = e.transcript_id AND e.sequence >= t.earliest_sequence GROUP BY e.transcript_id`,
    before,
  )
  for (const { id, last } of rows)
    tx.run('UPDATE transcripts SET earliest_sequence = ? WHERE id = ?', Number(last) + 1, String(id))
  // What is hidden stands in the way of the next oldest until it is gone.
  removeHidden(tx)
  return rows.length > 0
}

/** Removes some of what is out of sight; false where nothing is. */
function removeHidden(tx: Tx): boolean {
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
  return hidden + orphaned > 0
}
