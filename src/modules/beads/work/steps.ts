/**
 * Beads that belong to molecules: what clients may do with them (decision 93). A molecule moves its own beads by the store.
 *
 * G1  A step ends by a close that says how; one that passes reports what the formula declares, else it stays open.
 * G2  Whoever has lost the bead of a step cannot close it any more.
 * G3  The status, type and edges of such beads, and their end, are the molecule's: who asks for it is told the way.
 * G4  What a person is asked is not answered with the token of an agent, nor taken over with it: else whoever did the work
 *     would say that it is good. An agent that the gate is for answers it like anybody (decision 213).
 */
import type { ErrorDetail } from '../../../contract/base/problems.ts'
import type { BEAD_STATUSES, BeadCloseRequest, BeadPatchRequest, BeadStatus } from '../../../contract/beads.ts'
import type { Caller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/database.ts'
import { invalidField, type Problem, problem } from '../../../kernel/problem.ts'
import type { BeadRecord } from '../store/record.ts'
import type { BeadName } from '../store/store.ts'
import type { WorkPeople } from './city.ts'

/** The part of a molecule that a bead is. */
export interface StepBead {
  readonly role: 'root' | 'work'
  readonly molecule: string
  /** Path of the step. */
  readonly step: string
  /** Keys that a pass must report. */
  readonly output: readonly string[]
}

/** How a bead hangs together with a molecule: it is a part of it, or what it works on. */
export interface Tie {
  readonly bead: string
  readonly molecule: string
  readonly is: 'root' | 'part' | 'subject'
  readonly live: boolean
  /** The whole molecule is about the bead, not one of its items. */
  readonly whole: boolean
}

export interface WorkSteps {
  of(bead: string): StepBead | undefined
  /** Those among these that have one. */
  ties(beads: readonly string[]): readonly Tie[]
  cancel(tx: Tx, molecule: string, reason: string, actor: string): void
}

/** Sessions that had the bead of a step and lost it; the newest last. */
const LOST_SESSIONS = 'svc.lost_session_ids'
const MAX_LOST = 10

/** The part of a molecule that this is; most beads are none, and are not looked for. */
function partOf(steps: WorkSteps, bead: BeadRecord): StepPart | undefined {
  if (bead.root_bead_id === null && bead.issue_type !== 'molecule') return undefined
  const part = steps.of(bead.id)
  // Also that of a check by a person, which asks about work that has to report something.
  return part === undefined || bead.issue_type !== 'gate' ? part : { ...part, role: 'gate', output: [] }
}

type StepPart = Omit<StepBead, 'role'> & { readonly role: StepBead['role'] | 'gate' }

/** What a close comes to: a step says how it ended also where nothing is said. */
export function closeOf(
  steps: WorkSteps,
  people: WorkPeople,
  bead: BeadRecord,
  body: BeadCloseRequest = {},
): BeadCloseRequest {
  const part = partOf(steps, bead)
  if (part === undefined) return body
  if (part.role === 'root') throw owned(bead, part, `POST /molecules/${part.molecule}/cancel ends it`)
  const outcome = outcomeOf(part, body)
  if (bead.status === 'closed') return { ...body, outcome }
  assertNotLost(people, bead, body.session_id)
  if (outcome === 'pass') assertReported(part, body)
  return { ...body, outcome }
}

function outcomeOf({ role }: StepPart, { outcome }: BeadCloseRequest): 'pass' | 'fail' {
  if (outcome === 'pass' || outcome === 'fail') return outcome
  if (outcome !== undefined) throw invalidField('body.outcome', 'of a step is `pass` or `fail`', outcome)
  if (role === 'gate') throw invalidField('body.outcome', 'is required: a gate is answered with `pass` or `fail`')
  return 'pass'
}

function assertReported({ step, output: keys }: StepPart, { output }: BeadCloseRequest): void {
  const said = typeof output === 'object' && output !== null && !Array.isArray(output) ? output : {}
  const missing = keys.filter((key) => !Object.hasOwn(said, key))
  if (missing.length === 0) return
  const errors: ErrorDetail[] = missing.map((key) => ({
    location: `body.output.${key}`,
    message: 'is required: the formula declares it',
  }))
  throw problem(
    'validation-failed',
    `body.output: the step ${step} is to report ${missing.join(', ')}; it stays open until it does, or fails`,
    { errors },
  )
}

function assertNotLost(people: WorkPeople, bead: BeadRecord, session: string | undefined): void {
  if (session === undefined || !hasLost(people, bead, session)) return
  const who = bead.assignee === null ? 'nobody has it now' : `${bead.assignee} has it now`
  throw problem('conflict-claimed', `the session ${session} has lost ${bead.id}: ${who}`, {
    errors: [{ location: 'body.session_id', message: 'is not the session that has it', value: session }],
  })
}

function hasLost(people: WorkPeople, bead: BeadRecord, session: string): boolean {
  if (bead.status === 'open') return lostSessions(bead).includes(session)
  if (bead.session_id !== null) return bead.session_id !== session
  // Claimed by name alone: what the city knows of the session says whether that is one of its names.
  const names = people.identities(session)
  const isKnown = names.some((name) => name !== session)
  return (isKnown || lostSessions(bead).includes(session)) && bead.assignee !== null && !names.includes(bead.assignee)
}

const lostSessions = ({ metadata }: BeadRecord): readonly string[] => metadata[LOST_SESSIONS]?.split(' ') ?? []

/** What the bead of a step keeps of a session that is to have it no more. */
export function losing(bead: BeadRecord): Pick<BeadRecord, 'metadata'> | undefined {
  const { root_bead_id: root, session_id: session, metadata } = bead
  if (root === null || session === null) return undefined
  const lost = [...lostSessions(bead).filter((one) => one !== session), session].slice(-MAX_LOST)
  return { metadata: { ...metadata, [LOST_SESSIONS]: lost.join(' ') } }
}

/** What a merge patch may not touch. */
export function assertMayPatch(steps: WorkSteps, bead: BeadRecord, patch: BeadPatchRequest): void {
  const { status = bead.status, issue_type = patch.type ?? bead.issue_type, parent = bead.parent } = patch
  const moves = status !== bead.status
  if (!moves && issue_type === bead.issue_type && (parent || null) === bead.parent) return
  const part = partOf(steps, bead)
  if (part === undefined) return
  if (moves) throw owned(bead, part, wayTo(bead, part, status), 'body.status')
  if (issue_type !== bead.issue_type) throw owned(bead, part, 'its type stays', 'body.issue_type')
  throw owned(bead, part, FORMULA_SAYS, 'body.parent')
}

const FORMULA_SAYS = 'what it belongs to and waits for is said by its formula'

function wayTo({ id, status: from }: BeadRecord, { role, molecule }: StepPart, to: BeadStatus): string {
  if (role === 'root' && from !== 'closed') return `POST /molecules/${molecule}/cancel ends it`
  if (from === 'closed') return retries(molecule)
  const ways = { open: 'release', in_progress: 'claim', closed: 'close' } as const satisfies Record<
    (typeof BEAD_STATUSES)[number],
    string
  >
  return `POST /beads/${id}/${ways[to]} is the way`
}

const retries = (molecule: string): string => `POST /molecules/${molecule}/retry starts what failed again`

export function assertMayReopen(steps: WorkSteps, bead: BeadRecord): void {
  const part = partOf(steps, bead)
  if (part !== undefined) throw owned(bead, part, retries(part.molecule))
}

/** Whether this caller may answer what the bead asks, or say who does (G4). */
export function assertMayAnswer(steps: WorkSteps, bead: BeadRecord, caller: Caller): void {
  if (caller.kind !== 'agent' || bead.status === 'closed' || partOf(steps, bead)?.role !== 'gate') return
  const { assignee } = bead
  if (assignee !== null && caller.goesBy(assignee)) return
  throw problem(
    'forbidden',
    `${bead.id} is for ${assignee ?? 'a person'} to answer, and this token is that of ${caller.name}`,
  )
}

/** A root is nobody's work: it is not handed out, given back or routed. */
export function assertIsWork(steps: WorkSteps, bead: BeadRecord): void {
  const part = partOf(steps, bead)
  if (part?.role === 'root') throw owned(bead, part, 'its steps are what is worked on')
}

/** Whether edges of the bead may come and go; `removed`: what it waits for so far. */
export function assertMayEdge(steps: WorkSteps, bead: BeadRecord, removed?: string, location?: string): void {
  const part = partOf(steps, bead)
  if (part !== undefined) throw owned(bead, part, FORMULA_SAYS, location)
  if (removed === undefined) return
  const driven = subjectOf(steps, bead.id, [removed])
  if (driven !== undefined) throw driving(driven)
}

/** The same of beads that a body names. */
export function assertMayEdgeNamed(
  steps: WorkSteps,
  named: Iterable<BeadName>,
  find: (id: string) => BeadRecord | undefined,
): void {
  for (const { id, location } of named) {
    const bead = find(id)
    if (bead !== undefined) assertMayEdge(steps, bead, undefined, location)
  }
}

/** Whether these may be deleted, each by itself. */
export function assertMayRemove(steps: WorkSteps, ids: readonly string[]): void {
  const tie = steps.ties(ids).find(({ is, live }) => is !== 'subject' || live)
  if (tie === undefined) return
  if (tie.is === 'subject') throw driving(tie)
  const what = tie.is === 'root' ? 'the root' : 'a step'
  throw problem(
    'conflict-wrong-state',
    `${tie.bead} is ${what} of the molecule ${tie.molecule}: DELETE /molecules/${tie.molecule} deletes it with all that is its`,
    { errors: [{ location: 'path.id', message: `is ${what} of a molecule`, value: tie.bead }] },
  )
}

/** Those of these that stay although they are old: what is at work, and what a molecule is called by. */
export function keptAmong(steps: WorkSteps, ids: readonly string[]): ReadonlySet<string> {
  const ties = ids.length === 0 ? [] : steps.ties(ids)
  return new Set(ties.filter(({ is, live }) => live || is === 'root').map(({ bead }) => bead))
}

/** What a line of an import does to a bead that is there. */
export interface LineEffect {
  /** Ends of edges that it takes away. */
  readonly gone: readonly string[]
  readonly closes: boolean
}

/** Why a line must not do that; undefined where it may. */
export function importFault(steps: WorkSteps, bead: BeadRecord, { gone, closes }: LineEffect): string | undefined {
  const part = partOf(steps, bead)
  if (part !== undefined) return owned(bead, part, 'an import does not change it').message
  const about = closes ? steps.ties([bead.id]).find((tie) => tie.is === 'subject' && tie.live && tie.whole) : undefined
  if (about !== undefined) return driving(about).message
  const driven = gone.length === 0 ? undefined : subjectOf(steps, bead.id, gone)
  return driven === undefined ? undefined : driving(driven).message
}

/** The tie to one of these molecules, where it works on the bead. */
const subjectOf = (steps: WorkSteps, bead: string, molecules: readonly string[]): Tie | undefined =>
  steps.ties([bead]).find(({ is, molecule }) => is === 'subject' && molecules.includes(molecule))

function owned(bead: BeadRecord, part: StepPart, way: string, location = 'path.id'): Problem {
  const what = part.role === 'root' ? 'the root' : `the step ${part.step}`
  return problem('conflict-wrong-state', `${bead.id} is ${what} of the molecule ${part.molecule}: ${way}`, {
    errors: [{ location, message: 'is for the molecule to say', value: bead.id }],
  })
}

const driving = ({ bead, molecule }: Tie): Problem =>
  problem(
    'conflict-wrong-state',
    `the molecule ${molecule} works on ${bead}: POST /molecules/${molecule}/cancel first`,
    {
      errors: [{ location: 'path.id', message: 'is at work', value: bead }],
    },
  )
