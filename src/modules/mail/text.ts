/** What agents are told of their mail (decisions 136, 138). Whoever wrote it may be anybody: it is text, and no more. */
import { harmless, harmlessLine } from '../../messaging/hostile-text.ts'
import { beginningOf, type MailRecord } from './record.ts'

/** Messages that are told; the others are counted. */
export const TOLD_MESSAGES = 3
const PREVIEW_BYTES = 240
const SCANNED_BYTES = 4_096
type Letter = Pick<MailRecord, 'id' | 'from' | 'subject' | 'body'>

const HOW =
  'Read one with `svcctl mail read ID`, answer it with `svcctl mail reply ID --body TEXT`; `svcctl mail list` shows all of them.'

/** The first messages of those that are unread, in their order; `fresh`: how many of them were not told before. */
export function mailText(first: readonly Letter[], unread: number, fresh = unread): string {
  if (unread === 0) return ''
  const head = `You have ${unread} unread message${unread === 1 ? '' : 's'}${fresh < unread ? `, ${fresh} of them new` : ''}:`
  const shown = first.slice(0, TOLD_MESSAGES)
  const more = fresh - shown.length
  const rest = more > 0 ? [`${more} more ${more === 1 ? 'is' : 'are'} not shown here.`] : []
  return [head, ...shown.map(lineOf), ...rest, HOW].join('\n')
}

function lineOf({ id, from, subject, body }: Letter): string {
  const [about, said] = [preview(subject), preview(body)]
  const title = about === '' || about === said ? '' : ` [${about}]`
  return harmless(`- ${id} from ${preview(from)}${title}${said === '' ? '' : `: ${said}`}`)
}

function preview(text: string): string {
  const scanned = beginningOf(text, SCANNED_BYTES)
  const plain = harmlessLine(scanned)
  const cut = beginningOf(plain, PREVIEW_BYTES)
  return cut.length < plain.length || scanned.length < text.length ? `${cut.trimEnd()}…` : cut
}
