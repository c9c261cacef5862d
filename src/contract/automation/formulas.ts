/** Formulas: reusable methods as files, what they come to, and how they are edited (decisions 81–89, 105, 118). */
import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam } from '../base/names.ts'
import { BlockingQuery, listBody, PageQuery } from '../base/paging.ts'
import {
  anything,
  array,
  boolean,
  choice,
  component,
  integer,
  object,
  optional,
  raw,
  record,
  type Static,
  string,
} from '../base/schema.ts'
import {
  CHECK_FILE,
  DeletedDocument,
  DocumentChangedPayload,
  DocumentPlace,
  documentName,
  putFile,
  READ_FILE,
  RigQuery,
} from './documents.ts'
import { StepGraph } from './graph.ts'
import { WorkWarning } from './molecules.ts'
import { VAR_TYPES } from './var-text.ts'

const INCLUDED = ['yes', 'no', 'unknown'] as const

const FormulaVar = component('FormulaVar', {
  name: string(),
  type: choice(VAR_TYPES),
  description: optional(string()),
  default: optional(anything()),
  required: optional(boolean()),
  enum: optional(array(anything())),
  pattern: optional(string({ description: 'Over the whole value.' })),
})

export const Formula = component('Formula', {
  ...DocumentPlace,
  hash: string({ description: 'SHA-256 of all that it is made of; of its file where it is not valid.' }),
  title: optional(string({ description: 'As written: a template.' })),
  description: optional(string({ description: 'As written: a template.' })),
  target: optional(string({ description: 'Agent or pool that its steps go to where they do not say.' })),
  timeout_ms: optional(integer({ minimum: 0, description: 'Of a whole molecule.' })),
  vars: array(FormulaVar, { description: 'With those of what it extends; of a valid one.' }),
  steps: integer({ minimum: 0, description: 'How many steps it has, with those of groups; of a valid one.' }),
  startable: boolean({ description: 'It is valid and has steps; another one can only be extended.' }),
  uses: array(string(), { description: 'Formulas that it extends or expands, also through others.' }),
  shadows: array(string(), { description: 'Files of lower layers that it takes the place of.' }),
})
export type Formula = Static<typeof Formula>

const FormulaReferrer = object({
  kind: choice(['formula', 'order', 'agent', 'agent_defaults']),
  name: string(),
  rig: optional(string()),
  key: string(),
  file: string(),
})

export const FormulaDetail = component('FormulaDetail', {
  ...Formula.properties,
  definition: optional(
    raw<{ [key: string]: unknown }>({ type: 'object', description: 'What its file says, as JSON.' }),
  ),
  graph: StepGraph,
  used_by: array(FormulaReferrer, { description: 'What names it: it cannot be deleted while anything does.' }),
})
export type FormulaDetail = Static<typeof FormulaDetail>

export const StoredFormula = component('StoredFormula', {
  ...FormulaDetail.properties,
  breaks: array(object({ name: string(), rig: optional(string()) }), {
    description: 'Formulas that were valid before and are not with this one; `issues` of each says why.',
  }),
})
export type StoredFormula = Static<typeof StoredFormula>

export const FormulaPreviewRequest = component('FormulaPreviewRequest', {
  vars: optional(record(anything(), { description: 'Values of its variables; nothing is started.' })),
  bead: optional(string({ minLength: 1, description: 'Bead that a molecule would be attached to.' })),
  rig: optional(RigQuery.rig),
  target: optional(string({ minLength: 1, description: 'Agent or pool in place of its own target.' })),
})

export const PreviewedStep = component('PreviewedStep', {
  id: string({ description: 'Path of the step.' }),
  included: choice(INCLUDED),
  title: optional(string()),
  description: optional(string()),
  target: optional(string()),
  assignee: optional(string()),
  rendered: boolean({ description: 'False: some of it depends on what happens, and stands here as written.' }),
})

export type PreviewedStep = Static<typeof PreviewedStep>

