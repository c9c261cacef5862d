/** Subjects of answers (sheet 06 §1.5). */
import { MAX_SUBJECT } from '../../contract/messaging/mail.ts'

const LINE_CHARACTERS = 80

/** As given; else that of the message, with `Re: ` in front; else how the answer begins. */
export function replySubject(given: string | undefined, original: string, body: string): string {
  if (given !== undefined) return given
  if (/^\s*re:/i.test(original)) return original
  if (original.trim() !== '') return shortened(`Re: ${original}`, MAX_SUBJECT)
  const line =
    body
      .trim()
      .split(/[\r\n]/)[0]
      ?.trim() ?? ''
  return line === '' ? '(reply)' : shortened(line, LINE_CHARACTERS)
}

function shortened(text: string, characters: number): string {
  if (text.length <= characters) return text
  const cut = text.slice(0, characters - 3)
  // Half a character is none.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}...`
}
