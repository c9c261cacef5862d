/**
 * Mail of people in their chats (decision 156): a conversation that is bound to `human` says what is mailed to them, and
 * what is said there is their answer.
 *
 * H1  What is mailed goes out once in each such conversation, in the write that passes over its event.
 * H2  A line answers the mail that it is a reply to, or whose thread it is in, else the newest one there.
 * H3  An answer to what was said in a thread goes to that thread.
 */

import { MAX_CHAT_TEXT } from '../../../contract/messaging/entries.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import { given } from '../../../kernel/present.ts'
import type { Reaction } from '../../../kernel/reactions.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import { transcriptId } from '../../../messaging/conversation.ts'
import { plainText } from '../../../messaging/hostile-text.ts'
import type { EntryDraft, EntryRow, TranscriptRow } from '../entries/rows.ts'
import type { Transcripts } from '../entries/store.ts'
import type { Routing } from '../routing/routing.ts'
import type { BindingRow } from '../routing/rows.ts'
import { parentsOf } from '../routing/threads.ts'
import type { ChatMail } from './ports.ts'

/** A mail, as far as it is said in a chat. */
export interface MailedMessage {
  readonly id: string
  readonly from: string
  /** Absent: somebody without a mailbox. */
  readonly sender?: Mailbox
  readonly session_id?: string
  readonly subject: string
  readonly body: string
  readonly reply_to?: string
}

/** What mail offers. */
export interface PeoplesMail {
  /** Undefined: it is gone. */
  find(tx: Tx, id: string): MailedMessage | undefined
  /** People answer a mail; the id of the answer, undefined where it cannot be answered. */
  reply(tx: Tx, id: string, body: string): string | undefined
}

/** What is said from here goes out; undefined where nobody carries the conversation. */
export interface Voice {
  say(tx: Tx, saying: Saying): EntryRow | undefined
}

interface Saying extends Pick<EntryDraft, 'text' | 'actor' | 'mailbox' | 'sessionId' | 'replyTo'> {
  readonly transcript: TranscriptRow
}

interface Deps {
  readonly transcripts: Transcripts
  readonly routing: Routing
  readonly mail: PeoplesMail
  readonly voice: Voice
}

/** Mails that were said in a conversation, among which the one is looked for that a line answers. */
const LOOKED_AT = 1_000
const CUT = '\n… (the mail goes on)'

export class HumanChat implements ChatMail {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** H1. */
  reaction(): Reaction {
    return {
      name: 'messaging.human-mail',
      types: ['mail.sent', 'mail.replied'],
      since: 'head',
      concerns: (event) => mailOf(event)?.mailbox === HUMAN,
      react: (tx, event) => {
        // Most cities say mail in no chat: theirs is not read again.
        const places = this.#deps.routing.bindings.ofHuman(tx)
        const id = places.length === 0 ? undefined : mailOf(event)?.id
        const mail = id === undefined ? undefined : this.#deps.mail.find(tx, id)
        if (mail !== undefined) this.#sayEverywhere(tx, places, mail)
      },
    }
  }

  /** H2. What bots say answers nobody: two that answer each other would not end. */
  reply(tx: Tx, transcript: TranscriptRow, entry: EntryRow): string | undefined {
    const body = bodyOf(entry)
    const answered = entry.actor.is_bot || body === '' ? undefined : this.#answeredBy(tx, transcript, entry)
    const id = answered === undefined ? undefined : this.#deps.mail.reply(tx, answered, body)
    if (id !== undefined) remember(tx, { transcript: transcript.id, sequence: entry.sequence, mail: id, said: 'there' })
    return id
  }

