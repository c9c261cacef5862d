/** Who says something to a session, and the words by which its model can tell that this is no person. */
import type { MessageSender } from '../../../contract/sessions/session-model.ts'
import type { Caller } from '../../../kernel/caller.ts'

export function senderOf(caller: Caller, actor: string): MessageSender {
  if (caller.kind === 'agent') return { kind: 'agent', name: caller.name, session_id: caller.session }
  if (caller.kind === 'service' || caller.kind === 'adapter') return { kind: 'service', name: caller.name }
  return { kind: 'person', name: actor }
}

export const SUPERVISOR_SENDER: MessageSender = { kind: 'supervisor', name: 'supervisor' }

/** A program may speak to a session; only a person lifts what a person, or a budget, holds. */
export const isPerson = ({ kind }: MessageSender): boolean => kind === 'person'

interface Hearing {
  /** A program that runs what it is told would run the frame as well. */
  readonly readsCommands: boolean
  /** A terminal may enter a line at its end. */
  readonly onTerminal: boolean
}

/** The frame in front of what another agent or a service says; empty where a person speaks. */
export function frameOf(sender: MessageSender, text: string, { readsCommands, onTerminal }: Hearing): string {
  if ((sender.kind !== 'agent' && sender.kind !== 'service') || readsCommands) return ''
  const who = sender.session_id === undefined ? sender.name : `${sender.name}, session ${sender.session_id}`
  const whom = sender.kind === 'agent' ? `agent ${who}` : who
  return `[message from ${whom}]${onTerminal && !text.includes('\n') ? ' ' : '\n'}`
}
