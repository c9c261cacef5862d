/** A message that is written: with `--body`, or in the editor where somebody sits at a terminal. */
import type { Message } from '../../contract/messaging/mail.ts'
import type { Context } from '../base/context.ts'
import { createDraft, type Draft } from '../base/editor.ts'
import { EXIT, Failure, usageError } from '../base/failure.ts'
import { ownSessionId } from '../base/own.ts'

/** What stands below it in the editor is not sent. */
const SCISSORS = '# ---- nothing from here on is sent ----'
/** Letters of a subject that is made from the text. */
const MOST_OF_LINE = 80

export interface Written {
  readonly subject?: string | undefined
  readonly body?: string | undefined
}

/** What is known before the editor opens. */
export interface About extends Written {
  /** For the name of the file. */
  readonly to: string
  readonly answers?: Pick<Message, 'from' | 'body'> | undefined
}

/** Sends what was given, or what is written now. What cannot be sent stays in its file. */
export async function sendWritten<T>(
  context: Context,
  about: About,
  send: (written: Written) => Promise<T>,
): Promise<T> {
  const { subject, body } = about
  // An agent at a terminal would wait in the editor for ever.
  if (body !== undefined || !context.canAsk || ownSessionId(context.io) !== undefined) return send({ subject, body })
  const draft = await createDraft(context.io, `to-${about.to.replaceAll(/[^\w.-]+/g, '-')}.txt`, draftText(about))
  const written = await edited(draft, about)
  try {
    const sent = await send(written)
    await draft.discard()
    return sent
  } catch (error) {
    await context.note(`not sent; what you wrote is in ${draft.path}`)
    throw error
  }
}

async function edited(draft: Draft, about: About): Promise<Written> {
  const written = parsedDraft(await draft.edit(), about)
  if (written.body !== '') return written
  await draft.discard()
  throw new Failure(EXIT.failure, 'not sent: nothing was written')
}

/** A new message begins with its subject, unless that is known; an answer shows what it answers. */
export function draftText({ subject, answers }: About): string {
  const head = asksSubject({ subject, answers }) ? ['Subject: '] : []
  const quoted = answers === undefined ? [] : [SCISSORS, `# ${answers.from} wrote:`, ...commented(answers.body)]
  return [...head, '', ...quoted, ''].join('\n')
}

const commented = (text: string): readonly string[] => text.split('\n').map((line) => `# ${line}`.trimEnd())

const asksSubject = ({ subject, answers }: Pick<About, 'subject' | 'answers'>): boolean =>
  subject === undefined && answers === undefined

export function parsedDraft(text: string, about: About): Written {
  const [kept = ''] = text.split(SCISSORS, 1)
  const [, subject = '', rest] = asksSubject(about) ? (/^Subject:(.*)\n?([\s\S]*)$/i.exec(kept) ?? []) : []
  return { subject: subject.trim() || about.subject, body: (rest ?? kept).trim() }
}

/** What a message is about that does not say so: its first line. */
export function subjectOf(body: string | undefined): string {
  const line = body
    ?.split('\n')
    .find((one) => one.trim() !== '')
    ?.trim()
  if (line === undefined) throw usageError('there is nothing to send', 'say --subject, --body, or both')
  const letters = [...line]
  return letters.length <= MOST_OF_LINE ? line : `${letters.slice(0, MOST_OF_LINE - 3).join('')}...`
}
