/**
 * Messages from chats (sheet 06 §2.3; decisions 151, 152).
 *
 * N1  Dedupe, entry, route, cursor, binding, event and notices of a request are one write: all of it, or nothing.
 * N2  What was here before is answered as it was then, and leads to nothing.
 * N3  What is accepted is kept, also where it goes to nobody.
 * N4  Sequences of a conversation are in the order in which its messages came.
 * N5  History is kept and leads to nothing.
 */

import type { InboundBody, InboundReply, InboundResult } from '../../../contract/messaging/inbound.ts'
import type { Tx } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import { type EntryRow, entryView, type TranscriptRow } from '../entries/rows.ts'
import type { Route } from '../routing/route.ts'
import { placeOf, wireBinding } from '../routing/wire.ts'
import { type Message, messagesOf, type Source } from './message.ts'
import type { InboundDeps } from './ports.ts'

/** What of a result is kept with its entry; the rest is the entry itself. */
type Kept = Omit<InboundResult, 'transcript_entry' | 'duplicate'>

export class Inbound {
  readonly #deps: InboundDeps

  constructor(deps: InboundDeps) {
    this.#deps = deps
  }

  /** Takes what the request brings; `remember` is called in the write with what is answered. */
  receive(
    body: InboundBody,
    source: Source,
    remember: (tx: Tx, reply: InboundReply) => void = () => {},
  ): Promise<InboundReply> {
    const { city, clock, store } = this.#deps
    const messages = messagesOf(body, { source, city, now: clock.now() })
    const adapter = `${source.provider}/${source.account_id}`
    const change = (tx: Tx): InboundReply => {
      const results = messages.map((message) => this.#take(tx, message, adapter))
      const [only] = results
      const reply = 'message' in body && only !== undefined ? only : { results }
      remember(tx, reply)
      return reply
    }
    return store.db.write(change, bytesOf(messages))
  }

  #take(tx: Tx, message: Message, adapter: string): InboundResult {
    const { transcripts } = this.#deps
    const { conversation, transcript: id, draft } = message
    // N2
    const known = transcripts.byDedupe(tx, id, draft.dedupe ?? '')
    if (known !== undefined) return resultOf(keptOf(known.result, id), known.entry, true)
    const transcript = transcripts.ensure(tx, conversation)
    const kept = draft.provenance === 'hydrated' ? undefined : this.#route(tx, message, transcript, adapter)
    const entry = transcripts.append(tx, id, draft)
    const result =
      kept === undefined
        ? { transcript_id: id, match: 'hydrated' as const }
        : this.#announce(tx, kept, transcript, entry, adapter)
    transcripts.keepResult(tx, id, entry.sequence, result)
    return resultOf(result, entry, false)
  }

  /** Whoever it goes to reads the conversation before it is in it. */
  #route(tx: Tx, { conversation, draft, target }: Message, { id }: TranscriptRow, adapter: string): Route {
    const { routing } = this.#deps
    const route = routing.router.route(tx, conversation, { explicit_target: draft.explicitTarget, target }, adapter)
    if (route.place !== id) this.#admitToThread(tx, id, route, adapter)
    return route
  }

  /** Who reads a conversation reads its threads, from their first message on. */
  #admitToThread(tx: Tx, thread: string, { binding, group }: Route, adapter: string): void {
    const { members, routing } = this.#deps
    const owner = binding === undefined ? 'group' : 'binding'
    const readers: readonly { readonly mailbox: Mailbox }[] =
      binding === undefined ? (group === undefined ? [] : routing.groups.participants(tx, group.id)) : [binding]
    for (const { mailbox } of readers) {
      if (mailbox === HUMAN || members.find(thread, mailbox, tx)?.owners.includes(owner) === true) continue
      members.join(tx, thread, mailbox, { owner, actor: adapter })
    }
  }

  #announce(tx: Tx, route: Route, transcript: TranscriptRow, entry: EntryRow, adapter: string): Kept {
    const { store, notices, mail, clock } = this.#deps
    const target = this.#targetOf(route)
    store.log.append(tx, {
      type: 'extmsg.inbound',
      actor: adapter,
      subject: target.target_session_id ?? target.target_agent_name ?? target.target_mailbox ?? transcript.id,
      payload: {
        ...placeOf(transcript.id, transcript.conversation),
        sequence: entry.sequence,
        provider_message_id: entry.providerMessageId ?? '',
        actor: entry.actor.display_name,
        match: route.match,
        ...given('target_session', target.target_session_id),
        ...given('target_agent', target.target_agent_name),
        ...given('target_mailbox', target.target_mailbox),
      },
    })
    const notified = notices.inbound(tx, transcript, entry, route)
    const mailed = route.target === HUMAN ? mail.reply(tx, transcript, entry) : undefined
    const { binding, group, handle, match } = route
    return {
      transcript_id: transcript.id,
      match,
      ...(binding === undefined ? {} : { binding: wireBinding(binding, clock.now()) }),
      ...(group === undefined
        ? {}
        : {
            group_route: {
              group_id: group.id,
              ...given('handle', handle),
              match,
              update_cursor: route.updateCursor === true,
            },
          }),
      ...target,
      ...given('mail_id', mailed),
      ...(mailed === undefined ? notified : { told: true }),
    }
  }

  /** Of an agent also the session that it has now. */
  #targetOf({
    target,
    session_id: session,
  }: Route): Pick<Kept, 'target_session_id' | 'target_agent_name' | 'target_mailbox'> {
    if (target === undefined) return {}
    if (target === HUMAN) return { target_mailbox: HUMAN }
    const agent = target.startsWith('agent:') ? target.slice('agent:'.length) : undefined
    const now = session ?? this.#deps.routing.deps.addresses().of(target).session_id
    return { ...given('target_session_id', now), ...given('target_agent_name', agent) }
  }
}

const bytesOf = (messages: readonly Message[]): number =>
  messages.reduce((bytes, { draft }) => bytes + draft.text.length, 0)

// What this service wrote itself is trusted to be what it wrote; an entry without it is no live message of an adapter.
const keptOf = (result: unknown, id: string): Kept =>
  isKept(result) ? result : { transcript_id: id, match: 'hydrated' }
const isKept = (result: unknown): result is Kept => typeof result === 'object' && result !== null && 'match' in result

const resultOf = (kept: Kept, entry: EntryRow, duplicate: boolean): InboundResult => ({
  ...kept,
  transcript_entry: entryView(entry),
  duplicate,
})
