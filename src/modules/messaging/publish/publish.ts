/**
 * What is said in a chat from here (decision 143).
 *
 * P1  Entry, delivery and idempotency key are one write: what was answered is on its way, once, also after a crash.
 * P2  The answer of a key is about the one message that it made, as far as that is by now.
 */

import { type Actor, MAX_CHAT_TEXT } from '../../../contract/messaging/entries.ts'
import type { OutboundResult, PublishRequest } from '../../../contract/messaging/transcripts.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { given } from '../../../kernel/present.ts'
import { invalidField, type Problem, problem } from '../../../kernel/problem.ts'
import type { Store } from '../../../kernel/store.ts'
import type { Addresses, Mailbox } from '../../../messaging/address.ts'
import { type EntryRow, entryView, type TranscriptRow } from '../entries/rows.ts'
import type { Transcripts } from '../entries/store.ts'
import type { Way } from '../outbox/delivery.ts'
import type { Carrier, RefusalToSpeak, Speaker } from './ports.ts'

export interface PublisherDeps {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly transcripts: Transcripts
  readonly addresses: () => Addresses
  readonly carrier: Carrier
  readonly refusalToSpeak: RefusalToSpeak
}

export interface Publication {
  readonly transcript: TranscriptRow
  readonly request: PublishRequest
  /** Undefined: the operator. */
  readonly speaker: Speaker | undefined
  /** What the operator is called. */
  readonly operator: string
  readonly actor: string
  readonly claim: IdempotencyClaim | undefined
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** What somebody says, who may. */
export interface Saying {
  readonly transcript: Pick<TranscriptRow, 'id' | 'conversation'>
  readonly text: string
  readonly actor: Actor
  /** Whose words they are, where they are an agent's. */
  readonly mailbox?: Mailbox
  readonly sessionId?: string
  readonly replyTo?: string
  readonly explicitTarget?: string
  readonly metadata?: Readonly<Record<string, string>>
  /** Ids of uploads. */
  readonly attachments?: readonly string[]
}

/** What is kept with the key: where the message is. */
interface Published {
  readonly sequence: number
  readonly result: OutboundResult
  /** Nobody would take it now. */
  readonly offline: boolean
}

export class Publisher {
  readonly #deps: PublisherDeps

  constructor(deps: PublisherDeps) {
    this.#deps = deps
  }

