/**
 * Who is told of what is said in a chat (sheet 06 §2.8; decisions 153, 154): members have reminders, put together from what
 * they were not told when they are typed.
 *
 * C1  A message for somebody starts or wakes whom it is for; other members are told when they are idle.
 * C2  A bot notifies only the members that it calls: two bots could answer each other for ever. Where the adapter has no way
 *     out, nothing can be answered, and a bot notifies like a person: CI and dependency bots report there.
 * C3  Nobody is told of its own words, of what it has read, or twice of the same within one conversation of its agent; a new
 *     one is told again of what was never answered.
 * C4  What sessions say is told to each other within the bounds of their group, counted in the write that makes it public.
 */

import type { FanoutPolicy } from '../../../contract/messaging/participants.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { EventLog } from '../../../kernel/event-log.ts'
import { given } from '../../../kernel/present.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import type { DigestReader, DigestSource, Digests } from '../../../messaging/digest.ts'
import type { Members, MembershipRow } from '../entries/members.ts'
import { type EntryRow, entryOf, type TranscriptRow } from '../entries/rows.ts'
import type { Transcripts } from '../entries/store.ts'
import { fanOut } from './fanout.ts'
import { chatDigestText, MAX_ENTRIES, type ToldEntry } from './text.ts'

/** Conversations that a new conversation of an agent is told of. */
const MAX_REFERENCES = 100
/** How long those are counted who answer each other without a word from outside. */
const CHAIN_MS = 600_000
/** Counts of roots whose deliveries may still come to an end. */
const COUNTED_MS = 48 * 3_600_000
const FORGOTTEN_AT_ONCE = 100

const NO_READER = 'no agent reads the conversation: `svcctl participant bind` binds one to it'
const MUTED =
  'a bot said it, and called nobody here; an adapter that can only receive lets bots through with the capability no_way_out'

/** Whether a message notifies anybody; else why not. */
type Told = { readonly told: true } | { readonly told: false; readonly reason: string }

/** Where a message goes, as far as notices need it. */
export interface Called {
  readonly match: string
  readonly target?: Mailbox | undefined
  readonly handle?: string | undefined
}

/** Who is called what in a conversation. */
export interface Callings {
  bounds(tx: Tx, conversation: Conversation): FanoutPolicy
  /** Of a member, where the conversation has a group. */
  handles(tx: Tx, conversation: Conversation, mailbox: Mailbox): readonly string[]
  /** Whom the handle means there. */
  whose(tx: Tx, conversation: Conversation, handle: string): Mailbox | undefined
}

export interface NoticesDeps {
  readonly city: string
  readonly clock: Clock
  readonly log: Pick<EventLog, 'append'>
  readonly transcripts: Transcripts
  readonly members: Members
  readonly callings: Callings
  readonly digests: Digests
  /** Whether bots of a conversation notify like people. */
  readonly hearsBots: (conversation: Pick<Conversation, 'provider' | 'account_id'>) => boolean
  /** As it is called now. */
  readonly nameOf: (mailbox: Mailbox) => string
  /** The file of an attachment that was uploaded. */
  readonly fileOf: (tx: Tx, attachmentId: string) => string | undefined
}

interface Notice {
  readonly since: number
  readonly conversation: string | undefined
  readonly announced: number
  readonly published: number
}

const PUBLIC = `provenance = 'live' AND (kind = 'inbound' OR delivery_status = 'delivered')
  AND (source_mailbox IS NULL OR source_mailbox <> ?)`

export class Notices implements DigestSource {
  readonly #deps: NoticesDeps

  constructor(deps: NoticesDeps) {
    this.#deps = deps
  }

  // --- What is said --------------------------------------------------------------------------------------------------

