/** What messaging is in a running city, as its handlers see it. */
import type { transcriptOperations } from '../../../contract/messaging/transcripts.ts'
import type { Handlers } from '../../../kernel/call.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Due } from '../../../kernel/due.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Addresses } from '../../../messaging/address.ts'
import type { Attachments } from '../entries/attachments.ts'
import type { Dependent } from '../entries/dependents.ts'
import type { Members } from '../entries/members.ts'
import type { TranscriptRetention } from '../entries/retention.ts'
import type { Transcripts } from '../entries/store.ts'
import type { TranscriptStreams } from '../entries/stream.ts'
import type { HumanChat } from '../inbound/chat-mail.ts'
import type { Inbound } from '../inbound/inbound.ts'
import type { Notices } from '../notices/notices.ts'
import type { Carriage } from '../outbox/carriage.ts'
import type { Publisher } from '../publish/publish.ts'
import type { Routing } from '../routing/routing.ts'

export interface MessagingCity extends Carriage {
  readonly name: string
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly addresses: () => Addresses
  readonly transcripts: Transcripts
  readonly members: Members
  readonly attachments: Attachments
  readonly streams: TranscriptStreams
  readonly retention: TranscriptRetention
  readonly routing: Routing
  readonly notices: Notices
  readonly publisher: Publisher
  /** What hangs on conversations. */
  readonly dependents: readonly Dependent[]
  readonly inbound: Inbound
  readonly humanChat: HumanChat
  readonly expiry: Due
  readonly clock: Clock
  /** Ends what an adapter follows with a secret that is good no more. */
  readonly accessEnded: (adapter: string) => void
}

export type TranscriptHandlers = Handlers<typeof transcriptOperations, MessagingCity>
