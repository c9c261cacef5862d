/** Lists that are answered once something of chats has changed. */
import type { StoredEvent } from '../../../kernel/event-log.ts'
import { type BlockingInput, waitForChange } from '../../../kernel/waiting.ts'
import type { MessagingCity } from './city.ts'

interface WaitingCall {
  readonly city: MessagingCity
  readonly query: BlockingInput
  readonly signal: AbortSignal
}

/** Waits where that is asked for, for events of chats that have this in them; then the city as it is. */
export async function changed(call: WaitingCall, mark = ''): Promise<MessagingCity> {
  const { city, query, signal } = call
  const isNews = ({ type, envelope }: StoredEvent) => type.startsWith('extmsg.') && envelope.includes(mark)
  await waitForChange(city.store.log, query, city.clock, signal, isNews)
  return call.city
}
