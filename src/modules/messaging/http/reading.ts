/**
 * Who may see what of transcripts (decision 155): whoever uses the API sees all; the token of a session, where one is needed,
 * what that session reads.
 */
import type { Caller } from '../../../kernel/caller.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import type { Address } from '../../../messaging/address.ts'
import type { MessagingCity } from './city.ts'

/** The session that a caller is, where it sees only its own; undefined: it sees all. */
export function selfOf({ addresses }: MessagingCity, caller: Caller): Address | undefined {
  return caller.kind === 'agent' && caller.api !== 'city' ? addresses().ofSession(caller.session) : undefined
}

export function mayRead(city: MessagingCity, caller: Caller, transcriptId: string): boolean {
  const self = selfOf(city, caller)
  return self === undefined || city.members.find(transcriptId, self.mailbox) !== undefined
}

export function refuseStrangers(city: MessagingCity, caller: Caller, transcriptId: string): void {
  if (!mayRead(city, caller, transcriptId))
    throw problem('session-forbidden', `whoever asks does not read ${transcriptId}`)
}

/** Who is meant where somebody says who reads; a session that says nothing means itself, and can mean nobody else. */
export function readerMeant(
  city: MessagingCity,
  caller: Caller,
  { word, at }: { readonly word: string | undefined; readonly at: string },
): Address {
  const self = caller.kind === 'agent' ? city.addresses().ofSession(caller.session) : undefined
  if (word === undefined) {
    if (self === undefined) throw invalidField(at, 'is required: only the token of a session says who asks')
    return self
  }
  const meant = city.addresses().resolve(word)
  if (self !== undefined && selfOf(city, caller) !== undefined && meant.mailbox !== self.mailbox)
    throw problem('session-forbidden', `this token is that of ${self.display}, not of ${meant.display}`)
  return meant
}
