/** What a caller needs to be allowed: the rights, and who speaks where a body says so (`rights.ts` has the operations). */
import type { Operation } from './base/operation.ts'
import type { OperationId } from './index.ts'
import { RIGHT_OF, type Right } from './rights.ts'

export const ACCESS = {
  any: 'Whoever is let in; the answer shows what the caller may see.',
  read: 'Reading the city.',
  work: 'Changing the work of the city: beads, convoys, events, messages.',
  self: 'A session says it of itself.',
  city: 'Changing the city: its configuration, packs, rigs, providers, sessions.',
  answer: 'Answering what a session waits for, or using its terminal; never the session itself.',
  supervisor: 'More than one city.',
  tokens: 'Tokens of other callers.',
} as const satisfies Readonly<Record<Right, string>>
export type Access = Right

/** How much of the API an agent may use, as its `api` says: its city's work, reading only, all of its city. */
export const AGENT_APIS = ['work', 'read', 'city'] as const
export type AgentApi = (typeof AGENT_APIS)[number]

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

/** An operation that is none of the contract needs the most. */
export const accessOf = ({ id }: Operation): Access => RIGHT_OF.get(id) ?? 'supervisor'

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
