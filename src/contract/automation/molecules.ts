/** Molecules: formulas at work, with a row for every step (decisions 90–104, 119–121). */

import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam, durationSchema, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, listFields, PageQuery } from '../base/paging.ts'
import {
  anything,
  array,
  boolean,
  choice,
  component,
  integer,
  literal,
  object,
  optional,
  record,
  type Static,
  string,
} from '../base/schema.ts'
import { FAILURE_CLASSES, MAX_PERSON, MAX_TITLE } from '../base/work.ts'
import { StepGraph } from './graph.ts'
import { MOLECULE_STATUSES, MOLECULE_STEP_STATUSES, STEP_KINDS } from './words.ts'

export const MOLECULE_TYPE = 'molecule'
export const GATE_TYPE = 'gate'
/** Who answers a human gate that names nobody. */
export const HUMAN = 'human'
export const MOLECULE_OUTCOMES = ['pass', 'fail', 'canceled'] as const
export const MAX_FORMULA_NAME = 256
/** Path of a step: ids and numbers of items, with dots between them. */
export const MAX_STEP_PATH = 1_024

const count = (description: string) => integer({ minimum: 0, description })
const text = (maxLength: number, description: string) => string({ minLength: 1, maxLength, description })
const FailureClass = choice(FAILURE_CLASSES, { description: '`hard`: to try again is of no use.' })

export const WorkWarning = component('WorkWarning', {
  code: string({ pattern: '^[a-z][a-z0-9_]*$', description: 'Such as `unknown_target`.' }),
  message: string(),
})
export type WorkWarning = Static<typeof WorkWarning>

export const MoleculeProgress = component(
  'MoleculeProgress',
  {
    total: count('Work and gates that are known by now; items count from when they begin.'),
    active: count('Under way.'),
    waiting: count('Waiting for an answer, a time, an event, or to be tried again.'),
    completed: count('Done.'),
    failed: count('Failed for good.'),
    skipped: count('Left out.'),
    canceled: count('Canceled.'),
  },
  { description: 'Counts of its work and gates. Groups and what is superseded do not count.' },
)
export type MoleculeProgress = Static<typeof MoleculeProgress>

export const MoleculeFailure = component('MoleculeFailure', {
  step_id: string({ description: 'Path of the step that failed first.' }),
  class: FailureClass,
  reason: string({ description: 'Such as `timeout`, `check_failed`, `worker_lost`, or what the worker said.' }),
  message: string(),
})
export type MoleculeFailure = Static<typeof MoleculeFailure>

const described = {
  formula: string(),
  formula_hash: string({ description: 'SHA-256 of the plan that it runs by.' }),
  formula_changed: boolean({ description: 'The formula of this name is another one by now, or gone.' }),
  title: string(),
  rig: optional(string({ description: 'Absent: it belongs to the city itself.' })),
  target: optional(string({ description: 'Agent or pool that does steps which name none.' })),
  bead_id: optional(string({ description: 'The bead that it is about.' })),
  order_run_id: optional(string({ description: 'Run of the order that started it.' })),
  vars: record(anything(), { description: 'With defaults.' }),
  progress: MoleculeProgress,
  warnings: array(WorkWarning, { description: 'Such as steps whose target nobody knows.' }),
}
export const Molecule = component('Molecule', {
  id: string({ description: 'Also the id of its root bead.' }),
  ...described,
  status: choice(MOLECULE_STATUSES, {
    description:
      '`pending`: nothing was claimed, and no gate opened yet. `waiting`: nobody works on it and no command runs.',
  }),
  failure: optional(MoleculeFailure),
  created_at: Timestamp,
  updated_at: Timestamp,
  closed_at: optional(Timestamp),
  expires_at: optional({ ...Timestamp, description: 'When it is deleted; absent: never.' }),
  revision: integer({ minimum: 1, description: 'One more with every change.' }),
})
export type Molecule = Static<typeof Molecule>

export const MoleculeDraft = component(
  'MoleculeDraft',
  { dry_run: literal(true), ...described },
  { description: 'What would be started.' },
)
export type MoleculeDraft = Static<typeof MoleculeDraft>