  /** In the write that takes a live message from outside, once for each. */
  inbound(tx: Tx, { id, conversation }: TranscriptRow, entry: EntryRow, route: Called): Told {
    const { handle, target } = route
    const isMuted = this.#isMuted(conversation, entry)
    if (handle !== undefined && !isMuted)
      tx.run(
        'INSERT OR REPLACE INTO chat_called (transcript_id, sequence, handle) VALUES (?, ?, ?)',
        id,
        entry.sequence,
        handle,
      )
    const readers = this.#deps.members.of(id, tx).filter(({ mailbox }) => mailbox !== HUMAN)
    let told = false
    for (const { mailbox } of readers) {
      if (isMuted && !this.#isCalled(tx, conversation, entry, mailbox)) continue
      told = true
      this.#notify(tx, id, mailbox, entry.sequence, mailbox === target)
    }
    if (told) return { told }
    return { told, reason: readers.length === 0 ? NO_READER : MUTED }
  }

  /**
   * In the write that makes public what was said from here: its adapter has taken it. Who calls somebody is told to that one
   * alone; what people or bots outside are called is nobody's handle.
   */
  published(tx: Tx, { id, conversation }: Pick<TranscriptRow, 'id' | 'conversation'>, entry: EntryRow): void {
    const { mailbox: speaker, sequence } = entry
    const members = this.#deps.members.of(id, tx).map(({ mailbox }) => mailbox)
    const others = members.filter((one) => one !== speaker && one !== HUMAN)
    const target = others.find((one) => this.#isCalled(tx, conversation, entry, one))
    const peers = target === undefined ? others : [target]
    const told =
      speaker === undefined ? peers.length : this.#fanOut(tx, conversation, entry, peers.length, target !== undefined)
    for (const mailbox of peers.slice(0, told)) this.#notify(tx, id, mailbox, sequence, mailbox === target)
    if (speaker !== undefined && members.includes(speaker)) this.#spoke(tx, id, speaker, sequence)
  }

  #spoke(tx: Tx, id: string, speaker: Mailbox, sequence: number): void {
    tx.run(
      `INSERT INTO chat_notices (transcript_id, mailbox, since, published) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET published = max(published, excluded.published)`,
      id,
      speaker,
      sequence - 1,
      sequence,
    )
  }

  #notify(tx: Tx, id: string, mailbox: Mailbox, sequence: number, wakes: boolean): void {
    if (mailbox === HUMAN) return
    tx.run(
      `INSERT INTO chat_notices (transcript_id, mailbox, since) VALUES (?, ?, ?)
       ON CONFLICT DO NOTHING`,
      id,
      mailbox,
      sequence - 1,
    )
    tx.run(
      `INSERT OR IGNORE INTO chat_late (transcript_id, mailbox, sequence)
       SELECT n.transcript_id, n.mailbox, ? FROM chat_notices n LEFT JOIN chat_told t USING (transcript_id, mailbox)
       WHERE n.transcript_id = ? AND n.mailbox = ? AND max(n.announced, n.since, coalesce(t.upto, 0)) >= ?`,
      sequence,
      id,
      mailbox,
      sequence,
    )
    this.#deps.digests.wish(tx, { mailbox }, { source: 'chat', reference: id, wakes })
  }

