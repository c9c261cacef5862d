/**
 * What a caller needs to be allowed (decisions 212, 213). Derived from path, method and family, so that nobody can forget
 * it for a new operation; what differs is listed by operation, and by family where whole families are work.
 */
import { isMutation, type Operation } from './base/operation.ts'
import type { OperationId } from './index.ts'

export const ACCESS = {
  any: 'Whoever is let in; the answer shows what the caller may see.',
  read: 'Reading the city.',
  work: 'Changing the work of the city: beads, convoys, events, messages.',
  self: 'A session says it of itself.',
  city: 'Changing the city: its configuration, packs, rigs, providers, sessions.',
  answer: 'Answering what a session waits for, or using its terminal; never the session itself.',
  supervisor: 'More than one city.',
  tokens: 'Tokens of other callers.',
} as const
export type Access = keyof typeof ACCESS

/** How much of the API an agent may use, as its `api` says: its city's work, reading only, all of its city. */
export const AGENT_APIS = ['work', 'read', 'city'] as const
export type AgentApi = (typeof AGENT_APIS)[number]

/** Families whose mutations are what agents are there for. */
const WORK_FAMILIES: ReadonlySet<string> = new Set([
  'Beads',
  'Convoys',
  'Event bus',
  'Mail',
  'Molecules',
  'Sling',
  'Transcripts',
])

const BY_OPERATION: { readonly [id in OperationId]?: Access } = {
  'list-cities': 'any',
  'unregister-city': 'supervisor',
  'get-health': 'any',
  'get-readiness': 'any',
  'get-provider-readiness': 'any',
  'list-requests': 'any',
  'list-needs': 'any',
  'get-request': 'any',
  'get-openapi': 'any',
  'get-event-schema': 'any',
  'get-city-schema': 'any',
  'get-agent-schema': 'any',
  'get-formula-schema': 'any',
  // They change nothing, and start nothing.
  'validate-formula': 'read',
  'preview-formula': 'read',
  'validate-order': 'read',
  'get-order-schema': 'any',
  'get-docs': 'any',
  'get-docs-asset': 'any',
  'list-tokens': 'tokens',
  'create-token': 'tokens',
  'delete-token': 'tokens',
  // As it is on disk, with what secrets are in it.
  'get-config-file': 'city',
  'get-formula-source': 'city',
  'get-order-source': 'city',
  // What a program writes may be anything.
  'get-service-log': 'city',
  'list-service-secrets': 'city',
  'send-session-message': 'work',
  'prompt-session': 'work',
  'submit-session': 'work',
  'nudge-session': 'work',
  'cancel-wait': 'work',
  // What everybody reads, and who reads it, is not for agents to say.
  'delete-transcript': 'city',
  'put-transcript-membership': 'city',
  'create-session-wait': 'self',
  'heartbeat-session': 'self',
  'report-session': 'self',
  'ask-session-permission': 'self',
  'request-session-restart': 'self',
  'ack-session-drain': 'self',
  'respond-session': 'answer',
  'stream-session-terminal': 'answer',
  'type-into-session': 'answer',
  'resize-session-terminal': 'answer',
  'send-session-keys': 'answer',
  // Its options say what it may do unasked.
  'patch-session': 'answer',
}
/** Fields of bodies that say who speaks: an agent can only name itself there. */
const SPEAKERS: { readonly [id in OperationId]?: readonly string[] } = {
  'send-mail': ['from'],
  'reply-mail': ['from'],
  'broadcast-mail': ['from'],
  'emit-event': ['actor'],
  'add-bead-comment': ['author'],
  'claim-bead': ['assignee', 'session_id', 'session_name'],
  'claim-hook': ['agent', 'session_id', 'session_name'],
  'close-bead': ['session_id'],
  'heartbeat-bead': ['assignee'],
  'release-bead': ['assignee'],
}
const speakers: ReadonlyMap<string, readonly string[]> = new Map(Object.entries(SPEAKERS))
/** Where who says nothing about himself is named all the same. */
const SIGNED: ReadonlyMap<string, string> = new Map([['add-bead-comment', 'author']])

export const speakersOf = ({ id }: Operation) => ({ fields: speakers.get(id) ?? [], signed: SIGNED.get(id) })

const declared: ReadonlyMap<string, Access> = new Map(Object.entries(BY_OPERATION))

export function accessOf({ id, path, method, family }: Operation): Access {
  const known = declared.get(id)
  if (known !== undefined) return known
  if (!path.startsWith('/v0/city/{cityName}')) return 'supervisor'
  if (!isMutation(method)) return 'read'
  return WORK_FAMILIES.has(family.name) ? 'work' : 'city'
}

/**
 * What an adapter may do with its own secret (decision 148): `itself`, where the path names it; `transcript`, where that is of
 * a conversation that it carries; `attachment`, where it is in such a one. Whose adapter a registration is of, its handler
 * looks at.
 */
type AdapterAccess = 'itself' | 'transcript' | 'attachment' | 'any'
const BY_ADAPTERS: { readonly [id in OperationId]?: AdapterAccess } = {
  'register-adapter': 'any',
  'get-adapter': 'itself',
  'receive-inbound': 'itself',
  'list-deliveries': 'itself',
  'get-delivery': 'itself',
  'claim-deliveries': 'itself',
  'ack-delivery': 'itself',
  'fail-delivery': 'itself',
  'get-transcript': 'transcript',
  'list-transcript-entries': 'transcript',
  'stream-transcript': 'transcript',
  'upload-transcript-attachment': 'any',
  'get-transcript-attachment': 'attachment',
}
const declaredForAdapters: ReadonlyMap<string, AdapterAccess> = new Map(Object.entries(BY_ADAPTERS))

/** Undefined: nothing. */
export const adapterAccessOf = ({ id }: Operation) => declaredForAdapters.get(id)
