/** Who may speak in a conversation from here (sheet 06 §2.6; decisions 152, 155). */
import { type Problem, problem } from '../../../kernel/problem.ts'
import type { Address, Mailbox } from '../../../messaging/address.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import type { Reader } from '../base/rows.ts'
import type { Bindings } from './bindings.ts'
import type { Groups } from './groups.ts'
import { type Target, targetName } from './targets.ts'
import { parentsOf } from './threads.ts'

export interface Speaker extends Pick<Address, 'mailbox' | 'display'> {
  readonly session_id: string
}

export interface Refusal {
  readonly problem: Problem
  /** Whose the conversation is; absent: nobody's. */
  readonly owner?: Mailbox
}

/** Why a session may not speak there; undefined where it may: the conversation is its own, or it has a handle there. */
export function refusalToSpeak(
  { bindings, groups }: { readonly bindings: Bindings; readonly groups: Groups },
  reader: Reader,
  conversation: Conversation,
  speaker: Speaker,
): Refusal | undefined {
  for (const place of [conversation, ...parentsOf(conversation)].map(transcriptId)) {
    const binding = bindings.active(reader, place)
    if (binding !== undefined) return isFor(binding, speaker) ? undefined : notOwner(binding, speaker)
    const group = groups.of(reader, place)
    if (group === undefined) continue
    if (groups.participants(reader, group.id).some((one) => isFor(one, speaker))) return undefined
    return { problem: problem('session-forbidden', `${speaker.display} is no participant of the group ${group.id}`) }
  }
  const why = `the conversation is bound to nobody, and has no group: bind it to ${speaker.display} first`
  return { problem: problem('conversation-unbound', why) }
}

const isFor = ({ mailbox, session_id: session }: Target, speaker: Speaker): boolean =>
  session === undefined ? mailbox === speaker.mailbox : session === speaker.session_id

const notOwner = (binding: Target, { display }: Speaker): Refusal => ({
  problem: problem('session-forbidden', `the conversation is bound to ${targetName(binding)}, not to ${display}`),
  owner: binding.mailbox,
})