export const STEP_CHECK_STATES = ['pending', 'queued', 'running', 'waiting', 'passed', 'failed', 'error'] as const
export const MoleculeStepCheck = component('MoleculeStepCheck', {
  kind: choice(['exec', 'manual']),
  status: choice(STEP_CHECK_STATES, {
    description:
      '`queued`: its command waits for a free slot, which costs the step no time. `waiting`: for an answer, or to be repeated without a verdict. `error`: it never came to a verdict.',
  }),
  exit_code: optional(integer()),
  output: optional(string({ description: 'End of what it printed.' })),
  error: optional(string({ description: 'Why it has no verdict.' })),
  bead_id: optional(string({ description: 'Gate that waits for the answer.' })),
  tries: optional(count('How often it was run for this attempt.')),
  queued_at: optional({
    ...Timestamp,
    description: 'Since when its command has waited for a free slot, if it had to.',
  }),
  started_at: optional({ ...Timestamp, description: 'When its command began to run.' }),
})
export type MoleculeStepCheck = Static<typeof MoleculeStepCheck>

export const MoleculeStep = component('MoleculeStep', {
  id: string({ description: 'Path: `polish.2.review`. Items count from 1.' }),
  kind: choice(STEP_KINDS, {
    description: '`group`: has children; `for_each`, `loop`: has items, which are of the kind of what is repeated.',
  }),
  title: string(),
  status: choice(MOLECULE_STEP_STATUSES, {
    description: '`ready`: its bead can be claimed. `waiting`: for an answer, a time, an event, or its next attempt.',
  }),
  reason: optional(string({ description: 'Why it is so: what it waits for, why it was skipped.' })),
  needs: array(string(), { description: 'Paths of the steps that come before it.' }),
  bead_id: optional(string()),
  assignee: optional(string({ description: 'Who has its bead.' })),
  target: optional(string({ description: 'Agent or pool that may claim it.' })),
  attempt: count('From 1; 0 before the first.'),
  max_attempts: count('1 where nothing is said about trying again.'),
  output: optional(anything({ description: 'What its pass reported; of a group by child, of a repeat by item.' })),
  failure: optional(
    object({
      class: FailureClass,
      reason: string(),
      message: string(),
    }),
  ),
  check: optional(MoleculeStepCheck),
  item: optional(anything({ description: 'Of an item: what it is about.' })),
  due_at: optional({ ...Timestamp, description: 'When it times out, or its gate opens by itself.' }),
  next_attempt_at: optional({ ...Timestamp, description: 'When it is tried again.' }),
  last_error: optional(string({ description: 'Why its check has no verdict so far.' })),
  superseded: boolean({ description: 'True: a later attempt of the group around it took its place.' }),
  started_at: optional(Timestamp),
  finished_at: optional(Timestamp),
})
export type MoleculeStep = Static<typeof MoleculeStep>

export const MoleculeAttempt = component('MoleculeAttempt', {
  attempt: integer({ minimum: 1 }),
  bead_id: optional(string()),
  assignee: optional(string()),
  status: choice(MOLECULE_STEP_STATUSES),
  output: optional(anything({ description: 'What it reported.' })),
  failure: optional(object({ class: FailureClass, reason: string(), message: string() })),
  check: optional(MoleculeStepCheck),
  started_at: optional(Timestamp),
  finished_at: optional(Timestamp),
})
export type MoleculeAttempt = Static<typeof MoleculeAttempt>

export const MoleculeStepView = component('MoleculeStepView', {
  ...MoleculeStep.properties,
  attempts: array(MoleculeAttempt, { description: 'Oldest first, the present one included.' }),
  output_left_out: optional(
    literal(true, { description: 'What its steps reported is too large for one answer: read them one by one.' }),
  ),
})
export type MoleculeStepView = Static<typeof MoleculeStepView>

const Vars = record(anything(), {
  maxProperties: 500,
  propertyNames: { minLength: 1, maxLength: 64 },
  description: 'By name. Each is checked as the formula declares it; unknown ones are refused.',
})
/** What starting a molecule and slinging with a formula have in common. */
export const startFields = {
  vars: optional(Vars),
  title: optional(text(MAX_TITLE, 'What it is called; the title of the formula where absent.')),
  rig: optional(text(64, 'Rig that it belongs to; that of its bead, or the city itself, where absent.')),
  reassign: optional(boolean({ description: 'True: take the bead from who has it.' })),
  replace: optional(boolean({ description: 'True: cancel the molecule that works on the bead now.' })),
}
export const MoleculeStartRequest = component('MoleculeStartRequest', {
  formula: text(MAX_FORMULA_NAME, 'Name of the formula.'),
  ...startFields,
  bead: optional(text(256, 'Bead that it is about; of a convoy each member is one of `bead.members`.')),
  target: optional(text(MAX_PERSON, 'Agent or pool for steps that name none; that of the formula where absent.')),
  keep: optional(durationSchema('It is deleted that long after its end; absent: never.')),
  dry_run: optional(boolean({ description: 'True: only check, and say what would be started.' })),
})
export type MoleculeStartRequest = Static<typeof MoleculeStartRequest>

