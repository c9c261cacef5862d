/** What of molecules needs a person: gates, checks by hand, failures, and steps that nobody takes. */
import type { NeedDraft, NeedSource } from '../../../kernel/needs.ts'
import { type MoleculeRow, moleculeOf, parseFailure, parseMolecule, parseStep } from '../engine/base/rows.ts'
import type { MoleculeReads } from './reads.ts'

/** Failures that are older when they are first looked at are history. */
const RECENT_MS = 7 * 24 * 3_600_000
const PERSON_GATES = `SELECT bead, asked FROM molecule_steps WHERE (phase = 'gate' AND reason = 'human') OR phase = 'ask'`

type Reader = Parameters<NeedSource['needsOf']>[0]

const unended = ({ total, completed, failed, skipped, canceled }: MoleculeRow): number =>
  Math.max(0, total - completed - failed - skipped - canceled)

/** By the bead that a person closes to answer. */
export const gateNeeds: NeedSource = {
  name: 'gates',
  types: ['gate.*', 'bead.updated', 'bead.closed', 'bead.deleted'],
  subjectsOf: ({ subject, type, envelope }) => {
    if (type.startsWith('bead.')) return subject === undefined ? [] : [subject]
    const { payload }: { readonly payload: { readonly bead_id?: string } } = JSON.parse(envelope)
    return payload.bead_id === undefined ? [] : [payload.bead_id]
  },
  subjects: (reader) =>
    reader.all(PERSON_GATES).flatMap(({ bead, asked }) => {
      const id = asked ?? bead
      return id === null || id === undefined ? [] : [String(id)]
    }),
  needsOf: (reader, bead) => {
    const row = reader.get(
      `SELECT * FROM molecule_steps WHERE asked = ? AND phase = 'ask'
       UNION ALL SELECT * FROM molecule_steps WHERE bead = ? AND phase = 'gate' AND reason = 'human' LIMIT 1`,
      bead,
      bead,
    )
    if (row === undefined) return []
    const step = parseStep(row)
    const molecule = moleculeAt(reader, moleculeOf(step.id))
    if (molecule === undefined) return []
    const isCheck = step.phase === 'ask'
    const asked = reader.get('SELECT title, description FROM beads WHERE id = ?', bead)
    return [gateNeed({ molecule, bead, isCheck, asked, path: step.path })]
  },
}

interface Gate {
  readonly molecule: MoleculeRow
  readonly bead: string
  readonly isCheck: boolean
  readonly path: string
  readonly asked: Readonly<Record<string, unknown>> | undefined
}

function gateNeed({ molecule, bead, isCheck, path, asked }: Gate): NeedDraft {
  const title = String(asked?.['title'] ?? path)
  const description = asked?.['description']
  const close = { operation: 'close-bead', command: `svcctl bead close ${bead}` } as const
  return {
    key: bead,
    kind: isCheck ? 'manual_check' : 'gate',
    subject: { kind: 'bead', id: bead, name: title },
    title: `${molecule.title}: ${title}`,
    detail: `Step ${path} of molecule ${molecule.id} waits for an answer.`,
    holdsUp: unended(molecule),
    ...(typeof description === 'string' ? { content: description } : {}),
    operations: [
      { ...close, params: { id: bead, outcome: 'pass' }, label: 'Approve', command: `${close.command} --outcome pass` },
      { ...close, params: { id: bead, outcome: 'fail' }, label: 'Reject', command: `${close.command} --outcome fail` },
    ],
  }
}

export const moleculeNeeds = (reads: MoleculeReads, now: () => number): NeedSource => ({
  name: 'molecules',
  types: [
    'molecule.*',
    'execution.step_started',
    'execution.step_completed',
    'agent.*',
    'config.reloaded',
    'bead.deleted',
  ],
  subjectsOf: ({ type, subject }) => {
    const isOfConfiguration = type.startsWith('agent.') || type.startsWith('config.')
    if (isOfConfiguration) return reads.withWarnings()
    return subject === undefined ? [] : [subject]
  },
  subjects: (reader) => [
    ...reads.withWarnings(),
    ...reader
      .all("SELECT id FROM molecules WHERE status = 'failed' AND closed_at > ?", now() - RECENT_MS)
      .map(({ id }) => String(id)),
  ],
  needsOf: (_, id) => {
    const molecule = reads.find(id)
    if (molecule === undefined) return []
    const failed = failedNeed(molecule)
    const stuck = stuckNeed(
      molecule,
      reads.warnings(molecule).map(({ message }) => message),
    )
    return [...(failed === undefined ? [] : [failed]), ...(stuck === undefined ? [] : [stuck])]
  },
})

const subjectOf = ({ id, title }: MoleculeRow): NeedDraft['subject'] => ({ kind: 'molecule', id, name: title })

function failedNeed(molecule: MoleculeRow): NeedDraft | undefined {
  if (molecule.status !== 'failed') return undefined
  const { id, title } = molecule
  const failure = parseFailure(molecule.failure)
  return {
    key: 'failed',
    kind: 'molecule_failed',
    subject: subjectOf(molecule),
    ...(molecule.closed_at === null ? {} : { since: molecule.closed_at }),
    title: `${title} failed${failure === undefined ? '' : ` in ${failure.step_id}`}`,
    ...(failure === undefined ? {} : { detail: failure.message }),
    holdsUp: unended(molecule),
    operations: [
      { operation: 'retry-molecule', params: { id }, label: 'Retry', command: `svcctl molecule retry ${id}` },
      { operation: 'list-molecule-steps', params: { id }, label: 'Steps', command: `svcctl molecule steps ${id}` },
    ],
  }
}

function stuckNeed(molecule: MoleculeRow, warnings: readonly string[]): NeedDraft | undefined {
  const [first] = warnings
  if (first === undefined) return undefined
  const { id, title } = molecule
  return {
    key: 'stuck',
    kind: 'step_stuck',
    subject: subjectOf(molecule),
    title: `${title} waits: ${first}`,
    ...(warnings.length === 1 ? {} : { detail: warnings.join('\n') }),
    holdsUp: unended(molecule),
    operations: [
      { operation: 'list-molecule-steps', params: { id }, label: 'Steps', command: `svcctl molecule steps ${id}` },
      { operation: 'cancel-molecule', params: { id }, label: 'Cancel', command: `svcctl molecule cancel ${id}` },
    ],
  }
}

function moleculeAt(reader: Reader, n: number): MoleculeRow | undefined {
  const row = reader.get('SELECT * FROM molecules WHERE n = ?', n)
  return row === undefined ? undefined : parseMolecule(row)
}
