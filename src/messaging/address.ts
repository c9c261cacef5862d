/**
 * Who mail, bindings and memberships are for: a stable key that outlives names and processes (decisions 130, 131). The
 * port is filled by the supervisor from sessions and configuration; there is no second way to find out whom a name means.
 */

/** `human`, `agent:<identity>` of a named session or an agent that is no pool, else `session:<id>`. */
export type Mailbox = 'human' | `agent:${string}` | `session:${string}`

/** A mailbox as it is called at the moment. */
export interface Address {
  readonly mailbox: Mailbox
  /** For people and agents: alias, identity or name. */
  readonly display: string
  /** Rig of the agent; empty: none. */
  readonly rig: string
  /** Session that reads it now, open; absent: none does. */
  readonly session_id?: string
}

export interface Addresses {
  /** What the word means; 404 `recipient-not-found`, 409 `ambiguous-recipient` with the names that it may mean. */
  resolve(word: string): Address
  /** The same for filters and senders, which never fail: undefined where it means nobody or several. */
  find(word: string): Address | undefined
  /** True where the word means closed sessions alone, by whichever of their names. */
  isClosed(word: string): boolean
  /** As it is called now; of one that is gone, as it was called last. */
  of(mailbox: Mailbox): Address
  /** The mailbox of this session, closed ones too. */
  ofSession(sessionId: string): Address
  /** Everybody who could be written to by broadcast: mailboxes of open sessions, in order of their display. */
  live(): readonly Address[]
}

/** Whether somebody reads the mailbox, now or later: that of a closed session nobody does, those of agents and people outlive sessions. */
export const isRead = ({ mailbox, session_id }: Address): boolean =>
  !mailbox.startsWith('session:') || session_id !== undefined

export const HUMAN: Mailbox = 'human'
export const mailboxOfAgent = (identity: string): Mailbox => `agent:${identity}`
export const mailboxOfSession = (id: string): Mailbox => `session:${id}`

/** The key as it is stored; throws on what no key can be. */
export function parseMailbox(text: string): Mailbox {
  if (text === 'human') return text
  if (text.startsWith('agent:')) return mailboxOfAgent(text.slice('agent:'.length))
  if (text.startsWith('session:')) return mailboxOfSession(text.slice('session:'.length))
  throw new Error(`not a mailbox: ${text}`)
}
