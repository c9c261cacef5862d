/**
 * Who is named as `notify` of a convoy gets mail when it has closed. The mail and the step of this reaction past the event
 * are one write: whatever crashes, it is sent once for each time the convoy closes.
 */
import type { PayloadOf } from '../../contract/event-types.ts'
import type { Tx } from '../../kernel/database.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import type { Reaction } from '../../kernel/reactions.ts'

export interface ConvoyNotice {
  /** As the convoy names them. */
  readonly to: string
  readonly subject: string
  readonly body: string
}

/** What convoys need of mail. */
export interface ConvoyNotices {
  /** In the write that is under way. A name that means nobody, or several, is no reason to fail. */
  tell(tx: Tx, notice: ConvoyNotice): void
}

export function noticeReaction(notices: ConvoyNotices): Reaction {
  return {
    name: 'convoy-notices',
    types: ['convoy.closed'],
    // Convoys that were closed before there was mail are no news.
    since: 'head',
    concerns: ({ envelope }) => envelope.includes('"notify":'),
    react(tx, event) {
      const notice = noticeOf(event)
      if (notice !== undefined) notices.tell(tx, notice)
    },
  }
}

function noticeOf({ envelope }: Pick<StoredEvent, 'envelope'>): ConvoyNotice | undefined {
  const { payload }: { readonly payload: PayloadOf<'convoy.closed'> } = JSON.parse(envelope)
  const { convoy_id: id, title, total, closed, reason, notify } = payload
  if (notify === undefined) return undefined
  const lines = [
    `The convoy ${id} (${title}) is closed: ${closed} of ${total} members are done.`,
    ...(reason === undefined ? [] : [`Reason: ${reason}`]),
    `Its members: svcctl convoy get ${id}`,
  ]
  return { to: notify, subject: `Convoy closed: ${title}`, body: lines.join('\n') }
}
