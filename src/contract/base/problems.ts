/**
 * The one registry of everything the API can refuse (RFC 9457, spec §7). Domain code throws `problem(code, sentence)`
 * and knows no status; the operations list the codes they can answer; the documents are made from this table.
 */

import { ConfigIssue } from './issue.ts'
import { RequestId } from './names.ts'
import { anything, array, component, integer, optional, type Static, string } from './schema.ts'

interface ProblemType {
  readonly status: number
  /** What `detail` starts with, before the colon. */
  readonly prefix: string
  readonly title: string
}

export const PROBLEMS = {
  'invalid-request': { status: 400, prefix: 'invalid', title: 'The request cannot be understood' },
  'invalid-conversation': { status: 400, prefix: 'invalid', title: 'No conversation can be called that' },
  'invalid-cursor': { status: 400, prefix: 'invalid_cursor', title: 'The cursor is not one of ours' },
  unauthorized: { status: 401, prefix: 'unauthorized', title: 'A bearer token is required' },
  'csrf-required': { status: 403, prefix: 'csrf', title: 'The X-SVC-Request header is required' },
  forbidden: { status: 403, prefix: 'forbidden', title: 'It is not for this caller' },
  'session-forbidden': { status: 403, prefix: 'forbidden', title: 'Somebody else speaks in this conversation' },
  'read-only': { status: 403, prefix: 'read_only', title: 'This server takes no mutations' },
  'city-not-found': { status: 404, prefix: 'not_found', title: 'No such running city' },
  'request-not-found': { status: 404, prefix: 'not_found', title: 'No such request' },
  'route-not-found': { status: 404, prefix: 'not_found', title: 'No such path' },
  'service-not-found': { status: 404, prefix: 'not_found', title: 'No such workspace service' },
  'secret-not-found': { status: 404, prefix: 'not_found', title: 'The service has no such secret' },
  'provider-not-found': { status: 404, prefix: 'not_found', title: 'No such provider' },
  'rig-not-found': { status: 404, prefix: 'not_found', title: 'No such rig' },
  'patch-not-found': { status: 404, prefix: 'not_found', title: 'No such patch' },
  'agent-not-found': { status: 404, prefix: 'not_found', title: 'No such agent' },
  'need-not-found': { status: 404, prefix: 'not_found', title: 'No such need' },
  'convoy-not-found': { status: 404, prefix: 'not_found', title: 'No such convoy' },
  'bead-not-found': { status: 404, prefix: 'not_found', title: 'No such bead' },
  'session-not-found': { status: 404, prefix: 'not_found', title: 'No such session' },
  'adapter-not-found': { status: 404, prefix: 'not_found', title: 'No such adapter' },
  'delivery-not-found': { status: 404, prefix: 'not_found', title: 'No such delivery' },
  'wait-not-found': { status: 404, prefix: 'not_found', title: 'No such wait' },
  'worktree-not-found': { status: 404, prefix: 'not_found', title: 'No such worktree' },
  'molecule-not-found': { status: 404, prefix: 'not_found', title: 'No such molecule' },
  'molecule-step-not-found': { status: 404, prefix: 'not_found', title: 'No such step' },
  'formula-not-found': { status: 404, prefix: 'not_found', title: 'No such formula' },
  'target-not-found': { status: 404, prefix: 'not_found', title: 'No such agent or pool' },
  'config-item-not-found': { status: 404, prefix: 'not_found', title: 'The configuration has no such item' },
  'config-file-not-found': { status: 404, prefix: 'not_found', title: 'No such configuration file' },
  'pack-not-found': { status: 404, prefix: 'not_found', title: 'No such import' },
  'order-not-found': { status: 404, prefix: 'not_found', title: 'No such order' },
  'order-run-not-found': { status: 404, prefix: 'not_found', title: 'No such run of an order' },
  'transcript-not-found': { status: 404, prefix: 'not_found', title: 'No such transcript' },
  'membership-not-found': { status: 404, prefix: 'not_found', title: 'They do not read this transcript' },
  'attachment-not-found': { status: 404, prefix: 'not_found', title: 'No such attachment' },
  'extmsg-group-not-found': { status: 404, prefix: 'not_found', title: 'No such group' },
  'participant-not-found': { status: 404, prefix: 'not_found', title: 'No such participant' },
  'binding-not-found': { status: 404, prefix: 'not_found', title: 'No such binding' },
  'token-not-found': { status: 404, prefix: 'not_found', title: 'No such token' },
  'mail-not-found': { status: 404, prefix: 'not_found', title: 'No such message' },
  'recipient-not-found': { status: 404, prefix: 'not_found', title: 'Nobody of this name' },
  'recipient-closed': { status: 409, prefix: 'conflict', title: 'The session of this name is closed' },
  'directory-not-found': { status: 404, prefix: 'not_found', title: 'No city in that directory' },
  'method-not-allowed': { status: 405, prefix: 'method_not_allowed', title: 'The path does not take this method' },
  'request-timeout': { status: 408, prefix: 'timeout', title: 'The request did not arrive in time' },
  'city-already-initialized': { status: 409, prefix: 'conflict', title: 'The directory already holds a city' },
  'city-name-taken': { status: 409, prefix: 'conflict', title: 'Another city has this name' },
  'operation-in-progress': { status: 409, prefix: 'conflict', title: 'The same operation is already under way' },
  'name-taken': { status: 409, prefix: 'conflict', title: 'There is one of this name already' },
  'provider-builtin': {
    status: 409,
    prefix: 'conflict',
    title: 'A built-in provider: declare one of its name to change it',
  },
  'pack-derived': { status: 409, prefix: 'conflict', title: 'It belongs to a pack' },
  'untrusted-pack': {
    status: 409,
    prefix: 'untrusted_pack',
    title: 'Its commit is to be trusted before anything of it is started',
  },
  'pack-changed': { status: 409, prefix: 'conflict', title: 'The pack is at another commit now' },
  'unreadable-lock': { status: 409, prefix: 'conflict', title: 'The lock of a city cannot be read' },
  'pack-exists': { status: 409, prefix: 'conflict', title: 'Something is imported under this name' },
  'ambiguous-pack': { status: 409, prefix: 'ambiguous', title: 'Several rigs import something under this name' },
  'conflict-config': { status: 409, prefix: 'conflict', title: 'The files of the city do not allow it as they are' },
  'still-referenced': { status: 409, prefix: 'conflict', title: 'Something else still refers to it' },
  'conflict-wrong-state': { status: 409, prefix: 'conflict', title: 'Its status does not allow it' },
  'conversation-unbound': { status: 409, prefix: 'conflict', title: 'Nobody speaks in this conversation yet' },
  'conflict-claimed': { status: 409, prefix: 'conflict', title: 'Somebody else has it' },
  'conflict-assignee': { status: 409, prefix: 'conflict', title: 'Somebody else than expected has it' },
  'molecule-live': { status: 409, prefix: 'conflict', title: 'A molecule works on it already' },
  'formula-invalid': { status: 409, prefix: 'conflict', title: 'The formula is not valid' },
  'dependency-cycle': {
    status: 409,
    prefix: 'conflict',
    title: 'Things would depend on each other in a circle, or might',
  },
  'ambiguous-order': { status: 409, prefix: 'ambiguous', title: 'Several rigs have an order of this name' },
  'ambiguous-session': { status: 409, prefix: 'ambiguous', title: 'Several sessions have this name' },
  'ambiguous-recipient': { status: 409, prefix: 'ambiguous', title: 'Several have this name' },
  'no-recipients': { status: 409, prefix: 'conflict', title: 'There is nobody to write to, or too many are there' },
  'binding-conflict': { status: 409, prefix: 'conflict', title: 'The conversation belongs to somebody else' },
  'session-conflict': { status: 409, prefix: 'conflict', title: 'The session is not in a state for it' },
  'illegal-transition': { status: 409, prefix: 'illegal_transition', title: 'No such move from this state' },
  'pending-interaction': { status: 409, prefix: 'pending_interaction', title: 'The session waits for an answer' },
  'no-pending': { status: 409, prefix: 'no_pending', title: 'The session waits for nothing' },
  'invalid-interaction': { status: 409, prefix: 'invalid_interaction', title: 'Another question is open' },
  'screen-differs': { status: 409, prefix: 'conflict', title: 'The screen does not show what was expected' },
  'transcript-cursor-invalidated': { status: 409, prefix: 'conflict', title: 'The transcript has no such entry' },
  'adapter-unsupported': { status: 409, prefix: 'unsupported', title: 'The adapter cannot do that' },
  'idempotency-in-flight': { status: 409, prefix: 'in_flight', title: 'A request with this key is still running' },
  'cursor-expired': { status: 410, prefix: 'cursor_expired', title: 'The cursor is older than what is retained' },
  'precondition-failed': { status: 412, prefix: 'precondition_failed', title: 'The item changed meanwhile' },
  'payload-too-large': { status: 413, prefix: 'too_large', title: 'The body is too large' },
  'unsupported-media-type': { status: 415, prefix: 'unsupported_media_type', title: 'The media type is not accepted' },
  'host-not-allowed': { status: 421, prefix: 'host_not_allowed', title: 'The Host header is not on the allow-list' },
  'validation-failed': { status: 422, prefix: 'validation_failed', title: 'The request breaks its schema' },
  'invalid-config': { status: 422, prefix: 'invalid_config', title: 'The resulting configuration is not valid' },
  'idempotency-mismatch': {
    status: 422,
    prefix: 'idempotency_mismatch',
    title: 'The key was used for another request',
  },
  'queue-full': { status: 429, prefix: 'too_many', title: 'Too much waits in the queue of the session' },
  'too-many-sessions': { status: 429, prefix: 'too_many', title: 'The limit of sessions is reached' },
  'too-many-adapters': { status: 429, prefix: 'too_many', title: 'The limit of adapters is reached' },
  'too-many-requests': { status: 429, prefix: 'too_many', title: 'Too many requests of this caller' },
  'too-many-streams': { status: 429, prefix: 'too_many', title: 'Too many open streams' },
  'headers-too-large': { status: 431, prefix: 'too_large', title: 'The request headers are too large' },
  internal: { status: 500, prefix: 'internal', title: 'Unexpected failure' },
  unsupported: { status: 501, prefix: 'unsupported', title: 'This server cannot do that' },
  'bad-gateway': { status: 502, prefix: 'bad_gateway', title: 'What answers for this server did not answer well' },
  'no-event-providers': { status: 503, prefix: 'no_providers', title: 'No city has an event log' },
  'no-adapter': { status: 503, prefix: 'unavailable', title: 'No adapter carries this conversation' },
  'missing-dependency': { status: 503, prefix: 'missing_dependency', title: 'A program the host needs is missing' },
  'provider-not-ready': { status: 503, prefix: 'provider_not_ready', title: 'The provider is not ready' },
  unavailable: { status: 503, prefix: 'unavailable', title: 'Not available at the moment' },
  'gateway-timeout': { status: 504, prefix: 'timeout', title: 'The operation did not finish in time' },
} as const satisfies Record<string, ProblemType>

