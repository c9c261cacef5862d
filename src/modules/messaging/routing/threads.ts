/** Threads of a conversation: whoever reads it reads them too, until it is somebody else's (decision 152). */
import type { Tx } from '../../../kernel/database.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import type { Reader } from '../base/rows.ts'
import type { RoutingDeps } from './ports.ts'

/** Rooms have most threads: they are looked at first. */
const PARENT_KINDS = ['room', 'dm', 'thread'] as const

interface Leaving {
  readonly conversation: Conversation
  readonly mailbox: Mailbox
  readonly owner: 'binding' | 'group'
}

/** What a thread may be in: a thread says what its parent is called, not of which kind it is. */
export function parentsOf({ parent_conversation_id: parent, ...thread }: Conversation): readonly Conversation[] {
  if (parent === undefined) return []
  const { scope_id, provider, account_id } = thread
  return PARENT_KINDS.map((kind) => ({ scope_id, provider, account_id, conversation_id: parent, kind }))
}

/** Ids of the transcripts of its threads that somebody reads, and that have no route of their own. */
function threadsRead(reader: Reader, { conversation, mailbox }: Leaving): readonly string[] {
  const { scope_id, provider, account_id, conversation_id } = conversation
  const rows = reader.all(
    `SELECT t.id FROM transcript_members AS m JOIN transcripts AS t ON t.id = m.transcript_id
      WHERE m.mailbox = ? AND t.scope_id = ? AND t.provider = ? AND t.account_id = ? AND t.parent_conversation_id = ?
        AND NOT EXISTS (SELECT 1 FROM chat_bindings AS b WHERE b.transcript_id = t.id AND b.ended_at IS NULL)
        AND NOT EXISTS (SELECT 1 FROM chat_groups AS g WHERE g.transcript_id = t.id)`,
    mailbox,
    scope_id,
    provider,
    account_id,
    conversation_id,
  )
  return rows.map(({ id }) => String(id))
}

export function leaveThreads(tx: Tx, members: RoutingDeps['members'], leaving: Leaving, actor: string): void {
  for (const thread of threadsRead(tx, leaving)) members.leave(tx, thread, leaving.mailbox, leaving.owner, actor)
}
