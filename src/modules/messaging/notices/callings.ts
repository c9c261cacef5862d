/** Who is called what in a conversation, and how far its members are told of each other: as its group says. */
import type { Tx } from '../../../kernel/database.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import { DEFAULT_FANOUT, type Groups } from '../routing/groups.ts'
import { normalHandle } from '../routing/handles.ts'
import { parentsOf } from '../routing/threads.ts'
import type { Callings } from './notices.ts'

/** A thread without a group of its own has that of its parent. */
export function callingsOf(groups: Groups): Callings {
  const groupOf = (tx: Tx, conversation: Conversation) => {
    for (const place of [conversation, ...parentsOf(conversation)]) {
      const group = groups.of(tx, transcriptId(place))
      if (group !== undefined) return group
    }
    return undefined
  }
  return {
    bounds: (tx, conversation) => groupOf(tx, conversation)?.fanout ?? DEFAULT_FANOUT,
    handles: (tx, conversation, mailbox) => {
      const group = groupOf(tx, conversation)
      if (group === undefined) return []
      const own = groups.participants(tx, group.id).filter((one) => one.mailbox === mailbox)
      return own.map(({ handle }) => handle)
    },
    whose: (tx, conversation, handle) => {
      const group = groupOf(tx, conversation)
      return group === undefined ? undefined : groups.participant(tx, group.id, normalHandle(handle))?.mailbox
    },
  }
}
