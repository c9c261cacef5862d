/** The rows behind a bead: one of its own, those of its metadata, and what is kept about all beads. Decides nothing. */
import type { Database, Tx } from '../../../kernel/database.ts'
import { type BeadColumns, COLUMN_NAMES, type ColumnName, sqlValue } from './columns.ts'
import { type BeadRecord, isWorkable } from './record.ts'
import { Tallies } from './tallies.ts'
import { WordIndex } from './words.ts'

type Metadata = Readonly<Record<string, string>>

/**
 * `OR FAIL`, here and below, and words by their number: a statement that may have to be undone by itself opens a savepoint,
 * and at each of those the index of words writes out what it has. So it does that once in a transaction.
 */
const INSERT = `INSERT OR FAIL INTO beads (id, workable, deferred, metadata, labels, ${COLUMN_NAMES.map((name) => `"${name}"`).join(', ')})
  VALUES (?, ?, ?, ?, ?, ${COLUMN_NAMES.map(() => '?').join(', ')}) RETURNING n`

const REMOVALS = [
  'DELETE FROM beads WHERE id IN (SELECT value FROM json_each(?))',
  'DELETE FROM bead_metadata WHERE bead IN (SELECT value FROM json_each(?))',
  'DELETE FROM bead_comments WHERE bead IN (SELECT value FROM json_each(?))',
  'DELETE FROM bead_deps WHERE issue_id IN (SELECT value FROM json_each(?))',
  'DELETE FROM bead_shifts WHERE bead IN (SELECT value FROM json_each(?))',
  'INSERT OR IGNORE INTO bead_ids_gone (id) SELECT value FROM json_each(?)',
] as const

export class BeadRows {
  readonly words: WordIndex
  readonly #tallies = new Tallies()

  constructor(db: Pick<Database, 'get' | 'write' | 'join'>) {
    this.words = new WordIndex(db)
    db.join(this.words)
    db.join(this.#tallies)
  }

  /** Writes a new bead without its edges; the number of its row. */
  insert(tx: Tx, id: string, columns: BeadColumns, labels: readonly string[], metadata: Metadata, now: number): number {
    const made = tx.get(
      INSERT,
      id,
      isWorkable(columns.issue_type, labels) ? 1 : 0,
      isDeferred(columns, now) ? 1 : 0,
      JSON.stringify(metadata),
      JSON.stringify(labels),
      ...COLUMN_NAMES.map((name) => sqlValue(columns[name])),
    )
    const n = Number(made?.n)
    writeMetadata(tx, id, {}, metadata)
    this.#tallies.came(columns)
    this.words.came(tx, n, { title: columns.title, description: columns.description, labels })
    return n
  }

  /** Writes what differs, metadata included. */
  update(tx: Tx, before: BeadRecord, after: BeadRecord, differing: readonly ColumnName[], now: number): void {
    updateRow(tx, before, after, differing, now)
    writeMetadata(tx, before.id, before.metadata, after.metadata)
    this.#tallies.changed(before, after)
    const saysOther = differing.includes('title') || differing.includes('description')
    if (saysOther || after.labels !== before.labels) this.words.changed(tx, before.n, after)
  }

  /** Deletes everything of some beads but the edges of others, and keeps their ids from being used again. */
  remove(tx: Tx, beads: readonly BeadRecord[]): void {
    const ids = JSON.stringify(beads.map(({ id }) => id))
    for (const sql of REMOVALS) tx.run(sql, ids)
    for (const bead of beads) this.#tallies.went(bead)
    this.words.went(
      tx,
      beads.map(({ n }) => n),
    )
  }
}

const isDeferred = ({ defer_until }: Pick<BeadColumns, 'defer_until'>, now: number): boolean =>
  defer_until !== null && defer_until > now

/** Only the columns that differ: the others keep their entries in the indexes. One statement, guarded by the revision. */
function updateRow(tx: Tx, before: BeadRecord, after: BeadRecord, differing: readonly ColumnName[], now: number): void {
  const sets = differing.map((name) => `"${name}" = ?`)
  const values = differing.map((name) => sqlValue(after[name]))
  const set = (column: string, value: string | number) => {
    sets.push(`${column} = ?`)
    values.push(value)
  }
  if (after.revision !== before.revision) set('revision', after.revision)
  if (after.blockers !== before.blockers) set('blockers', after.blockers)
  if (after.labels !== before.labels) set('labels', JSON.stringify(after.labels))
  if (after.metadata !== before.metadata) set('metadata', JSON.stringify(after.metadata))
  if (after.defer_until !== before.defer_until) set('deferred', isDeferred(after, now) ? 1 : 0)
  const workable = isWorkable(after.issue_type, after.labels)
  if (workable !== isWorkable(before.issue_type, before.labels)) set('workable', workable ? 1 : 0)
  const found = tx.run(
    `UPDATE OR FAIL beads SET ${sets.join(', ')} WHERE id = ? AND revision = ?`,
    ...values,
    before.id,
    before.revision,
  )
  if (found !== 1) throw new Error(`bead ${before.id} changed under its own change`)
}

function writeMetadata(tx: Tx, id: string, before: Metadata, after: Metadata): void {
  if (before === after) return
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) tx.run('DELETE FROM bead_metadata WHERE bead = ? AND key = ?', id, key)
  }
  for (const [key, value] of Object.entries(after)) {
    if (Object.hasOwn(before, key) && before[key] === value) continue
    tx.run('INSERT OR REPLACE INTO bead_metadata (bead, key, value) VALUES (?, ?, ?)', id, key, value)
  }
}
