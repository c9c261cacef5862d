/**
 * Digests: how sessions are told of mail and chat (decision 136). At most one waits per session, source and reference; its
 * text is made from what is unread when it is about to be typed.
 */
import type { Tx } from '../kernel/database.ts'
import type { Address, Mailbox } from './address.ts'

export const DIGEST_SOURCES = ['mail', 'chat'] as const
export type DigestSourceName = (typeof DIGEST_SOURCES)[number]

/** A wish that somebody be told. */
export interface DigestWish {
  readonly source: DigestSourceName
  /** Mailbox of mail, transcript of chat. */
  readonly reference: string
  /** A session that sleeps is woken, and one that a configured agent lacks is made; never suspended ones. */
  readonly wakes: boolean
}

/** What sessions offer; a wish for people, or for whom nothing of ours is typed to (prompt mode `omit`), is nothing. */
export interface Digests {
  /** Idempotent within what waits already. Never throws for what the mailbox is. */
  wish(tx: Tx, to: Pick<Address, 'mailbox'>, wish: DigestWish): void
}

/** Who is about to be told. */
export interface DigestReader {
  readonly mailbox: Mailbox
  readonly sessionId: string
  /** Of the agent: a new one knows nothing of what an earlier one was told. */
  readonly conversation: string
  readonly delivery: string
}

/** What mail and chat give: the text, and what is to be remembered of it. */
export interface DigestSource {
  /** References with something unread: a new conversation of its agent is told of it, whatever an earlier one was told. */
  unread(tx: Tx, mailbox: Mailbox): readonly string[]
  /** In the write that begins to type it, before each try; undefined: nothing is left, it is cancelled as `superseded`. */
  begin(tx: Tx, reader: DigestReader, reference: string): string | undefined
  /** Once for each `begin` with a text, in the write that ends the try. `delivered`: what it told is announced; else it is told again. */
  ended(tx: Tx, delivery: string, delivered: boolean): void
}
