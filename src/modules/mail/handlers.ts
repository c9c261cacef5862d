/** Handlers of mail. */
import { MAX_BODY_BYTES, MAX_CHECKED, MAX_RECIPIENTS, type mailOperations } from '../../contract/messaging/mail.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import { Page } from '../../kernel/page.ts'
import { invalidField, needVisible, Problem, problem, timeMs } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { type BlockingInput, waitForChange } from '../../kernel/waiting.ts'
import { type Address, type Addresses, HUMAN, type Mailbox } from '../../messaging/address.ts'
import { searchExpression } from '../../messaging/search.ts'
import { archiveMany, checkArchiving } from './archive.ts'
import { closedRecipient, distinct, LABEL, type Mail, type Sender } from './mail.ts'
import { type MailFilter, mailList, mailTotal, type Total, threadPage } from './query.ts'
import { wireMessage } from './record.ts'
import { assertOwns, assertSees, confinedTo, mailboxMeant, mailboxOf } from './rights.ts'
import { countMails, findMail, findThread, knownSenders, unreadIds, unreadMails } from './store.ts'
import { mailText, TOLD_MESSAGES } from './text.ts'

export interface MailCity {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly addresses: Addresses
  readonly mail: Mail
  readonly hasRig: (name: string) => boolean
}

interface MovingCall {
  readonly params: { readonly id: string }
  readonly city: MailCity
  readonly actor: string
  readonly caller: Caller
}

interface WaitingCall {
  readonly city: MailCity
  readonly query: BlockingInput
  readonly signal: AbortSignal
}

/** Bytes that the answer of a broadcast may have: it shows each message. */
const MAX_BROADCAST_BYTES = 8 * 1024 * 1024