export type ProblemCode = keyof typeof PROBLEMS
export const PROBLEM_CODES = Object.keys(PROBLEMS).filter((code): code is ProblemCode => code in PROBLEMS)

export const problemUrn = (code: ProblemCode): string => `urn:svc:error:${code}`

export const ErrorDetail = component('ErrorDetail', {
  location: string({ description: 'Where: `body.items[3].tags`, `query.limit`, `path.name`, `header.X`.' }),
  message: string(),
  value: optional(anything({ description: 'What was sent there.' })),
})
export type ErrorDetail = Static<typeof ErrorDetail>

export const ErrorModel = component('ErrorModel', {
  type: string({ format: 'uri', description: '`urn:svc:error:<code>`.' }),
  title: string(),
  status: integer({ minimum: 400, maximum: 599 }),
  detail: string({ description: 'Begins with a short prefix and a colon, for example `not_found: `.' }),
  code: string({ pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' }),
  instance: optional(string({ description: '`urn:svc:request:<X-SVC-Request-Id>`.' })),
  errors: optional(array(ErrorDetail, { description: 'The fields that failed.' })),
  issues: optional(
    array(ConfigIssue, {
      description: 'With `invalid-config` of a formula or an order: all that is wrong with the file.',
    }),
  ),
  oldest_seq: optional(integer({ minimum: 0, description: 'With `cursor-expired`: oldest retained event.' })),
  head_seq: optional(integer({ minimum: 0, description: 'With `cursor-expired`: newest event.' })),
  request_id: optional(RequestId),
  event_cursor: optional(string({ description: 'With `operation-in-progress`: where to wait for it.' })),
})
export type ErrorModel = Static<typeof ErrorModel>
