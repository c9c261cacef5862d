/** The rows behind a bead: one of its own, and those of its labels, metadata and words. Decides nothing. */
import type { Tx } from '../../../kernel/database.ts'
import { type BeadColumns, type BeadRecord, isWorkable, sqlValue } from './record.ts'

type Metadata = Readonly<Record<string, string>>

/** What a bead has of which nothing is said. */
export const EMPTY_COLUMNS: Omit<BeadColumns, 'title' | 'created_at' | 'updated_at'> = {
  status: 'open',
  issue_type: 'task',
  priority: null,
  closed_at: null,
  close_reason: null,
  assignee: null,
  from: null,
  parent: null,
  ref: null,
  rig: '',
  description: null,
  ephemeral: false,
  no_history: false,
  defer_until: null,
  routed_to: null,
  root_bead_id: null,
  outcome: null,
  output_json: null,
  failure_class: null,
  failure_reason: null,
  attempt: null,
  session_id: null,
  session_name: null,
  work_branch: null,
  work_commit: null,
  lease_ms: null,
  lease_expires_at: null,
  needs: null,
  interchange: null,
}
const isColumn = (name: string): name is keyof BeadColumns =>
  name in EMPTY_COLUMNS || name === 'title' || name === 'created_at' || name === 'updated_at'
export const COLUMNS: readonly (keyof BeadColumns)[] = [
  'title',
  'created_at',
  'updated_at',
  ...Object.keys(EMPTY_COLUMNS).filter(isColumn),
]
/**
 * `OR FAIL`, here and below, and words by their number: a statement that may have to be undone by itself opens a savepoint,
 * and at each of those the index of words writes out what it has. So it does that once in a transaction.
 */
const INSERT = `INSERT OR FAIL INTO beads (id, workable, metadata, labels, ${COLUMNS.map((name) => `"${name}"`).join(', ')})
  VALUES (?, ?, ?, ?, ${COLUMNS.map(() => '?').join(', ')}) RETURNING n`
const INSERT_WORDS = 'INSERT INTO bead_words (rowid, title, description) VALUES (?, ?, ?)'

/** Writes a new bead without its edges; the number of its row. */
export function insertRows(
  tx: Tx,
  id: string,
  columns: BeadColumns,
  labels: readonly string[],
  metadata: Metadata,
): number {
  const made = tx.get(
    INSERT,
    id,
    isWorkable(columns.issue_type, labels) ? 1 : 0,
    JSON.stringify(metadata),
    JSON.stringify(labels),
    ...COLUMNS.map((name) => sqlValue(columns[name])),
  )
  const n = Number(made?.n)
  writeLabels(tx, n, [], labels)
  writeMetadata(tx, id, {}, metadata)
  tx.run(INSERT_WORDS, n, columns.title, columns.description ?? '')
  return n
}

/** Writes what differs, labels, metadata and words included. */
export function updateRows(
  tx: Tx,
  before: BeadRecord,
  after: BeadRecord,
  differing: readonly (keyof BeadColumns)[],
): void {
  updateRow(tx, before, after, differing)
  writeLabels(tx, before.n, before.labels, after.labels)
  writeMetadata(tx, before.id, before.metadata, after.metadata)
  if (!differing.includes('title') && !differing.includes('description')) return
  tx.run('DELETE FROM bead_words WHERE rowid = ?', before.n)
  tx.run(INSERT_WORDS, before.n, after.title, after.description ?? '')
}

const REMOVALS = [
  'DELETE FROM beads WHERE id = ?',
  'DELETE FROM bead_metadata WHERE bead = ?',
  'DELETE FROM bead_comments WHERE bead = ?',
  'DELETE FROM bead_deps WHERE issue_id = ?',
] as const

/** Deletes everything of a bead but the edges of others, and keeps its id from being used again. */
export function deleteRows(tx: Tx, { id, n, labels }: BeadRecord): void {
  for (const sql of REMOVALS) tx.run(sql, id)
  writeLabels(tx, n, labels, [])
  tx.run('DELETE FROM bead_words WHERE rowid = ?', n)
  tx.run('INSERT OR IGNORE INTO bead_ids_gone (id) VALUES (?)', id)
}

/** Only the columns that differ: the others keep their entries in the indexes. One statement, guarded by the revision. */
function updateRow(tx: Tx, before: BeadRecord, after: BeadRecord, differing: readonly (keyof BeadColumns)[]): void {
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

function writeLabels(tx: Tx, n: number, before: readonly string[], after: readonly string[]): void {
  if (before === after) return
  const had = new Set(before)
  const has = new Set(after)
  for (const label of had.difference(has)) tx.run('DELETE FROM bead_labels WHERE label = ? AND n = ?', label, n)
  for (const label of has.difference(had)) tx.run('INSERT INTO bead_labels (label, n) VALUES (?, ?)', label, n)
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
