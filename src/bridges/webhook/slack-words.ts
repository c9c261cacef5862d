/**
 * Words of a Slack message. People fill `text`; programs (Alertmanager, Grafana, Opsgenie, CI) often leave it empty and
 * fill `attachments` and `blocks`: https://docs.slack.dev/reference/block-kit/blocks
 */
import { cut } from '../../contract/base/text.ts'
import { isJson, list, text } from './reading.ts'

/** Blocks nest: a table has rows of cells, each of which is rich text. */
const MAX_DEPTH = 12
const MAX_PARTS = 2_000
const MAX_ATTACHMENTS = 100
const MAX_LINES = 500
const MAX_WRITTEN = 20_000

/** Joins `text`, `blocks` and `attachments`; leaves out a line that an earlier part already has. */
export function wordsOf(event: unknown): string {
  const written = cut(plain(text(event, 'text')), MAX_WRITTEN, '…')
  const writtenLetters = lettersOf(written)
  const lines: string[] = written === '' ? [] : [written]
  const attachments = list(event, 'attachments').slice(0, MAX_ATTACHMENTS)
  for (const part of [...blockLines(list(event, 'blocks')), ...attachments.flatMap(attachmentLines)]) {
    const line = cut(part.trim(), MAX_WRITTEN, '…')
    const isKnown = writtenLetters.includes(lettersOf(line)) || lines.includes(line)
    if (!isKnown && lines.length < MAX_LINES) lines.push(line)
  }
  return lines.join('\n')
}

/** `text` of a person's message is the same as its rich text, except for marks and white space. */
const lettersOf = (words: string): string => words.replaceAll(/[^\p{L}\p{N}]+/gu, '')

/** https://docs.slack.dev/messaging/formatting-message-text#attachments */
function attachmentLines(attachment: unknown): readonly string[] {
  const said = [
    plain(text(attachment, 'pretext')),
    plain(text(attachment, 'author_name')),
    withLink(plain(text(attachment, 'title')), text(attachment, 'title_link')),
    plain(text(attachment, 'text')),
    ...list(attachment, 'fields').map((field) =>
      [plain(text(field, 'title')), plain(text(field, 'value'))].filter((part) => part !== '').join(': '),
    ),
    ...blockLines(list(attachment, 'blocks')),
    ...list(attachment, 'message_blocks').flatMap((one) => blockLines(list(one, 'message', 'blocks'))),
    ...list(attachment, 'actions').map((action) => withLink(text(action, 'text'), text(action, 'url'))),
    plain(text(attachment, 'footer')),
  ].filter((line) => line.trim() !== '')
  const fallback = plain(text(attachment, 'fallback'))
  return said.length === 0 ? [fallback || withLink('', text(attachment, 'image_url'))] : said
}

function blockLines(blocks: readonly unknown[]): readonly string[] {
  const lines: string[] = []
  const budget = { left: MAX_PARTS }
  for (const block of blocks) addLines(block, lines, budget, 0)
  return lines
}

interface Budget {
  left: number
}

/** Keys below which a block, of whatever type, has what people see; in the order in which they see it. */
const SHOWN = [
  'title',
  'subtitle',
  'author_name',
  'label',
  'text',
  'body',
  'fields',
  'elements',
  'rows',
  'accessory',
  'element',
  'alt_text',
  'description',
  'url',
  'image_url',
] as const

function addLines(part: unknown, lines: string[], budget: Budget, depth: number): void {
  budget.left -= 1
  if (budget.left < 0 || depth > MAX_DEPTH) return
  if (typeof part === 'string') {
    lines.push(plain(part))
    return
  }
  if (Array.isArray(part)) {
    for (const one of part) addLines(one, lines, budget, depth + 1)
    return
  }
  if (!isJson(part)) return
  if (INLINE_PARENTS.has(text(part, 'type'))) {
    lines.push(...inline(list(part, 'elements'), budget).split('\n'))
    return
  }
  for (const key of SHOWN) if (part[key] !== undefined) addLines(part[key], lines, budget, depth + 1)
}

/** Their elements stand in one line. */
const INLINE_PARENTS: ReadonlySet<string> = new Set(['rich_text_section', 'rich_text_preformatted', 'rich_text_quote'])

function inline(elements: readonly unknown[], budget: Budget): string {
  const kept = elements.slice(0, Math.max(0, budget.left))
  budget.left -= kept.length
  return kept.map(inlineWord).join('')
}

/** https://docs.slack.dev/reference/block-kit/blocks/rich-text-block#element-types */
function inlineWord(element: unknown): string {
  switch (text(element, 'type')) {
    case 'link':
      return withLink(text(element, 'text'), text(element, 'url'))
    case 'user':
      return `@${text(element, 'user_id')}`
    case 'usergroup':
      return `@${text(element, 'usergroup_id')}`
    case 'team':
      return `@${text(element, 'team_id')}`
    case 'channel':
      return `#${text(element, 'channel_id')}`
    case 'broadcast':
      return `@${text(element, 'range')}`
    case 'emoji':
      return `:${text(element, 'name')}:`
    case 'color':
      return text(element, 'value')
    default:
      return text(element, 'text') || text(element, 'fallback')
  }
}

function withLink(label: string, url: string): string {
  if (label === '' || label === url) return url
  return url === '' ? label : `${label} (${url})`
}

/** Reads Slack's own markup: names, channels, links; and the three letters that it escapes. */
const plain = (words: string): string =>
  words
    .replaceAll(/<!date\^[^<>|]*\|([^<>]*)>/g, '$1')
    .replaceAll(/<([@#!])([^<>|]*)(?:\|@?([^<>]*))?>/g, (_, mark: string, id: string, label = '') =>
      mark === '!' ? `@${label || id}` : `${mark}${label || id}`,
    )
    .replaceAll(/<([^<>|]+)\|([^<>]*)>/g, (_, url: string, label: string) => withLink(label, url))
    .replaceAll(/<([^<>|]+)>/g, '$1')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .trim()
