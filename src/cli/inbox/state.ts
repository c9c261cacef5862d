/** What the inbox on a screen knows and shows (pure). */
import type { Message } from '../../contract/messaging/mail.ts'
import type { Chosen } from '../live/pressing.ts'

export const BOXES = ['inbox', 'unread', 'archived', 'sent'] as const
export type Box = (typeof BOXES)[number]

/** A new message, as far as it has been typed. */
export interface Draft {
  readonly to: string
  readonly subject?: string
  /** What comes next is written in the editor. */
  readonly inEditor: boolean
}

/** What a line is typed for. */
export type Purpose =
  | { readonly kind: 'reply'; readonly message: Message }
  | { readonly kind: 'delete'; readonly message: Message }
  | { readonly kind: 'to'; readonly inEditor: boolean }
  | { readonly kind: 'subject' | 'body'; readonly draft: Draft }

/** What whoever sits there has chosen to see. */
export interface Choosing extends Chosen<Purpose> {
  readonly box: Box
  /** The message that is being read, from this line of it on. */
  readonly open: { readonly id: string; readonly from: number } | undefined
}

/** The mailbox, as far as it is known. */
export interface Mail {
  readonly city: string
  /** Whose mail it is. */
  readonly owner: string
  /** Of the box that is shown, newest first; undefined while they are on their way. */
  readonly messages: readonly Message[] | undefined
  /** There are more than these. */
  readonly more: boolean
  readonly counts: { readonly total: number; readonly unread: number }
  /** Of the message that is being read, oldest first. */
  readonly thread: readonly Message[]
  /** Why nothing new comes. */
  readonly lost: string | undefined
}

/** Everything that is on the screen. */
export interface View extends Choosing {
  readonly mail: Mail
  readonly now: number
  readonly color: boolean
}

export interface Row {
  readonly key: string
  readonly message: Message
}

/** Messages of the box, as far as the filter lets them through. */
export const rowsOf = ({ mail, filter }: Pick<View, 'mail' | 'filter'>): readonly Row[] =>
  (mail.messages ?? []).filter((message) => passes(message, filter)).map((message) => ({ key: message.id, message }))

function passes({ id, from, to, subject, body }: Message, filter: string): boolean {
  const wanted = filter.toLowerCase()
  return wanted === '' || [id, from, to, subject, body].some((word) => word.toLowerCase().includes(wanted))
}

/** The one that is being read; undefined where none is, or where it is gone. */
export function openMessage({ mail, open }: Pick<View, 'mail' | 'open'>): Message | undefined {
  if (open === undefined) return undefined
  return [...(mail.messages ?? []), ...mail.thread].find(({ id }) => id === open.id)
}

/** Others of its thread, newest first. */
export const othersOf = ({ mail }: Pick<View, 'mail'>, message: Message): readonly Message[] =>
  mail.thread.filter(({ id, thread_id: thread }) => id !== message.id && thread === message.thread_id).toReversed()
