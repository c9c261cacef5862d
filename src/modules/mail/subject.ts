/** Subjects of answers (sheet 06 §1.5). */
import { cut } from '../../contract/base/text.ts'
import { MAX_SUBJECT } from '../../contract/messaging/mail.ts'

const LINE_CHARACTERS = 80

/** As given; else that of the message, with `Re: ` in front; else how the answer begins. */
export function replySubject(given: string | undefined, original: string, body: string): string {
  if (given !== undefined) return given
  if (/^\s*re:/i.test(original)) return original
  if (original.trim() !== '') return cut(`Re: ${original}`, MAX_SUBJECT, '...')
  const line =
    body
      .trim()
      .split(/[\r\n]/)[0]
      ?.trim() ?? ''
  return line === '' ? '(reply)' : cut(line, LINE_CHARACTERS, '...')
}
