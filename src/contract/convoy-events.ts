/** What the log of a city says about convoys (sheet 03 §§7, 12; decision 49). */
import Type from 'typebox'

const convoy = {
  convoy_id: Type.String(),
  title: Type.String(),
  total: Type.Integer({ minimum: 0, description: 'Members.' }),
  closed: Type.Integer({ minimum: 0, description: 'Members that are closed.' }),
  owner: Type.Optional(Type.String()),
  notify: Type.Optional(Type.String({ description: 'Who is to be told when it is closed.' })),
}

export const ConvoyPayload = Type.Object(convoy, { $id: 'ConvoyPayload', additionalProperties: false })
export const ConvoyClosedPayload = Type.Object(
  { ...convoy, reason: Type.Optional(Type.String()) },
  { $id: 'ConvoyClosedPayload', additionalProperties: false },
)
const ids = (description: string) => Type.Array(Type.String(), { description })
export const ConvoyUpdatedPayload = Type.Object(
  {
    convoy_id: Type.String(),
    added: ids('Members that came.'),
    removed: ids('Members that went.'),
  },
  { $id: 'ConvoyUpdatedPayload', additionalProperties: false },
)

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
