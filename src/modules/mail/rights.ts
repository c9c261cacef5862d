/**
 * Whose mail a caller may see and change. A person, and an agent with `api = "city"`, has all mailboxes; the token of any other
 * agent has its own: it sees what it was sent and what it sent, and moves only what it was sent.
 */
import { type Caller, mayChangeCity } from '../../kernel/caller.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import {
  type Address,
  type Addresses,
  type Mailbox,
  mailboxOfAgent,
  mailboxOfSession,
} from '../../messaging/address.ts'
import type { MailRecord } from './record.ts'

/** The mailbox that a caller is confined to; undefined: it has all of them. */
export const confinedTo = (addresses: Addresses, caller: Caller): Address | undefined =>
  caller.kind === 'agent' && !mayChangeCity(caller) ? addresses.ofSession(caller.session) : undefined

/** The mailbox that a word names. An unknown name gives a mailbox that is empty, or was left behind. */
export function mailboxOf(addresses: Addresses, word: string): Mailbox {
  return addresses.find(word)?.mailbox ?? (word.startsWith('s-') ? mailboxOfSession(word) : mailboxOfAgent(word))
}

/** The mailbox that a request is about; undefined: all of them. Whoever has only its own means that where it names none. */
export function mailboxMeant(addresses: Addresses, caller: Caller, word: string | undefined): Mailbox | undefined {
  const self = confinedTo(addresses, caller)
  if (word === undefined) return self?.mailbox
  const meant = mailboxOf(addresses, word)
  if (self !== undefined && meant !== self.mailbox) throw notOwn(self, `the mailbox of ${word}`)
  return meant
}

export function assertSees(addresses: Addresses, caller: Caller, mail: Pick<MailRecord, 'id' | 'mailbox' | 'sender'>) {
  const self = confinedTo(addresses, caller)
  if (self === undefined || mail.mailbox === self.mailbox || mail.sender === self.mailbox) return
  throw notOwn(self, `the message ${mail.id}`)
}

export function assertOwns(addresses: Addresses, caller: Caller, mail: Pick<MailRecord, 'id' | 'mailbox'>): void {
  const self = confinedTo(addresses, caller)
  if (self !== undefined && mail.mailbox !== self.mailbox) throw notOwn(self, `the message ${mail.id}`)
}

function notOwn({ display }: Address, what: string): Problem {
  return problem(
    'forbidden',
    `${what} is not that of ${display}, whose token this is: an agent reads and moves its own mail (api = "city" of its agent gives it all)`,
  )
}
