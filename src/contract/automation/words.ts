/** Words that formulas, molecules and graphs share. */

/** What a row is: a step, a group of them, what repeats; items are of the kind of what is repeated. */
export const STEP_KINDS = ['work', 'gate', 'group', 'for_each', 'loop'] as const
export type StepKind = (typeof STEP_KINDS)[number]

export const MOLECULE_STATUSES = ['pending', 'active', 'waiting', 'completed', 'failed', 'canceled'] as const
export type MoleculeStatus = (typeof MOLECULE_STATUSES)[number]

export const MOLECULE_STEP_STATUSES = [
  'pending',
  'ready',
  'active',
  'waiting',
  'completed',
  'failed',
  'skipped',
  'canceled',
] as const
export type MoleculeStepStatus = (typeof MOLECULE_STEP_STATUSES)[number]
