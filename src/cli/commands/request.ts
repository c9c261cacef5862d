/** `svcctl request …`: what became of a 202. */
import { outcomeOf } from '../../client/requests.ts'
import type { REQUEST_OPERATIONS } from '../../contract/event-types.ts'
import type { REQUEST_STATES, RequestInfo } from '../../contract/requests.ts'
import { type AcceptedIn, parseTimeout, printOutcome, waitFor } from '../base/accepted.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import type { Column } from '../base/output.ts'
import { limitFlag, listAll, mostOf, pageSize } from '../base/paged.ts'

const OPERATIONS = [
  'city.create',
  'city.unregister',
  'city.start',
  'city.restart',
  'config.reload',
  'pack.add',
  'pack.install',
  'pack.upgrade',
  'rig.create',
  'bead.delete',
  'session.create',
  'session.message',
  'session.submit',
] as const satisfies typeof REQUEST_OPERATIONS
const STATES = ['accepted', 'running', 'succeeded', 'failed'] as const satisfies typeof REQUEST_STATES

const COLUMNS: readonly Column<RequestInfo>[] = [
  { header: 'REQUEST_ID', value: (request) => request.request_id },
  { header: 'OPERATION', value: (request) => request.operation },
  { header: 'STATUS', value: (request) => request.status, kind: 'state' },
  { header: 'CITY', value: (request) => request.city },
  { header: 'CREATED_AT', value: (request) => request.created_at, kind: 'time' },
  { header: 'FINISHED_AT', value: (request) => request.finished_at, kind: 'time' },
  { header: 'ERROR', value: (request) => request.error_code },
  { header: 'MESSAGE', value: (request) => request.error_message, wide: true },
  { header: 'EVENT_CURSOR', value: (request) => request.event_cursor, wide: true },
]
const name = (request: RequestInfo): string => request.request_id

async function list(context: Context, input: Input): Promise<number> {
  const most = mostOf(input)
  using limit = context.within()
  const client = await context.client()
  const query = {
    operation: OPERATIONS.find((known) => known === input.text('operation')),
    status: STATES.find((known) => known === input.text('status')),
    // Without being asked, the requests of all cities: also those of one that is gone.
    city: context.options.city === undefined ? undefined : await context.city(limit.signal),
  }
  const { signal } = limit
  const all = await listAll(
    (cursor) => client.call('list-requests', { query: { ...query, limit: pageSize(most), cursor }, signal }),
    most,
  )
  await context.print.list({ ...all, columns: COLUMNS, name })
  if (all.more) await context.note(`showing the newest ${all.items.length}; --limit N gets more`)
  return EXIT.ok
}

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const params = { request_id: input.required('request_id') }
  const { body, text } = await client.call('get-request', { params, signal: limit.signal })
  const wide = COLUMNS.map((column) => ({ ...column, wide: false }))
  await context.print.item({ item: body, columns: wide, name, json: text })
  return EXIT.ok
}

async function wait(context: Context, input: Input): Promise<number> {
  const timeoutMs = await parseTimeout(input)
  using limit = context.within()
  const client = await context.client()
  const { body } = await client.call('get-request', {
    params: { request_id: input.required('request_id') },
    signal: limit.signal,
  })
  const outcome = outcomeOf(body) ?? (await waitFor(context, body.operation, inItsLog(body), timeoutMs))
  return printOutcome(context, body.operation, outcome)
}

/** The end of what a supervisor does with a city is in its own log, everything else in that of the city. */
const inItsLog = (info: RequestInfo): AcceptedIn =>
  info.operation.startsWith('city.') ? { ...info, city: undefined } : info

const request = { name: '<request_id>', description: 'As a 202 gave it: req-…' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['request', 'list'],
    operations: ['list-requests'],
    flags: [
      { flags: '--operation <operation>', description: 'Only of this kind.', choices: OPERATIONS },
      { flags: '--status <status>', description: 'Only in this state.', choices: STATES },
      limitFlag,
    ],
    examples: [{ line: 'svcctl request list --status failed', does: 'what went wrong lately' }],
    isFleet: true,
    run: list,
  },
  {
    path: ['request', 'get'],
    operations: ['get-request'],
    arguments: [request],
    examples: [{ line: 'svcctl request get req-0123456789abcdef01234567', does: 'its state now' }],
    run: get,
  },
  {
    path: ['request', 'wait'],
    operations: ['get-request', 'stream-events'],
    summary: 'Wait for the outcome of an accepted request',
    description: 'Exit code 9 when it failed, 8 when it took too long.',
    arguments: [request],
    flags: [{ flags: '--timeout <duration>', description: 'How long to wait: 5m where absent.' }],
    examples: [{ line: 'svcctl request wait req-0123456789abcdef01234567 --timeout 1m', does: 'wait for it' }],
    run: wait,
  },
]
