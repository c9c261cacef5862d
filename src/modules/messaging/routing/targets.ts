/** Who a binding or a handle is for: a session, a configured agent, or people. */
import { given } from '../../../kernel/present.ts'
import { invalidField, Problem, problem } from '../../../kernel/problem.ts'
import { type Addresses, HUMAN, type Mailbox } from '../../../messaging/address.ts'
import type { RoutingDeps } from './ports.ts'

export interface Target {
  /** The key that mail has for it. */
  readonly mailbox: Mailbox
  /** It is for this session alone, and ends with it. */
  readonly session_id?: string
  readonly session_name?: string
}

export interface TargetWords {
  readonly session_id?: string | undefined
  readonly agent_name?: string | undefined
  readonly mailbox?: 'human' | undefined
}

interface WireTarget {
  readonly session_id?: string
  readonly session_name?: string
  readonly agent_name?: string
  readonly mailbox?: 'human'
}

type Deps = Pick<RoutingDeps, 'addresses' | 'targets'>

/** Whom the request names; refused where it names nobody, or several ways at once. `keys`: those that it may use. */
export function targetOf(deps: Deps, words: TargetWords, keys: readonly (keyof TargetWords)[]): Target {
  const given = keys.filter((key) => words[key] !== undefined)
  if (given.length !== 1)
    throw invalidField(
      'body',
      `has exactly one of ${keys.join(', ')}, not ${given.length === 0 ? 'none' : given.join(' and ')}`,
    )
  const { session_id: session, agent_name: agent } = words
  if (session !== undefined) return sessionTarget(deps, session, 'body.session_id')
  if (agent !== undefined) return agentTarget(deps, agent, 'body.agent_name')
  return { mailbox: HUMAN }
}

/**
 * A word that may mean either: a session by its id, an agent where it has a mailbox of its own, else a session. Never people:
 * whoever brings messages would get their mail.
 */
export function wordTarget(deps: Deps, word: string, at: string): Target {
  if (deps.targets.session(word) !== undefined) return sessionTarget(deps, word, at)
  const { mailbox, session_id: session } = deps.addresses().resolve(word)
  if (mailbox === HUMAN) throw invalidField(at, 'is people: only a binding gives them a conversation', word)
  if (mailbox.startsWith('agent:')) return agentTarget(deps, word, at)
  if (session === undefined) throw problem('session-conflict', `${at}: the session ${word} is closed`)
  return sessionTarget(deps, session, at)
}

export const sameTarget = (a: Target, b: Target): boolean => a.mailbox === b.mailbox && a.session_id === b.session_id

/** How it is called where it stands alone. */
export const targetName = ({ mailbox, session_id: id }: Target): string =>
  id ?? (mailbox === HUMAN ? mailbox : mailbox.slice('agent:'.length))

/** Its fields on the wire. */
export function wireTarget({ mailbox, session_id: id, session_name: name }: Target): WireTarget {
  if (id !== undefined) return { session_id: id, ...given('session_name', name) }
  if (mailbox === 'human') return { mailbox }
  return { agent_name: mailbox.slice('agent:'.length) }
}

function sessionTarget({ addresses, targets }: Deps, word: string, at: string): Target {
  const exact = targets.session(word)
  if (exact?.closed === true) throw problem('session-conflict', `${at}: session ${word} is closed`)
  const id = exact?.id ?? resolved(addresses(), word, 'session-not-found').session_id
  const session = id === undefined ? undefined : targets.session(id)
  if (session === undefined || session.closed)
    throw problem(
      'session-not-found',
      `${at}: ${word} has no session at the moment; \`agent_name\` binds to whichever it has`,
    )
  if (!session.takesMessages) throw mute(at, `session ${session.id}`)
  return { mailbox: addresses().ofSession(session.id).mailbox, session_id: session.id, session_name: session.name }
}

function agentTarget({ addresses, targets }: Deps, word: string, at: string): Target {
  const { mailbox } = resolved(addresses(), word, 'agent-not-found')
  if (!mailbox.startsWith('agent:'))
    throw problem(
      'agent-not-found',
      `${at}: ${word} is no configured named session or agent; \`session_id\` binds to a session`,
    )
  const identity = mailbox.slice('agent:'.length)
  if (!targets.agentTakesMessages(identity)) throw mute(at, identity)
  return { mailbox }
}

function resolved(addresses: Addresses, word: string, code: 'session-not-found' | 'agent-not-found') {
  try {
    return addresses.resolve(word)
  } catch (error) {
    if (error instanceof Problem && error.code === 'recipient-not-found') throw problem(code, error.message)
    throw error
  }
}

/** Decision 138: what it is told is typed as it is; a chat must not become a shell. */
const mute = (at: string, who: string): Problem =>
  invalidField(at, `${who} takes no messages (prompt mode \`omit\`): a chat must not become a shell`)
