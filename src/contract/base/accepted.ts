/** What a 202 says (spec §4). */
import { RequestId } from './names.ts'
import { component, type Static, string } from './schema.ts'

export const AsyncAcceptedResponse = component('AsyncAcceptedResponse', {
  request_id: RequestId,
  event_cursor: string({
    description:
      'Captured before anything happened: pass it as `after_cursor` to `GET /v0/events/stream` (supervisor scope) or as `after_seq` (city scope).',
  }),
})
export type AsyncAcceptedResponse = Static<typeof AsyncAcceptedResponse>