export const MoleculeCancelRequest = component('MoleculeCancelRequest', {
  reason: optional(string({ maxLength: 2_000, description: 'Why; holders are told.' })),
})
export const DeletedMolecule = component('DeletedMolecule', {
  status: literal('deleted'),
  id: string(),
  beads: count('Beads that went with it, its root included.'),
})

const molecules = family(
  { name: 'Molecules', about: 'Formulas at work: each with a row for every step.' },
  '/v0/city/{cityName}/molecules',
  {
    cityName: CityNameParam,
    id: string({ minLength: 1, maxLength: 256, description: 'Id of the molecule.', examples: ['al-m0l'] }),
    path: string({
      minLength: 1,
      maxLength: MAX_STEP_PATH,
      description: 'Path of a step.',
      examples: ['polish.2.review'],
    }),
  },
  { replyHeaders: ['X-SVC-Index'] },
)
const molecule = molecules.at('/{id}', { problems: ['molecule-not-found'] })
const change = molecule.with({ headers: ['If-Match'], replies: { 200: Molecule }, replyHeaders: ['ETag'] })

const BEADS_CHANGE = ['bead.created', 'bead.updated', 'bead.closed'] as const
const STEPS_CHANGE = [
  'molecule.status',
  'execution.step_started',
  'execution.step_completed',
  'gate.opened',
  'gate.closed',
] as const
const ofStatus = count('')
const STATUS_COUNTS = {
  status_counts: object(
    {
      pending: ofStatus,
      active: ofStatus,
      waiting: ofStatus,
      completed: ofStatus,
      failed: ofStatus,
      canceled: ofStatus,
    },
    { description: 'How many there are of each status, whatever `status` asks for.' },
  ),
}

