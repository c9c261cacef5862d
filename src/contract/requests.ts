/** Accepted requests: every 202 is one, and ends in exactly one terminal event (spec §4, §6; architecture §3). */

import { family } from './base/family.ts'
import { JsonObject, RequestId, Timestamp } from './base/names.ts'
import { listBody, PageQuery } from './base/paging.ts'
import { choice, component, object, optional, type Static, string } from './base/schema.ts'
import { failureIssues, RequestOperation } from './event-types.ts'

export const REQUEST_STATES = ['accepted', 'running', 'succeeded', 'failed'] as const
export const RequestState = choice(REQUEST_STATES, { $id: 'RequestState', description: 'How far it is.' })
export type RequestState = Static<typeof RequestState>

export const RequestInfo = component('RequestInfo', {
  request_id: RequestId,
  operation: RequestOperation,
  status: RequestState,
  city: optional(string({ description: 'Name of the city that it is about.' })),
  subject: optional(string({ description: 'Id of what it is about.' })),
  event_cursor: string({ description: 'As in the 202.' }),
  created_at: Timestamp,
  finished_at: optional(Timestamp),
  result: optional(JsonObject),
  error_code: optional(string()),
  error_message: optional(string()),
  issues: optional(failureIssues),
})
export type RequestInfo = Static<typeof RequestInfo>

export const ListBodyRequestInfo = listBody('ListBodyRequestInfo', RequestInfo)

const requests = family(
  { name: 'Requests', about: 'Accepted requests: what every 202 became.' },
  '/v0/requests',
  {
    request_id: string({
      minLength: 1,
      examples: ['req-0123456789abcdef01234567'],
      description: 'As in the 202.',
    }),
  },
  {},
)

export const listRequests = requests.get('list-requests', '', {
  summary: 'List accepted requests',
  description: 'Newest first, over the supervisor and every city it can read.',
  query: object({
    operation: optional(RequestOperation),
    status: optional(RequestState),
    city: optional(string({ minLength: 1, description: 'Requests about this city.' })),
    ...PageQuery,
  }),
  replies: { 200: ListBodyRequestInfo },
  problems: ['invalid-cursor'],
})

export const getRequest = requests.get('get-request', '/{request_id}', {
  summary: 'Outcome of an accepted request',
  description: 'For a client that lost its stream. Found also after its city was unregistered.',
  replies: { 200: RequestInfo },
  problems: ['request-not-found'],
})

export const requestOperations = [listRequests, getRequest] as const
