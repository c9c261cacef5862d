/** Graphs of steps: of a formula as it is written, of a preview, of a molecule as it runs (decision 105). */

import { array, choice, component, integer, object, optional, record, type Static, string } from '../base/schema.ts'
import { MOLECULE_STEP_STATUSES, STEP_KINDS } from './words.ts'

const count = (description: string) => integer({ minimum: 0, description })

export const StepGraphNode = component('StepGraphNode', {
  id: string({ description: 'Path of the step: `polish.2.review`.' }),
  parent: optional(string({ description: 'Path of what contains it; absent at the top.' })),
  kind: choice(STEP_KINDS),
  title: string({ description: 'Its id where it has no title.' }),
  status: optional(choice(MOLECULE_STEP_STATUSES, { description: 'In a molecule: how it is.' })),
  included: choice(['yes', 'no', 'unknown'], {
    description: '`no`: its condition, or that of something around it, is false. `unknown`: that shows at run time.',
  }),
  repeat: optional(
    object(
      {
        count: optional(count('How many items there are; absent: that shows at run time.')),
        statuses: optional(record(count(''), { description: 'In a molecule: how many items are how.' })),
      },
      { description: 'It repeats; its items fold into counts unless `expand` names it.' },
    ),
  ),
})
export type StepGraphNode = Static<typeof StepGraphNode>

export const StepGraph = component('StepGraph', {
  nodes: array(StepGraphNode),
  edges: array(
    object({ from: string({ description: 'What is needed.' }), to: string({ description: 'What needs it.' }) }),
  ),
})
export type StepGraph = Static<typeof StepGraph>
