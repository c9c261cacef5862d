/**
 * Beads become lines of the interchange, sorted by id (sheet 03 §11).
 *
 * X1  Some hundred beads are in memory at a time, and no read looks at more of the store than that.
 * X2  The index that goes out with the answer is from before the first bead: whoever follows the events from there may
 *     see a change twice, and misses none.
 * X3  Roots, steps and gates of molecules stay here, with the edges to them: elsewhere no molecule would drive them.
 */

import type { QueryOf } from '../../../contract/base/operation.ts'
import type { exportBeads } from '../../../contract/beads.ts'
import { type Clock, nextTurn } from '../../../kernel/clock.ts'
import type { Database } from '../../../kernel/database.ts'
import { listQuery, type Sql, whereOf } from '../query/filters.ts'
import { asksForWords } from '../query/query.ts'
import { isBlocking } from '../store/edges.ts'
import { type BeadRecord, parseRecord, RECORD_SQL } from '../store/record.ts'
import { BLOCKING_SQL } from '../store/shifts.ts'
import type { WorkCity } from '../work/city.ts'
import { toLine } from './line.ts'
import { readComments, readEdges } from './line-rows.ts'

const SLICE = 200

/** Lines with their line feeds, in pieces; a filter that cannot be is refused before the first. */
export function exportLines(city: WorkCity, query: QueryOf<typeof exportBeads>, clock: Clock): AsyncIterable<string> {
  const { ephemeral, ...filters } = query
  const tier = ephemeral === 'include' ? {} : { ephemeral: ephemeral ?? ('exclude' as const) }
  const { rigs } = city.config()
  const hasRig = (name: string) => rigs.some((rig) => rig.name === name)
  const asked = listQuery({ ...filters, ...tier, all: true }, hasRig)
  const settled = asksForWords(asked) ? () => city.beads.words.settle() : () => Promise.resolve()
  const where = whereOf(asked, { now: clock.now(), identities: (name) => city.people.identities(name) })
  return walk(city, where, settled)
}

type Source = Pick<WorkCity, 'steps'> & { readonly store: Pick<WorkCity['store'], 'db'> }

async function* walk(city: Source, where: Sql, settled: () => Promise<void>): AsyncGenerator<string> {
  for (let after = ''; ; ) {
    await settled()
    const upTo = endOfSlice(city.store.db, after)
    if (upTo === undefined) return
    const lines = sliceLines(city, where, { after, upTo })
    if (lines !== '') yield lines
    after = upTo
    // A filter that finds little must not keep everybody else waiting.
    await nextTurn()
  }
}

/** The last of the next ids; undefined after all of them. */
function endOfSlice(db: Database, after: string): string | undefined {
  const row = db.get(`SELECT max(id) AS id FROM (SELECT id FROM beads WHERE id > ? ORDER BY id LIMIT ${SLICE})`, after)
  return row?.id == null ? undefined : String(row.id)
}

interface Slice {
  readonly after: string
  readonly upTo: string
}

function sliceLines(city: Source, where: Sql, { after, upTo }: Slice): string {
  const { db } = city.store
  const records = db
    .all(`${RECORD_SQL} WHERE b.id > ? AND b.id <= ? AND (${where.text}) ORDER BY b.id`, after, upTo, ...where.values)
    .map(parseRecord)
  const parts = partsAmong(
    city,
    records.map(({ id }) => id),
  )
  return linesOf(
    city,
    records.filter(({ id }) => !parts.has(id)),
  )
}

/** Those of these beads that are roots, steps or gates of molecules here. */
function partsAmong({ steps }: Source, ids: readonly string[]): ReadonlySet<string> {
  const ties = ids.length === 0 ? [] : steps.ties(ids)
  return new Set(ties.filter(({ is }) => is !== 'subject').map(({ bead }) => bead))
}

function linesOf(city: Source, records: readonly BeadRecord[]): string {
  const { db } = city.store
  const ids = records.map(({ id }) => id)
  const edges = readEdges(db, ids)
  const targets = [...edges.values()].flatMap((own) => own.map(({ depends_on_id }) => depends_on_id))
  const parts = partsAmong(city, [...new Set(targets)])
  const comments = readComments(db, ids)
  const dependents = countDependents(db, ids)
  const lines = records.map((record) => {
    const { id, labels, metadata } = record
    const known = (edges.get(id) ?? []).filter(({ depends_on_id }) => !parts.has(depends_on_id))
    const own = { edges: known, comments: comments.get(id) ?? [] }
    const line = toLine(
      {
        id,
        columns: { ...record, parent: parts.has(record.parent ?? '') ? null : record.parent },
        labels,
        metadata,
        ...own,
      },
      {
        dependency_count: own.edges.filter(({ type }) => isBlocking(type)).length,
        dependent_count: dependents.get(id) ?? 0,
        comment_count: own.comments.length,
      },
    )
    return `${line}\n`
  })
  return lines.join('')
}

function countDependents(db: Database, ids: readonly string[]): ReadonlyMap<string, number> {
  const rows = db.all(
    `SELECT depends_on_id AS id, count(*) AS size FROM bead_deps
      WHERE depends_on_id IN (SELECT value FROM json_each(?)) AND ${BLOCKING_SQL} GROUP BY depends_on_id`,
    JSON.stringify(ids),
  )
  return new Map(rows.map(({ id, size }) => [String(id), Number(size)]))
}
