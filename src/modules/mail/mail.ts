/**
 * Mail of a city: who gets what, what becomes of it, and what is told of that (decisions 130 to 139, 175).
 *
 * What changes a message takes the transaction of its caller: messages of others' making, such as lines of a chat, are
 * one write with what they come from.
 */
import { TOMBSTONE_DAYS } from '../../contract/messaging/mail.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { type Address, type Addresses, HUMAN, isRead, type Mailbox } from '../../messaging/address.ts'
import type { Digests } from '../../messaging/digest.ts'
import { type MailRecord, mailPayload } from './record.ts'
import {
  type Counts,
  countMails,
  findMail,
  insertMails,
  type MailState,
  newestAt,
  removeMail,
  setState,
  wasDeleted,
} from './store.ts'
import { replySubject } from './subject.ts'

export interface MailDeps {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly clock: Clock
  /** So many random bytes, in hex. */
  readonly random: (bytes: number) => string
  readonly addresses: Addresses
  readonly digests: Digests
}

/** Who sends: somebody with a mailbox, or a mere label, which nobody can answer. */
export interface Sender {
  readonly display: string
  readonly mailbox?: Mailbox
  readonly rig: string
  readonly session_id?: string
}

interface Said {
  readonly from: Sender
  readonly body: string
  readonly priority?: number | undefined
  /** As the field of this name in requests. */
  readonly notify?: boolean | undefined
}

export interface MailDraft extends Said {
  readonly to: Address
  readonly subject: string
  readonly cc?: readonly Address[]
  /** A thread that is there; a new one where absent. */
  readonly thread?: string | undefined
}

export interface ReplyDraft extends Said {
  readonly subject?: string | undefined
  readonly cc?: readonly Address[]
}

export interface BroadcastDraft extends Said {
  readonly to: readonly Address[]
  readonly subject: string
}

interface Sending extends Said {
  readonly type: 'mail.sent' | 'mail.replied'
  readonly subject: string
  readonly thread: string
  readonly replyTo?: string
}

interface Receiver {
  readonly id: string
  readonly address: Address
  readonly cc: readonly string[]
  readonly copyOf?: string
}

type Move = 'read' | 'mark-unread' | 'archive' | 'unarchive'
const EVENT_OF = {
  read: 'mail.marked_read',
  'mark-unread': 'mail.marked_unread',
  archive: 'mail.archived',
  unarchive: 'mail.unarchived',
} as const

export class Mail {
  readonly #deps: MailDeps

  constructor(deps: MailDeps) {
    this.#deps = deps
  }

  /** The message, in the mailbox of its recipient; who is in `cc` has a copy. */
  send(tx: Tx, { to, cc = [], thread, ...said }: MailDraft): MailRecord {
    return this.#sendTo(tx, { ...said, type: 'mail.sent', thread: thread ?? this.#newThread() }, to, cc)
  }

  /** An answer to the sender of a message; 404 where there is no such message, 409 where its sender has no mailbox. */
  reply(tx: Tx, id: string, { subject, cc = [], ...said }: ReplyDraft): MailRecord {
    const original = this.need(tx, id)
    const answer = {
      ...said,
      type: 'mail.replied',
      subject: replySubject(subject, original.subject, said.body),
      thread: original.thread_id,
      replyTo: id,
    } as const
    return this.#sendTo(tx, answer, this.#senderOf(original), cc)
  }