export const FormulaPreview = component('FormulaPreview', {
  name: string(),
  rig: optional(string()),
  hash: string(),
  title: string(),
  description: optional(string()),
  target: optional(string()),
  vars: raw<{ [key: string]: unknown }>({
    type: 'object',
    description: 'In force, with defaults and those of the rig.',
  }),
  steps: array(PreviewedStep),
  graph: StepGraph,
  warnings: array(WorkWarning, { description: 'What would wait for somebody who is not there.' }),
})
export type FormulaPreview = Static<typeof FormulaPreview>

const formulas = family(
  { name: 'Formulas', about: 'Methods written once: what molecules are made of.' },
  '/v0/city/{cityName}/formulas',
  { cityName: CityNameParam, name: documentName('patch-release') },
  {},
)
const one = formulas.at('/{name}', { query: object(RigQuery), problems: ['formula-not-found', 'rig-not-found'] })

const EXAMPLE =
  'formula = "tidy"\ntitle = "Tidy {{ part }}"\n[vars]\npart = "the docs"\n[[steps]]\nid = "work"\ntitle = "Tidy {{ part }}"\n'

export const getFormula = one.get('get-formula', '', {
  summary: 'Get a formula',
  description: 'What it says, what it comes to, and all that is wrong with it.',
  replies: { 200: FormulaDetail },
  replyHeaders: ['ETag', 'X-SVC-Index'],
})

export const getFormulaSource = one.get('get-formula-source', '/source', {
  summary: 'Read the file of a formula',
  ...READ_FILE,
})

export const listFormulas = formulas.get('list-formulas', '', {
  summary: 'List formulas',
  description:
    'By name: those of the city, and those that rigs have of their own. With `rig` all that this rig can name. One that is not valid is listed with its `issues`.',
  query: object({
    ...RigQuery,
    layer: optional(choice(['pack', 'city', 'rig'], { description: 'Only those whose file belongs there.' })),
    pack: optional(string({ minLength: 1, description: 'Only those that this import brings.' })),
    valid: optional(boolean({ description: 'Only those that are, or are not.' })),
    startable: optional(boolean({ description: 'Only those that molecules can be started of, or not.' })),
    ...PageQuery,
    ...BlockingQuery,
  }),
  replies: { 200: listBody('ListBodyFormula', Formula) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['rig-not-found', 'invalid-cursor'],
})

export const putFormula = formulas.put('put-formula', '/{name}', {
  summary: 'Create or replace a formula',
  ...putFile('a formula', EXAMPLE),
  replies: { 200: StoredFormula, 201: StoredFormula },
  replyHeaders: ['ETag', 'X-SVC-Index', 'X-SVC-Config-Rejected'],
  emits: ['formula.changed', 'config.reloaded'],
})

export const formulaOperations = [
  listFormulas,
  formulas.post('validate-formula', '/validate', {
    summary: 'Check the file of a formula',
    ...CHECK_FILE,
  }),
  getFormula,
  getFormulaSource,
  putFormula,
  one.delete('delete-formula', '', {
    summary: 'Delete the file of a formula',
    description:
      'Refused where it is that of a pack, or where another formula, an order or an agent names it and no lower layer has one of this name.',
    headers: ['If-Match'],
    replies: { 200: DeletedDocument },
    replyHeaders: ['X-SVC-Config-Rejected'],
    problems: ['pack-derived', 'still-referenced', 'conflict-config'],
    emits: ['formula.changed', 'config.reloaded'],
  }),
  formulas.post('preview-formula', '/{name}/preview', {
    summary: 'Preview a formula',
    description:
      'Checks the variables, renders what can be known, and says which steps would be there. Starts nothing, runs nothing.',
    body: FormulaPreviewRequest,
    bodyOptional: true,
    replies: { 200: FormulaPreview },
    problems: ['formula-not-found', 'rig-not-found', 'bead-not-found', 'formula-invalid'],
  }),
] as const

const inLog = { log: 'city', emittedBy: 'formulas', payload: DocumentChangedPayload, subject: 'its name' } as const
export const DOCUMENT_EVENT_TYPES = {
  'formula.changed': {
    ...inLog,
    when: 'a formula was added or removed, or says something else: over the API, by hand, in a pack',
  },
  'order.changed': {
    ...inLog,
    when: 'the file of an order was added or removed, or says something else: over the API, by hand, in a pack',
  },
} as const satisfies EventTypes
