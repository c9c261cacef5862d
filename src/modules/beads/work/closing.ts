/** Closing a bead: who does it, the live molecule that is about it, and the parts that stay open. */
import type { Caller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import type { BeadRecord } from '../store/record.ts'
import type { WorkCity, WorkPeople } from './city.ts'

type Reader = Pick<Tx, 'get' | 'all'>

interface Closer {
  readonly caller: Caller
  readonly actor: string
  /** Session that the body names. */
  readonly session?: string | undefined
}

interface Closing extends Closer {
  /** Cancel the molecule first. */
  readonly cancel?: boolean | undefined
  /** The command that closes it; absent: `bead close`. */
  readonly command?: string
}

type Surroundings = Pick<WorkCity, 'steps' | 'beads' | 'people'>

const UNKNOWN = 'api'
const MAX_NAMED = 5

/** The actor of a close: a session that says its id is named as in its claim. */
export function closerOf(people: WorkPeople, bead: BeadRecord, { actor, session }: Closer): string {
  if (actor !== UNKNOWN || session === undefined || session === '') return actor
  const name = people.canonical(session)
  return name === session && bead.session_id === session ? (bead.assignee ?? name) : name
}

/**
 * Refuses to close what a live molecule is about: its steps would go on for a bead that is done. Whoever works on one of the
 * steps may, since to close the bead can be that work; `cancel` ends the molecule first. Returns the bead as it is then.
 */
export function freeSubject(tx: Tx, city: Surroundings, bead: BeadRecord, closing: Closing): BeadRecord {
  const { steps, beads, people } = city
  const tie = steps.ties([bead.id]).find(({ is, live, whole }) => is === 'subject' && live && whole)
  if (tie === undefined) return bead
  if (closing.cancel === true) {
    steps.cancel(tx, tie.molecule, `${bead.id} is closed`, closerOf(people, bead, closing))
    return beads.need(bead.id)
  }
  if (worksOn(tx, tie.molecule, namesOf(people, closing))) return bead
  const { command = 'bead close' } = closing
  throw problem(
    'molecule-live',
    `the molecule ${tie.molecule} works on ${bead.id}: \`svcctl ${command} ${bead.id} --cancel\` ends the molecule and closes the bead`,
    { errors: [{ location: 'path.id', message: `is what ${tie.molecule} is about`, value: bead.id }] },
  )
}

function namesOf(people: WorkPeople, { caller, session }: Closer): readonly string[] {
  if (caller.kind === 'agent') return [caller.session, caller.name]
  return session === undefined || session === '' ? [] : people.identities(session)
}

const worksOn = (reader: Reader, molecule: string, names: readonly string[]): boolean =>
  names.length > 0 &&
  reader.get(
    `SELECT 1 FROM beads WHERE root_bead_id = ? AND status = 'in_progress'
       AND (session_id IN (SELECT value FROM json_each(?)) OR assignee IN (SELECT value FROM json_each(?))) LIMIT 1`,
    molecule,
    JSON.stringify(names),
    JSON.stringify(names),
  ) !== undefined

/** Parts of a closed bead that are still open, as a sentence. */
export function openParts(reader: Reader, { id }: BeadRecord): string[] {
  const open = reader.all(
    "SELECT id FROM beads WHERE parent = ? AND status <> 'closed' ORDER BY created_at, id LIMIT ?",
    id,
    MAX_NAMED + 1,
  )
  if (open.length === 0) return []
  const named = open.slice(0, MAX_NAMED).map((row) => String(row.id))
  const all = open.length > MAX_NAMED ? [...named, 'others'] : named
  return [`${id} is closed, and parts of it are not: ${all.join(', ')}`]
}
