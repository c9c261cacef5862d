/** Names of sessions: ids, handles, runtime names, and what an `{id}` in a path means (sheet 04 §§1.3, 2.1, 2.3). */
import { ALIAS_PATTERN } from '../../../contract/sessions/session-model.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import type { SessionRecord } from './record.ts'

const MAX_ALIAS = 64
const ALIAS = new RegExp(ALIAS_PATTERN)
const RESERVED = new Set(['human', 'supervisor', 'api'])

/** An id from 8 random bytes in hex. */
export const sessionId = (random: (bytes: number) => string): string => `s-${random(8)}`

/** A handle that people may choose, or 422. */
export function checkAlias(alias: string, location: string): string {
  if (alias.length > MAX_ALIAS) throw invalidField(location, `must be at most ${MAX_ALIAS} characters`, alias)
  if (!ALIAS.test(alias)) throw invalidField(location, 'takes letters, digits, `_ - .` and `/` between parts', alias)
  if (alias.startsWith('s-')) throw invalidField(location, 'must not look like an id: `s-` is reserved', alias)
  if (RESERVED.has(alias.toLowerCase())) throw invalidField(location, 'is reserved', alias)
  // A path with such a part is another path before it reaches us.
  if (alias.split('/').some((part) => part === '.' || part === '..'))
    throw invalidField(location, 'must not have `.` or `..` as a part', alias)
  return alias
}

/**
 * The runtime name of an identity: only letters, digits, `_` and `-`, and reversible. What is not a letter or a digit or
 * a hyphen becomes `_` and two hex digits for each byte, so no two identities share a name.
 */
export function runtimeName(identity: string): string {
  return identity.replaceAll(/[^A-Za-z0-9-]/gu, (character) =>
    [...Buffer.from(character, 'utf8')].map((byte) => `_${byte.toString(16).padStart(2, '0')}`).join(''),
  )
}

/** What is looked up for a word, in this order. */
export interface Lookup {
  byId(id: string): SessionRecord | undefined
  /** Open sessions of a configured identity. */
  byNamed(identity: string): SessionRecord | undefined
  openByName(name: string): SessionRecord | undefined
  openByAlias(alias: string): SessionRecord | undefined
  /** Open instances whose own name (`builder-2`) this is. */
  openByAgent(agent: string): readonly SessionRecord[]
  /** Open ones that had this alias before. */
  openByFormerAlias(alias: string): readonly SessionRecord[]
  /** Closed ones that had this alias or name, newest first. */
  closedByHandle(handle: string): readonly SessionRecord[]
}

/** What a word means. */
export interface Meaning {
  /** The configured identity that it is; nobody else of this name is meant then. */
  readonly identity?: string
  /** Sessions that are meant: none where the identity has none; several where nobody can tell which. */
  readonly sessions: readonly SessionRecord[]
  /** Session that has taken the name of an identity without a session. */
  readonly taker?: SessionRecord
}

/**
 * The one order in which names are looked up (decision 131): exact id, configured identity, runtime name, alias or name of
 * an instance, former alias; open sessions before closed ones.
 */
export function meaningOf(word: string, lookup: Lookup, configured: (identity: string) => boolean): Meaning {
  const exact = lookup.byId(word)
  if (exact !== undefined) return { sessions: [exact] }
  const named = lookup.byNamed(word)
  if (named !== undefined) return { identity: word, sessions: [named] }
  const open = lookup.openByName(word) ?? lookup.openByAlias(word)
  if (configured(word)) return { identity: word, sessions: [], ...(open === undefined ? {} : { taker: open }) }
  if (open !== undefined) return { sessions: [open] }
  const others = [lookup.openByAgent, lookup.openByFormerAlias, lookup.closedByHandle]
  return { sessions: others.map((find) => find.call(lookup, word)).find(({ length }) => length > 0) ?? [] }
}

/** The session that `id` means; `undefined` where it is a configured identity without one. Else 404 or 409. */
export function resolveSession(
  id: string,
  lookup: Lookup,
  { configured, closed }: { readonly configured: (identity: string) => boolean; readonly closed: boolean },
): SessionRecord | undefined {
  const { identity, sessions, taker } = meaningOf(id, lookup, configured)
  if (taker !== undefined)
    throw problem('name-taken', `${id} is a configured session, and ${taker.id} has taken its name`)
  const matches = closed ? sessions : sessions.filter((one) => one.state !== 'closed' || one.id === id)
  const [found, ...others] = matches
  if (found === undefined && identity !== undefined) return undefined
  if (found === undefined) throw problem('session-not-found', `there is no session ${id}`)
  if (others.length > 0) throw problem('ambiguous-session', `${id} means ${matches.map((one) => one.id).join(', ')}`)
  return found
}

export const isConfigured = (identities: ReadonlySet<string>) => (identity: string) => identities.has(identity)
