/** Who mail, bindings and memberships are for: names of sessions and agents, as mailboxes that stay (decisions 130, 131). */
import { unknownName } from '../../kernel/near-names.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import {
  type Address,
  type Addresses,
  HUMAN,
  isRead,
  type Mailbox,
  mailboxOfAgent,
  mailboxOfSession,
  parseMailbox,
} from '../../messaging/address.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { sessions as sessionFamily } from '../../modules/sessions/family.ts'
import type { SessionsView } from '../../modules/sessions/record/config-view.ts'
import { type Lookup, meaningOf } from '../../modules/sessions/record/names.ts'
import type { SessionRecord } from '../../modules/sessions/record/record.ts'
import type { Running } from './running.ts'

/** Where names are looked up. */
interface Directory {
  readonly sessions: () => Lookup & { open(): readonly SessionRecord[] }
  readonly config: () => Pick<SessionsView, 'named_sessions' | 'agents'>
}

interface Meant {
  readonly mailboxes: readonly Mailbox[]
  /** It is the name of many, whichever of them are there: the mailboxes are theirs. */
  readonly isPool: boolean
}

/** A key, as answers show it. */
const KEY = /^(?:agent:|session:)(?=.)/s
/** Names that a refusal lists. */
const MAX_NAMED = 20

export const addressesOf = (city: Running): Addresses =>
  new CityAddresses({
    sessions: () => sessionFamily.of(city).sessions.store,
    config: () => configuration.of(city).config.current(),
  })

export class CityAddresses implements Addresses {
  readonly #directory: Directory

  constructor(directory: Directory) {
    this.#directory = directory
  }

  resolve(word: string): Address {
    const { mailboxes, isPool } = this.#meantBy(word.replace(KEY, ''))
    const [only, ...others] = mailboxes
    if (isPool || others.length > 0) throw this.#ambiguous(word, { mailboxes, isPool })
    // A key means what it says, or nobody.
    if (only === undefined || (KEY.test(word) && only !== word)) throw this.#unknown(word)
    return this.of(only)
  }

  find(word: string): Address | undefined {
    if (KEY.test(word)) return this.of(parseMailbox(word))
    const { mailboxes, isPool } = this.#meantBy(word)
    const [only, ...others] = mailboxes
    return only === undefined || others.length > 0 || isPool ? undefined : this.of(only)
  }

  isClosed(word: string): boolean {
    const { mailboxes, isPool } = this.#meantBy(word.replace(KEY, ''))
    return !isPool && mailboxes.length > 0 && mailboxes.every((one) => !isRead(this.of(one)))
  }

  of(mailbox: Mailbox): Address {
    if (mailbox === HUMAN) return { mailbox, display: HUMAN, rig: '' }
    const [kind = '', ...rest] = mailbox.split(':')
    const name = rest.join(':')
    return kind === 'session' ? this.#sessionAddress(mailbox, name) : this.#agentAddress(mailbox, name)
  }

  ofSession(id: string): Address {
    const session = this.#directory.sessions().byId(id)
    return this.of(session === undefined ? mailboxOfSession(id) : mailboxOf(session))
  }

  live(): readonly Address[] {
    const mailboxes = new Set(this.#directory.sessions().open().map(mailboxOf))
    const addresses = [...mailboxes].map((one) => this.of(one))
    return addresses.sort((a, b) => (a.display < b.display ? -1 : 1))
  }

  #meantBy(word: string): Meant {
    if (word === HUMAN) return { mailboxes: [HUMAN], isPool: false }
    const store = this.#directory.sessions()
    const { named_sessions: named, agents } = this.#directory.config()
    const agent = agents.find(({ identity }) => identity === word)
    const namedOfAgent = named.filter((one) => one.agent === word)
    const isNamed = named.some(({ identity }) => identity === word)
    const isLone = agent !== undefined && !agent.scales && namedOfAgent.length === 0
    const { identity, sessions } = meaningOf(word, store, () => isNamed || isLone)
    if (identity !== undefined) return { mailboxes: [mailboxOfAgent(identity)], isPool: false }
    if (agent === undefined || sessions.some(isOpen)) return { mailboxes: mailboxesOf(sessions), isPool: false }
    // The work of an agent that is no pool is done by the named sessions that it has.
    if (!agent.scales) return { mailboxes: namedOfAgent.map((one) => mailboxOfAgent(one.identity)), isPool: false }
    return { mailboxes: mailboxesOf(store.open().filter(({ template }) => template === word)), isPool: true }
  }

  #sessionAddress(mailbox: Mailbox, id: string): Address {
    const session = this.#directory.sessions().byId(id)
    if (session === undefined) return { mailbox, display: id, rig: '' }
    const { alias, pool, agent, rig = '' } = session
    const display = alias ?? (pool === undefined ? id : agent)
    return { mailbox, display, rig, ...(isOpen(session) ? { session_id: id } : {}) }
  }

  #agentAddress(mailbox: Mailbox, identity: string): Address {
    const store = this.#directory.sessions()
    const { named_sessions: named, agents } = this.#directory.config()
    const session = store.byNamed(identity) ?? store.openByAgent(identity).find((one) => mailboxOf(one) === mailbox)
    const configured = named.find((one) => one.identity === identity)?.rig
    const rig = configured ?? agents.find((one) => one.identity === identity)?.dir ?? session?.rig ?? ''
    return { mailbox, display: identity, rig, ...(session === undefined ? {} : { session_id: session.id }) }
  }

  #ambiguous(word: string, { mailboxes, isPool }: Meant): Problem {
    const names = mailboxes.map((one) => this.#nameOf(one)).sort()
    const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
    const shown = `${names.slice(0, MAX_NAMED).join(', ')}${more}`
    if (!isPool) return problem('ambiguous-recipient', `${word} means ${shown}`)
    const which = names.length === 0 ? 'none is there now' : `write to ${shown}`
    return problem('ambiguous-recipient', `${word} is a pool, whose instances have mailboxes of their own: ${which}`)
  }

  /** Closed ones may all be called the same: their ids tell them apart. */
  #nameOf(mailbox: Mailbox): string {
    const { display, session_id: session } = this.of(mailbox)
    return session === undefined ? mailbox.replace(KEY, '') : display
  }

  #unknown(word: string): Problem {
    const { named_sessions: named, agents } = this.#directory.config()
    const aliases = this.#directory
      .sessions()
      .open()
      .flatMap(({ alias }) => (alias === undefined ? [] : [alias]))
    const identities = [...named, ...agents].map(({ identity }) => identity)
    return unknownName('recipient-not-found', 'recipient', word, new Set([HUMAN, ...identities, ...aliases]))
  }
}

const isOpen = ({ state }: SessionRecord): boolean => state !== 'closed'

const mailboxesOf = (sessions: readonly SessionRecord[]): readonly Mailbox[] => [...new Set(sessions.map(mailboxOf))]

/** What is said to a configured identity, or to the only session of an agent, outlives the session. */
export function mailboxOf({ id, kind, named, pool, agent, template }: SessionRecord): Mailbox {
  if (named !== undefined) return mailboxOfAgent(named)
  return kind === 'agent' && pool !== undefined && agent === template ? mailboxOfAgent(template) : mailboxOfSession(id)
}
