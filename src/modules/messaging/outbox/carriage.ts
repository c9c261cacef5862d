/** All that carries messages from here to chats, put together: adapters, their deliveries, and how they get them. */
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import type { Logger } from '../../../kernel/log.ts'
import { Authenticator } from '../adapters/credentials.ts'
import { InboundRate } from '../adapters/rate.ts'
import { Adapters } from '../adapters/registry.ts'
import type { EntryRow, TranscriptRow } from '../entries/rows.ts'
import type { Transcripts } from '../entries/store.ts'
import { Callbacks } from './callbacks.ts'
import { Claims } from './claims.ts'
import type { Delivery } from './delivery.ts'
import { Outbox, type Settled } from './outbox.ts'

export interface CarriageDeps {
  readonly store: { readonly db: Database; readonly log: EventLog }
  readonly clock: Clock
  readonly log: Logger
  /** From 0 to 1. */
  readonly random: () => number
  readonly transcripts: Transcripts
  /** What was said is in the chat. */
  readonly delivered: (tx: Tx, transcript: Pick<TranscriptRow, 'id' | 'conversation'>, entry: EntryRow) => void
}

export interface Carriage {
  readonly adapters: Adapters
  readonly authenticator: Authenticator
  readonly rate: InboundRate
  readonly outbox: Outbox
  readonly callbacks: Callbacks
  readonly claims: Claims
}

/** Takes up what a crash left, and calls nobody yet. */
export async function openCarriage(deps: CarriageDeps): Promise<Carriage> {
  const { store, clock, log, random, transcripts } = deps
  const { db, log: events } = store
  const adapters = new Adapters({ db, events, clock, log })
  const settled = (tx: Tx, delivery: Settled) => noteEnd(tx, delivery, deps)
  const outbox = new Outbox({ db, events, clock, log, random, adapters, settled })
  const said = ({ transcript_id, sequence }: Delivery, reader?: Tx) => {
    const transcript = transcripts.find(transcript_id, reader)
    const entry = transcripts.entry(transcript_id, sequence, reader)
    return transcript === undefined || entry === undefined
      ? undefined
      : { conversation: transcript.conversation, entry }
  }
  const shared = { db, clock, log, adapters, outbox, said }
  await outbox.start()
  return {
    adapters,
    authenticator: new Authenticator(adapters, clock),
    rate: new InboundRate(clock),
    outbox,
    callbacks: new Callbacks(shared),
    claims: new Claims(shared),
  }
}

/** Calls adapters from now on, and says which of them are not there. */
export async function startCarriage({ adapters, callbacks }: Carriage): Promise<void> {
  await adapters.start()
  for (const adapter of adapters.all()) callbacks.follow(adapter)
}

export async function closeCarriage({ adapters, callbacks, outbox }: Carriage): Promise<void> {
  await callbacks.close()
  await outbox.close()
  await adapters.close()
}

function noteEnd(tx: Tx, settled: Settled, { transcripts, delivered }: CarriageDeps): void {
  const { transcript_id, sequence, status, receipt, said } = settled
  if (said !== undefined) {
    delivered(tx, { id: transcript_id, conversation: said.conversation }, said.entry)
    return
  }
  const { message_id } = receipt ?? {}
  const entry = transcripts.settle(tx, transcript_id, sequence, {
    status,
    ...(message_id === undefined ? {} : { providerMessageId: message_id }),
  })
  const transcript = transcripts.find(transcript_id, tx)
  if (entry !== undefined && transcript !== undefined && status === 'delivered') delivered(tx, transcript, entry)
}