export function createMailHandlers({ clock }: { readonly clock: Clock }) {
  const headers = ({ store }: MailCity) => ({ 'X-SVC-Index': String(store.log.head) })

  /** Waits where that is asked for, for events of mail that have this in their payload; then the city as it is. */
  const changed = async (call: WaitingCall, mark: string): Promise<MailCity> => {
    const { city, query, signal } = call
    const isMail = ({ type, envelope }: StoredEvent) => type.startsWith('mail.') && envelope.includes(mark)
    await waitForChange(city.store.log, query, clock, signal, isMail)
    return call.city
  }

  /** What is made once, however often it is asked for with one key. */
  const creating = async <B>({ store }: MailCity, claim: IdempotencyClaim | undefined, make: (tx: Tx) => B) => {
    const { status, body } = await store.keys.once(claim, () =>
      store.db.write((tx) => store.keys.remember(tx, claim, { status: 201, body: make(tx) })),
    )
    return { status, body, headers: { 'X-SVC-Index': String(store.log.head) } }
  }

  const moving =
    (move: 'read' | 'mark-unread' | 'archive' | 'unarchive') =>
    async ({ params, city, actor, caller }: MovingCall) => {
      const record = await city.store.db.write((tx) => {
        assertOwns(city.addresses, caller, city.mail.need(tx, params.id))
        return city.mail.move(tx, params.id, move, actor)
      })
      return ok(wireMessage(record), headers(city))
    }

  return defineHandlers<typeof mailOperations, MailCity>({
    'list-mail': async (call) => {
      const { query, caller } = call
      const mailbox = listedMailbox(call.city, query, caller)
      const mark = mailbox === undefined ? '' : `"mailbox":${JSON.stringify(mailbox)}`
      const city = await changed(call, mark)
      const index = headers(city)
      const { filter, isNothing } = filterOf(city, query, caller)
      const page = new Page('mail', ['number'], query)
      if (isNothing) return ok({ items: [], total: 0 }, index)
      const { total, ...shown } = mailList(city.store.db, filter, page)
      return ok({ ...shown, ...totalFields(total) }, index)
    },

    'send-mail': ({ body, claim, city, caller }) => {
      checkBody(body.body)
      needVisible('body.subject', body.subject)
      return creating(city, claim, (tx) => {
        const { to, cc, thread_id, subject, priority, notify, body: text = '' } = body
        const recipient = resolve(city, to, 'body.to')
        const copies = resolveAll(city, cc, 'body.cc')
        const thread = thread_id === undefined ? undefined : needThread(tx, thread_id, 'body.thread_id')
        const from = senderOf(city.addresses, caller, body.from)
        const said = { from, to: recipient, cc: copies, subject, body: text, priority, notify, thread }
        return wireMessage(city.mail.send(tx, said))
      })
    },

    'count-mail': ({ query, city, caller }) => {
      const { agent, rig } = query
      if (rig !== undefined) needRig(city, rig)
      const mailbox = mailboxMeant(city.addresses, caller, agent)
      const { unread, read } = countMails(city.store.db, mailbox, rig)
      return ok({ total: unread + read, unread }, headers(city))
    },

    'check-mail': ({ query, city, caller }) => {
      const { db } = city.store
      const mailbox = mailboxMeant(city.addresses, caller, query.agent) ?? mailboxOf(city.addresses, query.agent)
      const { unread } = countMails(db, mailbox, undefined)
      const text = mailText(unreadMails(db, mailbox, 0, TOLD_MESSAGES), unread)
      return ok({ unread, message_ids: [...unreadIds(db, mailbox, MAX_CHECKED)], text }, headers(city))
    },

    'broadcast-mail': ({ body, claim, city, caller }) => {
      checkBody(body.body)
      needVisible('body.subject', body.subject)
      return creating(city, claim, (tx) => {
        const { subject, priority, notify, body: text = '' } = body
        const from = senderOf(city.addresses, caller, body.from)
        const to = receiversOf(city, body.to, body.include_human === true, from)
        checkVolume(to.length, text)
        const records = city.mail.broadcast(tx, { from, to, subject, body: text, priority, notify })
        return { items: records.map(wireMessage), total: records.length }
      })
    },

    'archive-mails': async ({ body, city, actor, caller }) => {
      checkArchiving(body)
      const own = confinedTo(city.addresses, caller)?.mailbox
      if (own !== undefined && body.filter !== undefined) mailboxMeant(city.addresses, caller, body.filter.to)
      const deps = {
        mail: city.mail,
        own,
        mailboxOf: (word: string) => mailboxOf(city.addresses, word),
        sendersOf: (word: string) => sendersOf(city.addresses, word),
      }
      const archived = await city.store.db.write((tx) => archiveMany(tx, body, actor, deps))
      return ok(archived, headers(city))
    },

    'get-mail-thread': async (call) => {
      const { params, query, caller } = call
      const thread = needThread(call.city.store.db, params.id, 'path.id')
      const city = await changed(call, `"thread_id":"${thread}"`)
      const { db } = city.store
      const index = headers(city)
      const party = mailboxMeant(city.addresses, caller, query.agent)
      const filter = { thread, ...(party === undefined ? { originals: true } : { party }) }
      const shown = threadPage(db, filter, new Page(thread, ['number'], query))
      return ok({ ...shown, ...totalFields(mailTotal(db, filter)) }, index)
    },

    'get-mail': ({ params, city, caller }) => {
      const record = city.mail.need(city.store.db, params.id)
      assertSees(city.addresses, caller, record)
      return ok(wireMessage(record), headers(city))
    },

    'delete-mail': async ({ params, city, actor, caller }) => {
      await city.store.db.write((tx) => {
        const record = findMail(tx, params.id)
        if (record !== undefined) assertOwns(city.addresses, caller, record)
        city.mail.delete(tx, params.id, actor)
      })
      return ok({ id: params.id, status: 'deleted' as const }, headers(city))
    },

    'read-mail': moving('read'),
    'mark-mail-unread': moving('mark-unread'),
    'archive-mail': moving('archive'),
    'unarchive-mail': moving('unarchive'),

    'reply-mail': ({ params, body = {}, claim, city, caller }) => {
      checkBody(body.body)
      needVisible('body.subject', body.subject)
      return creating(city, claim, (tx) => {
        const { subject, priority, notify, body: text = '' } = body
        assertSees(city.addresses, caller, city.mail.need(tx, params.id))
        const cc = resolveAll(city, body.cc, 'body.cc')
        const from = senderOf(city.addresses, caller, body.from)
        return wireMessage(city.mail.reply(tx, params.id, { from, cc, subject, body: text, priority, notify }))
      })
    },
  })
}

type ListQuery = Parameters<ReturnType<typeof createMailHandlers>['list-mail']>[0]['query']

/** Whoever has only its own mail may list what it sent as well, in whichever mailbox that is. */
function listedMailbox({ addresses }: MailCity, { agent, from }: ListQuery, caller: Caller): Mailbox | undefined {
  const isOwnSent = from !== undefined && mailboxOf(addresses, from) === confinedTo(addresses, caller)?.mailbox
  return agent === undefined && isOwnSent ? undefined : mailboxMeant(addresses, caller, agent)
}

