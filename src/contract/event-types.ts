/**
 * The event catalogue: every type that exists, its payload, who emits it (sheet 02 §2, decisions 12–14). A family adds
 * its own types here; everything else is a custom type, which clients may emit unless its prefix is reserved.
 */

import { AGENT_EVENT_TYPES } from './agents.ts'
import { EXECUTION_EVENT_TYPES } from './automation/executions.ts'
import { DOCUMENT_EVENT_TYPES } from './automation/formulas.ts'
import { MOLECULE_EVENT_TYPES } from './automation/molecules.ts'
import { ORDER_EVENT_TYPES } from './automation/orders.ts'
import type { EventTypes } from './base/event-type.ts'
import { ConfigIssue, MAX_FAILURE_ISSUES } from './base/issue.ts'
import { RequestId, Timestamp } from './base/names.ts'
import { array, boolean, choice, component, optional, type Static, string } from './base/schema.ts'
import { BEAD_EVENT_TYPES } from './beads.ts'
import { CITY_EVENT_TYPES } from './cities.ts'
import { CONFIG_EVENT_TYPES } from './config.ts'
import { CONVOY_EVENT_TYPES } from './convoys.ts'
import { ADAPTER_EVENT_TYPES } from './messaging/adapters.ts'
import { FANOUT_EVENT_TYPES } from './messaging/fanout-events.ts'
import { MAIL_EVENT_TYPES } from './messaging/mail.ts'
import { MEMBERSHIP_EVENT_TYPES } from './messaging/memberships.ts'
import { ROUTING_EVENT_TYPES } from './messaging/routing-events.ts'
import { TRANSCRIPT_EVENT_TYPES } from './messaging/transcripts.ts'
import { NEED_EVENT_TYPES } from './needs.ts'
import { PACK_EVENT_TYPES } from './packs.ts'
import { RIG_EVENT_TYPES } from './rigs.ts'
import { SERVICE_EVENT_TYPES } from './services.ts'
import { SESSION_EVENT_TYPES } from './sessions/session-model.ts'
import { USAGE_EVENT_TYPES } from './sessions/usage.ts'
import { TOKEN_EVENT_TYPES } from './tokens.ts'
import { WORKTREE_EVENT_TYPES } from './worktrees.ts'

/** Prefixes that only the service may emit, also for families still to come (decision 14). */
export const RESERVED_PREFIXES = [
  'request.',
  'city.',
  'supervisor.',
  'config.',
  'pack.',
  'rig.',
  'provider.',
  'agent.',
  'session.',
  'worktree.',
  'retention.',
  'worker.',
  'bead.',
  'convoy.',
  'mail.',
  'molecule.',
  'formula.',
  'order.',
  'participant.',
  'transcript.',
  'adapter.',
  'extmsg.',
  'service.',
  'execution.',
  'nudge.',
  'wait.',
  'gate.',
  'work.',
  'need.',
  'usage.',
  'budget.',
  'token.',
] as const

export const EVENT_TYPE_PATTERN = '^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$'

const FAMILY_EVENT_TYPES = {
  ...CITY_EVENT_TYPES,
  ...CONFIG_EVENT_TYPES,
  ...PACK_EVENT_TYPES,
  ...RIG_EVENT_TYPES,
  ...SERVICE_EVENT_TYPES,
  ...BEAD_EVENT_TYPES,
  ...CONVOY_EVENT_TYPES,
  ...SESSION_EVENT_TYPES,
  ...WORKTREE_EVENT_TYPES,
  ...AGENT_EVENT_TYPES,
  ...TOKEN_EVENT_TYPES,
  ...USAGE_EVENT_TYPES,
  ...MOLECULE_EVENT_TYPES,
  ...ORDER_EVENT_TYPES,
  ...ROUTING_EVENT_TYPES,
  ...EXECUTION_EVENT_TYPES,
  ...DOCUMENT_EVENT_TYPES,
  ...MAIL_EVENT_TYPES,
  ...ADAPTER_EVENT_TYPES,
  ...MEMBERSHIP_EVENT_TYPES,
  ...FANOUT_EVENT_TYPES,
  ...TRANSCRIPT_EVENT_TYPES,
  ...NEED_EVENT_TYPES,
} as const

/** What a 202 can be about: everything that has a result. */
export type RequestOperation = keyof typeof FAMILY_EVENT_TYPES extends infer Type
  ? Type extends `request.result.${infer Operation}`
    ? Operation
    : never
  : never
const isOperation = (name: string): name is RequestOperation => `request.result.${name}` in FAMILY_EVENT_TYPES
export const REQUEST_OPERATIONS = Object.keys(FAMILY_EVENT_TYPES)
  .map((type) => type.slice('request.result.'.length))
  .filter(isOperation)
export const RequestOperation = choice(REQUEST_OPERATIONS, {
  $id: 'RequestOperation',
  description: 'What was asked for.',
})

/** Of a request that failed because files are not valid. */
export const failureIssues = array(ConfigIssue, {
  maxItems: MAX_FAILURE_ISSUES,
  description: `Everything that is wrong with the files, where they are why it failed; at most ${MAX_FAILURE_ISSUES}.`,
})

export const RequestFailedPayload = component('RequestFailedPayload', {
  request_id: RequestId,
  operation: RequestOperation,
  error_code: string({ description: 'snake_case; `interrupted` where a crash made it impossible to go on.' }),
  error_message: string(),
  issues: optional(failureIssues),
  retrying: optional(boolean({ description: 'True: the city stays registered and is tried again.' })),
  retry_at: optional(Timestamp),
})
export type RequestFailedPayload = Static<typeof RequestFailedPayload>

export const EVENT_TYPES = {
  ...FAMILY_EVENT_TYPES,
  'request.failed': {
    payload: RequestFailedPayload,
    log: 'both',
    emittedBy: 'reconciler',
    when: 'an accepted request failed; match payload.request_id',
  },
} as const satisfies EventTypes

export type EventType = keyof typeof EVENT_TYPES
export type PayloadOf<T extends EventType> = Static<(typeof EVENT_TYPES)[T]['payload']>
/** Of types that have one, the subject; of the others it may be there. */
export type SubjectOf<T extends EventType> = (typeof EVENT_TYPES)[T] extends { readonly subject: string }
  ? { readonly subject: string }
  : { readonly subject?: string }
export const EVENT_TYPE_NAMES = Object.keys(EVENT_TYPES).filter((name): name is EventType => name in EVENT_TYPES)

/** True for a type that only the service may emit. */
export function isReservedType(type: string): boolean {
  return RESERVED_PREFIXES.some((prefix) => type.startsWith(prefix) || type === prefix.slice(0, -1))
}
