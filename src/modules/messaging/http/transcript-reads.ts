/** Handlers that make, read, follow and delete transcripts. */

import type { Transcript } from '../../../contract/messaging/transcripts.ts'
import { ok } from '../../../kernel/call.ts'
import { isoTime, nextTurn } from '../../../kernel/clock.ts'
import { parseSeq } from '../../../kernel/cursor.ts'
import type { Tx } from '../../../kernel/database.ts'
import { given } from '../../../kernel/present.ts'
import { problem } from '../../../kernel/problem.ts'
import { normalConversation, transcriptId } from '../../../messaging/conversation.ts'
import { listEntries, listTranscripts } from '../entries/lists.ts'
import type { TranscriptRow } from '../entries/rows.ts'
import type { MessagingCity, TranscriptHandlers } from './city.ts'
import { refuseStrangers, selfOf } from './reading.ts'
import { changed } from './waiting.ts'

/** Deliveries that one write handles while their transcript is deleted. */
const FORGOTTEN_AT_ONCE = 200

const indexOf = ({ store }: MessagingCity) => ({ 'X-SVC-Index': String(store.log.head) })

export const readingHandlers: Pick<
  TranscriptHandlers,
  | 'list-transcripts'
  | 'ensure-transcript'
  | 'get-transcript'
  | 'delete-transcript'
  | 'list-transcript-entries'
  | 'stream-transcript'
> = {
  'list-transcripts': async (call) => {
    const { query, caller } = call
    const city = await changed(call)
    const headers = indexOf(city)
    const { session_id: word, ...wanted } = query
    const self = selfOf(city, caller)
    const asked = word === undefined ? undefined : city.addresses().find(word)
    // Who means nobody, or somebody else than itself, gets nothing.
    const nobody = word !== undefined && (asked === undefined || (self !== undefined && asked.mailbox !== self.mailbox))
    const reader = nobody ? [] : [asked ?? self].flatMap((one) => (one === undefined ? [] : [one.mailbox]))
    const isFiltered = word !== undefined || self !== undefined
    const filtered = { ...wanted, ...(isFiltered ? { readers: reader } : {}) }
    return ok(
      listTranscripts(city.store.db, filtered, (one) => transcriptView(city, one)),
      headers,
    )
  },

  'ensure-transcript': ({ city, body, claim }) => {
    const { store, transcripts, name } = city
    const conversation = normalConversation(body.conversation, name)
    return store.keys.once(claim, () =>
      store.db.write((tx) => {
        const status = transcripts.find(transcriptId(conversation), tx) === undefined ? 201 : 200
        const row = transcripts.ensure(tx, conversation)
        return store.keys.remember(tx, claim, { status, body: transcriptView(city, row) })
      }),
    )
  },

  'get-transcript': ({ city, params, caller }) => {
    const headers = indexOf(city)
    const row = city.transcripts.need(params.transcriptId)
    refuseStrangers(city, caller, row.id)
    return ok(transcriptView(city, row), headers)
  },

  'delete-transcript': async ({ city, params, query, actor }) => {
    const { store, transcripts, dependents, retention } = city
    const deletable = (tx: Tx): TranscriptRow => {
      const row = transcripts.need(params.transcriptId, tx)
      const holders = dependents.flatMap((one) => one.holds(tx, row.id) ?? [])
      if (holders.length > 0 && query.cascade !== true)
        throw problem('still-referenced', `${row.id} is needed by ${holders.join(', ')}; with cascade it all goes`)
      return row
    }
    // Thousands of deliveries may hang on it: each write ends some, and the last one deletes the transcript.
    const forget = (tx: Tx) => city.outbox.forget(tx, deletable(tx).id, FORGOTTEN_AT_ONCE)
    while ((await store.db.write(forget)) === FORGOTTEN_AT_ONCE) await nextTurn()
    const gone = await store.db.write((tx) => {
      const row = deletable(tx)
      for (const one of dependents) one.release(tx, row.id, actor)
      const entries = transcripts.delete(tx, row)
      const { provider, account_id, conversation_id } = row.conversation
      const payload = { transcript_id: row.id, provider, account_id, conversation_id, entries }
      store.log.append(tx, { type: 'extmsg.transcript_deleted', actor, subject: row.id, payload })
      return { status: 'deleted' as const, transcript_id: row.id, entries }
    })
    retention.soon()
    return ok(gone)
  },

  'list-transcript-entries': async (call) => {
    const { params, query, caller } = call
    const { id } = call.city.transcripts.need(params.transcriptId)
    refuseStrangers(call.city, caller, id)
    const city = await changed(call, `"${id}"`)
    refuseStrangers(city, caller, id)
    const headers = indexOf(city)
    const row = city.transcripts.need(id)
    const { after_sequence: after, before_sequence: before, ...wanted } = query
    return ok(listEntries(city.store.db, row, { ...wanted, after, before }), headers)
  },

  'stream-transcript': ({ city, params, query, header, caller }) => {
    const row = city.transcripts.need(params.transcriptId)
    refuseStrangers(city, caller, row.id)
    const cursor = header('last-event-id') || query.after_sequence
    return city.streams.follow(row, cursor === undefined ? undefined : parseSeq(cursor), selfOf(city, caller)?.mailbox)
  },
}

function transcriptView(city: MessagingCity, row: TranscriptRow): Transcript {
  const { id, conversation, next, earliest, lastEntryAt, createdAt } = row
  const { bindings, groups } = city.routing
  return {
    transcript_id: id,
    conversation,
    next_sequence: next,
    earliest_available_sequence: earliest,
    ...given('binding_id', bindings.active(city.store.db, id)?.id),
    ...given('group_id', groups.of(city.store.db, id)?.id),
    ...(lastEntryAt === undefined ? {} : { last_entry_at: isoTime(lastEntryAt) }),
    created_at: isoTime(createdAt),
  }
}
