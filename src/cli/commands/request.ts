/** `svcctl request …`: what became of a 202. */

import { outcomeOf } from '../../client/requests.ts'
import type { RequestInfo } from '../../contract/requests.ts'
import type { CommandSpec } from '../base/command.ts'
import { type AcceptedIn, parseTimeout, printOutcome, waitFor } from '../framework/accepted.ts'
import type { Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { view } from '../print/view.ts'
import { REQUESTS as TABLE } from '../tables/requests.ts'

const REQUEST = view<RequestInfo>()('request_id operation status city created_at finished_at ERROR', {
  wide: 'MESSAGE event_cursor',
  as: { ERROR: 'error_code', MESSAGE: 'error_message' },
})

async function wait({ context, input, send }: Call<'get-request'>): Promise<number> {
  const timeoutMs = await parseTimeout(input)
  const { body } = await send()
  const outcome = outcomeOf(body) ?? (await waitFor(context, body.operation, inItsLog(body), timeoutMs))
  return printOutcome(context, body.operation, outcome)
}

/** The end of what a supervisor does with a city is in its own log, everything else in that of the city. */
const inItsLog = (info: RequestInfo): AcceptedIn =>
  info.operation.startsWith('city.') ? { ...info, city: undefined } : info

const command = commandsOf(TABLE)
const ID = { says: { request_id: 'As a 202 gave it: req-…' } } as const

export const commands: readonly CommandSpec[] = [
  command('request list', 'list-requests', {
    leaves: { city: '--city says it' },
    // Without being asked, the requests of all cities: also those of one that is gone.
    fill: async (context) => {
      using limit = context.within()
      return { city: context.options.city === undefined ? undefined : await context.city(limit.signal) }
    },
    view: REQUEST,
    examples: { 'svcctl request list --status failed': 'what went wrong lately' },
  }),
  command('request get', 'get-request', {
    ...ID,
    arguments: ['<request_id...>'],
    view: REQUEST,
    examples: { 'svcctl request get req-0123456789abcdef01234567': 'its state now' },
  }),
  command('request wait', 'get-request', {
    ...ID,
    also: ['stream-events'],
    summary: 'Wait for the outcome of an accepted request',
    description: 'Exit code 9 when it failed, 8 when it took too long.',
    arguments: ['<request_id...>'],
    more: [{ flags: '--timeout <duration>', description: 'How long to wait (default: 5m).' }],
    run: wait,
    examples: { 'svcctl request wait req-0123456789abcdef01234567 --timeout 1m': 'wait for it' },
  }),
]
