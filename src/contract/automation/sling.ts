/** Sling: gives work to somebody, with a formula or without (decisions 108, 109). */

import { family } from '../base/family.ts'
import { CityNameParam } from '../base/names.ts'
import { array, boolean, choice, component, optional, type Static, string } from '../base/schema.ts'
import { MAX_DESCRIPTION, MAX_PERSON } from '../base/work.ts'
import { MAX_FORMULA_NAME, startFields, WorkWarning } from './molecules.ts'

/** Members of a convoy that can be given away in one go. */
export const MAX_SLUNG = 1_000
/** The same where each becomes a molecule. */
export const MAX_LAUNCHED = 100
export const SLING_OUTCOMES = ['routed', 'launched', 'unchanged'] as const
export type SlingOutcome = (typeof SLING_OUTCOMES)[number]

const text = (maxLength: number, description: string) => string({ minLength: 1, maxLength, description })
const outcome = choice(SLING_OUTCOMES, {
  description:
    '`routed`: it may be claimed by the target. `launched`: a molecule works on it. `unchanged`: it was routed so already.',
})

export const SlingRequest = component('SlingRequest', {
  target: optional(text(MAX_PERSON, 'Agent or pool; the `default_sling_target` of the rig where absent.')),
  bead: optional(
    text(
      256,
      `Bead to give away; of a convoy its open members: at most ${MAX_SLUNG}, or ${MAX_LAUNCHED} where the agent has a formula for each.`,
    ),
  ),
  text: optional(text(MAX_DESCRIPTION, 'Instead of a bead: what a new task is about; its first line is the title.')),
  formula: optional(text(MAX_FORMULA_NAME, 'How it is to be done; alone it starts a molecule about no bead.')),
  ...startFields,
  no_formula: optional(boolean({ description: 'True: without the `default_sling_formula` of the agent.' })),
  dry_run: optional(boolean({ description: 'True: only check, and say what would happen.' })),
})
export type SlingRequest = Static<typeof SlingRequest>

export const SlingChild = component('SlingChild', {
  bead: string(),
  outcome,
  molecule: optional(string()),
})
export type SlingChild = Static<typeof SlingChild>

export const SlingOutputBody = component('SlingOutputBody', {
  outcome,
  target: string({ description: 'Name of the agent or pool, as it is configured.' }),
  bead: optional(string({ description: 'Id of the bead that was given away, or made.' })),
  molecule: optional(string({ description: 'Id of the molecule that was started.' })),
  children: array(SlingChild, {
    maxItems: MAX_SLUNG,
    description: 'Of a convoy without a formula: its open members.',
  }),
  warnings: array(WorkWarning),
  dry_run: optional(boolean({ description: 'True: nothing happened. What would be new has no id.' })),
})
export type SlingOutputBody = Static<typeof SlingOutputBody>

const slings = family(
  { name: 'Sling', about: 'Giving work to agents and pools, with a formula or without.' },
  '/v0/city/{cityName}/sling',
  { cityName: CityNameParam },
  { replyHeaders: ['X-SVC-Index'] },
)

export const slingOperations = [
  slings.post('sling', '', {
    summary: 'Give work to an agent or pool',
    description:
      'A bead is routed; with a formula a molecule is started about it. `text` makes a new task first. One transaction: all of it or nothing.',
    body: SlingRequest,
    headers: ['Idempotency-Key'],
    replies: { 200: SlingOutputBody },
    problems: [
      'target-not-found',
      'bead-not-found',
      'rig-not-found',
      'formula-not-found',
      'formula-invalid',
      'untrusted-pack',
      'molecule-live',
      'conflict-claimed',
      'conflict-wrong-state',
    ],
    emits: ['bead.created', 'bead.updated', 'bead.released', 'molecule.created'],
  }),
] as const
