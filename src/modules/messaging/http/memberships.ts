/** Handlers of who reads a transcript, and up to where. */

import { DEFAULT_LIMIT } from '../../../contract/base/paging.ts'
import type { Membership } from '../../../contract/messaging/memberships.ts'
import { ok } from '../../../kernel/call.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { checkPrecondition, definitionHash } from '../../../kernel/etag.ts'
import { given } from '../../../kernel/present.ts'
import { invalidField, type Problem, problem } from '../../../kernel/problem.ts'
import type { Address } from '../../../messaging/address.ts'
import { listEntries } from '../entries/lists.ts'
import type { MembershipRow } from '../entries/members.ts'
import type { MessagingCity, TranscriptHandlers } from './city.ts'
import { readerMeant, refuseStrangers } from './reading.ts'
import { changed } from './waiting.ts'

export const membershipHandlers: Pick<
  TranscriptHandlers,
  | 'ack-transcript'
  | 'get-transcript-backfill'
  | 'list-transcript-memberships'
  | 'put-transcript-membership'
  | 'delete-transcript-membership'
> = {
  'ack-transcript': async ({ city, params, body, caller }) => {
    const { store, transcripts, members } = city
    const who = readerMeant(city, caller, { word: body.session_id, at: 'body.session_id' })
    const last = await store.db.write((tx) => {
      const { id, next } = transcripts.need(params.transcriptId, tx)
      if (members.find(id, who.mailbox, tx) === undefined) throw noMember(who, id)
      if (body.sequence >= next)
        throw invalidField('body.sequence', `is beyond the last entry, ${next - 1}`, body.sequence)
      return members.ack(tx, id, who.mailbox, body.sequence)
    })
    return ok({ status: 'acked' as const, last_read_sequence: last ?? body.sequence })
  },

  'get-transcript-backfill': ({ city, params, query, caller }) => {
    const { store, transcripts, members } = city
    const row = transcripts.need(params.transcriptId)
    const who = readerMeant(city, caller, { word: query.session_id, at: 'query.session_id' })
    const member = members.find(row.id, who.mailbox)
    if (member === undefined) throw noMember(who, row.id)
    const unread = member.lastRead === 0 && member.policy === 'since_join' ? member.joinedSequence : member.lastRead
    const { items, total } = listEntries(store.db, row, { after: unread, limit: query.limit || DEFAULT_LIMIT })
    return ok({
      items,
      total,
      head_sequence: row.next - 1,
      last_read_sequence: member.lastRead,
    })
  },

  'list-transcript-memberships': async (call) => {
    const { params, caller } = call
    const { id } = call.city.transcripts.need(params.transcriptId)
    refuseStrangers(call.city, caller, id)
    const city = await changed(call, `"${id}"`)
    const headers = { 'X-SVC-Index': String(city.store.log.head) }
    refuseStrangers(city, caller, city.transcripts.need(id).id)
    const items = city.members.of(id).map((row) => membershipView(city, row))
    return ok({ items, total: items.length }, headers)
  },

  'put-transcript-membership': async ({ city, params, body, header, actor }) => {
    const { store, transcripts, members, addresses } = city
    const { mailbox } = addresses().resolve(params.sessionId)
    const row = await store.db.write((tx) => {
      const { id } = transcripts.need(params.transcriptId, tx)
      const before = members.find(id, mailbox, tx)
      checkPrecondition(header('if-match'), before === undefined ? 'none' : membershipRevision(before))
      const asked = { ...given('policy', body?.backfill_policy), ...given('metadata', body?.metadata) }
      return members.join(tx, id, mailbox, { owner: 'manual', ...asked, actor })
    })
    return ok(membershipView(city, row), { ETag: `"${membershipRevision(row)}"` })
  },

  'delete-transcript-membership': async ({ city, params, caller, actor }) => {
    const { store, transcripts, members } = city
    const who = readerMeant(city, caller, { word: params.sessionId, at: 'path.sessionId' })
    await store.db.write((tx) => {
      const { id } = transcripts.need(params.transcriptId, tx)
      const owners = members.find(id, who.mailbox, tx)?.owners ?? []
      if (owners.length === 0) throw noMember(who, id)
      const others = owners.filter((owner) => owner !== 'manual')
      if (others.length > 0)
        throw problem('conflict-wrong-state', `${who.display} reads it by a ${others.join(' and a ')}: end that`)
      members.leave(tx, id, who.mailbox, 'manual', actor)
    })
    return ok({ status: 'removed' as const, mailbox: who.mailbox })
  },
}

/** Hash of what somebody declared of a membership; how far it has read is no other version. */
const membershipRevision = ({ owners, policy, manual, metadata }: MembershipRow): string =>
  definitionHash({ owners, policy, manual, metadata })

const noMember = ({ display }: Address, id: string): Problem =>
  problem('membership-not-found', `${display} does not read ${id}`)

function membershipView({ addresses }: MessagingCity, row: MembershipRow): Membership {
  const { display, session_id } = addresses().of(row.mailbox)
  return {
    transcript_id: row.transcriptId,
    mailbox: row.mailbox,
    name: display,
    ...given('session_id', session_id),
    owners: [...row.owners],
    backfill_policy: row.policy,
    ...given('manual_backfill', row.manual),
    joined_sequence: row.joinedSequence,
    last_read_sequence: row.lastRead,
    metadata: { ...row.metadata },
    joined_at: isoTime(row.joinedAt),
  }
}