  #sayEverywhere(tx: Tx, places: readonly BindingRow[], mail: MailedMessage): void {
    const { transcripts } = this.#deps
    for (const binding of places) {
      const asked = mail.reply_to === undefined ? undefined : this.#whereSaid(tx, binding, mail.reply_to)
      const transcript = transcripts.find(asked?.transcript ?? binding.transcript_id, tx)
      if (transcript !== undefined) this.#say(tx, transcript, mail, asked?.message)
    }
  }

  #say(tx: Tx, transcript: TranscriptRow, mail: MailedMessage, replyTo: string | undefined): void {
    const { from, sender, session_id: session } = mail
    const entry = this.#deps.voice.say(tx, {
      transcript,
      text: textOf(mail),
      actor: { id: session ?? sender ?? from, display_name: from, is_bot: true },
      ...given('mailbox', sender),
      ...given('sessionId', session),
      ...given('replyTo', replyTo),
    })
    if (entry !== undefined)
      remember(tx, { transcript: transcript.id, sequence: entry.sequence, mail: mail.id, said: 'here' })
  }

  /** H3: where people wrote the mail that this one answers, if that was in the bound conversation or in a thread of it. */
  #whereSaid(tx: Tx, binding: BindingRow, mail: string) {
    const row = tx.get(
      `SELECT c.transcript_id, e.provider_message_id FROM chat_mail AS c
        LEFT JOIN transcript_entries AS e ON e.transcript_id = c.transcript_id AND e.sequence = c.sequence
        WHERE c.mail_id = ? AND c.said = 'there'`,
      mail,
    )
    const found = row === undefined ? undefined : this.#deps.transcripts.find(String(row.transcript_id), tx)
    if (row === undefined || found === undefined) return undefined
    const places = [found.id, ...parentsOf(found.conversation).map(transcriptId)]
    if (!places.includes(binding.transcript_id)) return undefined
    const message = row.provider_message_id === null ? undefined : String(row.provider_message_id)
    return { transcript: found.id, message }
  }

  #answeredBy(tx: Tx, { id, conversation }: TranscriptRow, { replyTo }: EntryRow): string | undefined {
    const places = [id, ...parentsOf(conversation).map(transcriptId)]
    const messages = [replyTo, conversation.kind === 'thread' ? conversation.conversation_id : undefined]
    for (const place of places)
      for (const message of messages) {
        const found = message === undefined ? undefined : saidAs(tx, place, message)
        if (found !== undefined) return found
      }
    return places.map((place) => newestSaid(tx, place)).find((mail) => mail !== undefined)
  }
}

/** Of a transcript that is deleted. */
export function forgetChatMail(tx: Tx, transcript: string): void {
  tx.run('DELETE FROM chat_mail WHERE transcript_id = ?', transcript)
}

interface ChatMailRow {
  readonly transcript: string
  readonly sequence: number
  readonly mail: string
  /** `here`: the mail went out; `there`: people wrote it. */
  readonly said: 'here' | 'there'
}

function remember(tx: Tx, { transcript, sequence, mail, said }: ChatMailRow): void {
  tx.run(
    'INSERT INTO chat_mail (transcript_id, sequence, mail_id, said) VALUES (?, ?, ?, ?)',
    transcript,
    sequence,
    mail,
    said,
  )
}

/** The mail that went out as this message of the provider. */
function saidAs(tx: Tx, transcript: string, message: string): string | undefined {
  const row = tx.get(
    `SELECT c.mail_id FROM (SELECT sequence, mail_id FROM chat_mail WHERE transcript_id = ? AND said = 'here'
        ORDER BY sequence DESC LIMIT ${LOOKED_AT}) AS c
      JOIN transcript_entries AS e ON e.transcript_id = ? AND e.sequence = c.sequence
      WHERE e.provider_message_id = ? ORDER BY c.sequence DESC LIMIT 1`,
    transcript,
    transcript,
    message,
  )
  return row === undefined ? undefined : String(row.mail_id)
}

function newestSaid(tx: Tx, transcript: string): string | undefined {
  const row = tx.get(
    "SELECT mail_id FROM chat_mail WHERE transcript_id = ? AND said = 'here' ORDER BY sequence DESC LIMIT 1",
    transcript,
  )
  return row === undefined ? undefined : String(row.mail_id)
}

/** What is written, and where what was attached is. */
const bodyOf = ({ text, attachments }: EntryRow): string =>
  [text.trim(), ...attachments.flatMap(({ url, filename }) => url ?? filename ?? [])]
    .filter((line) => line !== '')
    .join('\n')

/** Who writes of what; then the text, as far as a message of a chat may be long. */
export function textOf({ id, from, subject, body }: MailedMessage): string {
  const whole = plainText(`${from}: ${subject} (mail ${id})${body === '' ? '' : `\n${body}`}`)
  if (Buffer.byteLength(whole) <= MAX_CHAT_TEXT) return whole
  const room = MAX_CHAT_TEXT - Buffer.byteLength(CUT)
  // A character that is cut in two is left out.
  return `${new TextDecoder().decode(Buffer.from(whole).subarray(0, room), { stream: true })}${CUT}`
}

/** Whose mail an event is about. */
function mailOf({ envelope }: StoredEvent): { readonly id: string; readonly mailbox: string } | undefined {
  const { payload } = Object(JSON.parse(envelope))
  const { message_id: id, mailbox } = Object(payload)
  return typeof id === 'string' && typeof mailbox === 'string' ? { id, mailbox } : undefined
}