  /** C4; how many of the peers are told. */
  #fanOut(tx: Tx, conversation: Conversation, entry: EntryRow, peers: number, isTargeted: boolean): number {
    const { transcriptId: id, root, sequence, sessionId, mailbox } = entry
    const { publishes, deliveries } = this.#counts(tx, id, root)
    const isFirst =
      tx.run(
        'INSERT OR IGNORE INTO chat_speakers (transcript_id, root, mailbox) VALUES (?, ?, ?)',
        id,
        root,
        mailbox ?? '',
      ) > 0
    const bounds = this.#deps.callings.bounds(tx, conversation)
    const { told, limit } = fanOut(bounds, { peers, isTargeted, isPeerTriggered: !isFirst, publishes, deliveries })
    tx.run(
      'UPDATE chat_fanout SET publishes = publishes + ?, deliveries = deliveries + ?, at = ? WHERE transcript_id = ? AND root = ?',
      isFirst ? 0 : 1,
      told,
      this.#deps.clock.now(),
      id,
      root,
    )
    if (limit === undefined) return told
    const { provider, account_id, conversation_id } = conversation
    this.#deps.log.append(tx, {
      type: 'extmsg.fanout_suppressed',
      actor: 'supervisor',
      subject: id,
      payload: {
        transcript_id: id,
        provider,
        account_id,
        conversation_id,
        sequence,
        root,
        ...given('session_id', sessionId),
        limit,
        suppressed: peers - told,
      },
    })
    return told
  }

  #counts(tx: Tx, id: string, root: number): { readonly publishes: number; readonly deliveries: number } {
    const now = this.#deps.clock.now()
    // Without a word from outside nothing else says where one exchange ends and another begins.
    if (
      root === 0 &&
      tx.run('DELETE FROM chat_fanout WHERE transcript_id = ? AND root = 0 AND at < ?', id, now - CHAIN_MS) > 0
    )
      tx.run('DELETE FROM chat_speakers WHERE transcript_id = ? AND root = 0', id)
    const row = tx.get('SELECT publishes, deliveries FROM chat_fanout WHERE transcript_id = ? AND root = ?', id, root)
    if (row !== undefined) return { publishes: Number(row.publishes), deliveries: Number(row.deliveries) }
    const old = tx.all(
      'SELECT root FROM chat_fanout WHERE transcript_id = ? AND at < ? LIMIT ?',
      id,
      now - COUNTED_MS,
      FORGOTTEN_AT_ONCE,
    )
    for (const { root: past } of old)
      for (const table of ['chat_fanout', 'chat_speakers'])
        tx.run(`DELETE FROM ${table} WHERE transcript_id = ? AND root = ?`, id, Number(past))
    tx.run('INSERT INTO chat_fanout (transcript_id, root, at) VALUES (?, ?, ?)', id, root, now)
    return { publishes: 0, deliveries: 0 }
  }

  // --- What is told --------------------------------------------------------------------------------------------------

  unread(tx: Tx, mailbox: Mailbox): readonly string[] {
    return tx
      .all(
        `SELECT n.transcript_id AS id FROM chat_notices n
         JOIN transcript_members m ON m.transcript_id = n.transcript_id AND m.mailbox = n.mailbox
         JOIN transcripts t ON t.id = n.transcript_id
         WHERE n.mailbox = ? AND t.next_sequence - 1 > max(n.since, m.last_read_sequence, min(n.announced, n.published))
         ORDER BY t.last_entry_at DESC LIMIT ${MAX_REFERENCES}`,
        mailbox,
      )
      .map(({ id }) => String(id))
      .filter((id) => this.#pick(tx, id, mailbox, '') !== undefined)
  }

  begin(tx: Tx, reader: DigestReader, id: string): string | undefined {
    const { mailbox, conversation, sessionId, delivery } = reader
    const picked = this.#pick(tx, id, mailbox, conversation)
    if (picked === undefined) return undefined
    const { transcript, entries, earlierThan, head } = picked
    const late = tx.all('SELECT sequence FROM chat_late WHERE transcript_id = ? AND mailbox = ?', id, mailbox)
    tx.run(
      'INSERT INTO chat_told (delivery_id, transcript_id, mailbox, conversation, upto, late_json) VALUES (?, ?, ?, ?, ?, ?)',
      delivery,
      id,
      mailbox,
      conversation,
      head,
      JSON.stringify(late.map(({ sequence }) => Number(sequence))),
    )
    return chatDigestText({
      city: this.#deps.city,
      transcriptId: id,
      conversation: transcript.conversation,
      sessionId,
      handles: this.#deps.callings.handles(tx, transcript.conversation, mailbox),
      entries: entries.map((entry) => this.#toldEntry(tx, transcript.conversation, entry, mailbox)),
      ...given('earlierThan', earlierThan),
    })
  }

  ended(tx: Tx, delivery: string, delivered: boolean): void {
    const row = tx.get('SELECT * FROM chat_told WHERE delivery_id = ?', delivery)
    tx.run('DELETE FROM chat_told WHERE delivery_id = ?', delivery)
    if (row === undefined || !delivered) return
    const [id, mailbox, upto] = [String(row.transcript_id), String(row.mailbox), Number(row.upto)]
    tx.run(
      'UPDATE chat_notices SET conversation = ?, announced = ? WHERE transcript_id = ? AND mailbox = ?',
      String(row.conversation),
      upto,
      id,
      mailbox,
    )
    tx.run(
      'DELETE FROM chat_late WHERE transcript_id = ? AND mailbox = ? AND sequence IN (SELECT value FROM json_each(?))',
      id,
      mailbox,
      String(row.late_json),
    )
  }

  /** What somebody was not told yet, the newest of it; undefined: nothing that is worth it. */
  #pick(tx: Tx, id: string, mailbox: Mailbox, conversation: string) {
    const transcript = this.#deps.transcripts.find(id, tx)
    const member = this.#deps.members.find(id, mailbox, tx)
    const notice = noticeOf(tx, id, mailbox)
    if (transcript === undefined || member === undefined || notice === undefined) return undefined
    const floor = floorOf(notice, member, conversation)
    const newest = tx
      .all(
        `SELECT * FROM transcript_entries WHERE transcript_id = ? AND sequence > ? AND ${PUBLIC}
         ORDER BY sequence DESC LIMIT ${MAX_ENTRIES + 1}`,
        id,
        floor,
        mailbox,
      )
      .map(entryOf)
    const late = this.#late(tx, id, mailbox, member.lastRead, floor)
    const all = [...late, ...newest.toReversed()]
    const entries = all.slice(-MAX_ENTRIES)
    if (!entries.some((entry) => this.#isWorthTelling(tx, transcript.conversation, entry, mailbox))) return undefined
    // Those that are not shown are behind this one.
    const before = Math.min(floor, (late[0]?.sequence ?? Number.POSITIVE_INFINITY) - 1)
    const isCut = all.length > entries.length
    return { transcript, entries, head: transcript.next - 1, earlierThan: isCut ? before : undefined }
  }

  /** What became public later than what came behind it, ascending. */
  #late(tx: Tx, id: string, mailbox: Mailbox, read: number, floor: number): readonly EntryRow[] {
    return tx
      .all(
        `SELECT e.* FROM chat_late l JOIN transcript_entries e ON e.transcript_id = l.transcript_id AND e.sequence = l.sequence
         WHERE l.transcript_id = ? AND l.mailbox = ? AND l.sequence > ? AND l.sequence <= ?
         ORDER BY l.sequence LIMIT 500`,
        id,
        mailbox,
        read,
        floor,
      )
      .map(entryOf)
  }

  /** C2 */
  #isMuted(conversation: Conversation, { actor }: EntryRow): boolean {
    return actor.is_bot && !this.#deps.hearsBots(conversation)
  }

  /** C2 holds also for what comes along with others. */
  #isWorthTelling(tx: Tx, conversation: Conversation, entry: EntryRow, mailbox: Mailbox): boolean {
    return (
      entry.kind === 'outbound' ||
      !this.#isMuted(conversation, entry) ||
      this.#isCalled(tx, conversation, entry, mailbox)
    )
  }

  #toldEntry(tx: Tx, conversation: Conversation, entry: EntryRow, mailbox: Mailbox): ToldEntry {
    const { sequence, actor, text, attachments } = entry
    const called = this.#handleOf(tx, entry)
    return {
      sequence,
      name: entry.mailbox === undefined ? actor.display_name || actor.id : this.#deps.nameOf(entry.mailbox),
      isBot: actor.is_bot || entry.mailbox !== undefined,
      text,
      ...given('called', called),
      isForReader: called !== undefined && this.#called(tx, conversation, called, [mailbox]) === mailbox,
      attachments: attachments.map((one) => ({
        ...one,
        ...given('path', one.id === undefined ? undefined : this.#deps.fileOf(tx, one.id)),
      })),
    }
  }

  #isCalled(tx: Tx, conversation: Conversation, { explicitTarget }: EntryRow, mailbox: Mailbox): boolean {
    return explicitTarget !== undefined && this.#called(tx, conversation, explicitTarget, [mailbox]) === mailbox
  }

  /** Handle that it was for. */
  #handleOf(tx: Tx, { transcriptId: id, sequence, explicitTarget }: EntryRow): string | undefined {
    const row = tx.get('SELECT handle FROM chat_called WHERE transcript_id = ? AND sequence = ?', id, sequence)
    return row === undefined ? explicitTarget : String(row.handle)
  }

  /** Who of these is called so: by a handle of the group, else by the last part of its name. */
  #called(tx: Tx, conversation: Conversation, handle: string, members: readonly Mailbox[]): Mailbox | undefined {
    const { callings, nameOf } = this.#deps
    const meant = callings.whose(tx, conversation, handle)
    if (meant !== undefined) return members.find((one) => one === meant)
    const word = handle.trim().toLowerCase()
    return members.find((one) => nameOf(one).split('/').at(-1)?.toLowerCase() === word)
  }
}

function noticeOf(tx: Tx, id: string, mailbox: Mailbox): Notice | undefined {
  const row = tx.get('SELECT * FROM chat_notices WHERE transcript_id = ? AND mailbox = ?', id, mailbox)
  if (row === undefined) return undefined
  return {
    since: Number(row.since),
    conversation: row.conversation === null ? undefined : String(row.conversation),
    announced: Number(row.announced),
    published: Number(row.published),
  }
}

/** C3; what comes up to there is not told. What another conversation was told, and answered, is done. */
function floorOf(notice: Notice, { lastRead }: MembershipRow, conversation: string): number {
  const told = notice.conversation === conversation ? notice.announced : Math.min(notice.announced, notice.published)
  return Math.max(notice.since, lastRead, told)
}
