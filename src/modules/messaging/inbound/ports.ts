/** What taking messages needs of its surroundings. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import type { Members } from '../entries/members.ts'
import type { EntryRow, TranscriptRow } from '../entries/rows.ts'
import type { Transcripts } from '../entries/store.ts'
import type { Routing } from '../routing/routing.ts'

/** Where a message goes, as far as others need to know. */
export interface Called {
  readonly match: string
  readonly target?: Mailbox | undefined
  readonly handle?: string | undefined
}

/** Whether a message notifies anybody; else why not. */
export type Told = { readonly told: true } | { readonly told: false; readonly reason: string }

/** Notifies members; called in the write, once for each live message that is new. */
export interface InboundNotices {
  inbound(tx: Tx, transcript: TranscriptRow, entry: EntryRow, route: Called): Told
}

/** What people say in a chat that their mail goes to. */
export interface ChatMail {
  /** Makes it a reply to the mail that it answers; the id of the reply, undefined where there is nothing to answer. */
  reply(tx: Tx, transcript: TranscriptRow, entry: EntryRow): string | undefined
}

export interface InboundDeps {
  readonly store: Pick<Store, 'db' | 'log'>
  readonly clock: Clock
  readonly city: string
  readonly transcripts: Transcripts
  readonly members: Members
  readonly routing: Routing
  readonly notices: InboundNotices
  readonly mail: ChatMail
}
