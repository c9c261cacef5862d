/** What the log of a city says about the steps of molecules (decisions 106, 124). */

import type { EventTypes } from '../base/event-type.ts'
import { component, integer, optional, string } from '../base/schema.ts'

export const ExecutionPayload = component('ExecutionPayload', {
  molecule_id: string(),
  step_id: string({ description: 'Path: `polish.2.review`.' }),
  attempt: integer({
    minimum: 0,
    description: 'From 1; 0 of a step that was skipped. A retry of the group around it counts from 1 again.',
  }),
  bead_id: optional(string({ description: 'Tells attempts of the same number apart.' })),
  status: string({ description: 'Of the step, with this; of a check `passed`, `failed` or `error`.' }),
  reason: optional(string()),
  exit_code: optional(integer({ description: 'Of a check that ran a command.' })),
})

const inLog = {
  payload: ExecutionPayload,
  log: 'city',
  emittedBy: 'molecules',
  subject: 'the id of the molecule',
} as const
export const EXECUTION_EVENT_TYPES = {
  'execution.step_started': { ...inLog, when: 'an attempt of a step began: its bead, gate or command is there' },
  'execution.step_completed': { ...inLog, when: 'an attempt of a step ended, or a step was skipped' },
  'execution.check_completed': { ...inLog, when: 'a check came to a verdict, or gave up' },
  'gate.opened': { ...inLog, when: 'a gate began to wait' },
  'gate.closed': { ...inLog, when: 'a gate was answered, its time or event came, or it was canceled' },
} as const satisfies EventTypes