function filterOf(city: MailCity, query: ListQuery, caller: Caller): { filter: MailFilter; isNothing: boolean } {
  const { status, from, thread_id: thread, since, rig, q } = query
  if (rig !== undefined) needRig(city, rig)
  const match = q === undefined ? undefined : searchExpression(q, { db: city.store.db, table: 'mail_terms' })
  return {
    isNothing: q !== undefined && match === undefined,
    filter: {
      mailbox: listedMailbox(city, query, caller),
      ...statusesOf(status, q !== undefined),
      ...(from === undefined ? {} : { senders: knownSenders(city.store.db, sendersOf(city.addresses, from)) }),
      thread,
      since: since === undefined ? undefined : timeMs('query.since', since),
      rig,
      match,
    },
  }
}

function statusesOf(status: ListQuery['status'], isSearch: boolean): Pick<MailFilter, 'statuses'> {
  if (status === undefined) return isSearch ? {} : { statuses: ['unread'] }
  return { statuses: status === 'all' ? ['unread', 'read'] : [status] }
}

/** Keys under which messages of a sender are stored: also of the time before somebody was called so. */
const sendersOf = (addresses: Addresses, word: string): readonly string[] => [
  mailboxOf(addresses, word),
  `${LABEL}${word}`,
]

/** A label; but a session is itself, and nobody else (decision 139). */
function senderOf(addresses: Addresses, caller: Caller, label: string = HUMAN): Sender {
  const address = caller.kind === 'agent' ? addresses.ofSession(caller.session) : addresses.find(label)
  if (address === undefined) return { display: label, rig: '' }
  const { mailbox, display, rig } = address
  const session = caller.kind === 'agent' ? caller.session : address.session_id
  return { mailbox, display, rig, ...(session === undefined ? {} : { session_id: session }) }
}

/** Whom a word of the body means; a refusal says where it stands. */
function resolve({ addresses }: MailCity, word: string, location: string): Address {
  try {
    if (addresses.isClosed(word)) throw closedRecipient(word)
    return addresses.resolve(word)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw problem(error.code, error.message, { errors: [{ location, message: error.message, value: word }] })
  }
}

const resolveAll = (city: MailCity, words: readonly string[] = [], location: string): readonly Address[] =>
  words.map((word, index) => resolve(city, word, `${location}[${index}]`))

/** In the order of their names. */
function receiversOf(
  city: MailCity,
  to: readonly string[] | undefined,
  withHuman: boolean,
  from: Sender,
): readonly Address[] {
  const others = (to === undefined ? city.addresses.live() : resolveAll(city, to, 'body.to')).filter(
    ({ mailbox }) => to !== undefined || mailbox !== from.mailbox,
  )
  const all = distinct(withHuman ? [...others, city.addresses.of(HUMAN)] : others)
  if (all.length === 0) throw problem('no-recipients', 'there is nobody with an open session but the sender')
  if (all.length > MAX_RECIPIENTS)
    throw problem(
      'no-recipients',
      `${all.length} have open sessions, and at most ${MAX_RECIPIENTS} are written to at once`,
    )
  return all.toSorted((a, b) => (a.display < b.display ? -1 : 1))
}

function checkBody(body: string | undefined): void {
  if (body !== undefined && Buffer.byteLength(body) > MAX_BODY_BYTES)
    throw invalidField('body.body', `must be at most ${MAX_BODY_BYTES} bytes in UTF-8`)
}

function checkVolume(recipients: number, body: string): void {
  if (recipients * Buffer.byteLength(body) <= MAX_BROADCAST_BYTES) return
  throw problem(
    'payload-too-large',
    `a body of ${Buffer.byteLength(body)} bytes is too large for ${recipients} recipients`,
  )
}

function needThread(db: Pick<Tx, 'get' | 'all'>, id: string, location: string): string {
  const thread = findThread(db, id)
  if (thread !== undefined) return thread
  const message = `there is no thread and no message ${id}`
  throw problem('mail-not-found', message, { errors: [{ location, message, value: id }] })
}

function needRig({ hasRig }: MailCity, rig: string): void {
  if (!hasRig(rig)) throw problem('rig-not-found', `there is no rig ${rig}`)
}

const totalFields = ({ total, capped }: Total) => ({ total, ...(capped ? { total_capped: true } : {}) })
