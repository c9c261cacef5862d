/**
 * Transcripts of chats as they are read: rows of a table, and what was said line by line. Agents read them so, too: what
 * strangers wrote has no tags that they would take for words of their harness, and names are one line. As JSON it is what
 * was written.
 */
import type { TranscriptEntry } from '../../contract/messaging/entries.ts'
import type { Membership } from '../../contract/messaging/memberships.ts'
import type { Transcript } from '../../contract/messaging/transcripts.ts'
import { harmless, harmlessLine } from '../../messaging/hostile-text.ts'
import { view } from '../print/view.ts'
import { conversationText } from './conversations.ts'
import { printableLines } from './turn-text.ts'

export const TRANSCRIPT = view<Transcript>()('transcript_id CONVERSATION KIND ENTRIES last_entry_at', {
  wide: 'conversation.scope_id earliest_available_sequence next_sequence created_at',
  as: {
    CONVERSATION: ({ conversation }) => harmlessLine(conversationText(conversation)),
    KIND: 'conversation.kind',
    ENTRIES: ({ next_sequence: next, earliest_available_sequence: first }) => next - first,
  },
})

/** Whoever said it: as people see them. */
const speakerOf = ({ actor }: TranscriptEntry): string => actor.display_name || actor.id

/** Whom it was for, where it was said. */
const spoken = (entry: TranscriptEntry): string =>
  harmlessLine(
    entry.explicit_target === undefined ? speakerOf(entry) : `${speakerOf(entry)} to ${entry.explicit_target}`,
  )

/** What became of what was said from here, unless it is there. */
const undelivered = ({ delivery_status: status }: TranscriptEntry): string | undefined =>
  status === undefined || status === 'delivered' ? undefined : status

const filesOf = ({ attachments }: TranscriptEntry): string | undefined =>
  attachments.length === 0
    ? undefined
    : attachments
        .map(({ filename, id, url, provider_id }) => harmlessLine(filename ?? id ?? url ?? provider_id ?? 'a file'))
        .join(', ')

export const ENTRY = view<TranscriptEntry>()('SEQ WHO TEXT FILES STATE AGE', {
  wide: 'kind provenance provider_message_id reply_to_message_id source_session_id delivery_id received_at',
  as: {
    SEQ: 'sequence',
    WHO: spoken,
    TEXT: ({ text }) => harmless(text),
    FILES: filesOf,
    STATE: undelivered,
    AGE: 'created_at',
  },
  name: ({ sequence }) => sequence,
})

export const MEMBER = view<Membership>()('name OWNERS backfill_policy READ joined_at', {
  wide: 'mailbox session_id joined_sequence manual_backfill',
  as: { OWNERS: ({ owners }) => owners.join(', '), READ: 'last_read_sequence' },
  name: 'mailbox',
})

/** `12  ana to mayor: What is up?`; further lines of a text stand below its first. */
export function entryLines(entry: TranscriptEntry): string {
  const place = `${entry.sequence}`.padStart(4)
  const [state, files] = [undelivered(entry), filesOf(entry)]
  const notes = [...(files === undefined ? [] : [`[${files}]`]), ...(state === undefined ? [] : [`(${state})`])]
  const said = [entry.text, ...notes].filter((part) => part !== '').join(' ')
  return harmless(printableLines(`${place}  ${spoken(entry)}: ${said}`)).replaceAll('\n', '\n      ')
}
