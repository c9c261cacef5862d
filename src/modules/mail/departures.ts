/**
 * Mail that a closed session never read. Each sender gets one note that names its messages; people get it for senders that
 * have no mailbox, or whose session is closed too.
 */
import { cut } from '../../contract/base/text.ts'
import type { Tx } from '../../kernel/database.ts'
import type { Reaction } from '../../kernel/reactions.ts'
import { type Address, type Addresses, HUMAN, isRead, type Mailbox, parseMailbox } from '../../messaging/address.ts'
import { LABEL, type Mail } from './mail.ts'
import { type UnreadOf, unreadBySender } from './store.ts'

interface DepartureDeps {
  readonly addresses: Addresses
  readonly mail: Pick<Mail, 'send'>
}

/** Notes of this service name it as their sender; nobody is told that such a note was not read. */
const SENDER = 'sessions'
const MOST = { senders: 100, named: 10 }
const MAX_SUBJECT = 120

export const departures = (deps: DepartureDeps): Reaction => ({
  name: 'mail-departures',
  types: ['session.closed'],
  // Sessions that were closed before there were notes are no news.
  since: 'head',
  react: (tx, { subject = '' }) => tellSenders(tx, deps, subject),
})

function tellSenders(tx: Tx, { addresses, mail }: DepartureDeps, session: string): void {
  const closed = addresses.ofSession(session)
  // The mailbox of an agent is read by its next session.
  if (isRead(closed)) return
  const notes = new Map<Mailbox, { readonly to: Address; readonly unread: UnreadOf[] }>()
  for (const one of unreadBySender(tx, closed.mailbox, MOST)) {
    if (one.sender === `${LABEL}${SENDER}`) continue
    const to = readerOf(addresses, one)
    const note = notes.get(to.mailbox) ?? { to, unread: [] }
    notes.set(to.mailbox, note)
    note.unread.push(one)
  }
  for (const { to, unread } of notes.values())
    mail.send(tx, { from: { display: SENDER, rig: '' }, to, ...noteOf(closed, session, unread) })
}

function readerOf(addresses: Addresses, { sender }: UnreadOf): Address {
  if (sender.startsWith(LABEL)) return addresses.of(HUMAN)
  const address = addresses.of(parseMailbox(sender))
  return isRead(address) ? address : addresses.of(HUMAN)
}

function noteOf({ display }: Address, session: string, unread: readonly UnreadOf[]) {
  const count = unread.reduce((sum, one) => sum + one.count, 0)
  const named = unread.flatMap(({ from, newest }) => newest.map((one) => ({ ...one, from }))).slice(0, MOST.named)
  const messages = count === 1 ? '1 message' : `${count} messages`
  const lines = named.map(({ id, subject, from }) => `- ${id} of ${from}: ${cut(subject, MAX_SUBJECT)}`)
  const more = count > named.length ? [`- and ${count - named.length} more`] : []
  return {
    subject: `Closed without reading ${messages}: ${display}`,
    body: [
      `The session ${display} (${session}) is closed. It did not read ${messages}:`,
      ...lines,
      ...more,
      'Nobody reads that mailbox any more. Write to an open session or to its agent: svcctl mail send NAME.',
    ].join('\n'),
  }
}