  async publish(publication: Publication): Promise<OutboundResult> {
    const { store, carrier } = this.#deps
    const { claim, waitMs, signal } = publication
    const text = textOf(publication.request)
    let isNew = false
    const { body } = await store.keys.once(claim, async () => {
      const done = await store.db.write((tx) => this.#write(tx, publication, text), Buffer.byteLength(text))
      // What was refused is told of in a write that stays; the refusal is thrown behind it.
      if ('refused' in done) throw done.refused
      isNew = true
      return { status: 200, body: done }
    })
    const { delivery_id: id, delivery_status: status } = body.result
    const waits = status === 'pending' && !body.offline && waitMs > 0
    if (isNew && !waits) return body.result
    if (waits) await carrier.outcome(id, waitMs, signal)
    return this.#asItIs(publication.transcript.id, body)
  }

  #write(tx: Tx, publication: Publication, text: string): Published | { readonly refused: Problem } {
    const { store, carrier } = this.#deps
    const { transcript, request, speaker, claim } = publication
    const refused = speaker === undefined ? undefined : this.#refusal(tx, transcript, speaker)
    if (refused !== undefined) return { refused }
    const way = carrier.way(tx, transcript.conversation)
    if (way === undefined) throw noAdapter(transcript)
    const entry = this.#say(tx, way, {
      transcript,
      text,
      actor: actorOf(publication),
      attachments: request.attachments ?? [],
      ...given('metadata', request.metadata),
      ...given('replyTo', request.reply_to_message_id),
      ...given('explicitTarget', handleOf(request)),
      ...given('mailbox', speaker?.mailbox),
      ...given('sessionId', speaker?.session_id || undefined),
    })
    const receipt = way.status === 'delivered' ? {} : undefined
    const published = { sequence: entry.sequence, result: resultOf(entry, receipt), offline: !way.online }
    store.keys.remember(tx, claim, { status: 200, body: published })
    return published
  }

  /** Somebody says something, in a write of others; undefined where nobody carries the conversation. */
  say(tx: Tx, saying: Saying): EntryRow | undefined {
    const way = this.#deps.carrier.way(tx, saying.transcript.conversation)
    return way === undefined ? undefined : this.#say(tx, way, saying)
  }

  #say(tx: Tx, way: Way, { transcript: { id, conversation }, attachments = [], ...said }: Saying): EntryRow {
    const { transcripts } = this.#deps
    const deliveryId = `dl-${randomHex(12)}`
    const root = transcripts.rootOf(tx, id)
    const entry = transcripts.append(tx, id, {
      kind: 'outbound',
      ...said,
      attachments: attachments.map((attachment) => ({ id: attachment })),
      deliveryId,
      deliveryStatus: way.status,
      root,
    })
    const { sequence } = entry
    way.enqueue(tx, {
      id: deliveryId,
      transcript_id: id,
      sequence,
      conversation,
      session_id: said.sessionId,
      root,
      entry,
    })
    return entry
  }

  #refusal(tx: Tx, { id, conversation }: TranscriptRow, speaker: Speaker): Problem | undefined {
    const { refusalToSpeak, store, addresses } = this.#deps
    const refusal = refusalToSpeak(tx, conversation, speaker)
    if (refusal?.owner !== undefined) {
      const posting = speaker.session_id || speaker.display
      const owner = addresses().of(refusal.owner)
      store.log.append(tx, {
        type: 'extmsg.outbound_channel_mismatch',
        actor: speaker.display,
        subject: posting,
        payload: {
          transcript_id: id,
          provider: conversation.provider,
          conversation_id: conversation.conversation_id,
          posting_session: posting,
          owner_session: owner.session_id ?? owner.display,
        },
      })
    }
    return refusal?.problem
  }

  #asItIs(transcriptId: string, { sequence, result }: Published): OutboundResult {
    const entry = this.#deps.transcripts.entry(transcriptId, sequence)
    // It was deleted meanwhile: what was answered first is all there is.
    if (entry?.deliveryId !== result.delivery_id) return result
    return resultOf(entry, this.#deps.carrier.receipt(result.delivery_id))
  }
}

function resultOf(entry: EntryRow, receipt: OutboundResult['receipt']): OutboundResult {
  return {
    delivery_id: entry.deliveryId ?? '',
    delivery_status: entry.deliveryStatus ?? 'pending',
    ...(receipt === undefined ? {} : { receipt }),
    transcript_entry: entryView(entry),
  }
}

/** 422 where there is nothing to say, or too much: who carries it splits it, not we. */
function textOf({ text = '', attachments = [] }: PublishRequest): string {
  if (text.trim() === '' && attachments.length === 0)
    throw invalidField('body.text', 'is empty, and nothing is attached')
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_CHAT_TEXT) throw invalidField('body.text', `has ${bytes} bytes, more than ${MAX_CHAT_TEXT}`)
  return text
}

function handleOf({ explicit_target: target }: PublishRequest): string | undefined {
  return target?.trim().toLowerCase() || undefined
}

function actorOf({ speaker, operator }: Publication): Actor {
  if (speaker === undefined) return { id: operator, display_name: operator, is_bot: false }
  return { id: speaker.session_id || speaker.mailbox, display_name: speaker.display, is_bot: true }
}

const noAdapter = ({ conversation: { provider, account_id } }: TranscriptRow): Problem =>
  problem('no-adapter', `no adapter is registered for ${provider}/${account_id}`)
