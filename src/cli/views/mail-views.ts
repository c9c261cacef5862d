/**
 * Mail as it is read: rows of a table, fields of a message, a message or a thread. Agents read it so, too: tags that they
 * would take for words of their harness are left out. As JSON it is what was written.
 */
import type { Message } from '../../contract/messaging/mail.ts'
import { harmless, harmlessLine } from '../../messaging/hostile-text.ts'
import type { Context } from '../base/context.ts'
import { relativeTime } from '../base/output.ts'
import { view } from '../print/view.ts'
import { printableLines } from './turn-text.ts'

const copies = ({ cc }: Message): string | undefined => (cc.length === 0 ? undefined : cc.join(', '))

const FROM = ({ from }: Message): string => harmlessLine(from)
const SUBJECT = ({ subject }: Message): string => harmlessLine(subject)
const textOf = ({ body }: Message): string => harmless(printableLines(body.trimEnd()))

/** A row each. */
export const MESSAGES = view<Message>()('id status FROM to SUBJECT AGE', {
  wide: 'thread_id priority CC rig mailbox reply_to copy_of read_at archived_at',
  as: { AGE: 'created_at', CC: copies, FROM, SUBJECT },
})

/** A line per field; the text stands below them. */
export const MESSAGE = view<Message>()('id FROM to CC SUBJECT created_at status thread_id', {
  wide: 'priority reply_to copy_of rig mailbox read_at archived_at from_session_id to_session_id',
  as: { CC: copies, FROM, SUBJECT },
})

/** Its head, then its text; as JSON all of it. */
export async function printMessage({ print }: Context, message: Message, json: string): Promise<void> {
  await print.item({ item: message, ...MESSAGE, json })
  if (print.isForPeople) await print.lines(['', textOf(message)])
}

/** Everything that was said, as it is read. */
export async function printThread({ print, io }: Context, messages: readonly Message[], json: string): Promise<void> {
  if (!print.isForPeople || !io.stdout.isTerminal) return print.list({ items: messages, ...MESSAGES, json })
  const now = io.clock.now()
  const [first] = messages
  if (first !== undefined) await print.lines([`${first.thread_id}  ${SUBJECT(first)}`])
  for (const message of messages) {
    const { id, to, status, created_at } = message
    const others = copies(message)
    const whom = others === undefined ? to : `${to}, cc ${others}`
    const head = `── ${FROM(message)} to ${whom}, ${relativeTime(created_at, now)}, ${status}, ${id}`
    await print.lines(['', printableLines(head), textOf(message)])
  }
}