  /** One message for each, in one thread. */
  broadcast(tx: Tx, { to, ...said }: BroadcastDraft): readonly MailRecord[] {
    const receivers = to.map((address) => ({ id: this.#newId(), address, cc: [] }))
    return this.#deliver(tx, { ...said, type: 'mail.sent', thread: this.#newThread() }, receivers)
  }

  need(tx: Pick<Tx, 'get' | 'all'>, id: string): MailRecord {
    const record = findMail(tx, id)
    if (record === undefined) throw problem('mail-not-found', `there is no message ${id}`)
    return record
  }

  /** Nothing happens, and nothing is told, where it is so already. */
  move(tx: Tx, id: string, move: Move, actor: string): MailRecord {
    const before = this.need(tx, id)
    const state = stateAfter(before, move, this.#deps.clock.now())
    if (state === undefined) return before
    const after = setState(tx, before, state)
    const type = EVENT_OF[move]
    this.#deps.store.log.append(tx, { type, actor, subject: id, payload: mailPayload(after, true) })
    return after
  }

  /** Also of one that is gone already, for as long as its id is remembered. */
  delete(tx: Tx, id: string, actor: string): void {
    const { clock, store } = this.#deps
    const now = clock.now()
    const record = findMail(tx, id)
    if (record === undefined && wasDeleted(tx, id, now - TOMBSTONE_DAYS * 86_400_000)) return
    if (record === undefined) throw problem('mail-not-found', `there is no message ${id}`)
    removeMail(tx, record, now)
    store.log.append(tx, { type: 'mail.deleted', actor, subject: id, payload: mailPayload(record, false) })
  }

  /** In all mailboxes of the city. */
  counts(): Counts {
    return countMails(this.#deps.store.db, undefined, undefined)
  }

  /** By its mailbox, which outlives names; a label may have become one meanwhile. */
  #senderOf({ id, sender, from }: MailRecord): Address {
    const { addresses } = this.#deps
    const address = addresses.find(sender.startsWith(LABEL) ? from : sender)
    if (address === undefined)
      throw problem('conflict-wrong-state', `the sender of ${id}, ${from}, has no mailbox: it cannot be answered`)
    if (!isRead(address)) throw closedRecipient(from)
    return address
  }

  #sendTo(tx: Tx, said: Sending, to: Address, cc: readonly Address[]): MailRecord {
    const copied = distinct(cc).filter(({ mailbox }) => mailbox !== to.mailbox)
    const names = copied.map(({ display }) => display)
    const id = this.#newId()
    const copies = copied.map((address) => ({ id: this.#newId(), address, cc: names, copyOf: id }))
    const [message] = this.#deliver(tx, said, [{ id, address: to, cc: names }, ...copies])
    if (message === undefined) throw new Error('a message went to nobody')
    return message
  }

  #deliver(tx: Tx, said: Sending, receivers: readonly Receiver[]): readonly MailRecord[] {
    const { store, clock } = this.#deps
    const { from, notify, thread, replyTo, priority = 0 } = said
    // Lists are in the order of arrival, and so are times.
    const created = Math.max(clock.now(), newestAt(tx))
    const drafts = receivers.map(({ id, address, cc, copyOf }) => ({
      id,
      mailbox: address.mailbox,
      sender: from.mailbox ?? `${LABEL}${from.display}`,
      from: from.display,
      to: address.display,
      subject: said.subject,
      thread_id: thread,
      reply_to: replyTo,
      copy_of: copyOf,
      cc,
      priority,
      silent: notify === false,
      rig: address.rig === '' ? from.rig : address.rig,
      from_session_id: from.session_id,
      to_session_id: address.session_id,
      created_at: created,
    }))
    const records = insertMails(tx, drafts, said.body)
    for (const record of records) {
      const type = record.copy_of === undefined ? said.type : 'mail.sent'
      store.log.append(tx, { type, actor: from.display, subject: record.id, payload: mailPayload(record, true) })
    }
    for (const { address } of receivers) this.#tell(tx, address, said)
    return records
  }

  #tell(tx: Tx, to: Address, { from, notify }: Sending): void {
    if (to.mailbox === HUMAN || notify === false) return
    // Who writes to himself knows; his next conversation does not, and is told.
    if (notify === undefined && to.mailbox === from.mailbox) return
    this.#deps.digests.wish(tx, to, { source: 'mail', reference: to.mailbox, wakes: notify === true })
  }

  readonly #newId = (): string => `ml-${this.#deps.random(8)}`
  readonly #newThread = (): string => `thread-${this.#deps.random(6)}`
}

/** Refuses mail that nobody would ever read. */
export const closedRecipient = (word: string): Problem =>
  problem(
    'recipient-closed',
    `the session ${word} is closed: nobody reads its mail any more; write to its agent, or to human`,
  )

/** What stands before senders without a mailbox; no mailbox begins so. */
export const LABEL = 'label:'

/** Each mailbox once, as it was named first. */
export function distinct(addresses: readonly Address[]): readonly Address[] {
  const found = new Map<Mailbox, Address>()
  for (const one of addresses) if (!found.has(one.mailbox)) found.set(one.mailbox, one)
  return [...found.values()]
}

/** Undefined: it is so already. */
function stateAfter(
  { id, status, read, read_at, archived_at }: Pick<MailRecord, 'id'> & MailState,
  move: Move,
  now: number,
): MailState | undefined {
  if (move === 'archive')
    return status === 'archived' ? undefined : { status: 'archived', read, read_at, archived_at: now }
  if (move === 'unarchive')
    return status === 'archived'
      ? { status: read ? 'read' : 'unread', read, read_at, archived_at: undefined }
      : undefined
  if (status === 'archived')
    throw problem('conflict-wrong-state', `the message ${id} is archived: take it out of the archive first`)
  if (move === 'read') return read ? undefined : { status: 'read', read: true, read_at: now, archived_at }
  return read ? { status: 'unread', read: false, read_at: undefined, archived_at } : undefined
}
