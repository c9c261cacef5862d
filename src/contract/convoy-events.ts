/** What the log of a city says about convoys (sheet 03 §§7, 12; decision 49). */
import { array, component, integer, optional, string } from './base/schema.ts'

const convoy = {
  convoy_id: string(),
  title: string(),
  total: integer({ minimum: 0, description: 'Members.' }),
  closed: integer({ minimum: 0, description: 'Members that are closed.' }),
  owner: optional(string()),
  notify: optional(string({ description: 'Who is to be told when it is closed.' })),
}

export const ConvoyPayload = component('ConvoyPayload', convoy)
export const ConvoyClosedPayload = component('ConvoyClosedPayload', { ...convoy, reason: optional(string()) })
const ids = (description: string) => array(string(), { description })
export const ConvoyUpdatedPayload = component('ConvoyUpdatedPayload', {
  convoy_id: string(),
  added: ids('Members that came.'),
  removed: ids('Members that went.'),
})

const convoys = { log: 'city', emittedBy: 'convoys' } as const

export const CONVOY_EVENT_TYPES = {
  'convoy.created': { payload: ConvoyPayload, ...convoys, when: 'a convoy was created, whichever way' },
  'convoy.updated': { payload: ConvoyUpdatedPayload, ...convoys, when: 'members came or went, whichever way' },
  'convoy.closed': {
    payload: ConvoyClosedPayload,
    ...convoys,
    when: 'a convoy became closed: by itself, by a request, or landed',
  },
} as const
