/**
 * What a session is told of a conversation (decisions 138, 153): the newest of what it was not told, within bounds, the rest
 * by its address, and how to answer. Pure.
 *
 * Everything of strangers is without control bytes and reminder tags, and stands behind `|`: no line of theirs can be taken
 * for one of ours.
 */
import type { ChatAttachment } from '../../../contract/messaging/entries.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import { harmless, harmlessLine } from '../../../messaging/hostile-text.ts'

export const MAX_ENTRIES = 20
const MAX_BYTES = 16 * 1024
/** Of one message; more of it is named. */
const MAX_ENTRY_BYTES = 4 * 1024
const MAX_NAME = 80
const MAX_ATTACHMENTS = 5

/** A message, as it is told. */
export interface ToldEntry {
  readonly sequence: number
  readonly name: string
  readonly isBot: boolean
  readonly text: string
  /** Handle of who is called; absent: nobody in particular. */
  readonly called?: string
  /** It is who is being told. */
  readonly isForReader: boolean
  /** With the file of those that are here. */
  readonly attachments: readonly (ChatAttachment & { readonly path?: string })[]
}

export interface ChatDigest {
  readonly city: string
  readonly transcriptId: string
  readonly conversation: Conversation
  readonly sessionId: string
  /** What the reader is called there. */
  readonly handles: readonly string[]
  /** Ascending, at most `MAX_ENTRIES`. */
  readonly entries: readonly ToldEntry[]
  /** There are older ones, behind this sequence, that the reader was not told either. */
  readonly earlierThan?: number
}

export function chatDigestText(digest: ChatDigest): string {
  const tail = footer(digest)
  let room = MAX_BYTES - Buffer.byteLength(header(digest, MAX_ENTRIES)) - Buffer.byteLength(tail) - 512
  const shown: string[] = []
  for (const entry of digest.entries.toReversed()) {
    const block = entryBlock(entry, digest)
    room -= Buffer.byteLength(block) + 1
    if (room < 0 && shown.length > 0) break
    shown.unshift(block)
  }
  const first = digest.entries.at(-shown.length)?.sequence ?? 0
  return [header(digest, shown.length), ...earlier(digest, first, shown.length), ...shown, tail].join('\n')
}

function header({ conversation, handles }: ChatDigest, count: number): string {
  const { provider, conversation_id: id, kind, parent_conversation_id: parent } = conversation
  const within = parent === undefined ? '' : ` in ${oneLine(parent, 200)}`
  // Whole: a blank is all that stands between the first two.
  const where = harmlessLine(`${provider} ${oneLine(id, 200)} (${kind}${within})`)
  const you =
    handles.length === 0 ? '' : ` You are called ${handles.map((one) => oneLine(one, MAX_NAME)).join(', ')} there.`
  return `Chat: ${count === 1 ? 'a new message' : `${count} new messages`} in ${where}.${you}`
}

function earlier(
  { entries, earlierThan, city, transcriptId }: ChatDigest,
  first: number,
  shown: number,
): readonly string[] {
  if (earlierThan === undefined && shown === entries.length) return []
  const after = earlierThan ?? (entries[0]?.sequence ?? 1) - 1
  return [
    `Earlier ones that you were not told of: GET ${entriesPath(city, transcriptId)}?after_sequence=${after}&before_sequence=${first}`,
  ]
}

function entryBlock(entry: ToldEntry, { city, transcriptId }: ChatDigest): string {
  const { sequence, name, isBot, called, isForReader, attachments } = entry
  const to = called === undefined ? '' : ` to ${isForReader ? 'you' : oneLine(called, MAX_NAME)}`
  const text = quoted(harmless(entry.text).trim())
  const cut = cutBytes(text, MAX_ENTRY_BYTES)
  const lines = [`[${sequence}] ${oneLine(name, MAX_NAME) || 'somebody'}${isBot ? ' (agent)' : ''}${to}:`]
  if (cut !== '') lines.push(harmless(cut))
  if (cut !== text)
    lines.push(`(cut; all of it: GET ${entriesPath(city, transcriptId)}?after_sequence=${sequence - 1}&limit=1)`)
  lines.push(...attachments.slice(0, MAX_ATTACHMENTS).map(attachmentLine))
  if (attachments.length > MAX_ATTACHMENTS) lines.push(`(and ${attachments.length - MAX_ATTACHMENTS} more attachments)`)
  if (called !== undefined && !isForReader) lines.push('(Not for you: leave the answer to them.)')
  return lines.join('\n')
}

const quoted = (text: string): string => (text === '' ? '' : `| ${text.replaceAll('\n', '\n| ')}`)

function attachmentLine({ path, url, filename, mime_type: type, size }: ToldEntry['attachments'][number]): string {
  const facts = [filename, type, size === undefined ? undefined : `${size} bytes`]
  const said = facts.filter((one) => one !== undefined).map((one) => oneLine(one, MAX_NAME))
  const where = path ?? (url === undefined ? 'without a file here' : `at ${oneLine(url, 500)}, not fetched`)
  return `(attachment: ${[...said, where].join(', ')})`
}

function footer({ city, transcriptId, sessionId }: ChatDigest): string {
  return [
    `Answer there with: svcctl transcript send ${transcriptId} 'TEXT'`,
    `or POST ${entriesPath(city, transcriptId)} {"session_id": "${sessionId}", "text": "…"}. What you write here is not seen there.`,
  ].join('\n')
}

const entriesPath = (city: string, transcriptId: string): string =>
  `/v0/city/${encodeURIComponent(city)}/transcripts/${transcriptId}/entries`

/** Names stand in a line of ours. What is cut may end in a tag that was none before. */
const oneLine = (text: string, longest: number): string =>
  harmlessLine([...harmlessLine(text)].slice(0, longest).join(''))

/** The beginning of it, whole characters only. */
function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  let end = most
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
