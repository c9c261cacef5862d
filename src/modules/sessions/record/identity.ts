/** Who the process of a session is, once it has been started, and which conversation it has. */
import type { Tx } from '../../../kernel/database.ts'
import type { Identity } from '../../../runtimes/process/runtime.ts'
import type { SessionChange, SessionRecord } from './record.ts'
import type { SessionStore } from './store.ts'

export function identityOf({ id, generation, token }: SessionRecord): Identity | undefined {
  return token === undefined ? undefined : { sessionId: id, generation, token }
}

/** Something was said in the conversation that it was started with: by that name it can be resumed from now on. */
export const keyOf = ({ conversation_id, launch }: SessionRecord): Pick<SessionChange, 'conversation_id'> =>
  conversation_id !== undefined || launch?.conversation === undefined ? {} : { conversation_id: launch.conversation }

/** A key that cannot be resumed would end every start (sheet 04 §6.2): the next one begins a conversation of its own. */
export const KEY_LOST = { conversation_id: undefined, fresh: true } satisfies SessionChange

/** `before` had a conversation that its harness does not have any more: what was said in it is gone, and somebody must hear so. */
export function tellLost(tx: Tx, sessions: SessionStore, { id, conversation_id: lost }: SessionRecord): void {
  if (lost === undefined) return
  const message = `conversation ${lost} could not be taken up again: a new one begins`
  const note = { actor: 'supervisor', reason: 'conversation-lost', message }
  sessions.tell(tx, sessions.need(tx, id), 'session.reset', note)
}