export const listMolecules = molecules.get('list-molecules', '', {
  summary: 'List molecules',
  description: 'Newest first, ended ones too. All filters must hold; of one that is said several times any.',
  query: object({
    status: optional(array(choice(MOLECULE_STATUSES), { maxItems: 6, description: 'Any of these.' })),
    formula: optional(array(text(MAX_FORMULA_NAME, ''), { maxItems: 50, description: 'Any of these formulas.' })),
    rig: optional(array(text(64, ''), { maxItems: 50, description: 'Any of these rigs.' })),
    target: optional(array(text(MAX_PERSON, ''), { maxItems: 50, description: 'Any of these targets.' })),
    bead: optional(array(text(256, ''), { maxItems: 50, description: 'About any of these beads.' })),
    order: optional(array(text(256, ''), { maxItems: 50, description: 'Started by any of these orders.' })),
    ...BlockingQuery,
    ...PageQuery,
  }),
  replies: { 200: component('ListBodyMolecule', { ...listFields(Molecule), ...STATUS_COUNTS }) },
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const startMolecule = molecules.post('start-molecule', '', {
  summary: 'Start a molecule',
  description:
    'All of it or nothing. About a bead: the bead waits for it and loses its route; it must be open, nobody’s, no step, and no other molecule may work on it. With `dry_run` everything is checked and nothing happens.',
  body: MoleculeStartRequest,
  headers: ['Idempotency-Key'],
  replies: { 200: MoleculeDraft, 201: Molecule },
  problems: [
    'formula-not-found',
    'formula-invalid',
    'bead-not-found',
    'rig-not-found',
    'untrusted-pack',
    'molecule-live',
    'conflict-claimed',
    'conflict-wrong-state',
  ],
  emits: ['molecule.created', ...STEPS_CHANGE, ...BEADS_CHANGE],
})

export const getMolecule = molecule.get('get-molecule', '', {
  summary: 'Get a molecule',
  description: 'The ETag is its `revision`.',
  query: object({ ...BlockingQuery }),
  replies: { 200: Molecule },
  replyHeaders: ['ETag'],
})

export const listMoleculeSteps = molecule.get('list-molecule-steps', '/steps', {
  summary: 'List the steps of a molecule',
  description: 'In the order of the formula; items follow what repeats. Superseded ones only where asked.',
  query: object({
    status: optional(array(choice(MOLECULE_STEP_STATUSES), { maxItems: 8, description: 'Any of these.' })),
    superseded: optional(boolean({ description: 'True: also steps of earlier attempts of their group.' })),
    ...BlockingQuery,
    ...PageQuery,
  }),
  replies: { 200: listBody('ListBodyMoleculeStep', MoleculeStep) },
  problems: ['invalid-cursor'],
})

export const getMoleculeStep = molecule.get('get-molecule-step', '/steps/{path}', {
  summary: 'Get a step of a molecule, with its attempts',
  description:
    'By its path. `output` of a group is that of its steps by id; of what repeats, a list with one of each item.',
  replies: { 200: MoleculeStepView },
  problems: ['molecule-step-not-found'],
})

export const getMoleculeGraph = molecule.get('get-molecule-graph', '/graph', {
  summary: 'Get the graph of a molecule',
  description: 'Its steps and what they need. Items fold into counts, unless `expand` names what repeats.',
  query: object({
    expand: optional(
      array(text(MAX_STEP_PATH, ''), { maxItems: 50, description: 'Paths whose items are shown, each by itself.' }),
    ),
  }),
  replies: { 200: StepGraph },
  problems: ['molecule-step-not-found'],
})

export const cancelMolecule = change.post('cancel-molecule', '/cancel', {
  summary: 'Cancel a molecule',
  description: 'At once: its beads are closed, its commands ended, who works on it is interrupted and told.',
  body: MoleculeCancelRequest,
  bodyOptional: true,
  problems: ['conflict-wrong-state'],
  emits: ['molecule.resolved', ...STEPS_CHANGE, ...BEADS_CHANGE],
})

export const retryMolecule = change.post('retry-molecule', '/retry', {
  summary: 'Go on with a molecule that failed',
  description: 'What failed, and what was skipped because of it, starts again; what passed stays as it is.',
  problems: ['conflict-wrong-state', 'molecule-live'],
  emits: [...STEPS_CHANGE, ...BEADS_CHANGE, 'bead.reopened'],
})

export const deleteMolecule = molecule.delete('delete-molecule', '', {
  summary: 'Delete a molecule',
  description: 'One that has ended, with its beads. What they were about stays.',
  headers: ['If-Match'],
  replies: { 200: DeletedMolecule },
  problems: ['conflict-wrong-state'],
  emits: ['bead.deleted', 'bead.updated'],
})

export const moleculeOperations = [
  listMolecules,
  startMolecule,
  getMolecule,
  listMoleculeSteps,
  getMoleculeStep,
  getMoleculeGraph,
  cancelMolecule,
  retryMolecule,
  deleteMolecule,
] as const

export const MoleculeCreatedPayload = component('MoleculeCreatedPayload', { molecule: Molecule })
export const MoleculeStatusPayload = component('MoleculeStatusPayload', {
  molecule_id: string(),
  from: choice(MOLECULE_STATUSES),
  to: choice(MOLECULE_STATUSES),
  reason: optional(string({ description: 'Such as `claimed`, `retry`, `timeout`, or why it was canceled.' })),
})
export const MoleculeResolvedPayload = component('MoleculeResolvedPayload', {
  issue_id: string({ description: 'Id of the molecule.' }),
  formula: string(),
  outcome: choice(MOLECULE_OUTCOMES),
  close_reason: string(),
  failure: optional(MoleculeFailure),
})

const inLog = { log: 'city', emittedBy: 'molecules', subject: 'the id of the molecule' } as const
export const MOLECULE_EVENT_TYPES = {
  'molecule.created': { payload: MoleculeCreatedPayload, ...inLog, when: 'a molecule was started' },
  'molecule.status': { payload: MoleculeStatusPayload, ...inLog, when: 'its status is another one' },
  'molecule.resolved': {
    payload: MoleculeResolvedPayload,
    ...inLog,
    when: 'it has ended: once, and once more after each retry',
  },
} as const satisfies EventTypes
