/**
 * Texts of strangers (decision 138): what comes by mail or from a chat is read by agents at terminals, where a control
 * byte is a key and a reminder tag is an order of ours.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
/** Only text, newlines and tabs: C0, DEL and C1 go; `ESC[201~` would end a paste and type keys (tmux and ptys alike). */
export const plainText = (text: string): string => text.replaceAll('\r\n', '\n').replaceAll(CONTROLS, '')

/** What begins a line where `\n` is not written, and would stand there as if we had. */
const OTHER_LINE_BREAKS = /[\u2028\u2029]/g
/** Embeddings, overrides and isolates: they turn around what follows them, so that a screen shows another text than there is. */
const DIRECTIONS = /[\u202a-\u202e\u2066-\u2069]/g
/** Texts in Hebrew and Arabic need them; in a name they reach into our own words. */
const DIRECTION_MARKS = /[\u061c\u200e\u200f]/g

/**
 * Plain text that shows what it holds, without tags that agents take for words of their harness; also none that appears once others are removed, and
 * none that what is put behind it could end. In one pass, however they are nested: 256 KiB of them cost no more than other
 * text.
 */
export function harmless(text: string): string {
  const pieces = plainText(text)
    .replaceAll(OTHER_LINE_BREAKS, '\n')
    .replaceAll(DIRECTIONS, '')
    .split(/(?=<)|(?<=>)/)
  let done = ''
  /** Each begins at a `<` that nothing has closed yet. */
  const open: string[] = []
  for (const piece of pieces) {
    if (piece.startsWith('<')) open.push(piece)
    else if (open.length === 0) done += piece
    else open.push(`${open.pop()}${piece}`)
    if (!piece.endsWith('>')) continue
    if (isReminderTag(open.at(-1) ?? '')) open.pop()
    // A tag cannot go across it.
    else done += open.splice(0).map(shown).join('')
  }
  return done + open.map(shown).join('')
}

/** The beginning of a tag that nothing has ended is no tag yet: what is put behind it must not end it. */
const shown = (piece: string): string => (isReminderTag(piece) ? `&lt;${piece.slice(1)}` : piece)

/** Names and subjects, where they stand in a line of ours: one line of harmless text. */
export const harmlessLine = (text: string): string =>
  // Controls stand between words as often as blanks do.
  harmless(text.replaceAll(DIRECTION_MARKS, '').replaceAll(CONTROLS, ' ').replaceAll(/\s+/gu, ' '))
    .replaceAll(/ +/g, ' ')
    .trim()

/** What is not seen, and what no letter of a tag is hidden by: blanks stand before its name alone. */
const UNSEEN = '\\p{Cf}*'
const BEFORE = '[\\s\\p{Cf}]*'
const letters = (word: string) => [...word].join(UNSEEN)
/** `<reminder>`, `</reminder>`, `<system-reminder …>`, with blanks wherever they may be. */
const REMINDER = new RegExp(
  `^<${BEFORE}(?:/${BEFORE})?(?:${letters('system-')}${UNSEEN})?${letters('reminder')}\\b`,
  'iu',
)
const isReminderTag = (tag: string): boolean => REMINDER.test(tag)
