/** A message as it is stored, and how it is shown. */
import {
  EVENT_BODY_BYTES,
  MAIL_STATUSES,
  type MailEventPayload,
  type MailStatus,
  type Message,
} from '../../contract/messaging/mail.ts'
import { isoTime } from '../../kernel/clock.ts'
import type { Row } from '../../kernel/database.ts'
import { type Mailbox, parseMailbox } from '../../messaging/address.ts'

export interface MailRecord {
  readonly seq: number
  readonly id: string
  /** `seq` of the first message with the same text. */
  readonly text: number
  readonly mailbox: Mailbox
  /** Mailbox of the sender, or `label:<text>`. */
  readonly sender: string
  readonly from: string
  readonly to: string
  readonly subject: string
  readonly body: string
  readonly status: MailStatus
  readonly read: boolean
  readonly thread_id: string
  readonly reply_to: string | undefined
  readonly copy_of: string | undefined
  readonly cc: readonly string[]
  readonly priority: number
  /** Nobody is to be told of it by itself. */
  readonly silent: boolean
  readonly rig: string
  readonly from_session_id: string | undefined
  readonly to_session_id: string | undefined
  readonly created_at: number
  readonly read_at: number | undefined
  readonly archived_at: number | undefined
}

export function parseMail(row: Row): MailRecord {
  const status = MAIL_STATUSES.find((one) => one === row.status)
  if (status === undefined) throw new Error(`the store holds a message in an unknown state: ${String(row.status)}`)
  const cc: readonly string[] = JSON.parse(String(row.cc_json))
  return {
    seq: Number(row.seq),
    id: String(row.id),
    text: Number(row.text),
    mailbox: parseMailbox(String(row.mailbox)),
    sender: String(row.sender),
    from: String(row.from),
    to: String(row.to),
    subject: String(row.subject),
    body: String(row.body),
    status,
    read: row.read === 1,
    thread_id: String(row.thread_id),
    reply_to: someText(row.reply_to),
    copy_of: someText(row.copy_of),
    cc,
    priority: Number(row.priority),
    silent: row.silent === 1,
    rig: String(row.rig),
    from_session_id: someText(row.from_session_id),
    to_session_id: someText(row.to_session_id),
    created_at: Number(row.created_at),
    read_at: someNumber(row.read_at),
    archived_at: someNumber(row.archived_at),
  }
}

const someText = (value: unknown) => (value === null || value === undefined ? undefined : String(value))
const someNumber = (value: unknown) => (value === null || value === undefined ? undefined : Number(value))

export function wireMessage(record: MailRecord): Message {
  const { id, from, to, mailbox, subject, body, created_at, status, read, read_at, archived_at } = record
  const { thread_id, reply_to, copy_of, cc, priority, rig, from_session_id, to_session_id } = record
  return {
    id,
    from,
    to,
    mailbox,
    subject,
    body,
    created_at: isoTime(created_at),
    status,
    read,
    ...(read_at === undefined ? {} : { read_at: isoTime(read_at) }),
    ...(archived_at === undefined ? {} : { archived_at: isoTime(archived_at) }),
    thread_id,
    ...(reply_to === undefined ? {} : { reply_to }),
    ...(copy_of === undefined ? {} : { copy_of }),
    cc: [...cc],
    priority,
    ...(rig === '' ? {} : { rig }),
    ...(from_session_id === undefined ? {} : { from_session_id }),
    ...(to_session_id === undefined ? {} : { to_session_id }),
  }
}

/** What events say of it: enough to tell whose business it is, with the beginning of what it says. */
export function mailPayload(record: MailRecord, withMessage: boolean): MailEventPayload {
  const { id, to, mailbox, thread_id, rig } = record
  const base = { message_id: id, to, mailbox, thread_id, rig }
  if (!withMessage) return base
  const body = beginningOf(record.body, EVENT_BODY_BYTES)
  const cut = body.length < record.body.length ? { body, body_truncated: true } : {}
  return { ...base, message: { ...wireMessage(record), ...cut } }
}

/** As much of a text as fits into so many bytes, without half a character at its end. */
export function beginningOf(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes))
  return text.slice(0, read)
}
